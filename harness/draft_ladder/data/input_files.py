"""Text files as a source reads them: plain or compressed, bounded, and digested."""

from __future__ import annotations

import glob
import gzip
import hashlib
import io
import lzma
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from draft_ladder.base.errors import InputError
from draft_ladder.base.foreign import UNPACKED, head_of, kind_of, refuse_foreign
from draft_ladder.base.manifests import (
    READ_BLOCK_BYTES,
    at_home,
    canonical_json,
    open_regular,
)

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

ZSTD_WINDOW_BYTES = 1 << 27  # what `zstd --long=27` needs
ZSTD_INPUT_BYTES = 1 << 13  # small, so that a file of zeros does not unpack to gigabytes in one step


@dataclass(frozen=True)
class InputFile:
    """A file as it was when the source was resolved."""

    path: Path
    name: str
    size: int

    @cached_property
    def sha256(self) -> str:
        """Digest of the file as stored (compressed or not), of the bytes it had when resolved."""
        reader = _BoundedReader(self)
        with reader:
            while reader.read(READ_BLOCK_BYTES):
                pass
        return reader.digest.hexdigest()

    @cached_property
    def content(self) -> tuple[str, int]:
        """SHA-256 and size of what is in it: of a compressed file's content."""
        digest, size = hashlib.sha256(), 0
        for block in self.unpacked():
            digest.update(block)
            size += len(block)
        return digest.hexdigest(), size

    def unpacked(self) -> Iterator[bytes]:
        """The content, decompressed, in blocks, for who compares its digest. Errors as of blocks()."""
        with _BoundedReader(self) as reader:
            yield from _decompressed(reader, self.path)

    def blocks(self) -> Iterator[bytes]:
        """The content, decompressed, in blocks. Raises InputError if it is damaged or changed since it was
        digested.
        """
        expected = self.sha256
        with _BoundedReader(self) as reader:
            yield from _decompressed(reader, self.path)
            while reader.read(READ_BLOCK_BYTES):  # what a decompressor left unread
                pass
            if reader.digest.hexdigest() != expected:
                raise InputError(
                    self.path, "changed while it was read", "wait until nothing writes to it, then run again"
                )


def input_file(path: Path, name: str | None = None) -> InputFile:
    """Note a regular file's size now. Raises InputError for anything else."""
    with open_regular(path) as file:
        return InputFile(path, name or path.name, os.fstat(file.fileno()).st_size)


class _BoundedReader(io.RawIOBase):
    """Reads the first `size` bytes of a file, digests them, and notices when there are fewer."""

    def __init__(self, file: InputFile) -> None:
        super().__init__()
        self._input = file
        self._file = open_regular(file.path)
        self.position = 0
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self._input.size - self.position)
        if wanted <= 0:
            return 0
        try:
            block = self._file.read(wanted)
        except OSError as error:
            raise InputError(
                self._input.path, f"byte {self.position}: {error.strerror}", "check the disk"
            ) from error
        if not block:
            raise InputError(
                self._input.path,
                f"byte {self.position}: ends here, but had {self._input.size} bytes before",
                "wait until nothing writes to it, then run again",
            )
        view[: len(block)] = block
        self.digest.update(block)
        self.position += len(block)
        return len(block)

    def close(self) -> None:
        self._file.close()
        super().close()


ENDINGS = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}


def _decompressed(reader: _BoundedReader, path: Path) -> Iterator[bytes]:
    """Blocks of the content, decompressed by what the file is. InputError for a format that is no text."""
    refuse_foreign(path, "text", *UNPACKED)
    kind = kind_of(head_of(path))
    named = ENDINGS.get(path.suffix)
    try:
        if named is not None and (kind is None or kind[0] != named):
            raise EOFError(f"it does not begin as a {named} file")
        if kind is None:
            yield from _read_blocks(reader)
        elif kind[0] == "gzip":
            yield from _read_blocks(gzip.GzipFile(fileobj=reader))
        elif kind[0] == "xz":
            with lzma.LZMAFile(cast(IO[bytes], reader)) as unpacked:
                yield from _read_blocks(unpacked)
        else:
            yield from _zstd_blocks(reader)
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        where = f"byte {reader.position}: is damaged or cut short ({error})"
        raise InputError(path, where, "fetch or compress the file again") from error


def _read_blocks(file: Any) -> Iterator[bytes]:
    while block := file.read(READ_BLOCK_BYTES):
        yield block


def _zstd_blocks(reader: _BoundedReader) -> Iterator[bytes]:
    """Frames one after the other; a frame that does not end is an error, which zstandard's own reader lets
    pass.
    """
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    frame = decompressor.decompressobj()
    begun = False
    try:
        while block := reader.read(ZSTD_INPUT_BYTES):
            while block:
                begun = True
                if data := frame.decompress(block):
                    yield data
                block = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame, begun = decompressor.decompressobj(), False
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from error
    if begun:
        raise EOFError("the last frame is not complete")


def matching_files(patterns: list[str], base: Path) -> list[InputFile]:
    """Files in the order given, those of one glob sorted; every pattern must match."""
    found: list[InputFile] = []
    for pattern in patterns:
        path = base / at_home(Path(pattern))
        if path.exists() or not glob.has_magic(str(path)):
            found.append(input_file(path))
            continue
        names = sorted(glob.glob(str(path), recursive=True))
        if not names:
            raise InputError(pattern, "matches no file", "check the pattern and the directory it starts from")
        found += [input_file(Path(name)) for name in names]
    return found


def same_content(files: list[InputFile], others: list[InputFile]) -> list[InputFile]:
    """Those of `files` that have the content of one of `others`, whatever their names."""
    sizes = {other.size for other in others if other.size}
    candidates = [file for file in files if file.size in sizes]
    digests = {other.sha256 for other in others} if candidates else set()
    return [file for file in candidates if file.sha256 in digests]


def list_digest(files: list[InputFile]) -> str:
    """One SHA-256 over the content of files in their order."""
    return hashlib.sha256(canonical_json([file.sha256 for file in files]).encode()).hexdigest()


def named_digests(files: list[InputFile]) -> dict[str, str]:
    """Name -> SHA-256; files of one name in several directories get a number."""
    named: dict[str, str] = {}
    for file in files:
        number, name = 1, file.name
        while name in named:
            number += 1
            name = f"{file.name} ({number})"
        named[name] = file.sha256
    return named
