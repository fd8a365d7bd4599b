"""The const map: our bytes in fastconstmap, fastconstmap's bytes in ours, XXH64, and damaged maps."""

from __future__ import annotations

import random
import struct
from pathlib import Path
from typing import Any

import fastconstmap
import numpy as np
import pytest
import xxhash
from draft_ladder.base import native

BIGRAMS = 1_000_000
NOT_FOUND = 2**64 - 1
READERS = {False: fastconstmap.VerifiedConstMap, True: fastconstmap.PairedVerifiedConstMap}
MAGICS = {False: b"VMAP0001", True: b"PMAP0001"}


@pytest.fixture(scope="module")
def builder() -> Any:
    return native.builder()


@pytest.fixture(scope="module")
def million(builder: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    """A llama.cpp cache of a million bigrams and its content."""
    folder = tmp_path_factory.mktemp("million")
    tokens = np.random.default_rng(7).integers(0, 2000, 1_300_000).astype("<i4")
    (folder / "t.tok").write_bytes(tokens.tobytes())
    stats = builder.build_static(str(folder / "t.tok"), str(folder / "c.bin"))
    assert stats["n_bigrams"] >= BIGRAMS
    return folder / "c.bin", builder.read_llama(str(folder / "c.bin"))


def key_bytes(first: int, second: int) -> bytes:
    return struct.pack("<ii", first, second)


@pytest.mark.parametrize("paired", [False, True])
def test_fastconstmap_reads_every_key_of_our_map_section(
    builder: Any, million: tuple[Path, list[Any]], tmp_path: Path, paired: bool
) -> None:
    source, content = million
    target = tmp_path / "c.frozen"
    builder.freeze(str(source), str(target), paired)
    figures = builder.check_frozen(str(target))
    offset = figures["map_offset"]
    assert offset % 8 == 0
    section = target.read_bytes()[offset:]
    assert section[:8] == MAGICS[paired]

    theirs = READERS[paired].from_bytes(section)
    assert len(theirs) == len(content) == figures["n_bigrams"]
    values = theirs.get_many([key_bytes(*bigram) for bigram, _ in content])
    first = 0
    for value, (bigram, successors) in zip(values, content, strict=True):
        assert value == first << 24 | len(successors), bigram
        first += len(successors)
    assert theirs.get(key_bytes(130_001, 5)) is None


@pytest.mark.parametrize("paired", [False, True])
def test_we_read_every_key_of_a_map_fastconstmap_wrote(
    builder: Any, million: tuple[Path, list[Any]], paired: bool
) -> None:
    _, content = million
    rng = random.Random(3)
    values = [rng.randrange(NOT_FOUND) for _ in content]
    keys = [bigram for bigram, _ in content]
    theirs = READERS[paired]({key_bytes(*key): value for key, value in zip(keys, values, strict=True)})
    written = theirs.to_bytes()
    assert written[:8] == MAGICS[paired]
    assert builder.vmap_lookup_many(written, keys) == values
    absent = [(second + 140_000, first) for first, second in keys[:100_000]]
    assert builder.vmap_lookup_many(written, absent) == [None] * len(absent)


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7, 10, 33, 100, 1000, 5000])
def test_maps_of_every_small_size_round_trip_both_ways(builder: Any, size: int, paired: bool) -> None:
    rng = random.Random(size)
    content = {(rng.randrange(2**31), rng.randrange(2**31)): rng.randrange(NOT_FOUND) for _ in range(size)}
    ours = builder.vmap_from_pairs([(*key, value) for key, value in content.items()], paired)
    theirs = READERS[paired].from_bytes(ours)
    assert [theirs.get(key_bytes(*key)) for key in content] == list(content.values())
    assert builder.vmap_lookup_many(ours, list(content)) == list(content.values())
    assert builder.vmap_lookup_many(ours, [(5, 5)]) == [None]
    written = READERS[paired]({key_bytes(*key): value for key, value in content.items()}).to_bytes()
    assert builder.vmap_lookup_many(written, list(content)) == list(content.values())


def test_swapped_and_equal_tokens_are_told_apart(builder: Any) -> None:
    pairs = [(a, b, a * 300 + b) for a in range(300) for b in range(300)]
    written = builder.vmap_from_pairs(pairs)
    assert builder.vmap_lookup_many(written, [(a, b) for a, b, _ in pairs]) == [value for *_, value in pairs]


def test_equal_input_gives_equal_bytes(builder: Any) -> None:
    pairs = [(i, i * 7 % 1000, i) for i in range(1000)]
    assert builder.vmap_from_pairs(pairs) == builder.vmap_from_pairs(pairs)


def test_a_repeated_key_and_the_absent_value_are_refused(builder: Any) -> None:
    pairs = [(i, 1, i) for i in range(1000)]
    with pytest.raises(ValueError, match=r"key \(5, 1\): occurs twice"):
        builder.vmap_from_pairs([*pairs, (5, 1, 9)])
    with pytest.raises(ValueError, match="means 'absent'"):
        builder.vmap_from_pairs([(1, 1, NOT_FOUND)])


@pytest.mark.parametrize("paired", [False, True])
def test_a_damaged_map_is_refused_at_every_byte(builder: Any, paired: bool) -> None:
    whole = builder.vmap_from_pairs([(i, i + 1, i) for i in range(20)], paired)
    for at in range(len(whole)):
        with pytest.raises(ValueError, match=r"<bytes>: byte \d+: .*; "):
            builder.vmap_lookup_many(whole[:at], [(1, 2)])
        flipped = bytearray(whole)
        flipped[at] ^= 1 << at % 8
        with pytest.raises(ValueError, match=r"<bytes>: byte \d+: .*; "):
            builder.vmap_lookup_many(bytes(flipped), [(1, 2)])


def fnv1a(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


@pytest.mark.parametrize(
    "segments",
    # length, count: not a power of two, no segment, too long, product beyond 32 bits
    [(3, 6), (4, 0), (0, 4), (1 << 31, 1), (1 << 31, 0xFFFFFFFF), (8, 40), (4, 0xFFFFFFFE)],
)
def test_segments_that_would_read_outside_are_refused(builder: Any, segments: tuple[int, int]) -> None:
    whole = builder.vmap_from_pairs([(i, i + 1, i) for i in range(10)])
    hostile = whole[:16] + struct.pack("<II", *segments) + whole[24:-8]
    hostile += struct.pack("<Q", fnv1a(hostile))
    with pytest.raises(ValueError, match="byte 16: the const map's segments do not add up"):
        builder.vmap_lookup_many(hostile, [(1, 2)])


def test_xxh64_agrees_with_the_xxhash_package(builder: Any) -> None:
    rng = random.Random(1)
    for length in [*range(0, 200), 1000, 4096, 65_537]:
        data = rng.randbytes(length)
        seed = rng.randrange(2**64)
        assert builder.xxh64(data) == xxhash.xxh64_intdigest(data)
        assert builder.xxh64(data, seed) == xxhash.xxh64_intdigest(data, seed)


def test_the_eight_byte_path_is_xxh64(builder: Any) -> None:
    rng = random.Random(2)
    for word in [0, 1, 2**64 - 1, *(rng.randrange(2**64) for _ in range(10_000))]:
        assert builder.xxh64_word(word) == xxhash.xxh64_intdigest(word.to_bytes(8, "little"))
