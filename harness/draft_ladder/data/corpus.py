"""Corpora: the first N MB (10^6 bytes) of a source, cut at a line end, and the text to be replayed.

Sources: `wikitext-103`, `files`, and `stdlib`, which every machine has; and `synthetic`, which has any size
but gives token files in place of texts. The replayed text is never part of the corpus.

What happens to odd text: bytes are kept as they are (no decoding, no change of line ends, NUL included, no
line feed added); decoding belongs to `tokens`, which counts what is not UTF-8. A file is read up to the
size it had when the source was resolved, so one that grows gives the same corpus; one that shrinks or
changes is an error. Directories, devices and pipes are errors, and so is a source without a single byte.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import (
    Manifest,
    Progress,
    ProgressCallback,
    base_versions,
    cached_manifest,
    content_key,
    load_manifest,
    write_atomic,
    write_manifest,
)
from draft_ladder.data.sources import WIKITEXT_REVISION, Source
from draft_ladder.data.synthetic import SyntheticSource, text_bytes, tokens_of
from draft_ladder.data.wikitext import WIKITEXT_CONFIG, WIKITEXT_TEST_SHA256

if TYPE_CHECKING:
    pass

MB = 1_000_000
MAX_MB = 1e9  # a petabyte


@dataclass(frozen=True)
class CorpusFile:
    """A corpus in the cache. `bytes` is its effective size: two clipped sizes with one `sha256` are the
    same corpus.
    """

    path: Path
    sha256: str
    bytes: int
    label: str
    kind: Literal["real", "synthetic"]
    source: str
    clipped: bool

    @property
    def size_mb(self) -> float:
        """Effective size in MB (10^6 bytes)."""
        return self.bytes / MB


@dataclass(frozen=True)
class ReplayText:
    """The text to be replayed, as one plain file in the cache."""

    path: Path
    sha256: str
    bytes: int
    label: str


class _LineCutter:
    """Writes the first `limit` bytes of a text and remembers the last line end and its digest."""

    def __init__(self, file: BinaryIO, limit: int | None) -> None:
        self._file, self._limit = file, limit
        self.bytes = 0
        self._digest = hashlib.sha256()
        self._line_end: tuple[int, hashlib._Hash] | None = None

    @property
    def full(self) -> bool:
        return self._limit is not None and self.bytes >= self._limit

    def add(self, block: bytes) -> None:
        if self._limit is not None:
            block = block[: self._limit - self.bytes]
        self._file.write(block)
        head = block.rfind(b"\n") + 1
        if head:
            self._digest.update(block[:head])
            self._line_end = (self.bytes + head, self._digest.copy())
        self._digest.update(block[head:])
        self.bytes += len(block)

    def finish(self) -> str:
        """Cut a full text back to its last line end (one without any stays as it is); returns the digest."""
        if self.full and self._line_end is not None:
            self.bytes, self._digest = self._line_end
            self._file.flush()
            self._file.truncate(self.bytes)
        return self._digest.hexdigest()


@dataclass
class _Written:
    bytes: int = 0
    sha256: str = ""
    whole: bool = False  # the source ended before the limit


def _write_text(
    target: Path,
    blocks: Iterator[bytes],
    limit: int | None,
    stage: str,
    check: Callable[[_Written], None],
    progress: ProgressCallback | None,
) -> _Written:
    """Write a text, or its first `limit` bytes to a line end; `check` may refuse the result before it is
    kept.
    """
    result = _Written()
    started = time.monotonic()

    def write(file: BinaryIO) -> None:
        cutter = _LineCutter(file, limit)
        for block in blocks:
            cutter.add(block)
            if progress:
                progress(Progress(stage, cutter.bytes, limit, time.monotonic() - started))
            if cutter.full:
                break
        result.whole = not cutter.full
        result.sha256 = cutter.finish()
        result.bytes = cutter.bytes
        check(result)

    write_atomic(target, write)
    return result


def build_corpus(
    source: Source,
    size_mb: float,
    cache_dir: Path,
    progress: ProgressCallback | None = None,
    *,
    clip: bool = False,
) -> CorpusFile:
    """The first `size_mb` * 10^6 bytes of `source`, cut at a line end, made now or found in
    `cache_dir`/corpora.

    A source that has less is an InputError that says how much there is; with `clip` it gives all it has (see
    `CorpusFile.bytes`). A synthetic corpus is a token file, and `bytes` the text that its tokens stand for.
    Raises InputError for a size that is not positive.
    """
    if not 0 < size_mb < MAX_MB or round(size_mb * MB) < 1:
        raise InputError(
            f"size {size_mb:g} MB", "is not a corpus size", f"name one above 0, below {MAX_MB:g}"
        )
    limit = round(size_mb * MB)
    if isinstance(source, SyntheticSource):
        return _synthetic_corpus(source, limit, cache_dir, progress)
    parameters = {"source": source.identity("train"), "limit_bytes": limit}
    target = cache_dir / "corpora" / f"{content_key(parameters)}.txt"
    manifest = cached_manifest(target, "corpus")

    def check(written: _Written) -> None:
        _check_size(source, written.bytes, written.whole and not clip, limit)

    if manifest is None:
        written = _write_text(target, source.blocks("train"), limit, "corpus", check, progress)
        facts = {"clipped": written.whole, "label": source.label, "kind": source.kind}
        manifest = _text_manifest("corpus", source.inputs("train"), parameters, written, facts)
        write_manifest(target, manifest)
    clipped = bool(manifest.facts["clipped"])
    _check_size(source, manifest.bytes, clipped and not clip, limit)
    return CorpusFile(
        target, manifest.sha256, manifest.bytes, source.label, source.kind, source.name, clipped
    )


def _synthetic_corpus(
    source: SyntheticSource, limit: int, cache_dir: Path, progress: ProgressCallback | None
) -> CorpusFile:
    tokens = source.tokens("corpus", tokens_of(limit), cache_dir, progress)
    size = text_bytes(tokens.n_tokens)
    return CorpusFile(tokens.path, tokens.sha256, size, source.label, source.kind, source.name, False)


def corpus_or_synthetic(
    source: Source, size_mb: float, cache_dir: Path, progress: ProgressCallback | None = None, seed: int = 1
) -> tuple[Source, CorpusFile]:
    """`size_mb` MB of `source` where it has them, else of a synthetic language, and the source it is from.

    The replayed text must be of that source too. Its `note` says what was filled in and why.
    """
    found = build_corpus(source, size_mb, cache_dir, progress, clip=True)
    if not found.clipped:
        return source, found
    note = f"corpus: {size_mb:g} MB are synthetic: {source.label} has only {found.size_mb:.3g} MB"
    filled = SyntheticSource(seed, note=note)
    return filled, build_corpus(filled, size_mb, cache_dir, progress)


def _check_size(source: Source, found_bytes: int, too_small: bool, limit: int) -> None:
    if found_bytes == 0:
        raise InputError(source.label, "holds no text", "name files that are not empty")
    if too_small:
        raise InputError(
            source.label,
            f"has only {found_bytes / MB:.6g} MB ({found_bytes} bytes), {limit / MB:.6g} MB were asked for",
            "ask for less, or say `clip = true` to take what there is",
        )


def _text_manifest(
    kind: str, inputs: dict[str, str], parameters: dict[str, Any], written: _Written, facts: dict[str, Any]
) -> Manifest:
    return Manifest(
        kind=kind,
        inputs=inputs,
        parameters=parameters,
        versions=base_versions(),
        sha256=written.sha256,
        bytes=written.bytes,
        facts=facts,
    )


def replay_text(source: Source, cache_dir: Path, progress: ProgressCallback | None = None) -> ReplayText:
    """The text of `source` to be replayed, whole, as a plain file in `cache_dir`/corpora; of a synthetic
    source its token file.
    """
    if isinstance(source, SyntheticSource):
        tokens = source.tokens("replay", source.replay_tokens, cache_dir, progress)
        size = text_bytes(tokens.n_tokens)
        return ReplayText(tokens.path, tokens.sha256, size, source.replay_label)
    parameters = {"source": source.identity("test"), "split": "test"}
    target = cache_dir / "corpora" / f"{content_key(parameters)}.txt"

    def check(written: _Written) -> None:
        _check_size(source, written.bytes, False, 0)
        if source.name == "wikitext-103" and written.sha256 != WIKITEXT_TEST_SHA256:
            raise InputError(
                source.label,
                f"its test split is not the text of wiki.test.raw (sha256 {written.sha256[:16]}...)",
                f'use {WIKITEXT_CONFIG} at revision {WIKITEXT_REVISION}, or `source = "files"`',
            )

    if cached_manifest(target, "replay-text") is None:
        written = _write_text(target, source.blocks("test"), None, "replay text", check, progress)
        write_manifest(
            target,
            _text_manifest(
                "replay-text", source.inputs("test"), parameters, written, {"label": source.label}
            ),
        )
    manifest = load_manifest(target, "replay-text")
    return ReplayText(target, manifest.sha256, manifest.bytes, source.replay_label)
