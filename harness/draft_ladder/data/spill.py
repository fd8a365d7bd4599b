"""Counting beyond memory: parts of the token file are counted into spill files, which are then merged.

A spill file is a static cache in llama.cpp's format of one part of the tokens. Beside each stands a manifest,
written last, so that a build that was killed goes on with the parts that are whole.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.base.locks import LOCK_NAME, folder_lock
from draft_ladder.base.manifests import (
    Manifest,
    Progress,
    ProgressCallback,
    base_versions,
    cached_manifest,
    sha256_file,
    write_atomic,
    write_manifest,
)

KIND = "spill"
TOKEN_BYTES = 4
# The native builder, for each token of a part: its key, and as much again to sort the largest partition,
# which may be all of them. (Tokens and keys together are less.)
NARROW_BYTES, WIDE_BYTES = 16, 32
NARROW_VOCABULARY = 1 << 21  # three tokens fit one 64-bit key up to here
ADVICE_MARGIN = 1.05
WORKING_BYTES = 24 << 20  # buffers, tables and the interpreter's own growth
MIN_PART_TOKENS = 1 << 18
READ_BUFFER_BYTES = 1 << 18
MAX_OPEN_FILES = 400
COUNTING_SHARE = 0.75  # of the time of a whole build: measured on 124 million tokens

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

NativeProgress = Callable[[str, int, int], None]


def parse_memory(text: str, option: str = "--memory") -> int:
    """Bytes of "2GB", "512 MiB" or "1500000". Raises InputError naming the option for anything else."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", text, re.IGNORECASE)
    if match is None or (match[3] and not match[2]):
        raise InputError(option, f"{text!r} is no amount of memory", "say for example 2GB or 512MiB")
    unit = match[2].upper()
    return int(float(match[1]) * (_BINARY_UNITS if match[3] else _UNITS)[unit])


caches_module = native.caches


def room_bytes(memory_bytes: int) -> int:
    """What the bound leaves for the work, this process as it is now taken off. InputError if too little.

    To be asked before the work: what an allocator holds back afterwards is no part of the program.
    """
    used = _used_bytes()
    least = used + MIN_PART_TOKENS * WIDE_BYTES
    if memory_bytes < least:
        rounded = -(-int(least * ADVICE_MARGIN) // 10**6)  # the next process will not be just as large
        raise InputError(
            "--memory",
            f"{memory_bytes} bytes are too few, the program itself takes {used}",
            f"allow at least {rounded}MB",
        )
    return memory_bytes - used


def _used_bytes() -> int:
    return int(psutil.Process().memory_info().rss) + WORKING_BYTES


def room_left(memory_bytes: int) -> int:
    """The same in the midst of the work, where memory the allocator keeps is no reason to give up."""
    return max(memory_bytes - _used_bytes(), MIN_PART_TOKENS * WIDE_BYTES)


def part_tokens(memory_bytes: int, vocab_size: int) -> int:
    """Tokens that can be counted at a time within the bound. `vocab_size` 0: any int32 may come."""
    narrow = 0 < vocab_size <= NARROW_VOCABULARY
    return room_bytes(memory_bytes) // (NARROW_BYTES if narrow else WIDE_BYTES)


class _Pace:
    """Progress of what this run does itself: parts found from an earlier one are no work."""

    def __init__(self, callback: ProgressCallback | None, n_tokens: int) -> None:
        self._callback, self._n_tokens = callback, n_tokens
        self._started, self._counted = time.monotonic(), 0

    def within_part(self, n_tokens: int) -> NativeProgress | None:
        """For the native counter, whose phases follow each other through a part."""
        starts = {"check": 0.0, "plan": 0.1, "pack": 0.2, "sort": 0.5}
        ends = {"check": 0.1, "plan": 0.2, "pack": 0.5, "sort": 1.0}

        def report(phase: str, done: int, total: int) -> None:
            share = starts[phase] + (ends[phase] - starts[phase]) * (done / total if total else 1.0)
            self._tell(COUNTING_SHARE, self._counted + int(share * n_tokens))

        return report if self._callback else None

    def part_done(self, n_tokens: int) -> None:
        self._counted += n_tokens
        self._tell(COUNTING_SHARE, self._counted)

    def merging(self, phase: str, done: int, total: int) -> None:
        share = COUNTING_SHARE + (1 - COUNTING_SHARE) * (done / total if total else 1.0)
        self._tell(share, self._n_tokens)

    def _tell(self, share: float, tokens: int) -> None:
        if self._callback and self._n_tokens:
            total = self._n_tokens * TOKEN_BYTES
            done = int(share * tokens / self._n_tokens * total)
            self._callback(Progress("cache", done, total, time.monotonic() - self._started, self._counted))


def count_bounded(
    tokens: Path,
    tokens_sha256: str,
    target: Path,
    memory_bytes: int,
    *,
    vocab_size: int = 0,
    jobs: int = 1,
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Count a token file into `target` (llama.cpp's format) with at most `memory_bytes` resident.

    The same bytes as the builder in memory writes. Spill files lie in `<target>.spill/` and are removed at
    the end; after a kill the next call counts only the parts that are missing. Returns the builder's figures.
    Raises InputError for bad tokens (naming the byte), a count beyond int32, a bound too small, a full disk,
    or another build of the same target that is under way.
    """
    part_tokens(memory_bytes, vocab_size)  # too small a bound leaves nothing behind
    folder = target.with_name(target.name + ".spill")
    with folder_lock(folder, "build"):
        return _count_in(folder, tokens, tokens_sha256, target, memory_bytes, vocab_size, jobs, progress)


def _count_in(
    folder: Path,
    tokens: Path,
    tokens_sha256: str,
    target: Path,
    memory_bytes: int,
    vocab_size: int,
    jobs: int,
    progress: ProgressCallback | None,
) -> dict[str, Any]:
    size = tokens.stat().st_size
    n_tokens = size // TOKEN_BYTES
    step = _planned_step(folder, tokens_sha256, memory_bytes, vocab_size)
    started = time.monotonic_ns()
    parts = _Parts(tokens, tokens_sha256, folder, step, vocab_size, jobs)
    firsts = range(0, max(n_tokens - 2, 1), step)
    missing = [first for first in firsts if not parts.is_whole(first)]
    pace = _Pace(progress, sum(min(step, n_tokens - first) for first in missing))
    for first in missing:
        length = min(step, n_tokens - first)
        parts.count(first, pace.within_part(length))
        pace.part_done(length)
    counted = time.monotonic_ns()
    if tokens.stat().st_size != size or (missing and sha256_file(tokens) != tokens_sha256):
        shutil.rmtree(folder)
        raise InputError(tokens, "changed while it was counted", "wait until nothing writes to it, run again")
    paths = [parts.path(first) for first in firsts]
    facts = merge_sorted_files(paths, target, memory_bytes, folder, vocab_size, pace.merging)
    shutil.rmtree(folder)
    return facts | {
        "n_tokens": n_tokens,
        "n_parts": len(paths),
        "n_parts_found": len(paths) - len(missing),
        "memory_bytes": memory_bytes,
        "count_ns": counted - started,
        "total_ns": time.monotonic_ns() - started,
    }


def _planned_step(folder: Path, tokens_sha256: str, memory_bytes: int, vocab_size: int) -> int:
    """Tokens of a part: those of an interrupted build of the same tokens within no larger a bound.

    Bounds are compared, not parts: the parts that fit differ a little from process to process of one bound.
    """
    plan = folder / "plan.json"
    try:
        found = json.loads(plan.read_bytes())
        same = found["tokens"] == tokens_sha256 and found["vocab_size"] == vocab_size
        if same and 0 < found["memory_bytes"] <= memory_bytes and found["part_tokens"] > 0:
            return int(found["part_tokens"])
    except (OSError, ValueError, KeyError, TypeError):
        pass  # no plan, or not one of ours: begin anew
    for path in folder.iterdir():
        if path.name != LOCK_NAME:
            path.unlink()
    fitting = part_tokens(memory_bytes, vocab_size)
    fields = {
        "tokens": tokens_sha256,
        "vocab_size": vocab_size,
        "memory_bytes": memory_bytes,
        "part_tokens": fitting,
    }
    write_atomic(plan, json.dumps(fields, allow_nan=False).encode())
    return fitting


class _Parts:
    """The spill files of one token file, a manifest beside each."""

    def __init__(
        self, tokens: Path, tokens_sha256: str, folder: Path, step: int, vocab_size: int, jobs: int
    ) -> None:
        self._tokens, self._sha256, self._folder = tokens, tokens_sha256, folder
        self._step, self._vocab_size, self._jobs = step, vocab_size, jobs

    def path(self, first: int) -> Path:
        return self._folder / f"part-{first // self._step:06d}.bin"

    def is_whole(self, first: int) -> bool:
        manifest = cached_manifest(self.path(first), KIND)
        return (
            manifest is not None
            and manifest.inputs == {"tokens": self._sha256}
            and manifest.sha256 == sha256_file(self.path(first))
        )

    def count(self, first: int, progress: NativeProgress | None) -> None:
        path = self.path(first)
        with native_errors():
            caches_module().count_part(
                str(self._tokens), first, self._step, str(path), self._vocab_size, self._jobs, progress
            )
        manifest = Manifest(
            kind=KIND,
            inputs={"tokens": self._sha256},
            parameters={"first": first, "part_tokens": self._step},
            versions=base_versions(),
            sha256=sha256_file(path),
            bytes=path.stat().st_size,
        )
        write_manifest(path, manifest)


@contextmanager
def native_errors() -> Iterator[None]:
    """A native module's ValueError as an InputError."""
    try:
        yield
    except ValueError as error:
        raise native.input_error(error) from error


def merge_sorted_files(
    paths: Sequence[Path],
    target: Path,
    memory_bytes: int,
    folder: Path,
    vocab_size: int = 0,
    progress: NativeProgress | None = None,
    unique_in: Path | None = None,
) -> dict[str, Any]:
    """Merge sorted caches into `target`, in several passes where too many are open at once for the bound.

    Temporary files lie in `folder`. With `unique_in` they are parts of that file, and an n-gram in two of
    them is an InputError naming its place there. Returns figures of the result.
    """
    list_bytes = 8 * (vocab_size or NARROW_VOCABULARY)  # the longest list of successors there can be
    fan_in = max(2, min(MAX_OPEN_FILES, room_left(memory_bytes) // (READ_BUFFER_BYTES + list_bytes) - 2))
    waiting = [str(path) for path in paths]
    unique = None if unique_in is None else str(unique_in)
    temporary: list[str] = []
    n_passes = 0
    with native_errors():
        while len(waiting) > fan_in:
            group, waiting = waiting[:fan_in], waiting[fan_in:]
            n_passes += 1
            merged = str(folder / f"merge-{n_passes:06d}.bin")
            caches_module().merge(group, merged, unique)
            for path in temporary:
                if path in group:
                    os.unlink(path)
            temporary.append(merged)
            waiting.append(merged)
        facts: dict[str, Any] = caches_module().merge(waiting, str(target), unique, progress)
    return facts


def sort_file(
    source: Path,
    target: Path,
    memory_bytes: int,
    vocab_size: int = 0,
    progress: NativeProgress | None = None,
) -> dict[str, Any]:
    """Sort a cache in llama.cpp's format, whatever its order, in bounded memory; figures of the result.

    Raises InputError naming the byte offset of whatever is wrong, an n-gram that occurs twice included.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.sort.", dir=target.parent) as folder:
        with native_errors():
            paths = caches_module().sort(
                str(source), f"{folder}/part-", room_left(memory_bytes) // 2, progress
            )
        parts = [Path(path) for path in paths]
        return merge_sorted_files(
            parts, target, memory_bytes, Path(folder), vocab_size, progress, unique_in=source
        )
