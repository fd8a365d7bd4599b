"""Static counting against a plain count, golden files, threads, limits, and the cache directory."""

from __future__ import annotations

import json
import os
import random
import signal
import struct
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import Manifest, Progress, load_manifest, sha256_file, write_manifest
from draft_ladder.data.cache import (
    build_static_cache,
    check_same_tokenizer,
    static_format_of,
    static_statistics,
)

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden"
needs_golden = pytest.mark.skipif(
    not GOLDEN.is_dir(), reason=f"{GOLDEN.name} files of real llama.cpp not here"
)


@pytest.fixture(scope="module")
def builder() -> Any:
    return native.builder()


def pack(tokens: list[int]) -> bytes:
    return struct.pack(f"<{len(tokens)}i", *tokens)


def count_plainly(tokens: list[int]) -> list[Any]:
    counts: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for first, second, successor in zip(tokens, tokens[1:], tokens[2:], strict=False):
        counts[first, second][successor] += 1
    return [(bigram, sorted(counts[bigram].items())) for bigram in sorted(counts)]


@pytest.mark.parametrize("vocabulary", [1, 2, 50, 5000, 2**21, 2**21 + 1, 2**31])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 1000, 30_000])
def test_counts_equal_a_plain_count(builder: Any, vocabulary: int, length: int) -> None:
    rng = random.Random(vocabulary + length)
    tokens = [rng.randrange(vocabulary) for _ in range(length - 2)] + [vocabulary - 1, 0][:length]
    expected = count_plainly(tokens)
    for jobs in (1, 3):
        assert builder.count_tokens(pack(tokens), vocabulary, jobs) == expected


@pytest.mark.parametrize("scale", [1, 2**12])
def test_many_partitions_and_slices_equal_a_sorted_count(builder: Any, scale: int, tmp_path: Path) -> None:
    tokens = np.minimum(np.random.default_rng(1).zipf(1.3, 2_300_000), 40_000).astype(np.int64)
    (tmp_path / "t.tok").write_bytes((tokens * scale).astype("<i4").tobytes())
    keys = tokens[:-2] << 40 | tokens[1:-1] << 20 | tokens[2:]
    unique, counts = np.unique(keys, return_counts=True)
    outputs = set()
    for jobs in (1, 3):
        target = tmp_path / f"{jobs}.bin"
        frozen = tmp_path / f"{jobs}.frozen"
        stats = builder.build_static(str(tmp_path / "t.tok"), str(target), str(frozen), 0, jobs)
        assert stats["n_pairs"] == len(unique)
        outputs.add((target.read_bytes(), frozen.read_bytes()))
    assert len(outputs) == 1
    content = builder.read_llama(str(tmp_path / "1.bin"))
    flat = [(a // scale, b // scale, c // scale, n) for (a, b), pairs in content for c, n in pairs]
    got = np.array(flat, dtype=np.int64)
    assert np.array_equal(got[:, 0] << 40 | got[:, 1] << 20 | got[:, 2], unique)
    assert np.array_equal(got[:, 3], counts)


@needs_golden
@pytest.mark.parametrize("case", ["s", "m"])
def test_golden_tokens_give_llama_cpps_own_counts(builder: Any, case: str, tmp_path: Path) -> None:
    target = tmp_path / "ours.bin"
    stats = builder.build_static(str(GOLDEN / f"{case}.train.tok"), str(target), None, 49_152, 2)
    theirs = builder.read_llama(str(GOLDEN / f"{case}.bin"))
    assert builder.read_llama(str(target)) == theirs
    assert target.stat().st_size == (GOLDEN / f"{case}.bin").stat().st_size
    assert stats["n_bigrams"] == len(theirs)
    assert stats["largest"] == max(len(successors) for _, successors in theirs)
    single = sum(len(successors) == 1 for _, successors in theirs)
    assert stats["single_share"] == pytest.approx(single / len(theirs))


def test_freezing_the_built_file_equals_building_the_frozen_one(builder: Any, tmp_path: Path) -> None:
    rng = random.Random(4)
    (tmp_path / "t.tok").write_bytes(pack([rng.randrange(300) for _ in range(50_000)]))
    builder.build_static(str(tmp_path / "t.tok"), str(tmp_path / "a.bin"), str(tmp_path / "a.frozen"), 300, 2)
    builder.freeze(str(tmp_path / "a.bin"), str(tmp_path / "b.frozen"), False, 300)
    assert (tmp_path / "a.frozen").read_bytes() == (tmp_path / "b.frozen").read_bytes()


def test_a_count_beyond_the_limit_names_the_ngram(builder: Any) -> None:
    tokens = pack([7] * 12 + [1, 2, 3])  # (7, 7) -> 7 ten times
    assert builder.count_tokens(tokens, 0, 1, 10)
    with pytest.raises(ValueError, match=r"\(7, 7\): .* 7 10 .* 9"):
        builder.count_tokens(tokens, 0, 1, 9)


def test_bad_tokens_are_named_with_their_byte_offset(builder: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"byte 8: .*-1"):
        builder.count_tokens(pack([1, 2, -1, 4]))
    with pytest.raises(ValueError, match=r"byte 4: .*10"):
        builder.count_tokens(pack([1, 10, 3, 4]), 10)
    with pytest.raises(ValueError, match="byte 12: "):
        builder.count_tokens(pack([1, 2, 3]) + b"\0\0")
    many = np.ones(5_000_000, dtype="<i4")
    many[4_999_999] = -5
    with pytest.raises(ValueError, match=r"byte 19999996: .*-5"):
        builder.count_tokens(many.tobytes(), 0, 2)
    (tmp_path / "t.tok").write_bytes(pack([1, -2]))
    with pytest.raises(ValueError, match=r"t\.tok: byte 4: .*-2"):
        builder.build_static(str(tmp_path / "t.tok"), str(tmp_path / "out.bin"))
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.tok"]


def test_an_exception_of_the_progress_callback_cancels(builder: Any, tmp_path: Path) -> None:
    (tmp_path / "t.tok").write_bytes(np.arange(6_000_000, dtype="<i4").tobytes())

    def stop(phase: str, done: int, total: int) -> None:
        if phase == "sort":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        builder.build_static(
            str(tmp_path / "t.tok"), str(tmp_path / "o.bin"), str(tmp_path / "o.frozen"), 0, 2, stop
        )
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.tok"]


def test_ctrl_c_ends_the_work_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "t.tok").write_bytes(np.arange(40_000_000, dtype="<i4").tobytes())
    program = (
        "import sys; from draft_ladder.base import native\n"
        "native.builder().build_static(sys.argv[1], sys.argv[2], None, 0, 1,"
        " lambda phase, done, total: print(phase, flush=True))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "t.tok"), str(tmp_path / "o.bin")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.tok"]


def test_ctrl_c_ends_freezing_and_leaves_nothing(builder: Any, tmp_path: Path) -> None:
    (tmp_path / "t.tok").write_bytes(np.arange(4_000_000, dtype="<i4").tobytes())
    builder.build_static(str(tmp_path / "t.tok"), str(tmp_path / "c.bin"))
    program = (
        "import sys; from draft_ladder.base import native; native.builder(); print('ready', flush=True)\n"
        "native.builder().freeze(sys.argv[1], sys.argv[2])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "c.bin"), str(tmp_path / "c.frozen")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["c.bin", "t.tok"]


def test_other_python_threads_run_while_it_counts(builder: Any) -> None:
    tokens = np.random.default_rng(2).integers(0, 50_000, 3_000_000).astype("<i4").tobytes()
    worker = threading.Thread(target=builder.count_tokens, args=(tokens[: 4 * 200_000],))
    worker.start()
    ticks = 0
    while worker.is_alive():
        ticks += 1
    assert ticks > 10


def token_file(path: Path, tokens: list[int], tokenizer: str, vocab_size: int) -> Path:
    path.write_bytes(pack(tokens))
    manifest = Manifest(
        kind="tokens",
        inputs={"text": "0" * 64, "tokenizer": tokenizer[0] * 64},
        parameters={"tokenizer": tokenizer, "vocab_size": vocab_size},
        sha256=sha256_file(path),
        bytes=path.stat().st_size,
    )
    write_manifest(path, manifest)
    return path


def test_the_cache_directory_is_content_addressed(tmp_path: Path) -> None:
    tokens = token_file(tmp_path / "a.tok", [1, 2, 3, 1, 2, 4], "bytes", 10)
    seen: list[Progress] = []
    first = build_static_cache(tokens, tmp_path, 1, seen.append)
    assert {path.parent for path in first.paths.values()} == {tmp_path / "static"}
    assert seen[-1].done_bytes == seen[-1].total_bytes == 24
    assert [step.done_bytes for step in seen] == sorted(step.done_bytes for step in seen)
    assert first.stats["n_bigrams"] == 3
    assert first.stats["n_pairs"] == 4
    assert first.sha256s == {name: sha256_file(path) for name, path in first.paths.items()}
    manifest = load_manifest(first.paths["frozen"], "static")
    assert manifest.inputs["tokens"] == sha256_file(tokens)
    assert manifest.parameters["vocab_size"] == 10
    assert str(tmp_path) not in json.dumps(manifest.model_dump())

    times = {path: path.stat().st_mtime_ns for path in first.paths.values()}
    again = build_static_cache(tokens, tmp_path, 2)
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in again.paths.values()} == times

    copy = token_file(tmp_path / "copy.tok", [1, 2, 3, 1, 2, 4], "bytes", 10)
    assert build_static_cache(copy, tmp_path).paths == first.paths
    other = token_file(tmp_path / "other.tok", [1, 2, 3, 1, 2, 5], "bytes", 10)
    assert build_static_cache(other, tmp_path).paths != first.paths


def test_missing_parts_are_made_again_with_equal_bytes(tmp_path: Path) -> None:
    tokens = token_file(tmp_path / "a.tok", [1, 2, 3, 1, 2, 4] * 50, "bytes", 10)
    first = build_static_cache(tokens, tmp_path, formats=("llama", "frozen", "paired"))
    for name in ("frozen", "llama", "paired"):
        first.paths[name].unlink()
        again = build_static_cache(tokens, tmp_path, formats=("llama", "frozen", "paired"))
        assert again.sha256s == first.sha256s
    first.paths["llama"].write_bytes(b"short")
    assert build_static_cache(tokens, tmp_path).sha256s["llama"] == first.sha256s["llama"]
    assert static_format_of(first.paths["paired"]) == "paired"
    assert static_statistics(first.paths["llama"])["n_bigrams"] == first.stats["n_bigrams"]
    assert static_statistics(first.paths["frozen"])["largest"] is None


def test_a_token_file_without_a_manifest_builds(tmp_path: Path) -> None:
    (tmp_path / "bare.tok").write_bytes(pack([5, 6, 7]))
    cache = build_static_cache(tmp_path / "bare.tok", tmp_path)
    assert cache.stats["n_bigrams"] == 1
    assert load_manifest(cache.paths["llama"]).parameters["tokenizer"] is None


def test_bad_requests_are_named(tmp_path: Path) -> None:
    tokens = token_file(tmp_path / "a.tok", [1, 2, 3], "bytes", 10)
    with pytest.raises(InputError, match=r"^formats: 'zip' .*llama, frozen, paired"):
        build_static_cache(tokens, tmp_path, formats=("zip",))
    tokens.write_bytes(pack([1, 2, 4]))
    with pytest.raises(InputError, match=r"a\.tok: .*manifest"):
        build_static_cache(tokens, tmp_path)
    beyond = token_file(tmp_path / "b.tok", [1, 2, 10], "bytes", 10)
    with pytest.raises(InputError, match=r"b\.tok: byte 8: .*10"):
        build_static_cache(beyond, tmp_path)
    with pytest.raises(InputError, match=r"missing\.bin"):
        static_statistics(tmp_path / "missing.bin")


def test_caches_of_another_tokenizer_are_refused_naming_both(tmp_path: Path) -> None:
    tokens = token_file(tmp_path / "a.tok", [1, 2, 3], "alpha", 10)
    other = token_file(tmp_path / "b.tok", [1, 2, 3], "beta", 12)
    cache = build_static_cache(tokens, tmp_path)
    check_same_tokenizer(cache.paths["llama"], tokens)
    with pytest.raises(InputError, match=r"'alpha' \(10 tokens\).*'beta' \(12 tokens\)"):
        check_same_tokenizer(cache.paths["llama"], other)


def test_the_module_is_found_or_its_absence_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    native.builder()
    monkeypatch.setenv("LADDER_NATIVE", str(tmp_path))
    assert native.native_root() == tmp_path
    with pytest.raises(InputError, match="'_builder'"):
        native.builder()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is Linux's")
def test_a_target_that_cannot_be_written_is_named(builder: Any, tmp_path: Path) -> None:
    (tmp_path / "t.tok").write_bytes(pack([1, 2, 3]))
    (tmp_path / "taken").mkdir()
    with pytest.raises(ValueError, match="taken: byte 28: "):
        builder.build_static(str(tmp_path / "t.tok"), str(tmp_path / "taken"))
