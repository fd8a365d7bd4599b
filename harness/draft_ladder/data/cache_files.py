"""Static caches as files of their own: imported, exported, merged, looked into and verified.

llama.cpp's files carry no tokenizer. Here its digest stands in the manifest beside the file; where both sides
name one they must be the same, and where only a size is known no token may lie beyond it.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from draft_ladder.base import native
from draft_ladder.base.artifacts import Made, Store, make
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import (
    Progress,
    ProgressCallback,
    load_manifest,
    manifest_path,
    refuse_other_manifest,
    refuse_overwriting,
    replacing_artifact,
    sha256_file,
    stale_remedy,
)
from draft_ladder.data.cache import (
    KIND,
    LLAMA,
    UNKNOWN,
    Vocabulary,
    build_static_cache,
    check_vocabulary,
    counted,
    in_formats,
    static_artifact,
    static_format_of,
    vocabulary_in,
    vocabulary_of,
)
from draft_ladder.data.own_format import convert_here, is_of_another_build, reader_of
from draft_ladder.data.spill import caches_module, merge_sorted_files, room_bytes, sort_file
from draft_ladder.data.tokenizers import load_tokenizer
from draft_ladder.data.tokens import open_tokens

DEFAULT_MEMORY = "1GB"
SUMMARY = "summary"
FROZEN_FORMATS = ("frozen", "paired")  # by content; neither keeps a list of its n-grams


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
        fields = {name: value for name, value in vars(self).items() if name not in ("shares", "vocabulary")}
        known = self.vocabulary
        return {
            **fields,
            "path": str(self.path),
            **self.shares,
            "tokenizer": known.name if known else None,
            "tokenizer_sha256": known.sha256 if known else None,
            "vocab_size": known.size if known else None,
        }


def vocabulary_named(name: str) -> Vocabulary:
    """That of `tekken`, a tokenizer.json or a `gguf:PATH`."""
    tokenizer = load_tokenizer(name)
    return Vocabulary(tokenizer.name, tokenizer.sha256, tokenizer.vocab_size)


def inspect_cache(
    path: Path, progress: ProgressCallback | None = None, vocabulary: Vocabulary | None = None
) -> CacheInfo:
    """Read and check a whole static file of any format. `vocabulary` is taken from its manifest by default.

    Raises InputError naming the byte offset of whatever is wrong.
    """
    vocabulary = vocabulary or vocabulary_of(path)
    kind = static_format_of(path)
    if manifest_path(path).is_file() and load_manifest(path, KIND).bytes != path.stat().st_size:
        raise InputError(path, "is not the file its manifest describes", stale_remedy(path))
    facts: dict[str, Any] = {}
    with native.errors():
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
    check_vocabulary(path, info.vocabulary, wanted, info.token_limit)
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
    identity = {"imported": info.sha256, "sort": sort, "tokenizer": vocabulary.sha256}
    write = _writer(info, sort, memory_bytes, vocabulary.size, progress)
    llama = static_artifact(LLAMA, vocabulary, identity, {"imported": info.sha256}, write)
    return in_formats(Store(where), llama, vocabulary, [LLAMA, *formats]).paths


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
    refuse_overwriting(target, source)
    info = _listed(source, progress, vocabulary)
    write = _writer(info, sort, memory_bytes, 0, progress)
    _write_at(target, info.vocabulary or vocabulary, {"exported": info.sha256}, write)
    return info


def _writer(
    info: CacheInfo, sort: bool, memory_bytes: int, vocab_size: int, progress: ProgressCallback | None
) -> Callable[[Path], Made]:
    """Writes a cache in llama.cpp's format, byte for byte or sorted."""
    room_bytes(memory_bytes)

    def write(target: Path) -> Made:
        if sort and not info.sorted:
            sort_file(info.path, target, memory_bytes, vocab_size, _as_native("sort", progress))
        else:
            shutil.copyfile(info.path, target)
            if sha256_file(target) != info.sha256:
                raise InputError(info.path, "changed while it was read", "let nothing write to it")
        return Made(info.shares | {"n_bigrams": info.n_bigrams, "n_pairs": info.n_pairs})

    return write


def _write_at(
    target: Path, vocabulary: Vocabulary | None, inputs: dict[str, str], write: Callable[[Path], Made]
) -> Mapping[str, Any]:
    """A cache at a place of the user's, with a manifest where its tokens are known; the figures of it."""
    refuse_other_manifest(target)
    if vocabulary is not None:
        return make(static_artifact(LLAMA, vocabulary, inputs, inputs, write), target).facts
    with replacing_artifact(target) as temporary:
        return write(temporary).facts


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

    def merge(merged: Path) -> Made:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.merge.", dir=merged.parent) as folder:
            return Made(_merged(infos, merged, memory_bytes, Path(folder), vocabulary, progress))

    digests = {f"merged {number}": info.sha256 for number, info in enumerate(infos)}
    return dict(_write_at(target, vocabulary, digests, merge))


def _merged(
    infos: Sequence[CacheInfo],
    target: Path,
    memory_bytes: int,
    folder: Path,
    vocabulary: Vocabulary | None,
    progress: ProgressCallback | None,
) -> dict[str, Any]:
    inputs = []
    for number, info in enumerate(infos):
        path = info.path
        if not info.sorted:
            path = folder / f"sorted-{number}.bin"
            sort_file(info.path, path, memory_bytes, 0, _as_native("sort", progress))
        inputs.append(path)
    largest = vocabulary.size if vocabulary else max(info.token_limit for info in infos)
    tell = _as_native("merge", progress)
    return merge_sorted_files(inputs, target, memory_bytes, folder, largest, tell)


def _common_vocabulary(infos: Sequence[CacheInfo]) -> Vocabulary | None:
    known = [info.vocabulary for info in infos if info.vocabulary is not None]
    for info in infos:
        check_vocabulary(info.path, info.vocabulary, known[0] if known else None, info.token_limit)
    # A result of which one part is of unknown tokens is itself unknown.
    return known[0] if known and len(known) == len(infos) else None


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
    vocabulary = (vocabulary_in(manifest) if manifest else None) or UNKNOWN

    def count(target: Path) -> Made:
        counts = count_with_dask(
            address,
            target,
            vocab_size=vocabulary.size,
            scheduler=scheduler,
            workers=workers,
            progress=progress,
            **division,
        )
        with native.errors():
            found = caches_module().scan(str(target))
        if found["total_count"] != max(0, counts["n_tokens"] - 2):
            raise InputError(address, "changed while it was counted", "let nothing write to it, run again")
        names = ("n_bigrams", "n_pairs", "single_share", "at_most_100_share", "largest")
        return Made(counts | {name: found[name] for name in names})

    llama = counted(digest, vocabulary, count)
    return in_formats(Store(where), llama, vocabulary, [LLAMA, *formats]).paths


def verify_cache(
    path: Path,
    *,
    vocabulary: Vocabulary | None = None,
    tokens: Path | None = None,
    same_as: Path | None = None,
    ignore_last: bool = False,
    progress: ProgressCallback | None = None,
) -> CacheInfo:
    """Check a static file: every byte, its manifest, a tokenizer, the tokens it was counted from, and whether
    it holds the same as another file. Raises InputError naming the first thing that is not so.

    With `ignore_last` the last token is left out: llama.cpp's tools drop a text's final newline.
    """
    info = inspect_cache(path, progress)
    if manifest_path(path).is_file() and load_manifest(path, KIND).sha256 != info.sha256:
        raise InputError(path, "is not the file its manifest describes", stale_remedy(path))
    check_vocabulary(path, info.vocabulary, vocabulary, info.token_limit)
    if tokens is not None:
        _verify_tokens(info, tokens, progress, ignore_last=ignore_last)
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


def _verify_tokens(
    info: CacheInfo, tokens: Path, progress: ProgressCallback | None, *, ignore_last: bool
) -> None:
    """Counts the tokens again and compares, with a word of a final newline where that is all that differs."""
    known = open_tokens(tokens)
    check_vocabulary(info.path, info.vocabulary, vocabulary_of(tokens), info.token_limit)
    with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
        shorter = Path(folder) / f"{tokens.stem}.tok"
        shorter.write_bytes(np.asarray(known[:-1], dtype="<i4").tobytes())
        if ignore_last:
            return _verify_counts(info, shorter, progress)
        try:
            _verify_counts(info, tokens, progress)
        except InputError:
            if _is_counted_from(info, shorter, progress):
                problem = f"was counted from {tokens.name} without its last token"
                remedy = "llama.cpp drops a text's final newline: --ignore-final-newline allows for that"
                raise InputError(info.path, problem, remedy) from None
            raise


def _is_counted_from(info: CacheInfo, tokens: Path, progress: ProgressCallback | None) -> bool:
    """False at once where the number of counts says it: counting again takes as long as building."""
    if info.total_count != max(0, len(open_tokens(tokens)) - 2):
        return False
    try:
        _verify_counts(info, tokens, progress)
    except InputError:
        return False
    return True


def _verify_counts(info: CacheInfo, tokens: Path, progress: ProgressCallback | None) -> None:
    """Lists are compared where the format keeps them, else the bytes of the file."""
    expected = max(0, len(open_tokens(tokens)) - 2)
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
