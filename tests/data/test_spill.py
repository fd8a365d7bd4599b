"""The bounded builder: the bytes of the builder in memory, within its bound, and goes on after a kill."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import Progress, sha256_file
from draft_ladder.data import spill
from draft_ladder.data.cache import build_static_cache
from draft_ladder.data.tokens import write_tokens

try:
    spill.caches_module()
except InputError as error:
    pytest.skip(f"native modules are not built: {error}", allow_module_level=True)

PLENTY = 4 * 10**9


def zipf_tokens(n: int, seed: int, vocab_size: int = 5_000) -> np.ndarray[Any, np.dtype[np.int32]]:
    ranks = np.random.default_rng(seed).zipf(1.3, n)
    return np.minimum(ranks - 1, vocab_size - 1).astype("<i4")


def in_memory(tokens: Path, folder: Path, **options: Any) -> Path:
    return build_static_cache(tokens, folder, formats=["llama"], **options).paths["llama"]


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    path = tmp_path / "t.tok"
    path.write_bytes(zipf_tokens(50_000, 1).tobytes())
    return path


@pytest.mark.parametrize("step", [1, 2, 3, 1_000, 49_997, 49_998, 49_999, 50_000, 1_000_000])
def test_parts_of_any_size_give_the_same_bytes(
    tokens: Path, tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if step < 1_000:
        tokens.write_bytes(tokens.read_bytes()[: 4 * 300])
    monkeypatch.setattr(spill, "part_tokens", lambda memory, vocab: step)
    monkeypatch.setattr(spill, "MAX_OPEN_FILES", 7)  # several passes
    expected = in_memory(tokens, tmp_path / "a")
    found = in_memory(tokens, tmp_path / "b", memory_bytes=PLENTY)
    assert found.read_bytes() == expected.read_bytes()
    assert found.name == expected.name
    assert not list(found.parent.glob("*.spill"))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4])
def test_short_token_files(tmp_path: Path, n: int) -> None:
    path = tmp_path / "t.tok"
    write_tokens(path, range(n))
    expected = in_memory(path, tmp_path / "a")
    assert in_memory(path, tmp_path / "b", memory_bytes=PLENTY).read_bytes() == expected.read_bytes()


def test_both_builders_count_the_same_shares(tokens: Path, tmp_path: Path) -> None:
    figures = []
    for folder, memory in (("a", None), ("b", PLENTY)):
        stats = build_static_cache(tokens, tmp_path / folder, formats=["llama"], memory_bytes=memory).stats
        figures.append(
            [stats[key] for key in ("n_tokens", "n_bigrams", "n_pairs", "single_share", "largest")]
        )
    assert figures[0] == figures[1]


def test_a_bad_token_is_named_by_its_byte_in_the_file(
    tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "part_tokens", lambda memory, vocab: 1_000)
    raw = bytearray(tokens.read_bytes())
    raw[4 * 12_345 : 4 * 12_346] = b"\xfe\xff\xff\xff"
    tokens.write_bytes(raw)
    with pytest.raises(InputError, match=r"t\.tok: byte 49380: .*-2"):
        in_memory(tokens, tmp_path / "b", memory_bytes=PLENTY)
    tokens.write_bytes(raw[:-3])
    with pytest.raises(InputError, match=r"t\.tok: byte (49380|199996): "):
        in_memory(tokens, tmp_path / "b", memory_bytes=PLENTY)


def test_a_bound_that_is_too_small_says_what_is_needed(tokens: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^--memory: 1000000 .* \d+MB"):
        in_memory(tokens, tmp_path, memory_bytes=1_000_000)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2GB", 2 * 10**9),
        ("512MiB", 512 * 2**20),
        ("1.5g", 1_500_000_000),
        ("4096", 4096),
        (" 3 MB ", 3_000_000),
    ],
)
def test_amounts_of_memory(text: str, expected: int) -> None:
    assert spill.parse_memory(text) == expected


@pytest.mark.parametrize("text", ["", "GB", "2 XB", "-1GB", "2iB", "nan"])
def test_no_amount_of_memory(text: str) -> None:
    with pytest.raises(InputError, match=r"^--memory: "):
        spill.parse_memory(text)


def test_progress_tells_pace_and_time_left(
    tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "part_tokens", lambda memory, vocab: 5_000)
    seen: list[Progress] = []
    in_memory(tokens, tmp_path, memory_bytes=PLENTY, progress=seen.append)
    done = [progress.done_bytes for progress in seen]
    assert done == sorted(done)
    assert seen[-1].total_bytes == 200_000
    assert any(progress.tokens_per_s and progress.seconds_left for progress in seen)


def test_a_changed_file_is_not_mixed_with_parts_of_the_old_one(
    tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "part_tokens", lambda memory, vocab: 5_000)
    original = spill.sha256_file

    def grows(path: Path) -> str:
        if path == tokens:
            with tokens.open("ab") as file:
                file.write(bytes(4))
        return original(path)

    monkeypatch.setattr(spill, "sha256_file", grows)
    with pytest.raises(InputError, match=r"t\.tok: "):
        in_memory(tokens, tmp_path, memory_bytes=PLENTY)
    assert not list((tmp_path / "static").glob("*.bin"))


BUILD = """
import sys
from pathlib import Path
from draft_ladder.data.spill import count_bounded, parse_memory
import resource
facts = count_bounded(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), parse_memory(sys.argv[4]),
                      vocab_size=int(sys.argv[5]), jobs=2, folder=Path(sys.argv[3] + ".spill"))
status = Path("/proc/self/status").read_text() if Path("/proc/self/status").exists() else ""
peak = [int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")]
print(facts["n_parts"], facts["n_parts_found"], peak[0] if peak else -1)
"""


def command(tokens: Path, target: Path, memory: str, vocab_size: int = 5_000) -> list[str]:
    arguments = [str(tokens), sha256_file(tokens), str(target), memory, str(vocab_size)]
    return [sys.executable, "-c", BUILD, *arguments]


def large_tokens(tmp_path: Path, n: int) -> Path:
    path = tmp_path / "large.tok"
    path.write_bytes(zipf_tokens(n, 2).tobytes())
    return path


@pytest.mark.parametrize("text", ["zipf", "one token"])
def test_resident_memory_stays_within_the_bound(tmp_path: Path, text: str) -> None:
    path = large_tokens(tmp_path, 12_000_000)
    if text == "one token":  # all keys in one partition: the worst case for the sorter
        path.write_bytes(bytes(4 * 12_000_000))
    result = subprocess.run(
        command(path, tmp_path / "out.bin", "180MB"), capture_output=True, text=True, check=True
    )
    n_parts, _, peak = map(int, result.stdout.split())
    assert n_parts > 1
    if peak < 0:
        pytest.skip("no /proc here to read the peak from")
    print(f"peak RSS {peak / 1e6:.1f} MB of 180 MB allowed, {n_parts} parts")
    assert peak <= 180e6


def test_a_killed_build_goes_on_with_its_spill_files(tmp_path: Path) -> None:
    path, target = large_tokens(tmp_path, 6_000_000), tmp_path / "out.bin"
    folder = tmp_path / "out.bin.spill"
    arguments = command(path, target, "120MB")
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(list(folder.glob("part-*.bin.json"))) < 2 and time.monotonic() < deadline:
        assert process.poll() is None, "ended before it could be killed"
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not target.exists()
    whole = len(list(folder.glob("part-*.bin.json")))
    (folder / "part-000000.bin").write_bytes(b"damaged, but of course not noticed by its size alone")
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)
    n_parts, n_found, _ = map(int, result.stdout.split())
    assert n_parts > n_found >= whole - 1 >= 1
    assert target.read_bytes() == in_memory(path, tmp_path / "a").read_bytes()
    assert not folder.exists()


def test_a_second_run_takes_the_parts_of_no_larger_a_bound_only(tmp_path: Path) -> None:
    plan = spill._planned_step(tmp_path, "t", PLENTY, 100)
    (tmp_path / "part-000000.bin").touch()
    for memory in (PLENTY, PLENTY + 10**6):
        assert spill._planned_step(tmp_path, "t", memory, 100) == plan
    assert (tmp_path / "part-000000.bin").exists()
    assert spill._planned_step(tmp_path, "t", PLENTY - 1, 100) <= plan
    assert not (tmp_path / "part-000000.bin").exists()


def test_two_builds_of_one_target_do_not_share_spill_files(tokens: Path, tmp_path: Path) -> None:
    """The second waits and finds what the first made."""
    seen: list[list[Progress]] = [[], []]
    with ThreadPoolExecutor(2) as pool:
        build = partial(in_memory, tokens, tmp_path, memory_bytes=PLENTY)
        paths = list(pool.map(lambda log: build(progress=log.append), seen))
    assert paths[0] == paths[1]
    assert sorted(map(bool, seen)) == [False, True]
    assert not list((tmp_path / "static").glob("*.spill"))


def test_the_nested_map_loop_counts_the_same(tokens: Path, tmp_path: Path) -> None:
    nested = tmp_path / "nested.bin"
    report = spill.caches_module().count_nested_maps(str(tokens), str(nested))
    assert report["n_tokens"] == 50_000
    ours = in_memory(tokens, tmp_path / "a")
    assert native.builder().read_llama(str(nested)) == native.builder().read_llama(str(ours))
    spill.sort_file(nested, tmp_path / "sorted.bin", PLENTY)
    assert (tmp_path / "sorted.bin").read_bytes() == ours.read_bytes()
    assert spill.caches_module().count_sorted(str(tokens))["n_pairs"] > 0


def test_sorting_in_many_small_parts(tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = in_memory(tokens, tmp_path / "a")
    records = native.builder().read_llama(str(ours))
    random.Random(1).shuffle(records)
    shuffled = tmp_path / "shuffled.bin"
    shuffled.write_bytes(b"".join(record(bigram, list(reversed(list_))) for bigram, list_ in records))
    monkeypatch.setattr(spill, "room_left", lambda memory: 100_000)
    spill.sort_file(shuffled, tmp_path / "sorted.bin", PLENTY, vocab_size=5_000)
    assert (tmp_path / "sorted.bin").read_bytes() == ours.read_bytes()
    twice = shuffled.read_bytes() + record(*records[0])
    shuffled.write_bytes(twice)
    place = len(twice) - len(record(*records[0]))
    with pytest.raises(InputError, match=rf"shuffled\.bin: byte {place}: "):
        spill.sort_file(shuffled, tmp_path / "again.bin", PLENTY, vocab_size=5_000)
    assert not (tmp_path / "again.bin").exists()


def record(bigram: tuple[int, int], successors: list[tuple[int, int]]) -> bytes:
    fields = [*bigram, -1, -1, len(successors), *(field for pair in successors for field in pair)]
    return np.array(fields, dtype="<i4").tobytes()
