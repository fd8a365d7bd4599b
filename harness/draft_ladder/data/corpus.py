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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from draft_ladder.base.artifacts import Artifact, Made, Store
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import Progress, ProgressCallback
from draft_ladder.data.sources import WIKITEXT_REVISION, Source, Split
from draft_ladder.data.synthetic import SyntheticSource, text_bytes, tokens_of
from draft_ladder.data.wikitext import WIKITEXT_CONFIG, WIKITEXT_TEST_SHA256

FOLDER = "corpora"
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


@dataclass(frozen=True)
class _Written:
    bytes: int
    sha256: str
    whole: bool  # the source ended before the limit


def _text(
    kind: str,
    source: Source,
    split: Split,
    parameters: dict[str, Any],
    limit: int | None,
    check: Callable[[_Written], None],
    progress: ProgressCallback | None,
) -> Artifact:
    """A text of a source, or its first `limit` bytes to a line end; `check` may refuse what was written."""

    def make(target: Path) -> Made:
        started = time.monotonic()
        with target.open("wb") as file:
            cutter = _LineCutter(file, limit)
            for block in source.blocks(split):
                cutter.add(block)
                if progress:
                    stage = kind.replace("-", " ")
                    progress(Progress(stage, cutter.bytes, limit, time.monotonic() - started))
                if cutter.full:
                    break
            whole = not cutter.full
            written = _Written(sha256=cutter.finish(), bytes=cutter.bytes, whole=whole)
        check(written)
        facts = {"clipped": whole, "kind": source.kind} if limit else {}
        return Made({**facts, "label": source.label}, written.sha256)

    return Artifact(kind, FOLDER, ".txt", parameters, make, source.inputs(split), parameters)


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

    def check(written: _Written) -> None:
        _check_size(source, written.bytes, written.whole and not clip, limit)

    path, manifest = Store(cache_dir).get(
        _text("corpus", source, "train", parameters, limit, check, progress)
    )
    clipped = bool(manifest.facts["clipped"])
    _check_size(source, manifest.bytes, clipped and not clip, limit)
    return CorpusFile(path, manifest.sha256, manifest.bytes, source.label, source.kind, source.name, clipped)


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


def replay_text(source: Source, cache_dir: Path, progress: ProgressCallback | None = None) -> ReplayText:
    """The text of `source` to be replayed, whole, as a plain file in `cache_dir`/corpora; of a synthetic
    source its token file.
    """
    if isinstance(source, SyntheticSource):
        tokens = source.tokens("replay", source.replay_tokens, cache_dir, progress)
        size = text_bytes(tokens.n_tokens)
        return ReplayText(tokens.path, tokens.sha256, size, source.replay_label)
    parameters = {"source": source.identity("test"), "split": "test"}

    def check(written: _Written) -> None:
        _check_size(source, written.bytes, False, 0)
        if source.name == "wikitext-103" and written.sha256 != WIKITEXT_TEST_SHA256:
            raise InputError(
                source.label,
                f"its test split is not the text of wiki.test.raw (sha256 {written.sha256[:16]}...)",
                f'use {WIKITEXT_CONFIG} at revision {WIKITEXT_REVISION}, or `source = "files"`',
            )

    stored = Store(cache_dir).get(_text("replay-text", source, "test", parameters, None, check, progress))
    return ReplayText(stored.path, stored.sha256, stored.manifest.bytes, source.replay_label)


def first_part(text: ReplayText, size_mb: float, cache_dir: Path) -> ReplayText:
    """The first `size_mb` MB of a text, cut at a line end (a text that has less is an error)."""
    limit = round(size_mb * MB)
    if text.bytes < limit:
        remedy = "lower replay_mb or leave it out"
        raise InputError(
            text.label, f"has only {text.bytes / MB:.6g} MB, replay_mb asks for {size_mb:g}", remedy
        )

    def make(target: Path) -> Made:
        with text.path.open("rb") as file:
            data = file.read(limit)
        target.write_bytes(data[: data.rfind(b"\n") + 1] or data)
        return Made({"label": text.label})

    parameters = {"text": text.sha256, "limit_bytes": limit}
    part = Artifact("replay-text", FOLDER, ".txt", parameters, make, {"text": text.sha256}, parameters)
    stored = Store(cache_dir).get(part)
    return ReplayText(
        stored.path, stored.sha256, stored.manifest.bytes, f"{text.label}, first {size_mb:g} MB"
    )
