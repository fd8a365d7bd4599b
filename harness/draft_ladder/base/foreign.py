"""What a file is by its content, so that one that is not what it claims is refused by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import open_regular

HEAD_BYTES = 512
UNPACKED = ("gzip", "xz", "zstd")  # what input_files.py reads as what is in it
# How a file begins -> what it is, and what to do with it.
_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b\x08", "gzip", "unpack it with gunzip"),
    (b"\xfd7zXZ\0", "xz", "unpack it with unxz"),
    (b"\x28\xb5\x2f\xfd", "zstd", "unpack it with unzstd"),
    (b"BZh", "bzip2", "unpack it with bunzip2"),
    (b"PK\x03\x04", "zip", "unpack it and name a file that was in it"),
    (b"PK\x05\x06", "zip", "it is an empty archive"),
    (b"7z\xbc\xaf\x27\x1c", "7z", "unpack it and name a file that was in it"),
    (b"Rar!\x1a\x07", "rar", "unpack it and name a file that was in it"),
    (b"\x04\x22\x4d\x18", "lz4", "unpack it with unlz4"),
    (b"PAR1", "Parquet", "write the column that holds the text into a file"),
    (b"ARROW1\0\0", "Arrow", "write the column that holds the text into a file"),
    (b"\xff\xff\xff\xffp\0\0\0", "Arrow", "write the column that holds the text into a file"),
    (b"\x89HDF\r\n\x1a\n", "HDF5", "write what it holds into a file of its own"),
    (b"SQLite format 3\0", "SQLite", "write what it holds into a file of its own"),
    (b"\x93NUMPY", "numpy", "write it with `.astype('int32').tofile()`"),
    (b"GGUF", "GGUF", "name it as a model, or as --tokenizer gguf:FILE"),
    (b"%PDF-", "PDF", "write its text into a file"),
    (b"\x7fELF", "ELF", "name another file"),
    (b"\x89PNG\r\n\x1a\n", "PNG", "name another file"),
    (b"LDF\x93FRZ1", "frozen static cache", "name it with --static"),
    (b"LDF\x93SUM1", "summary static cache", "name it with --static"),
    (b"\xff\xfe\0\0", "UTF-32", "convert it with iconv -t UTF-8"),
    (b"\0\0\xfe\xff", "UTF-32", "convert it with iconv -t UTF-8"),
    (b"\xff\xfe", "UTF-16", "convert it with iconv -t UTF-8"),
    (b"\xfe\xff", "UTF-16", "convert it with iconv -t UTF-8"),
)
_TAR_MARK, _TAR_OFFSET = b"ustar", 257
# Fewer tokens could be of any form by chance.
LEAST_TOKENS = 16
# Above every vocabulary there is, below what two 16-bit ids or four letters make together.
LARGE_ID = 1 << 22


def kind_of(head: bytes) -> tuple[str, str] | None:
    """(name, remedy) of the known format that begins like this, None for what could be anything."""
    for magic, name, remedy in _KINDS:
        if head.startswith(magic):
            return name, remedy
    if head[_TAR_OFFSET : _TAR_OFFSET + len(_TAR_MARK)] == _TAR_MARK:
        return "tar", "unpack it and name a file that was in it"
    return None


def head_of(path: Path) -> bytes:
    """How a regular file begins. Raises InputError."""
    with open_regular(path) as file:
        return file.read(HEAD_BYTES)


def refuse_foreign(path: Path, wanted: str, *allowed: str) -> None:
    """InputError where the file is of another known format than `wanted`; those `allowed` may pass."""
    kind = kind_of(head_of(path))
    if kind is not None and kind[0] not in allowed:
        raise InputError(path, f"is {_article(kind[0])} {kind[0]} file, not {wanted}", kind[1])


def _article(word: str) -> str:
    return "an" if word[0] in "aeioAEIOx" else "a"


def refuse_text(path: Path) -> None:
    """InputError where a file that should hold numbers begins as plain text does."""
    head = head_of(path)
    if len(head) >= LEAST_TOKENS and all(byte in b"\t\n\r" or 32 <= byte < 127 for byte in head):
        raise InputError(path, "is text, not tokens", "tokenise it with `ladder tokens`")


def refuse_other_numbers(path: Path, tokens: npt.NDArray[np.int32]) -> None:
    """InputError where the int32 values are plainly something else: wider or narrower numbers.

    For files that no manifest vouches for.
    """
    if len(tokens) < LEAST_TOKENS:
        return
    remedy = "write int32 values, as `ids.astype('int32').tofile(path)` does"
    if len(tokens) % 2 == 0:
        for zeros, others, order in (
            (tokens[1::2], tokens[::2], "little"),
            (tokens[::2], tokens[1::2], "big"),
        ):
            if not zeros.any() and len(np.unique(others[: 1 << 16])) > 2:
                problem = f"every second int32 is 0: these are 64-bit numbers ({order}-endian)"
                raise InputError(path, problem, remedy)
    if int(np.count_nonzero(tokens[: 1 << 20] >= LARGE_ID)) * 2 > len(tokens[: 1 << 20]):
        problem = f"most ids are above {LARGE_ID}, larger than any vocabulary: 16-bit numbers, or text?"
        raise InputError(path, problem, remedy)
