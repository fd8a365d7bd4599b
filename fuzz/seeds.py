"""Writes the seeds of every fuzz target: small, sound inputs that mutations start from."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

RIGHT_SIZE, RIGHT_HEADER, PAIRED, RIGHT_SUCCESSORS, FROM_LLAMA = 2, 4, 8, 16, 1
RIGHT_LAYOUT = 8  # of a summary file
RIGHT_SECTIONS, CALIBRATED_HEADER, FLAT_COSTS = 2, 4, 8  # of a calibrated drafter's state
SUMMARY_TOKENS = 16  # summary_loader looks up every bigram of these


def llama_cache(rng: random.Random, n_ngrams: int, tokens_below: int = 50) -> bytes:
    """A sound static cache in llama.cpp's format."""
    bigrams = {(rng.randrange(tokens_below), rng.randrange(tokens_below)) for _ in range(n_ngrams)}
    data = b""
    for a, b in sorted(bigrams, key=lambda _: rng.random()):
        tokens = rng.sample(range(60), rng.choice([1, 1, 2, 3, 15, 40]))
        pairs = [x for token in tokens for x in (token, rng.choice([1, 1, 2, 30_000, 2**31 - 1]))]
        data += struct.pack(f"<5i{len(pairs)}i", a, b, -1, -1, len(tokens), *pairs)
    return data


def llama_seeds(rng: random.Random) -> list[bytes]:
    """Sound files, the empty one included."""
    return [b"", *(llama_cache(rng, n) for n in (1, 1, 2, 3, 4, 5))]


def frozen_seeds(rng: random.Random) -> list[bytes]:
    """Flags, number of damages, each an offset and a flip, then llama.cpp's file to freeze."""
    seeds = []
    for n in (1, 3, 20):
        for flags in (0, RIGHT_HEADER, RIGHT_HEADER | RIGHT_SUCCESSORS, RIGHT_SIZE | RIGHT_HEADER):
            for layout in (0, PAIRED):
                n_damage = rng.randrange(4)
                damage = b"".join(
                    struct.pack(">IB", rng.randrange(4096), rng.randrange(256)) for _ in range(n_damage)
                )
                head = bytes([FROM_LLAMA | flags | layout, n_damage])
                seeds.append(head + damage + llama_cache(rng, n))
    return seeds


def write_summary_files(converter: Path, folder: Path) -> None:
    """Sound summary files, made by the target itself: as they are, and to be made right after mutations."""
    rng = random.Random(2)
    source, made = folder / "source.tmp", folder / "made.tmp"
    for i, n_ngrams in enumerate((1, 5, 40, 200)):
        source.write_bytes(llama_cache(rng, n_ngrams, SUMMARY_TOKENS))
        subprocess.run([converter, "--convert", source, made], check=True)
        for flags in (0, RIGHT_SIZE | RIGHT_HEADER, RIGHT_SIZE | RIGHT_HEADER | RIGHT_LAYOUT):
            (folder / f"file-{i}-{flags}").write_bytes(bytes([flags]) + made.read_bytes())
    source.unlink()
    made.unlink()


def replay_seeds(rng: random.Random) -> list[bytes]:
    """n_ctx, n_draft, vocabulary, number of n-grams, their lists, then tokens."""
    seeds = []
    for vocabulary in (0, 1, 3, 15, 30, 129, 255):
        n_ngrams = rng.randrange(6)
        lists = b""
        for _ in range(n_ngrams):
            k = rng.randrange(1, 6)
            lists += bytes([rng.randrange(32), rng.randrange(32), k - 1]) + rng.randbytes(2 * k)
        block = rng.randbytes(rng.randrange(2, 9))
        tokens = block * 8 + rng.randbytes(60) + block * 4
        seeds.append(bytes([rng.randrange(63), rng.randrange(256), vocabulary, n_ngrams]) + lists + tokens)
    return seeds


def calibrated_seeds(rng: random.Random) -> list[bytes]:
    """Flags, number of damages, each an offset and a flip, then the input that the saved engine worked on."""
    seeds = []
    for length in (0, 12, 200):
        for flags in (0, RIGHT_SECTIONS, RIGHT_SECTIONS | CALIBRATED_HEADER, RIGHT_SECTIONS | FLAT_COSTS):
            n_damage = rng.randrange(4)
            damage = b"".join(
                struct.pack(">IB", rng.randrange(1 << 16), rng.randrange(256)) for _ in range(n_damage)
            )
            block = rng.randbytes(rng.randrange(2, 9))
            use = (block * length)[:length] + (b"\xff" + block if length > 100 else b"")
            seeds.append(bytes([flags, n_damage]) + damage + use)
    return seeds


SEEDS = {
    "llama_loader": llama_seeds,
    "frozen_loader": frozen_seeds,
    "summary_loader": frozen_seeds,
    "replay": replay_seeds,
    "calibrated_state": calibrated_seeds,
}


def write_seeds(target: str, folder: Path) -> int:
    """Write the seeds of one target into `folder`; return their number."""
    folder.mkdir(parents=True, exist_ok=True)
    seeds = SEEDS[target](random.Random(1))
    for i, seed in enumerate(seeds):
        (folder / f"seed-{i:02}").write_bytes(seed)
    return len(seeds)


if __name__ == "__main__":
    for name in SEEDS:
        print(name, write_seeds(name, Path(sys.argv[1]) / name))
