"""Static caches counted by a Dask cluster: the bytes of the local builder, from any address fsspec reads.

The token file is read in parts by whoever is free; each part is counted natively and cut into ranges of
bigrams; each range is merged by itself. So no worker ever holds the whole, and the ranges one after the other
are the file. Parts and ranges are ordinary Dask tasks: what a lost worker held is counted again.
"""

from __future__ import annotations

import hashlib
import logging
import operator
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import READ_BLOCK_BYTES, Manifest, Progress, ProgressCallback, write_atomic
from draft_ladder.data.spill import caches_module

TOKEN_BYTES = 4
PART_TOKENS = 4 << 20  # counted at a time: 64 MB in a worker
RANGE_BYTES = 64 << 20  # wanted size of a range before merging
COUNTED_TOKEN_BYTES = 9  # of a part's cache, for each token: measured on 4 million tokens
SAMPLES, SAMPLE_TOKENS = 64, 1 << 14
MAX_PIECES = 1_000_000  # parts times ranges, each a task: a scheduler takes about a millisecond for one
COUNTING_SHARE = 0.7


def _open(address: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise _missing() from error
    try:
        filesystem, path = fsspec.core.url_to_fs(address)
        if not filesystem.isfile(path):
            found = "is a directory" if filesystem.isdir(path) else "no such file"
            raise InputError(address, found, "name a token file")
        return filesystem, path
    except ImportError as error:
        raise InputError(address, f"cannot be read: {error}", "install the package it names") from error
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(address, f"cannot be read: {reason}", "check the address") from error


def _missing() -> InputError:
    return InputError("--engine dask", "dask is not installed", "pip install 'draft-ladder[dask]'")


def _read(address: str, first: int, n: int) -> bytes:
    """Tokens [first, first + n), fewer at the end of the file."""
    filesystem, path = _open(address)
    with filesystem.open(path, "rb") as file:
        file.seek(first * TOKEN_BYTES)
        data: bytes = file.read(n * TOKEN_BYTES)
    return data


def token_file_bytes(address: str) -> int:
    """Size of the file at an fsspec address. Raises InputError."""
    filesystem, path = _open(address)
    return int(filesystem.size(path))


def describe_tokens(address: str) -> tuple[str, Manifest | None]:
    """SHA-256 of the token file at an address, and the manifest beside it (`<address>.json`) if there is one.

    With a manifest of the right size the digest is taken from it; without, the file is read once.
    """
    try:
        filesystem, path = _open(address + ".json")
        manifest = Manifest.model_validate_json(filesystem.cat_file(path))
        if manifest.kind == "tokens" and manifest.bytes == token_file_bytes(address):
            return manifest.sha256, manifest
    except (InputError, ValueError):
        pass  # none, or not that of this file
    digest = hashlib.sha256()
    filesystem, path = _open(address)
    with filesystem.open(path, "rb") as file:
        while block := file.read(READ_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest(), None


def _count_part(
    address: str, first: int, n: int, bounds: list[int], vocab_size: int, expected: int
) -> tuple[bytes, ...]:
    """On a worker: one part of the tokens as a sorted cache for each range of bigrams."""
    data = _read(address, first, n)
    if len(data) != expected:
        raise ValueError(
            f"{address}: byte {first * TOKEN_BYTES + len(data)}: ends here, but was longer; "
            "let nothing write to it while it is counted"
        )
    return tuple(caches_module().count_bytes(data, bounds, first * TOKEN_BYTES, address, vocab_size))


def _merge_range(address: str, parts: list[bytes]) -> bytes:
    """On a worker: one range of bigrams, whole."""
    merged: bytes = caches_module().merge_bytes(parts, address)
    return merged


def range_bounds(address: str, n_tokens: int, n_ranges: int) -> list[int]:
    """Where ranges of about equal numbers of tokens end, by a sample; ascending `first << 32 | second`."""
    if n_ranges < 2 or n_tokens < 3:
        return []
    samples: list[npt.NDArray[np.uint64]] = []
    step = max(SAMPLE_TOKENS, n_tokens // SAMPLES)
    for first in range(0, n_tokens, step):
        raw = _read(address, first, SAMPLE_TOKENS)
        tokens = np.frombuffer(raw[: len(raw) // TOKEN_BYTES * TOKEN_BYTES], dtype="<u4").astype(np.uint64)
        samples.append((tokens[:-1] << np.uint64(32)) | tokens[1:])
    keys = np.sort(np.concatenate(samples))
    places = np.arange(1, n_ranges) * len(keys) // n_ranges
    return sorted({int(key) for key in keys[places]})


@contextmanager
def _client(scheduler: str | None, workers: int) -> Iterator[Any]:
    """A client of the cluster at `scheduler`, or of a local one with that many worker processes."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise _missing() from error
    # What a task raises comes back to us; its traceback in the log of a local worker is no help to anyone.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout="10s")
        except (OSError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise InputError("--scheduler", f"{scheduler}: {reason}", "start one: dask scheduler") from error
        with client:
            yield client
        return
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def count_with_dask(
    address: str,
    target: Path,
    *,
    vocab_size: int = 0,
    scheduler: str | None = None,
    workers: int = 2,
    client: Any = None,
    part_tokens: int = PART_TOKENS,
    range_bytes: int = RANGE_BYTES,
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Count the token file at an fsspec address into `target` (llama.cpp's format) on a Dask cluster.

    `scheduler` is the address of a running one, None starts `workers` local processes; `client` is one that
    is open already. Every worker must reach `address` and have this package. Returns figures. Raises
    InputError for bad tokens (naming the byte), a count beyond int32, too many pieces, or a cluster that lost
    too many workers.
    """
    size = token_file_bytes(address)
    if size % TOKEN_BYTES:
        raise InputError(
            address, f"byte {size - size % TOKEN_BYTES}: the file ends inside a token", "make it again"
        )
    n_tokens = size // TOKEN_BYTES
    n_ranges = max(1, -(-n_tokens * COUNTED_TOKEN_BYTES // range_bytes))
    n_parts = max(1, -(-n_tokens // part_tokens))
    if n_parts * n_ranges > MAX_PIECES:
        raise InputError(
            "--part-tokens, --range",
            f"{n_parts} parts in {n_ranges} ranges are more than {MAX_PIECES} pieces",
            "give more tokens to a part or a larger range",
        )
    bounds = range_bounds(address, n_tokens, n_ranges)
    started = time.monotonic()
    run = _Run(address, n_tokens, vocab_size, part_tokens, bounds, progress, started)
    if client is not None:
        write_atomic(target, lambda file: run.write(client, file))
    else:
        with _client(scheduler, workers) as own:
            write_atomic(target, lambda file: run.write(own, file))
    return {
        "n_tokens": n_tokens,
        "n_parts": len(run.firsts),
        "n_ranges": len(bounds) + 1,
        "largest_range_bytes": run.largest_range_bytes,
        "total_ns": int((time.monotonic() - started) * 1e9),
    }


class _Run:
    """The tasks of one build."""

    def __init__(
        self,
        address: str,
        n_tokens: int,
        vocab_size: int,
        part_tokens: int,
        bounds: list[int],
        progress: ProgressCallback | None,
        started: float,
    ) -> None:
        self.address, self.n_tokens, self.vocab_size = address, n_tokens, vocab_size
        self.part_tokens, self.bounds = part_tokens, bounds
        self.firsts = range(0, max(n_tokens - 2, 1), part_tokens)
        self.largest_range_bytes = 0
        self._progress, self._started = progress, started

    def write(self, client: Any, file: BinaryIO) -> None:
        """Count on the cluster; write the ranges in order, one in this process's memory at a time."""
        from distributed import KilledWorker, as_completed

        parts = [self._submit_part(client, first) for first in self.firsts]
        ranges = [self._submit_range(client, parts, number) for number in range(len(self.bounds) + 1)]
        try:
            waiting = as_completed(parts)
            del parts  # so that a part is dropped as soon as its ranges are merged
            for done, future in enumerate(waiting, 1):
                if future.status == "error":
                    future.result()  # raises; of one that is well nothing is fetched
                self._tell(COUNTING_SHARE * done / len(self.firsts), done)
                del future
            for number in range(len(ranges)):
                merged = ranges[number].result()
                self.largest_range_bytes = max(self.largest_range_bytes, len(merged))
                file.write(merged)
                ranges[number] = None
                share = COUNTING_SHARE + (1 - COUNTING_SHARE) * (number + 1) / len(ranges)
                self._tell(share, len(self.firsts))
        except ValueError as error:
            raise native.input_error(error) from error
        except KilledWorker as error:
            raise InputError(
                self.address, "a task lost its worker again and again", "give the workers more memory"
            ) from error

    def _submit_part(self, client: Any, first: int) -> Any:
        n = min(self.part_tokens + 2, self.n_tokens - first)  # with the two that complete the last n-grams
        return client.submit(
            _count_part,
            self.address,
            first,
            n,
            self.bounds,
            self.vocab_size,
            n * TOKEN_BYTES,
            pure=False,
            retries=2,
        )

    def _submit_range(self, client: Any, parts: list[Any], number: int) -> Any:
        pieces = [client.submit(operator.getitem, part, number, pure=False) for part in parts]
        return client.submit(
            _merge_range, self.address, pieces, pure=False, priority=len(self.bounds) - number
        )

    def _tell(self, share: float, parts_done: int) -> None:
        if self._progress:
            tokens = min(self.n_tokens, parts_done * self.part_tokens)
            total = self.n_tokens * TOKEN_BYTES
            elapsed = time.monotonic() - self._started
            self._progress(Progress("cache", int(share * total), total, elapsed, tokens))
