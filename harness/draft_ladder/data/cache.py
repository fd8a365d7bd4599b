"""Static caches: token file -> cache files in llama.cpp's and the frozen format, content-addressed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import (
    Manifest,
    Progress,
    ProgressCallback,
    base_versions,
    cached_manifest,
    content_key,
    load_manifest,
    manifest_path,
    sha256_file,
    write_manifest,
)
from draft_ladder.data.spill import count_bounded
from draft_ladder.data.tokens import load_token_file, usable_cores

LLAMA = "llama"  # the format of llama.cpp's own files
KIND = "static"
COUNTING_RULE = 1  # raised when the same tokens would give other counts or another layout
SUFFIXES = {"llama": ".bin", "frozen": ".frozen", "paired": ".paired.frozen"}
DEFAULT_FORMATS = ("llama", "frozen")
FREEZING_FACTOR = 2.5  # resident memory to the size of the file that is frozen: 2.4 measured at 540 MB

# Share of the whole that lies before each phase of the native builder: measured on 124 million tokens.
_PHASE_STARTS = {"check": 0.0, "plan": 0.04, "pack": 0.08, "sort": 0.3, "map": 0.75, "sync": 0.95}
_PHASES = (*_PHASE_STARTS, "done")


@dataclass(frozen=True)
class StaticCache:
    """The files of one static cache by format, their digests, and what the builder counted.

    `stats`: n_tokens, n_bigrams, n_pairs, single_share, at_most_100_share, largest (successors of one
    bigram), and the builder's own nanoseconds per phase.
    """

    paths: dict[str, Path]
    sha256s: dict[str, str]
    stats: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Tokens:
    """What the cache is made from. `vocab_size` 0 and tokenizer None: a token file without a manifest."""

    path: Path
    sha256: str
    vocab_size: int
    tokenizer: str | None
    tokenizer_sha256: str | None


def build_static_cache(
    token_file: Path,
    cache_dir: Path,
    jobs: int | None = None,
    progress: ProgressCallback | None = None,
    formats: Sequence[str] = DEFAULT_FORMATS,
    memory_bytes: int | None = None,
) -> StaticCache:
    """The static cache of a token file in `cache_dir`/static, made now or found there.

    `formats`: any of "llama", "frozen" and "paired" (the frozen file with a PMAP0001 map). `jobs` defaults
    to the number of usable cores; it changes nothing but the time. With `memory_bytes` the counting keeps
    its resident memory within that bound, through spill files (see spill.py). Raises InputError for a bad
    token file (naming the byte offset), a digest that is not its manifest's, an unknown format, a bound that
    is too small, or a full disk.
    """
    unknown = [name for name in formats if name not in SUFFIXES]
    if unknown:
        raise InputError("formats", f"{unknown[0]!r} is unknown", f"use {', '.join(SUFFIXES)}")
    tokens = _read_tokens(token_file)
    folder = cache_dir / "static"
    key = cache_key(tokens.sha256, tokens.vocab_size, tokens.tokenizer_sha256)
    targets = {name: folder / (key + suffix) for name, suffix in SUFFIXES.items()}
    if any(cached_manifest(targets[name], KIND) is None for name in formats):
        folder.mkdir(parents=True, exist_ok=True)
        _build_missing(tokens, targets, formats, jobs or usable_cores(), progress, memory_bytes)
    manifests = {name: load_manifest(targets[name], KIND) for name in formats}
    facts = next(iter(manifests.values())).facts if manifests else {}
    return StaticCache(
        paths={name: targets[name] for name in formats},
        sha256s={name: manifest.sha256 for name, manifest in manifests.items()},
        stats=facts,
    )


def _read_tokens(path: Path) -> _Tokens:
    digest = sha256_file(path)
    if not manifest_path(path).is_file():
        return _Tokens(path, digest, 0, None, None)
    known = load_token_file(path)
    if known.sha256 != digest:
        raise InputError(path, "is not the file its manifest describes", "tokenise the text again")
    return _Tokens(path, digest, known.vocab_size, known.tokenizer, known.tokenizer_sha256)


def cache_key(tokens_sha256: str, vocab_size: int, tokenizer_sha256: str | None) -> str:
    """Names the static cache of those tokens, whichever builder makes it."""
    identity = {
        "kind": KIND,
        "rule": COUNTING_RULE,
        "tokens": tokens_sha256,
        "vocab_size": vocab_size,
        "tokenizer": tokenizer_sha256,
    }
    return content_key(identity)


def _build_missing(
    tokens: _Tokens,
    targets: dict[str, Path],
    formats: Sequence[str],
    jobs: int,
    progress: ProgressCallback | None,
    memory_bytes: int | None,
) -> None:
    """Counts unless llama.cpp's file is already there; freezes from that file what is then still missing."""
    llama = cached_manifest(targets["llama"], KIND)
    if llama is None and memory_bytes is not None:
        facts = count_bounded(
            tokens.path,
            tokens.sha256,
            targets["llama"],
            memory_bytes,
            vocab_size=tokens.vocab_size,
            jobs=jobs,
            progress=progress,
        )
        _describe(tokens, "llama", targets["llama"], facts)
    elif llama is None:
        frozen = targets["frozen"] if "frozen" in formats else None
        facts = _count(tokens, targets["llama"], frozen, jobs, progress)
        _describe(tokens, "llama", targets["llama"], facts)
        if frozen is not None:
            _describe(tokens, "frozen", frozen, facts)
    else:
        facts = llama.facts
    for name in formats:
        if name != "llama" and cached_manifest(targets[name], KIND) is None:
            _check_freezing_fits(targets["llama"], memory_bytes)
            freeze_cache(
                targets["llama"], targets[name], paired=name == "paired", vocab_size=tokens.vocab_size
            )
            _describe(tokens, name, targets[name], facts)


def _check_freezing_fits(llama: Path, memory_bytes: int | None) -> None:
    needed = FREEZING_FACTOR * llama.stat().st_size
    if memory_bytes is not None and needed > memory_bytes:
        raise InputError(
            "--memory",
            f"{memory_bytes} bytes are too few to freeze {llama.name}, which takes about {int(needed)}",
            "allow more, or keep to llama.cpp's format (it is built and stays)",
        )


def _count(
    tokens: _Tokens, llama: Path, frozen: Path | None, jobs: int, progress: ProgressCallback | None
) -> dict[str, Any]:
    try:
        stats: dict[str, Any] = native.builder().build_static(
            str(tokens.path),
            str(llama),
            None if frozen is None else str(frozen),
            tokens.vocab_size,
            jobs,
            _as_native_progress(progress, tokens.path.stat().st_size),
        )
    except ValueError as error:
        raise native.input_error(error) from error
    return stats


def _as_native_progress(
    progress: ProgressCallback | None, total_bytes: int
) -> Callable[[str, int, int], None] | None:
    """The builder tells tasks done of each phase; the user sees bytes of the token file."""
    if progress is None:
        return None
    started = time.monotonic()

    def report(phase: str, done: int, total: int) -> None:
        start = _PHASE_STARTS[phase]
        end = _PHASE_STARTS.get(_PHASES[_PHASES.index(phase) + 1], 1.0)
        share = start + (end - start) * (done / total if total else 1.0)
        progress(Progress("cache", int(share * total_bytes), total_bytes, time.monotonic() - started))

    return report


def _describe(tokens: _Tokens, static_format: str, path: Path, facts: dict[str, Any]) -> None:
    vocabulary = tokens.tokenizer, tokens.tokenizer_sha256, tokens.vocab_size
    describe_cache(path, static_format, vocabulary, {"tokens": tokens.sha256}, facts)


def describe_cache(
    path: Path,
    static_format: str,
    vocabulary: tuple[str | None, str | None, int],
    inputs: dict[str, str],
    facts: dict[str, Any],
) -> None:
    """Write a static cache's manifest: last, because it says that the file is whole.

    `vocabulary`: the tokenizer's name and digest, null where not known, and its size, 0 where not known.
    """
    tokenizer, tokenizer_sha256, vocab_size = vocabulary
    manifest = Manifest(
        kind=KIND,
        inputs=inputs if tokenizer_sha256 is None else inputs | {"tokenizer": tokenizer_sha256},
        parameters={
            "format": static_format,
            "counting_rule": COUNTING_RULE,
            "vocab_size": vocab_size,
            "tokenizer": tokenizer,
        },
        versions=base_versions(),
        sha256=sha256_file(path),
        bytes=path.stat().st_size,
        facts=facts,
    )
    write_manifest(path, manifest)


def freeze_cache(source: Path, target: Path, *, paired: bool = False, vocab_size: int = 0) -> dict[str, int]:
    """Freeze a static cache in llama.cpp's format; n_bigrams, n_pairs, bytes and nanoseconds.

    `vocab_size` 0 means unknown. Raises InputError naming file and byte offset for whatever is wrong.
    """
    try:
        report: dict[str, int] = native.builder().freeze(str(source), str(target), paired, vocab_size)
    except ValueError as error:
        raise native.input_error(error) from error
    return report


def static_format_of(path: Path) -> str:
    """'empty', 'llama' or 'frozen', by content. Raises InputError for what is not a readable file."""
    try:
        return str(native.builder().format_of(str(path)))
    except ValueError as error:
        raise native.input_error(error) from error


def static_statistics(path: Path) -> dict[str, Any]:
    """Figures of a static file: format, n_bigrams, n_pairs, single_share, at_most_100_share, largest.

    Reads and checks the whole file. The shares and `largest` of a frozen file are None: it keeps no list of
    its bigrams. Raises InputError naming file and byte offset.
    """
    try:
        statistics: dict[str, Any] = native.builder().statistics(str(path))
    except ValueError as error:
        raise native.input_error(error) from error
    return statistics


def check_same_tokenizer(static: Path, token_file: Path) -> None:
    """Refuse to use a static cache with tokens of another tokenizer, where both have manifests.

    Raises InputError naming both tokenizers and their vocabulary sizes.
    """
    if not (manifest_path(static).is_file() and manifest_path(token_file).is_file()):
        return
    cache = load_manifest(static, KIND)
    tokens = load_token_file(token_file)
    made_with = cache.inputs.get("tokenizer")
    if made_with is None or made_with == tokens.tokenizer_sha256:
        return
    name, size = cache.parameters.get("tokenizer"), cache.parameters.get("vocab_size")
    raise InputError(
        static,
        f"was built with tokenizer {name!r} ({size} tokens), but {token_file.name} with "
        f"{tokens.tokenizer!r} ({tokens.vocab_size} tokens)",
        "build the cache and the tokens with one tokenizer",
    )
