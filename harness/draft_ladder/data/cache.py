"""Static caches: token file -> cache files in llama.cpp's and the frozen format, content-addressed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from draft_ladder.base import native
from draft_ladder.base.artifacts import Artifact, Made, Store, made_here, without_costs
from draft_ladder.base.errors import InputError
from draft_ladder.base.foreign import refuse_foreign
from draft_ladder.base.manifests import (
    Manifest,
    Progress,
    ProgressCallback,
    load_manifest,
    manifest_path,
    sha256_file,
)
from draft_ladder.data.spill import count_bounded
from draft_ladder.data.tokens import load_token_file, raw_tokens, usable_cores

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
class Vocabulary:
    """Which tokens a file speaks in. `name` and `sha256` None: not known; `size` 0: not known."""

    name: str | None
    sha256: str | None
    size: int

    def __str__(self) -> str:
        return f"{self.name!r} ({self.size or 'an unknown number of'} tokens)"


UNKNOWN = Vocabulary(None, None, 0)


def vocabulary_of(path: Path) -> Vocabulary | None:
    """The tokenizer named by the manifest beside a cache or token file, None where there is none."""
    return vocabulary_in(load_manifest(path)) if manifest_path(path).is_file() else None


def vocabulary_in(manifest: Manifest) -> Vocabulary | None:
    """The tokenizer that a manifest names."""
    digest, name = manifest.inputs.get("tokenizer"), manifest.parameters.get("tokenizer")
    size = int(manifest.parameters.get("vocab_size") or 0)
    return Vocabulary(str(name or "an unnamed tokenizer"), digest, size) if digest or size else None


def check_same_tokenizer(path: Path, other: Path) -> None:
    """Refuse two files of different tokenizers, as far as their manifests tell. InputError names both."""
    check_vocabulary(path, vocabulary_of(path), vocabulary_of(other))


@contextmanager
def tokens_for(static: Path | None, tokens: Path) -> Iterator[Path]:
    """The tokens that a static cache is to draft along, as a file of int32 (see raw_tokens), once it is known
    that they are of its tokenizer and its vocabulary, as far as manifests tell. Raises InputError.
    """
    known = None
    if static is not None:
        static_format_of(static)
        check_same_tokenizer(static, tokens)
        known = vocabulary_of(static)
    with raw_tokens(tokens, known.size or None if known else None) as raw:
        yield raw


def check_vocabulary(
    path: Path, known: Vocabulary | None, wanted: Vocabulary | None, token_limit: int = 0
) -> None:
    """Refuse a file of `known` tokens where those of another tokenizer are wanted, as far as both are known,
    or one that holds tokens (all below `token_limit`) beyond the wanted vocabulary.

    Raises InputError naming both tokenizers, or both sizes.
    """
    remedy = "use files made with one tokenizer, or make it again"
    if wanted is None:
        return
    if known is not None and None not in (known.sha256, wanted.sha256) and known.sha256 != wanted.sha256:
        raise InputError(path, f"was made with tokenizer {known}, not with {wanted}", remedy)
    size = max(token_limit, known.size if known else 0)
    if wanted.size and size > wanted.size:
        has = f"was made with {known.size}" if known and known.size == size else f"needs at least {size}"
        problem = f"{has} tokens in the vocabulary, but {wanted.name!r} has {wanted.size}"
        raise InputError(path, problem, remedy)


@dataclass(frozen=True)
class StaticCache:
    """The files of one static cache by format, their digests, and what the builder counted.

    `stats`: n_tokens, n_bigrams, n_pairs, single_share, at_most_100_share, largest (successors of one
    bigram), and the builder's own nanoseconds per phase.
    """

    paths: dict[str, Path]
    sha256s: dict[str, str]
    stats: dict[str, Any] = field(default_factory=dict)


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
    with raw_tokens(token_file) as raw:
        return _build(raw, cache_dir, jobs, progress, formats, memory_bytes)


def _build(
    token_file: Path,
    cache_dir: Path,
    jobs: int | None,
    progress: ProgressCallback | None,
    formats: Sequence[str],
    memory_bytes: int | None,
) -> StaticCache:
    digest = sha256_file(token_file)
    vocabulary = vocabulary_of(token_file) or UNKNOWN
    if vocabulary != UNKNOWN and load_token_file(token_file).sha256 != digest:
        raise InputError(token_file, "is not the file its manifest describes", "tokenise the text again")
    store = Store(cache_dir)

    def count(target: Path) -> Made:
        threads = jobs or usable_cores()
        if memory_bytes is None:
            return Made(_count(token_file, target, vocabulary.size, threads, progress))
        spill = store.path(llama).with_suffix(".bin.spill")  # found again after a kill
        return Made(
            count_bounded(
                token_file,
                digest,
                target,
                memory_bytes,
                vocab_size=vocabulary.size,
                jobs=threads,
                progress=progress,
                folder=spill,
            )
        )

    llama = counted(digest, vocabulary, count)
    return in_formats(store, llama, vocabulary, formats, memory_bytes)


def counted(tokens_sha256: str, vocabulary: Vocabulary, make: Callable[[Path], Made]) -> Artifact:
    """The counts of those tokens in llama.cpp's format, the same artifact whichever builder makes it."""
    identity = {
        "rule": COUNTING_RULE,
        "tokens": tokens_sha256,
        "vocab_size": vocabulary.size,
        "tokenizer": vocabulary.sha256,
    }
    return static_artifact(LLAMA, vocabulary, identity, {"tokens": tokens_sha256}, make)


def static_artifact(
    static_format: str,
    vocabulary: Vocabulary,
    identity: Mapping[str, Any],
    inputs: Mapping[str, str],
    make: Callable[[Path], Made],
) -> Artifact:
    """A static cache in one of the formats of SUFFIXES, of those tokens."""
    tokenizer = {} if vocabulary.sha256 is None else {"tokenizer": vocabulary.sha256}
    return Artifact(
        kind=KIND,
        folder=KIND,
        suffix=SUFFIXES[static_format],
        identity=identity,
        make=make,
        inputs={**inputs, **tokenizer},
        parameters={
            "format": static_format,
            "counting_rule": COUNTING_RULE,
            "vocab_size": vocabulary.size,
            "tokenizer": vocabulary.name,
        },
    )


def in_formats(
    store: Store,
    llama: Artifact,
    vocabulary: Vocabulary,
    formats: Sequence[str],
    memory_bytes: int | None = None,
) -> StaticCache:
    """A cache in llama.cpp's format, and frozen ones made from it, as far as they are asked for."""

    def frozen(name: str) -> Artifact:
        def freeze(target: Path) -> Made:
            made_from = store.get(llama)
            _check_freezing_fits(made_from.path, memory_bytes)
            freeze_cache(made_from.path, target, paired=name == "paired", vocab_size=vocabulary.size)
            facts = made_from.manifest.facts
            return Made(facts if made_here(made_from.path) else without_costs(facts))

        return static_artifact(name, vocabulary, llama.identity, llama.inputs, freeze)

    stored = {name: store.get(llama if name == LLAMA else frozen(name)) for name in formats}
    facts = next(iter(stored.values())).manifest.facts if stored else {}
    return StaticCache(
        {name: found.path for name, found in stored.items()},
        {name: found.sha256 for name, found in stored.items()},
        facts,
    )


def _check_freezing_fits(llama: Path, memory_bytes: int | None) -> None:
    needed = FREEZING_FACTOR * llama.stat().st_size
    if memory_bytes is not None and needed > memory_bytes:
        raise InputError(
            "--memory",
            f"{memory_bytes} bytes are too few to freeze {llama.name}, which takes about {int(needed)}",
            "allow more, or keep to llama.cpp's format (it is built and stays)",
        )


def _count(
    tokens: Path, llama: Path, vocab_size: int, jobs: int, progress: ProgressCallback | None
) -> dict[str, Any]:
    with native.errors():
        tell = _as_native_progress(progress, tokens.stat().st_size)
        stats: dict[str, Any] = native.builder().build_static(
            str(tokens), str(llama), None, vocab_size, jobs, tell
        )
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


def freeze_cache(source: Path, target: Path, *, paired: bool = False, vocab_size: int = 0) -> dict[str, int]:
    """Freeze a static cache in llama.cpp's format; n_bigrams, n_pairs, bytes and nanoseconds.

    `vocab_size` 0 means unknown. Raises InputError naming file and byte offset for whatever is wrong.
    """
    with native.errors():
        report: dict[str, int] = native.builder().freeze(str(source), str(target), paired, vocab_size)
    return report


def static_format_of(path: Path) -> str:
    """'empty', 'llama' or 'frozen', by content. Raises InputError for what is not a readable file, and for
    one of a known format that is no static cache.
    """
    refuse_foreign(path, "a static cache", "frozen static cache", "summary static cache")
    with native.errors():
        return str(native.builder().format_of(str(path)))


def static_statistics(path: Path) -> dict[str, Any]:
    """Figures of a static file: format, n_bigrams, n_pairs, single_share, at_most_100_share, largest.

    Reads and checks the whole file. The shares and `largest` of a frozen file are None: it keeps no list of
    its bigrams. Raises InputError naming file and byte offset.
    """
    with native.errors():
        statistics: dict[str, Any] = native.builder().statistics(str(path))
    return statistics
