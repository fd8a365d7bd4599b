"""What an end-to-end run needs, made or found in the cache: the model's static cache and its prompts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import (
    at_home,
    load_manifest,
    manifest_path,
    sha256_file,
    write_atomic,
)
from draft_ladder.base.variants import Variant
from draft_ladder.bench.config import fill_in, fill_in_text
from draft_ladder.bench.prepare import converted
from draft_ladder.bench.runner import StaticFile
from draft_ladder.data.cache import SUFFIXES, build_static_cache, static_format_of
from draft_ladder.data.corpus import build_corpus
from draft_ladder.data.resolve import resolve_source
from draft_ladder.data.tokenizers import Tokenizer
from draft_ladder.data.tokens import tokenize_file
from draft_ladder.e2e.records import E2eConfig
from draft_ladder.e2e.workloads import Workload, read_prompts, reference_text
from draft_ladder.llama.library import TokenArray
from draft_ladder.llama.model import Model
from draft_ladder.llama.static_cache import check_largest_token, check_tokenizer
from draft_ladder.llama.vocabulary import Vocabulary

Note = Callable[[str], None]


@dataclass(frozen=True)
class Work:
    """A workload ready to run: the prompts' tokens, and the token file that is replayed."""

    workload: Workload
    prompts: list[TokenArray]
    cut_total: int
    replay: Path
    replay_sha256: str


@dataclass
class Inputs:
    """Everything a run reads."""

    model: Path
    model_sha256: str
    vocabulary: Vocabulary
    static: dict[str, StaticFile]
    corpus: dict[str, Any]
    variants: list[Variant]
    works: list[Work] = field(default_factory=list)


def prepare_static(
    config: E2eConfig,
    tokenizer: Callable[[], Tokenizer],
    vocabulary: Vocabulary,
    variants: Sequence[Variant],
    cache: Path,
    text_dir: Path | None,
    note: Note,
) -> tuple[dict[str, StaticFile], dict[str, Any]]:
    """The static cache in every format the variants load, and what is known about how it was made."""
    wanted = {"llama", *(variant.static_format for variant in variants)}
    if config.static is not None:
        path = at_home(Path(fill_in_text(config.static, "static", text_dir)))
        if static_format_of(path) != "llama":
            raise InputError(path, "is not in llama.cpp's format", "name the .bin it was made from")
        check_tokenizer(path, vocabulary)
        check_largest_token(path, vocabulary)
        files = {"llama": StaticFile(path, sha256_file(path), "llama", None)}
        known = load_manifest(path).facts if manifest_path(path).is_file() else {}
        corpus: dict[str, Any] = {"label": path.name, "kind": "unknown", "bytes": None, "facts": known}
    else:
        assert config.corpus is not None
        source = resolve_source(fill_in(config.corpus, text_dir))
        text = build_corpus(source, config.size_mb, cache, clip=config.clip)
        begin = time.monotonic()
        tokens = tokenize_file(text.path, tokenizer(), cache, text_sha256=text.sha256, report=note)
        note(f"tokens of {text.label}: {tokens.n_tokens} in {time.monotonic() - begin:.1f} s")
        built = build_static_cache(tokens.path, cache, formats=sorted(wanted & set(SUFFIXES)))
        files = {
            name: StaticFile(path, built.sha256s[name], name, None) for name, path in built.paths.items()
        }
        corpus = {
            "label": text.label,
            "kind": text.kind,
            "bytes": text.bytes,
            "sha256": text.sha256,
            "n_tokens": tokens.n_tokens,
            "facts": built.stats,
        }
    for variant in variants:
        if variant.static_format not in files:
            files[variant.static_format] = converted(files["llama"], variant, cache, note)
    return files, corpus


def prepare_works(
    config: E2eConfig, model: Model, cache: Path, text_dir: Path | None, note: Note
) -> list[Work]:
    """The prompts as tokens, cut where the config says so, and each workload's replayed text."""
    works = []
    for workload in config.workload:
        prompts: list[TokenArray] = []
        cut_total = 0
        for text in read_prompts(workload, text_dir):
            tokens, was_cut = prompt_tokens(model, workload, text, config.max_prompt_tokens)
            cut_total += was_cut
            if len(tokens) >= config.n_ctx:
                raise InputError(
                    f"workload {workload.name}, prompt {len(prompts) + 1}",
                    f"{len(tokens)} tokens leave no room for an answer in n_ctx ({config.n_ctx})",
                    "set max_prompt_tokens, or raise n_ctx",
                )
            prompts.append(tokens)
        if cut_total:
            note(f"{workload.name}: {cut_total} prompts were cut to {config.max_prompt_tokens} tokens")
        tokens = model.tokenize(reference_text(workload, text_dir, config.replay_bytes), special=False)
        raw = tokens.astype("<i4").tobytes()
        digest = hashlib.sha256(raw).hexdigest()
        path = cache / "tokens" / f"{digest[:16]}.tok"
        if not path.exists():
            write_atomic(path, raw)
        works.append(Work(workload, prompts, cut_total, path, digest))
    return works


def prompt_tokens(model: Model, workload: Workload, text: str, limit: int | None) -> tuple[TokenArray, bool]:
    """A prompt's tokens; the text, not the template around it, is cut where it is longer than `limit`."""

    def tokens_of(part: str) -> TokenArray:
        return model.tokenize(model.chat(part) if workload.chat else part)

    tokens = tokens_of(text)
    if limit is None or len(tokens) <= limit:
        return tokens, False
    body = model.tokenize(text, special=False)
    room = limit - (len(tokens) - len(body))
    while room > 0:
        tokens = tokens_of(model.detokenize(body[:room].tolist()).rstrip("\ufffd"))
        if len(tokens) <= limit:
            return tokens, True
        room -= len(tokens) - limit
    raise InputError(
        f"workload {workload.name}",
        f"{limit} tokens do not hold the chat template",
        "raise max_prompt_tokens",
    )
