"""Gives every reader mutated files, in a process of its own, so that a crash or a hang is seen as one.

Usage: mutated_child.py N SEED FOLDER. Prints one JSON object: how many each reader accepted and refused,
and every finding: an exception that is no InputError, a refusal without place, problem and remedy, or an
accepted file that does not hold what it claims. FOLDER/last says what was tried last.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import tomllib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import Manifest, load_manifest, sha256_file, write_manifest
from draft_ladder.base.variants import find
from draft_ladder.bench.config import load_experiment
from draft_ladder.bench.records import load_record, write_record
from draft_ladder.data.cache import freeze_cache
from draft_ladder.data.cache_files import inspect_cache
from draft_ladder.data.gguf_vocabulary import read_gguf_vocabulary
from draft_ladder.data.tokenizers import HuggingFaceTokenizer
from draft_ladder.data.tokens import open_tokens
from hostile_child import is_valid, sound_cache
from sample_records import make_measured, make_record, make_spec
from test_gguf import gguf, small_fields

HANG_CPU_S = 20.0
Claim = Callable[[Any, bytes], bool]  # (what was read, the file's bytes) -> it is what the bytes say


class Reader(NamedTuple):
    """Reads `sample`'s like; `claim` decides whether what it accepted is in the file."""

    sample: Path
    read: Callable[[Path], Any]
    claim: Claim


# --- the readers ------------------------------------------------------------------------------------------


def same_ids(found: Any, data: bytes) -> bool:
    if data.startswith(b"\x93NUMPY"):
        return np.array_equal(found, np.load(BytesIO(data), allow_pickle=False))
    return found.tobytes() == data


def same_settings(found: Any, data: bytes) -> bool:
    said = tomllib.loads(data.decode("utf-8-sig"))
    held = found[0].model_dump(mode="json")
    plain = {key: said[key] for key in ("name", "repeats", "seed", "clip", "tokenizer") if key in said}
    return all(held[key] == value for key, value in plain.items()) and set(said) <= set(held)


def same_fields(found: Any, data: bytes) -> bool:
    """Every value of the JSON is in the model, and no other is; defaults may be added."""

    def within(said: Any, held: Any) -> bool:
        if isinstance(said, dict):
            return isinstance(held, dict) and all(k in held and within(v, held[k]) for k, v in said.items())
        if isinstance(said, list):
            return len(said) == len(held) and all(map(within, said, held))
        return said == held or str(said) == str(held)

    return within(json.loads(data), found.model_dump(mode="json", by_alias=True))


def encodes(found: HuggingFaceTokenizer, data: bytes) -> bool:
    try:
        ids = found.encode("the quick brown fox, 12 é 東")
    except ValueError:  # named with its passage by who tokenises
        return True
    return not len(ids) or 0 <= int(ids.min()) <= int(ids.max()) < found.vocab_size


def empty_or(claim: Claim) -> Claim:
    """Also a file cut to nothing, which is an empty cache in any format."""
    return lambda found, data: found.format == "empty" if not data else claim(found, data)


def readers(folder: Path) -> dict[str, Reader]:
    """A small sound file for every reader."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    ids = np.array([rng.randrange(1000) for _ in range(400)], dtype=np.int32)
    files = {name: folder / name for name in ("raw.tok", "with.tok", "llama.bin", "frozen", "paired")}
    ids.tofile(files["raw.tok"])
    ids.tofile(files["with.tok"])
    np.save(folder / "ids.npy", ids.astype(np.int64))
    digest = sha256_file(files["with.tok"])
    tokenizer = {"tokenizer": "2" * 64, "text": "1" * 64}
    named = {"tokenizer": "tekken", "vocab_size": 1000}
    write_manifest(
        files["with.tok"],
        Manifest(kind="tokens", sha256=digest, bytes=1600, inputs=tokenizer, parameters=named),
    )
    files["llama.bin"].write_bytes(sound_cache(rng, 2_000)[0])
    freeze_cache(files["llama.bin"], files["frozen"])
    freeze_cache(files["llama.bin"], files["paired"], paired=True)
    find("summary_index").load().convert_static(str(files["llama.bin"]), str(folder / "summary"))
    (folder / "config.toml").write_bytes((Path(__file__).parents[1] / "configs/smoke.toml").read_bytes())
    record = make_record(make_spec(), make_measured())
    (folder / "runs").mkdir()
    write_record(folder / "runs", record)
    write_tokenizer(folder / "tokenizer.json")
    (folder / "vocabulary.gguf").write_bytes(gguf(small_fields()))

    def whole(sample: Path) -> Claim:
        sound = sample.read_bytes()
        return lambda found, data: data == sound

    def valid(found: Any, data: bytes) -> bool:
        return found.format in ("llama", "empty") and is_valid(data)

    checked = [files["frozen"], files["paired"], folder / "summary"]  # every byte, by checksums
    return {
        "tokens": Reader(files["raw.tok"], open_tokens, same_ids),
        "tokens with a manifest": Reader(files["with.tok"], open_tokens, whole(files["with.tok"])),
        "numpy tokens": Reader(folder / "ids.npy", open_tokens, same_ids),
        "llama.bin": Reader(files["llama.bin"], inspect_cache, valid),
        **{path.name: Reader(path, inspect_cache, empty_or(whole(path))) for path in checked},
        "config": Reader(folder / "config.toml", load_experiment, same_settings),
        "record": Reader(folder / f"runs/{record.key}.json", load_record, same_fields),
        "manifest": Reader(
            folder / "with.tok.json", lambda path: load_manifest(path.with_suffix("")), same_fields
        ),
        "tokenizer.json": Reader(folder / "tokenizer.json", HuggingFaceTokenizer, encodes),
        "GGUF": Reader(
            folder / "vocabulary.gguf", read_gguf_vocabulary, lambda found, data: len(found.tokens) > 0
        ),
    }


def write_tokenizer(path: Path) -> None:
    import tokenizers

    words = {word: number for number, word in enumerate(["the", "quick", "fox", "t", "h", "e", "[UNK]"])}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(path))


# --- the mutations ----------------------------------------------------------------------------------------

WORDS = (
    b"null",
    b"-1",
    b"1e999",
    b"NaN",
    b"[]",
    b"{}",
    b'""',
    b"true",
    b"\xff",
    b"\0",
    b"99999999999999999999",
)
NUMBERS = (0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to three changes of one kind each."""
    for _ in range(rng.randrange(1, 4)):
        at, length = rng.randrange(len(data) + 1), rng.randrange(1, 33)
        kind = rng.randrange(9)
        head, tail = data[:at], data[at:]
        if kind == 0 and tail:
            data = head + bytes([tail[0] ^ (1 << rng.randrange(8))]) + tail[1:]
        elif kind == 1:
            data = head
        elif kind == 2:
            data = head + tail[length:]
        elif kind == 3:
            data = head + rng.randbytes(length) + tail
        elif kind == 4:
            data = head + tail[:length] + tail
        elif kind == 5:
            data = head + bytes(min(length, len(tail))) + tail[length:]
        elif kind == 6:
            place = at // 4 * 4
            data = data[:place] + rng.choice(NUMBERS).to_bytes(4, "little") + data[place + 4 :]
        elif kind == 7:
            data = head + rng.choice(WORDS) + tail[rng.randrange(length) :]
        elif tail:
            data = head + bytes([rng.randrange(256)]) + tail[1:]
    return data


# --- the trial --------------------------------------------------------------------------------------------


def finding(reader: Reader, data: bytes) -> str | None:
    """Try one input: 'accepted' or 'refused' is as it should be, all else a finding."""
    reader.sample.write_bytes(data)
    try:
        found = reader.read(reader.sample)
    except InputError as error:
        sound = error.where and error.problem and error.remedy and "\n" not in str(error)
        return "refused" if sound else f"no place, problem and remedy in one line: {error!r}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    try:
        return "accepted" if reader.claim(found, data) else "accepted, but it is not what the file holds"
    except Exception as error:
        return f"accepted, but another reader says {type(error).__name__}: {error}"


def main() -> None:
    n, seed, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    rng = random.Random(seed)
    all_readers = readers(folder / "files")
    samples = {name: reader.sample.read_bytes() for name, reader in all_readers.items()}
    counts = {name: {"accepted": 0, "refused": 0} for name in all_readers}
    findings: list[str] = []
    for number in range(n):
        name = list(all_readers)[number % len(all_readers)]
        data = mutated(samples[name], rng)
        (folder / "last").write_bytes(f"{number} {name}\n".encode() + data)
        signal.setitimer(signal.ITIMER_PROF, HANG_CPU_S)  # its signal ends the process
        outcome = finding(all_readers[name], data)
        signal.setitimer(signal.ITIMER_PROF, 0)
        all_readers[name].sample.write_bytes(samples[name])
        if outcome in counts[name]:
            counts[name][outcome] += 1
        else:
            findings.append(f"input {number}, {name}: {outcome}: {data[:400]!r}")
    print(json.dumps({"counts": counts, "findings": findings[:20], "n_findings": len(findings)}))


if __name__ == "__main__":
    main()
