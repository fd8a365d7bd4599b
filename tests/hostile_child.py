"""Loads thousands of damaged caches in a process of its own, so that a crash is seen as one.

Usage: hostile_child.py VARIANT FORMAT N_CUTS N_FLIPS FOLDER. Prints one JSON object: how many loads succeeded
and failed, and every outcome other than the damage calls for (or an error without file, byte and remedy).
"""

from __future__ import annotations

import json
import random
import re
import signal
import struct
import sys
from bisect import bisect_right
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import xxhash
from native_modules import Variant, variants
from specification import NULL, ORDERS, Specification, read_static, write_static

# Of processor time, so that a busy machine is not taken for a hang.
HANG_CPU_S = 20.0
NAMED_ERROR = re.compile(r"^(?P<file>\S+): byte (?P<byte>\d+): .+; .+$")


class Record(NamedTuple):
    """One n-gram of the sound file."""

    start: int
    end: int
    bigram: tuple[int, int]


def sound_cache(rng: random.Random, size: int = 1_000_000) -> tuple[bytes, list[Record]]:
    """A cache of about `size` bytes with short and long successor lists, and where its records lie."""
    counts: dict[tuple[int, int], dict[int, int]] = {}
    total = 0
    while total < size:
        bigram = (rng.randrange(50_000), rng.randrange(50_000))
        k = 1 + int(rng.expovariate(0.3)) if rng.random() < 0.99 else rng.randrange(100, 900)
        counts[bigram] = {rng.randrange(50_000): 1 + int(rng.expovariate(0.5)) for _ in range(k)}
        total += 20 + 8 * len(counts[bigram])
    records, at = [], 0
    for bigram, successors in counts.items():
        records.append(Record(at, at + 20 + 8 * len(successors), bigram))
        at = records[-1].end
    return write_static(counts), records


def is_valid(data: bytes, before: Collection[tuple[int, int]] = ()) -> bool:
    """Whether drafting.md allows this file, after the n-grams `before`. Independent of the loaders."""
    words = memoryview(data[: len(data) // 4 * 4]).cast("i")
    seen, at = set(before), 0
    while at < len(words):
        if at + 5 > len(words):
            return False
        a, b, c, d, k = words[at : at + 5]
        end = at + 5 + 2 * k
        if a < 0 or b < 0 or c != NULL or d != NULL or k <= 0 or end > len(words) or (a, b) in seen:
            return False
        seen.add((a, b))
        tokens, counts = words[at + 5 : end : 2].tolist(), words[at + 6 : end : 2].tolist()
        if min(tokens) < 0 or min(counts) <= 0 or len(set(tokens)) != k:
            return False
        at = end
    return len(data) % 4 == 0


def named(message: str, file: str, size: int) -> bool:
    match = NAMED_ERROR.match(message)
    return match is not None and match["file"] == file and int(match["byte"]) <= size


class Trial:
    """Counts outcomes; keeps the unexpected ones."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        self.loaded = 0
        self.refused = 0
        self.unexpected: list[str] = []

    def load(self, where: str, file: str, size: int, source: Path | bytes) -> Any | None:
        """A loaded and verified drafter, or None after a named error."""
        drafter = self.variant.drafter()
        signal.setitimer(signal.ITIMER_PROF, HANG_CPU_S)  # its signal ends the process
        try:
            drafter.load(str(source)) if isinstance(source, Path) else drafter.load_bytes(source)
            drafter.verify_static()
        except ValueError as error:
            self.refused += 1
            if not named(str(error), file, size):
                self.unexpected.append(f"{where}: no file, byte or remedy in: {error}")
            return None
        self.loaded += 1
        return drafter

    def expect(self, where: str, loaded: bool, wanted: bool) -> None:
        if loaded != wanted:
            self.unexpected.append(f"{where}: {'loaded' if loaded else 'refused'}, but the file is "
                                   f"{'sound' if wanted else 'damaged'}")  # fmt: skip


def check_draft(trial: Trial, where: str, drafter: Any, data: bytes, record: Record) -> None:
    """What was loaded is what the file says: the draft after the record's bigram."""
    k = struct.unpack_from("<i", data, record.start + 16)[0]
    bytes_of_record = data[record.start : record.start + 20 + 8 * k]
    order = ORDERS[trial.variant.ties]
    specified = Specification(order, read_static(bytes_of_record, order))
    for token in struct.unpack_from("<2i", bytes_of_record):
        drafter.append(token)
        specified.append(token)
    want = [step.token for step in specified.draft(1)]
    if list(drafter.draft(1)) != want:
        trial.unexpected.append(f"{where}: drafts {list(drafter.draft(1))}, the file says {want}")


def damage_llama(trial: Trial, rng: random.Random, n_cuts: int, n_flips: int, file: Path) -> None:
    data, records = sound_cache(rng)
    ends = {0} | {record.end for record in records}
    starts = [record.start for record in records]
    file.write_bytes(data)
    cuts = rng.sample(range(len(data)), n_cuts - n_cuts // 10) + rng.sample(sorted(ends), n_cuts // 10)
    for cut in sorted(cuts, reverse=True):
        with file.open("r+b") as handle:
            handle.truncate(cut)
        where = f"cut at {cut}"
        trial.expect(where, trial.load(where, str(file), cut, file) is not None, cut in ends)
    bigrams = {record.bigram for record in records}
    for _ in range(n_flips):
        at, flip = rng.randrange(len(data)), rng.randrange(1, 256)
        damaged = bytearray(data)
        damaged[at] ^= flip
        record = records[bisect_right(starts, at) - 1]
        where = f"byte {at} xor {flip}"
        drafter = trial.load(where, "<bytes>", len(data), bytes(damaged))
        if record.start + 16 <= at < record.start + 20:  # the number of successors: everything after it moves
            before = [earlier.bigram for earlier in records[: records.index(record)]]
            wanted = is_valid(bytes(damaged[record.start :]), before)
        else:
            alone = bytes(damaged[record.start : record.end])
            bigram = struct.unpack_from("<2i", alone)
            wanted = is_valid(alone) and (bigram == record.bigram or bigram not in bigrams)
        trial.expect(where, drafter is not None, wanted)
        if drafter is not None:
            check_draft(trial, where, drafter, bytes(damaged), record)


def use_unverified(variant: Variant, data: bytes, records: list[Record], rng: random.Random) -> None:
    """Look-ups in a damaged file that nobody verified: anything but a crash."""
    text = [token for record in rng.sample(records, 40) for token in record.bigram]
    try:
        drafter = variant.drafter(data)
        drafter.draft_everywhere(struct.pack(f"<{len(text)}i", *text), 40, 4)
    except ValueError:
        pass


def damage_own(trial: Trial, rng: random.Random, n_cuts: int, n_flips: int, file: Path) -> None:
    """Damage to a format of our own, whose checksums cover all but a frozen file's padding."""
    llama, records = sound_cache(rng)
    source = file.with_suffix(".bin")
    source.write_bytes(llama)
    trial.variant.module.convert_static(str(source), str(file))
    data = file.read_bytes()
    padding = range(0)
    if trial.variant.static_format == "frozen":
        # The header says where the successors end and the map begins; the bytes between them mean nothing.
        n_successors, successors_at, map_at = struct.unpack_from("<3Q", data, 48)
        padding = range(successors_at + 8 * n_successors, map_at)
    for cut in sorted(rng.sample(range(len(data)), n_cuts), reverse=True):
        with file.open("r+b") as handle:
            handle.truncate(cut)
        where = f"cut at {cut}"
        trial.expect(where, trial.load(where, str(file), cut, file) is not None, cut == 0)
    for _ in range(n_flips):
        at, flip = rng.randrange(len(data)), rng.randrange(1, 256)
        damaged = bytearray(data)
        damaged[at] ^= flip
        where = f"byte {at} xor {flip}"
        drafter = trial.load(where, "<bytes>", len(data), bytes(damaged))
        trial.expect(where, drafter is not None, at in padding)
        use_unverified(trial.variant, bytes(damaged), records, rng)
    if trial.variant.static_format == "summary":
        for _ in range(n_flips):
            use_unverified(trial.variant, with_other_header(data, rng), records, rng)


# Where a summary file's header has its numbers (static_layout.hpp), and the checksum that ends it.
SUMMARY_U32S, SUMMARY_U64S, SUMMARY_SEAL = (8, 12), (16, 24, *range(32, 96, 8)), 96


def with_other_header(data: bytes, rng: random.Random) -> bytes:
    """A summary file with one or two numbers of its header replaced, and the header sealed again."""
    damaged = bytearray(data)
    for _ in range(rng.randrange(1, 3)):
        at = rng.choice((*SUMMARY_U32S, *SUMMARY_U64S))
        form = "<I" if at in SUMMARY_U32S else "<Q"
        width = 8 * struct.calcsize(form)
        (before,) = struct.unpack_from(form, data, at)
        near = before + rng.randrange(-9, 10)
        value = rng.choice(
            (0, 8, 16, near, 4096 * rng.randrange(9), 1 << rng.randrange(width), (1 << width) - 1)
        )
        struct.pack_into(form, damaged, at, value % (1 << width))
    struct.pack_into("<Q", damaged, SUMMARY_SEAL, xxhash.xxh64_intdigest(bytes(damaged[:SUMMARY_SEAL])))
    return bytes(damaged)


DAMAGE = {"llama": damage_llama, "frozen": damage_own, "summary": damage_own}


def main() -> None:
    name, static_format, n_cuts, n_flips, folder = sys.argv[1:]
    (variant,) = [variant for variant in variants() if variant.name == name]
    trial = Trial(variant)
    damage = DAMAGE[static_format]
    damage(trial, random.Random(11), int(n_cuts), int(n_flips), Path(folder) / "static.cache")
    print(json.dumps({"loaded": trial.loaded, "refused": trial.refused, "unexpected": trial.unexpected[:20]}))


if __name__ == "__main__":
    main()
