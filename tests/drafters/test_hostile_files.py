"""Damaged and strange files: refused by name, byte and remedy, or loaded as they are. No crash, no hang."""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import xxhash
from native_modules import ABSENT, Variant, variants

pytestmark = pytest.mark.skipif(not variants(), reason=ABSENT)
by_variant = pytest.mark.parametrize("variant", variants(), ids=str)
CHILD = Path(__file__).parents[1] / "hostile_child.py"
HANG_S = 3600  # waiting for nothing; a busy hang ends after 20 s of processor time (hostile_child.py)


def loaders() -> list[object]:
    """Each variant with each format it takes; one a format gets the whole damage, the others a fiftieth."""
    result, whole = [], {}
    for variant in sorted(variants(), key=lambda v: v.ties, reverse=True):  # those of `token` load fastest
        whole.setdefault(variant.static_format, variant)
    for variant in variants():
        # Rungs that freeze what they are given parse llama.cpp's file, too.
        for static_format in sorted({"llama", variant.static_format}):
            if static_format == "paired":  # the same sections as `frozen`
                continue
            share = 1 if whole.get(static_format) is variant else 50
            result.append(pytest.param(variant, static_format, share, id=f"{variant}-{static_format}"))
    return result


@pytest.mark.parametrize(("variant", "static_format", "share"), loaders())
def test_cut_and_flipped_caches(
    variant: Variant, static_format: str, share: int, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    share = {"quick": 50, "ci": share, "large": 1}[pytestconfig.getoption("--proof")]
    command = [sys.executable, str(CHILD), variant.name, static_format]
    command += [str(1_000 // share), str(10_000 // share), str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    run = subprocess.run(
        command, capture_output=True, text=True, timeout=HANG_S, env=environment, check=False
    )
    assert run.returncode == 0, f"the child died ({run.returncode}): {run.stderr[-2000:]}"
    outcome = json.loads(run.stdout)
    assert outcome["unexpected"] == []
    assert outcome["loaded"] + outcome["refused"] == 11_000 // share


def record(a: int, b: int, *pairs: int, c: int = -1, d: int = -1, k: int | None = None) -> bytes:
    return struct.pack(f"<5i{len(pairs)}i", a, b, c, d, len(pairs) // 2 if k is None else k, *pairs)


GOOD = record(1, 2, 3, 4)
# name -> bytes, the byte the error must name (None: any), a word of the problem.
FILES: dict[str, tuple[bytes, int | None]] = {
    "text": (b"The quick brown fox jumps over the lazy dog. " * 20, None),
    "zeros": (bytes(4096), None),
    "ones": (b"\xff" * 4096, None),
    "one byte": (b"\x01", None),
    "cut in the n-gram": (GOOD + GOOD[:10], None),
    "cut before the successors": (GOOD + record(4, 5, k=1), None),
    "n-gram twice": (GOOD + record(2, 1, 3, 4) + record(1, 2, 9, 9), 56),
    "successor twice": (GOOD + record(5, 6, 7, 1, 8, 1, 7, 2), 28 + 20 + 16),
    "length 1": (GOOD + record(1, -1, 3, 4), 28),
    "length 3": (GOOD + record(1, 2, 3, 4, c=3), 28),
    "length 4": (GOOD + record(1, 2, 3, 4, c=3, d=4), 28),
    "length 0": (GOOD + record(-1, -1, 3, 4), None),
    "a gap": (GOOD + record(1, 2, 3, 4, d=7), 28),
    "negative token in n-gram": (GOOD + record(-5, 2, 3, 4), 28),
    "second token negative": (GOOD + record(5, -2, 3, 4), 32),
    "negative successor": (GOOD + record(5, 6, -7, 4), 48),
    "null successor": (GOOD + record(5, 6, -1, 4), 48),
    "zero count": (GOOD + record(5, 6, 7, 0), 52),
    "negative count": (GOOD + record(5, 6, 7, -3), 52),
    "no successors": (GOOD + record(5, 6), 28 + 16),
    "negative k": (GOOD + record(5, 6, 7, 1, k=-1), 28 + 16),
    "huge k": (GOOD + record(5, 6, 7, 1, k=2**31 - 1), 28 + 16),
    "k one too many": (GOOD + record(5, 6, 7, 1, k=2), 28 + 16),
}


def named_error(variant: Variant, path: Path) -> int:
    """The byte a refusal names; it must name the file and a remedy as well, in one line."""
    with pytest.raises(ValueError, match=r"byte") as caught:
        variant.drafter().load(str(path))
    match = re.fullmatch(r"(.+): byte (\d+): (.+); (.+)", str(caught.value))
    assert match is not None, str(caught.value)
    assert match[1] == str(path)
    return int(match[2])


@by_variant
@pytest.mark.parametrize("name", FILES)
def test_strange_content(variant: Variant, name: str, tmp_path: Path) -> None:
    data, byte = FILES[name]
    path = tmp_path / "static.bin"
    path.write_bytes(data)
    named = named_error(variant, path)
    assert byte is None or named == byte
    with pytest.raises(ValueError, match=f"byte {named}:"):
        variant.drafter(data)


@by_variant
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/full", "/proc/self/mem", "/nowhere/at.all"])
def test_strange_places(variant: Variant, path: str) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("these are Linux's own files")
    assert named_error(variant, Path(path)) == 0


@by_variant
def test_folder_and_pipe(variant: Variant, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert named_error(variant, tmp_path) == 0
    assert named_error(variant, tmp_path / "pipe") == 0


@by_variant
def test_an_empty_file_is_an_empty_cache(variant: Variant, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    drafter = variant.drafter()
    drafter.load(str(tmp_path / "empty"))
    assert drafter.replay(struct.pack("<3i", 1, 2, 3), 2, 3)["n_drafted"] == 0
    assert variant.module.static_format_of(str(tmp_path / "empty")) == "empty"


@by_variant
@pytest.mark.parametrize("data", [b"abc", struct.pack("<2i", 1, -1), struct.pack("<2i", -(2**31), 1)])
def test_damaged_token_files(variant: Variant, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"byte \d+: .+; .+"):
        variant.drafter().replay(data, 2, 3)


@by_variant
def test_largest_numbers(variant: Variant) -> None:
    top = 2**31 - 1
    drafter = variant.drafter(record(top, top, top, top, 0, top))
    drafter.append(top)
    drafter.append(top)
    assert list(drafter.draft(2))[:1] in ([top], [0])


def summary_with(folder: Path, **fields: int) -> bytes:
    """A sound summary file, but for these numbers of its header; its checksums are right."""
    (variant,) = [variant for variant in variants() if variant.static_format == "summary"]
    source, target = folder / "static.bin", folder / "static.summary"
    source.write_bytes(record(1, 2, 3, 4, 5, 6))
    variant.module.convert_static(str(source), str(target))
    data = bytearray(target.read_bytes())
    offsets = {"token_limit": 32, "n_lines": 56, "lists_offset": 72, "lists_bytes": 80}
    for name, value in fields.items():
        struct.pack_into("<Q", data, offsets[name], value)
    struct.pack_into("<Q", data, 88, xxhash.xxh64_intdigest(bytes(data[104:])))
    struct.pack_into("<Q", data, 96, xxhash.xxh64_intdigest(bytes(data[:96])))
    return bytes(data)


def test_a_summary_file_whose_sections_wrap_around_is_refused(tmp_path: Path) -> None:
    (variant,) = [variant for variant in variants() if variant.static_format == "summary"]
    variant.drafter(summary_with(tmp_path))
    size = len(summary_with(tmp_path))
    for n_lines in (11, 1 << 30):  # a section that ends before it begins would hold any number of lines
        with pytest.raises(ValueError, match=r"byte \d+: a section lies outside the file; "):
            variant.drafter(summary_with(tmp_path, lists_offset=0, n_lines=n_lines, lists_bytes=size))


def test_a_summary_file_whose_entries_cannot_hold_its_tokens_is_refused(tmp_path: Path) -> None:
    (variant,) = [variant for variant in variants() if variant.static_format == "summary"]
    with pytest.raises(ValueError, match=r"byte \d+: its entries are too small for its tokens; "):
        variant.drafter(summary_with(tmp_path, token_limit=1 << 22))
    for token_limit in (0, (1 << 31) + 1):
        with pytest.raises(ValueError, match=r"byte \d+: its token limit is 0 or beyond 2\^31; "):
            variant.drafter(summary_with(tmp_path, token_limit=token_limit))


def test_a_summary_file_of_the_first_version_is_refused_by_its_version(tmp_path: Path) -> None:
    (variant,) = [variant for variant in variants() if variant.static_format == "summary"]
    old = bytearray(summary_with(tmp_path))
    struct.pack_into("<I", old, 8, 1)
    with pytest.raises(ValueError, match=r"byte 8: .*version 1.*version 2; build it again"):
        variant.drafter(bytes(old))
