"""Static cache files: golden files parse, freezing keeps the content, damaged files give named errors."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base import native

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden"
needs_golden = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason=f"{GOLDEN.name} files of real llama.cpp not here"
)

Ngram = tuple[tuple[int, ...], list[tuple[int, int]]]


@pytest.fixture(scope="module")
def builder() -> Any:
    return native.builder()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[bytes], str]:
    def to_file(content: bytes) -> str:
        path = tmp_path / "cache.bin"
        path.write_bytes(content)
        return str(path)

    return to_file


def llama_bytes(ngrams: list[Ngram]) -> bytes:
    parts = []
    for ngram, successors in ngrams:
        padded = (*ngram, -1, -1, -1, -1)[:4]
        parts.append(struct.pack("<5i", *padded, len(successors)))
        parts.extend(struct.pack("<2i", *pair) for pair in successors)
    return b"".join(parts)


SMALL: list[Ngram] = [
    ((7, 3), [(9, 2), (4, 1)]),
    ((1, 2), [(3, 4)]),
    ((2, 1), [(5, 1), (1, 6), (3, 2)]),
    ((4, 4), [(4, 100)]),
]


def parse_slowly(data: bytes) -> dict[tuple[int, int], dict[int, int]]:
    """An independent reader for valid files."""
    content = {}
    at = 0
    while at < len(data):
        first, second, third, fourth, count = struct.unpack_from("<5i", data, at)
        assert third == fourth == -1
        pairs = struct.iter_unpack("<2i", data[at + 20 : at + 20 + 8 * count])
        content[first, second] = dict(pairs)
        at += 20 + 8 * count
    return content


@needs_golden
@pytest.mark.parametrize("case", ["s", "m"])
def test_golden_files_parse_and_freeze_to_the_same_content(builder: Any, case: str, tmp_path: Path) -> None:
    source = GOLDEN / f"{case}.bin"
    expected = parse_slowly(source.read_bytes())
    content = builder.read_llama(str(source))
    assert {bigram: dict(successors) for bigram, successors in content} == expected
    for paired in (False, True):
        target = str(tmp_path / f"{paired}.frozen")
        report = builder.freeze(str(source), target, paired)
        assert report["n_bigrams"] == len(expected)
        assert builder.check_frozen(target)["n_pairs"] == sum(map(len, expected.values()))
        bigrams = list(expected)
        found = builder.frozen_find(target, [*bigrams, (5, 2**31 - 1)])
        assert found.pop() == []
        assert found == [sorted(expected[bigram].items()) for bigram in bigrams]
        assert builder.format_of(target) == ("paired" if paired else "frozen")
    assert builder.format_of(str(source)) == "llama"


def test_order_of_the_file_does_not_change_the_frozen_bytes(builder: Any, tmp_path: Path) -> None:
    outputs = set()
    rng = random.Random(5)
    for number in range(5):
        ngrams = [(ngram, rng.sample(successors, len(successors))) for ngram, successors in SMALL]
        rng.shuffle(ngrams)
        source = tmp_path / f"{number}.bin"
        source.write_bytes(llama_bytes(ngrams))
        builder.freeze(str(source), str(tmp_path / "out.frozen"))
        outputs.add((tmp_path / "out.frozen").read_bytes())
    assert len(outputs) == 1


def test_an_empty_file_is_an_empty_cache(builder: Any, write: Callable[[bytes], str], tmp_path: Path) -> None:
    path = write(b"")
    assert builder.format_of(path) == "empty"
    assert builder.read_llama(path) == []
    target = str(tmp_path / "empty.frozen")
    builder.freeze(path, target)
    assert builder.check_frozen(target)["n_bigrams"] == 0
    assert builder.frozen_find(target, [(1, 2)]) == [[]]
    assert builder.statistics(path)["single_share"] is None


BAD: dict[str, tuple[bytes, str]] = {
    "no successors": (llama_bytes([((1, 2), [])]), r"byte 16: n-gram \(1, 2\) has 0 successors"),
    "negative k": (struct.pack("<5i", 1, 2, -1, -1, -5), r"byte 16: .* has -5 successors"),
    "huge k": (struct.pack("<5i", 1, 2, -1, -1, 2**31 - 1), r"byte 16: .* has 2147483647 successors, but"),
    "negative token": (llama_bytes([((1, 2), [(3, 1), (-3, 1)])]), r"byte 28: token -3 after \(1, 2\)"),
    "null token": (llama_bytes([((1, 2), [(-1, 1)])]), "byte 20: token -1 .* is negative"),
    "zero count": (llama_bytes([((1, 2), [(3, 0)])]), "byte 24: count 0 of token 3"),
    "negative count": (llama_bytes([((1, 2), [(3, -9)])]), "byte 24: count -9 of token 3"),
    "length 1": (llama_bytes([SMALL[0], ((1,), [(3, 1)])]), "byte 36: n-gram of length 1"),
    "length 0": (struct.pack("<5i", -1, -1, -1, -1, 1) + struct.pack("<2i", 1, 1), "byte 0: token -1"),
    "length 3": (llama_bytes([((1, 2, 3), [(3, 1)])]), "byte 0: n-gram of length 3"),
    "length 4": (llama_bytes([((1, 2, 3, 4), [(3, 1)])]), "byte 0: n-gram of length 4"),
    "gap": (llama_bytes([((1, -1, 3), [(3, 1)])]), "byte 0: n-gram with a gap"),
    "negative slot": (llama_bytes([((1, -7), [(3, 1)])]), "byte 4: token -7 is negative"),
    "repeated, sorted": (llama_bytes([((1, 2), [(3, 1), (3, 1)])]), r"byte 28: token 3 occurs twice"),
    "repeated, unsorted": (
        llama_bytes([((1, 2), [(3, 1), (9, 1), (4, 1), (9, 2)])]),
        r"byte 44: token 9 occurs twice after \(1, 2\)",
    ),
    "repeated n-gram": (llama_bytes([*SMALL, SMALL[1]]), r"byte 136: n-gram \(1, 2\) occurs twice"),
    "text": (b"this is not a cache file", r"byte 0: n-gram of length 4"),
    "zeros": (bytes(1000), r"byte 0: n-gram of length 4"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_content_is_named(builder: Any, write: Callable[[bytes], str], name: str) -> None:
    content, message = BAD[name]
    path = write(content)
    with pytest.raises(ValueError, match=message) as caught:
        builder.read_llama(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: byte ")
    assert "; " in line
    assert "\n" not in line
    assert str(native.input_error(caught.value)) == line


def test_every_cut_is_an_error_or_a_shorter_cache(builder: Any, write: Callable[[bytes], str]) -> None:
    whole = llama_bytes(SMALL)
    ends, at = [0], 0
    for _, successors in SMALL:
        at += 20 + 8 * len(successors)
        ends.append(at)
    for cut in range(len(whole)):
        path = write(whole[:cut])
        if cut in ends:
            assert len(builder.read_llama(path)) == ends.index(cut)
        else:
            with pytest.raises(ValueError, match=r": byte \d+: .*cut"):
                builder.read_llama(path)


def test_flipped_bytes_load_validly_or_are_named(builder: Any, write: Callable[[bytes], str]) -> None:
    whole = llama_bytes([((i, i + 1), [(j, i + j + 1) for j in range(i % 7 + 1)]) for i in range(40)])
    rng = random.Random(11)
    for _ in range(1000):
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        try:
            content = builder.read_llama(write(bytes(damaged)))
        except ValueError as error:
            assert ": byte " in str(error)  # noqa: PT017
        else:
            assert all(token >= 0 and count > 0 for _, pairs in content for token, count in pairs)


def test_tokens_beyond_a_known_vocabulary_are_refused(builder: Any, write: Callable[[bytes], str]) -> None:
    path = write(llama_bytes([*SMALL, ((8, 8), [(49_152, 1)])]))
    builder.freeze(path, path + ".frozen", False, 49_153)
    with pytest.raises(ValueError, match=r"byte 136: .* holds token 49152, but the vocabulary has 49152"):
        builder.freeze(path, path + ".frozen", False, 49_152)


@pytest.mark.parametrize("call", ["read_llama", "check_frozen", "format_of", "statistics"])
def test_what_is_not_a_file_is_named(builder: Any, tmp_path: Path, call: str) -> None:
    reader = getattr(builder, call)
    with pytest.raises(ValueError, match="is a folder"):
        reader(str(tmp_path))
    with pytest.raises(ValueError, match="No such file"):
        reader(str(tmp_path / "missing"))
    with pytest.raises(ValueError, match="is a device or pipe"):
        reader("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is a device or pipe"):
        reader(str(tmp_path / "pipe"))


@pytest.fixture(params=[False, True], ids=["split", "paired"])
def frozen(request: pytest.FixtureRequest, builder: Any, tmp_path: Path) -> Path:
    source = tmp_path / "source.bin"
    source.write_bytes(llama_bytes(SMALL))
    target = tmp_path / "cache.frozen"
    builder.freeze(str(source), str(target), request.param)
    return target


def test_a_frozen_file_is_refused_at_every_cut(builder: Any, frozen: Path) -> None:
    whole = frozen.read_bytes()
    for cut in range(len(whole)):
        frozen.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=r": byte \d+: .*; "):
            builder.check_frozen(str(frozen))
    frozen.write_bytes(whole + b"\0")
    with pytest.raises(ValueError, match="the header names"):
        builder.check_frozen(str(frozen))


def test_every_flipped_byte_of_a_frozen_file_is_found(builder: Any, frozen: Path) -> None:
    whole = frozen.read_bytes()
    zeros = set(range(128 + 8 * 7, 192))  # padding between the sections carries nothing
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        frozen.write_bytes(damaged)
        if at in zeros:
            continue
        with pytest.raises(ValueError, match=r": byte \d+: .*; "):
            builder.check_frozen(str(frozen))


def test_unverified_lookups_of_a_damaged_map_stay_inside(builder: Any, frozen: Path) -> None:
    whole = frozen.read_bytes()
    start = builder.check_frozen(str(frozen))["map_offset"]
    rng = random.Random(2)
    bigrams = [ngram for ngram, _ in SMALL]
    for _ in range(500):
        damaged = bytearray(whole)
        damaged[rng.randrange(start, len(whole))] = rng.randrange(256)
        frozen.write_bytes(damaged)
        try:
            found = builder.frozen_find(str(frozen), bigrams)
        except ValueError as error:
            assert ": byte " in str(error)  # noqa: PT017
        else:
            assert len(found) == len(bigrams)


def test_an_older_or_newer_version_is_refused_by_name(builder: Any, frozen: Path) -> None:
    damaged = bytearray(frozen.read_bytes())
    damaged[8] = 9
    frozen.write_bytes(damaged)
    with pytest.raises(
        ValueError, match="has version 9, this program reads version 1; freeze the cache again"
    ):
        builder.check_frozen(str(frozen))


def test_nothing_is_left_behind_when_the_source_is_bad(
    builder: Any, write: Callable[[bytes], str], tmp_path: Path
) -> None:
    path = write(BAD["repeated n-gram"][0])
    with pytest.raises(ValueError, match="occurs twice"):
        builder.freeze(path, str(tmp_path / "out.frozen"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["cache.bin"]
    with pytest.raises(ValueError, match="cannot be created"):
        builder.freeze(path, str(tmp_path / "missing" / "out.frozen"))
