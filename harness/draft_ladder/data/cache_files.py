"""Static caches as files of their own: imported, exported, merged, looked into and verified.

llama.cpp's files carry no tokenizer. Here its digest stands in the manifest beside the file; where both sides
name one they must be the same, and where only a size is known no token may lie beyond it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import (
    Progress,
    ProgressCallback,
    content_key,
    load_manifest,
    manifest_path,
    refuse_overwriting,
    sha256_file,
    write_atomic,
)
from draft_ladder.data.cache import (
    KIND,
    SUFFIXES,
    build_static_cache,
    cache_key,
    describe_cache,
    freeze_cache,
    static_format_of,
)
from draft_ladder.data.own_format import convert_here, is_of_another_build, reader_of
from draft_ladder.data.spill import (
    caches_module,
    merge_sorted_files,
    native_errors,
    room_bytes,
    sort_file,
)
from draft_ladder.data.tokenizers import load_tokenizer
from draft_ladder.data.tokens import load_token_file, open_tokens

DEFAULT_MEMORY = "1GB"
SUMMARY = "summary"
FROZEN_FORMATS = ("frozen", "paired")  # by content; neither keeps a list of its n-grams


@dataclass(frozen=True)
class Vocabulary:
    """Which tokens a file speaks in. `sha256` None: not known; `size` 0: not known."""

    name: str
    sha256: str | None
    size: int

    def __str__(self) -> str:
        return f"{self.name!r} ({self.size or 'an unknown number of'} tokens)"


@dataclass(frozen=True)
class CacheInfo:
    """What a static file holds. `content` is the same for the same n-grams and counts in any order; it, the
    counts and `sorted` are None for formats that keep no list of their bigrams.
    """

    path: Path
    format: str
    sha256: str
    bytes: int
    n_bigrams: int
    n_pairs: int
    token_limit: int
    content: str | None
    sorted: bool | None
    total_count: int | None
    largest_count: int | None
    shares: dict[str, Any]
    vocabulary: Vocabulary | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        vocabulary = self.vocabulary
        return {
            "path": str(self.path),
            "format": self.format,
            "sha256": self.sha256,
            "bytes": self.bytes,
            "n_bigrams": self.n_bigrams,
            "n_pairs": self.n_pairs,
            "token_limit": self.token_limit,
            "content": self.content,
            "sorted": self.sorted,
            "total_count": self.total_count,
            "largest_count": self.largest_count,
            **self.shares,
            "tokenizer": None if vocabulary is None else vocabulary.name,
            "tokenizer_sha256": None if vocabulary is None else vocabulary.sha256,
            "vocab_size": None if vocabulary is None else vocabulary.size,
        }


def vocabulary_of(artifact: Path) -> Vocabulary | None:
    """The tokenizer named by the manifest beside a cache or token file, None where there is none."""
    if not manifest_path(artifact).is_file():
        return None
    manifest = load_manifest(artifact)
    digest = manifest.inputs.get("tokenizer")
    name = manifest.parameters.get("tokenizer")
    size = manifest.parameters.get("vocab_size") or 0
    if digest is None and not size:
        return None
    return Vocabulary(str(name or "an unnamed tokenizer"), digest, int(size))


def vocabulary_named(name: str) -> Vocabulary:
    """That of `tekken`, a tokenizer.json or a `gguf:PATH`."""
    tokenizer = load_tokenizer(name)
    return Vocabulary(tokenizer.name, tokenizer.sha256, tokenizer.vocab_size)


def check_vocabulary(info: CacheInfo, wanted: Vocabulary) -> None:
    """Refuse a cache of another tokenizer, or one that holds tokens beyond the wanted vocabulary.

    Raises InputError naming both tokenizers, or both sizes.
    """
    known = info.vocabulary
    if known is not None and None not in (known.sha256, wanted.sha256) and known.sha256 != wanted.sha256:
        raise InputError(
            info.path,
            f"was built with tokenizer {known}, not with {wanted}",
            "use the cache made with this tokenizer, or build it again",
        )
    size = max(info.token_limit, known.size if known else 0)
    if wanted.size and size > wanted.size:
        has = f"was built with {known.size}" if known and known.size == size else f"needs at least {size}"
        raise InputError(
            info.path,
            f"{has} tokens in the vocabulary, but {wanted.name!r} has {wanted.size}",
            "use the cache made with this tokenizer, or build it again",
        )


def inspect_cache(
    path: Path, progress: ProgressCallback | None = None, vocabulary: Vocabulary | None = None
) -> CacheInfo:
    """Read and check a whole static file of any format. `vocabulary` is taken from its manifest by default.

    Raises InputError naming the byte offset of whatever is wrong.
    """
    vocabulary = vocabulary or vocabulary_of(path)
    kind = static_format_of(path)
    if manifest_path(path).is_file() and load_manifest(path, KIND).bytes != path.stat().st_size:
        raise InputError(path, "is not the file its manifest describes", "build it again")
    facts: dict[str, Any] = {}
    with native_errors():
        if kind in FROZEN_FORMATS:
            frozen = native.builder().check_frozen(str(path))
            size = int(frozen["vocabulary_size"])
            if vocabulary is None and size:
                vocabulary = Vocabulary("an unnamed tokenizer", None, size)
            facts = {key: frozen[key] for key in ("n_bigrams", "n_pairs", "token_limit")}
        elif kind in ("llama", "empty"):
            facts = caches_module().scan(str(path), 0, _as_native("check", progress))
        else:
            facts = _own_facts(path, kind)
    return CacheInfo(
        path=path,
        format=kind,
        sha256=sha256_file(path),
        bytes=path.stat().st_size,
        n_bigrams=facts["n_bigrams"],
        n_pairs=facts["n_pairs"],
        token_limit=facts["token_limit"],
        content=facts.get("content"),
        sorted=facts.get("sorted"),
        total_count=facts.get("total_count"),
        largest_count=facts.get("largest_count"),
        shares={key: facts.get(key) for key in ("single_share", "at_most_100_share", "largest")},
        vocabulary=vocabulary,
    )


def _own_facts(path: Path, kind: str) -> dict[str, Any]:
    """Figures of a file in a variant's own format, once the drafter that reads it has checked every byte."""
    drafter = reader_of(kind).load().Drafter()
    drafter.load(str(path))
    drafter.verify_static()
    return {**(drafter.static_figures() or {}), "token_limit": drafter.token_limit()}


def _as_native(stage: str, progress: ProgressCallback | None) -> Callable[[str, int, int], None] | None:
    started = time.monotonic()

    def report(phase: str, done: int, total: int) -> None:
        if progress:
            progress(Progress(f"{stage}: {phase}", done, total, time.monotonic() - started))

    return report if progress else None


def _listed(path: Path, progress: ProgressCallback | None, wanted: Vocabulary | None) -> CacheInfo:
    """A checked cache that can be written in llama.cpp's format."""
    info = inspect_cache(path, progress)
    if info.format in (*FROZEN_FORMATS, SUMMARY):
        problem = f"is in the {info.format} format, and llama.cpp's has to be written"
        raise InputError(path, problem, "give the .bin that it was made from")
    if wanted is not None:
        check_vocabulary(info, wanted)
    return info


def import_cache(
    source: Path,
    where: Path,
    vocabulary: Vocabulary,
    *,
    sort: bool = False,
    formats: Sequence[str] = ("llama",),
    memory_bytes: int = 10**9,
    progress: ProgressCallback | None = None,
) -> dict[str, Path]:
    """Take a cache made by llama.cpp's tools into the cache directory `where`, checked, with a manifest.

    The file is kept byte for byte: the order of its n-grams decides ties in llama.cpp. With `sort` it is
    brought into the order of our builder. Returns the paths by format. Raises InputError naming the byte
    offset of whatever is wrong, or both vocabularies.
    """
    info = _listed(source, progress, vocabulary)
    identity = {"kind": KIND, "imported": info.sha256, "sort": sort, "tokenizer": vocabulary.sha256}
    stem = where / "static" / content_key(identity)
    paths = {
        name: stem.with_name(stem.name + SUFFIXES[name]) for name in {"llama": None} | dict.fromkeys(formats)
    }
    paths["llama"].parent.mkdir(parents=True, exist_ok=True)
    _write_llama(info, paths["llama"], sort, memory_bytes, vocabulary.size, progress)
    facts = info.shares | {"n_bigrams": info.n_bigrams, "n_pairs": info.n_pairs}
    for name, path in paths.items():
        if name != "llama":
            freeze_cache(paths["llama"], path, paired=name == "paired", vocab_size=vocabulary.size)
        _describe(path, name, vocabulary, {"imported": info.sha256}, facts)
    return paths


def export_cache(
    source: Path,
    target: Path,
    vocabulary: Vocabulary | None = None,
    *,
    sort: bool = False,
    memory_bytes: int = 10**9,
    progress: ProgressCallback | None = None,
) -> CacheInfo:
    """Write a cache as a file that llama.cpp's lookup tools load, its manifest beside it.

    `vocabulary` is that of the model it is meant for. Raises InputError as import_cache does.
    """
    info = _listed(source, progress, vocabulary)
    _write_llama(info, target, sort, memory_bytes, 0, progress)
    known = info.vocabulary or vocabulary
    if known is not None:
        facts = info.shares | {"n_bigrams": info.n_bigrams, "n_pairs": info.n_pairs}
        _describe(target, "llama", known, {"exported": info.sha256}, facts)
    return info


def _write_llama(
    info: CacheInfo,
    target: Path,
    sort: bool,
    memory_bytes: int,
    vocab_size: int,
    progress: ProgressCallback | None,
) -> None:
    refuse_overwriting(target, info.path)
    room_bytes(memory_bytes)
    if sort and not info.sorted:
        sort_file(info.path, target, memory_bytes, vocab_size, _as_native("sort", progress))
        return
    with info.path.open("rb") as file:
        write_atomic(target, lambda out: shutil.copyfileobj(file, out, 1 << 20))
    if sha256_file(target) != info.sha256:
        target.unlink()
        raise InputError(info.path, "changed while it was read", "let nothing write to it")


def merge_caches(
    sources: Sequence[Path],
    target: Path,
    *,
    memory_bytes: int = 10**9,
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Add the counts of several caches, as llama-lookup-merge does, in at most `memory_bytes` of memory.

    Inputs in any order (unsorted ones are first sorted on disk); the result is sorted. Returns its figures.
    Raises InputError for inputs of different tokenizers (naming both), for a sum beyond int32 (naming the
    n-gram) and for whatever is wrong in a file (naming the byte).
    """
    if len(sources) < 2:
        raise InputError("merge", f"{len(sources)} caches were given", "give at least two")
    if target.is_dir():
        raise InputError(target, "is a directory", "name a file")
    room_bytes(memory_bytes)
    infos = [_listed(path, progress, None) for path in sources]
    vocabulary = _common_vocabulary(infos)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.merge.", dir=target.parent) as folder:
        inputs = []
        for number, info in enumerate(infos):
            path = info.path
            if not info.sorted:
                path = Path(folder) / f"sorted-{number}.bin"
                sort_file(info.path, path, memory_bytes, 0, _as_native("sort", progress))
            inputs.append(path)
        largest = vocabulary.size if vocabulary else max(info.token_limit for info in infos)
        facts = merge_sorted_files(
            inputs, target, memory_bytes, Path(folder), largest, _as_native("merge", progress)
        )
    if vocabulary is not None:
        digests = {f"merged {number}": info.sha256 for number, info in enumerate(infos)}
        _describe(target, "llama", vocabulary, digests, facts)
    return facts


def _common_vocabulary(infos: Sequence[CacheInfo]) -> Vocabulary | None:
    known = [info for info in infos if info.vocabulary is not None]
    for info in infos:
        if known and known[0].vocabulary is not None:
            check_vocabulary(info, known[0].vocabulary)
    # A result of which one part is of unknown tokens is itself unknown.
    return known[0].vocabulary if known and len(known) == len(infos) else None


def _describe(
    path: Path, name: str, vocabulary: Vocabulary, inputs: dict[str, str], facts: dict[str, Any]
) -> None:
    known = vocabulary.name, vocabulary.sha256, vocabulary.size
    describe_cache(path, name, known, inputs, facts)


def build_with_dask(
    address: str,
    where: Path,
    *,
    scheduler: str | None = None,
    workers: int = 2,
    formats: Sequence[str] = ("llama",),
    progress: ProgressCallback | None = None,
    **division: int,
) -> dict[str, Path]:
    """The static cache of the token file at an fsspec address, counted on Dask; under the name, and with the
    bytes, that the local builder gives it. `division`: `part_tokens` and `range_bytes` of count_with_dask().
    Returns the paths by format. Raises InputError.
    """
    from draft_ladder.data.dask_builder import count_with_dask, describe_tokens

    digest, manifest = describe_tokens(address)
    parameters = manifest.parameters if manifest else {}
    tokenizer = manifest.inputs.get("tokenizer") if manifest else None
    vocabulary = Vocabulary(
        str(parameters.get("tokenizer", "unknown")), tokenizer, int(parameters.get("vocab_size", 0))
    )
    stem = where / "static" / cache_key(digest, vocabulary.size, tokenizer)
    paths = {
        name: stem.with_name(stem.name + SUFFIXES[name]) for name in {"llama": None} | dict.fromkeys(formats)
    }
    counts = count_with_dask(
        address,
        paths["llama"],
        vocab_size=vocabulary.size,
        scheduler=scheduler,
        workers=workers,
        progress=progress,
        **division,
    )
    with native_errors():
        found = caches_module().scan(str(paths["llama"]))
    if found["total_count"] != max(0, counts["n_tokens"] - 2):
        raise InputError(address, "changed while it was counted", "let nothing write to it, run again")
    names = ("n_bigrams", "n_pairs", "single_share", "at_most_100_share", "largest")
    facts = counts | {name: found[name] for name in names}
    for name, path in paths.items():
        if name != "llama":
            freeze_cache(paths["llama"], path, paired=name == "paired", vocab_size=vocabulary.size)
        _describe(path, name, vocabulary, {"tokens": digest}, facts)
    return paths


def verify_cache(
    path: Path,
    *,
    vocabulary: Vocabulary | None = None,
    tokens: Path | None = None,
    same_as: Path | None = None,
    progress: ProgressCallback | None = None,
) -> CacheInfo:
    """Check a static file: every byte, its manifest, a tokenizer, the tokens it was counted from, and whether
    it holds the same as another file. Raises InputError naming the first thing that is not so.
    """
    info = inspect_cache(path, progress)
    if manifest_path(path).is_file() and load_manifest(path, KIND).sha256 != info.sha256:
        raise InputError(path, "is not the file its manifest describes", "build it again")
    if vocabulary is not None:
        check_vocabulary(info, vocabulary)
    if tokens is not None:
        _verify_tokens(info, tokens, progress)
    if same_as is not None:
        other = inspect_cache(same_as, progress)
        if None in (info.content, other.content):
            listless = path if info.content is None else same_as
            kept = (info if info.content is None else other).format
            problem = f"cannot be compared: the {kept} format keeps no list of its n-grams"
            raise InputError(listless, problem, "compare the .bin files")
        if info.content != other.content:
            figures = f"{info.n_bigrams} n-grams, {info.n_pairs} pairs, {info.total_count} counts"
            theirs = f"{other.n_bigrams}, {other.n_pairs}, {other.total_count}"
            raise InputError(
                path, f"({figures}) does not hold the same as {same_as} ({theirs})", "compare their sources"
            )
    return info


def _verify_tokens(info: CacheInfo, tokens: Path, progress: ProgressCallback | None) -> None:
    """Counts the tokens again and compares: lists where the format keeps them, else the bytes of the file."""
    open_tokens(tokens)
    if manifest_path(tokens).is_file():
        token_file = load_token_file(tokens)
        wanted = Vocabulary(token_file.tokenizer, token_file.tokenizer_sha256, token_file.vocab_size)
        check_vocabulary(info, wanted)
    expected = max(0, tokens.stat().st_size // 4 - 2)
    if info.total_count is not None and info.total_count != expected:
        raise InputError(
            info.path,
            f"counts {info.total_count} successors where {tokens.name} has {expected}",
            "build it from these tokens",
        )
    with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
        formats = ["llama", *({info.format} & set(FROZEN_FORMATS))]
        built = build_static_cache(tokens, Path(folder), None, progress, formats)
        counted = inspect_cache(built.paths["llama"], progress)
        if info.content is not None:
            same = info.content == counted.content
        elif info.format in built.sha256s:
            same = info.sha256 == built.sha256s[info.format]
        else:
            again, reader = Path(folder) / "again", reader_of(info.format)
            convert_here(reader, built.paths["llama"], again)
            same = info.sha256 == sha256_file(again)
            if not same and is_of_another_build(info.path, reader):
                problem = f"was made by another build of {reader.name}, which may lay it out otherwise"
                raise InputError(info.path, problem, "build it again and verify that")
    if not same:
        raise InputError(info.path, f"was not counted from {tokens.name}", "build it from these tokens")


# --- the verbs --------------------------------------------------------------------------------------------
