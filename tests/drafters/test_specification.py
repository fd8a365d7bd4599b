"""The specification against real llama.cpp's drafts, hand-counted cases, and the real std::unordered_map."""

from __future__ import annotations

import hashlib
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from golden_data import golden_cases, read_tokens
from libstdcxx_order import BUCKET_COUNTS, LibstdcxxMap
from specification import ORDERS, Replay, Specification, count_static, read_static, replay, write_static

SOURCES = ("context", "dynamic", "static")

UNORDERED_MAP_PROGRAM = r"""
#include <cstdint>
#include <iostream>
#include <unordered_map>
// Reads lines "t t t ..."; prints the iteration order after each line's insertions, copied half-way.
int main() {
#ifndef __GLIBCXX__
    std::cout << "other library\n";
    return 0;
#endif
    std::size_t n;
    while (std::cin >> n) {
        std::unordered_map<std::int32_t, std::int32_t> map;
        for (std::size_t i = 0; i < n; ++i) {
            std::int32_t token;
            std::cin >> token;
            if (i == n / 2) {
                std::unordered_map<std::int32_t, std::int32_t> copy(map);
                map.swap(copy);
            }
            ++map[token];
        }
        std::cout << map.bucket_count();
        for (const auto& [token, count] : map) std::cout << ' ' << token << ' ' << count;
        std::cout << '\n';
    }
}
"""


@pytest.fixture(scope="module")
def real_orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("g++") is None:
        pytest.skip("no g++ to compile the comparison with std::unordered_map")
    folder = tmp_path_factory.mktemp("order")
    (folder / "order.cpp").write_text(UNORDERED_MAP_PROGRAM)
    subprocess.run(["g++", "-std=c++20", "-O1", "-o", "order", "order.cpp"], cwd=folder, check=True)
    return folder / "order"


def random_insertions(rng: random.Random) -> list[int]:
    n = int(2 ** rng.uniform(0, 12))
    vocabulary = rng.choice([3, 20, 300, 50_000, 2**31 - 1])
    step = rng.choice([1, 13, 29, 59])  # multiples of a bucket count collide
    return [rng.randrange(vocabulary) // step * step for _ in range(n)]


def test_order_is_that_of_the_real_container(real_orders: Path) -> None:
    rng = random.Random(7)
    cases = [random_insertions(rng) for _ in range(400)]
    cases += [list(range(count + 1)) for count in BUCKET_COUNTS[1:14]]  # one past each growth
    program_input = "".join(f"{len(case)} {' '.join(map(str, case))}\n" for case in cases)
    output = subprocess.run(
        [real_orders], input=program_input, capture_output=True, text=True, check=True
    ).stdout
    if output.startswith("other library"):
        pytest.skip("g++ uses a standard library other than libstdc++")
    for case, line in zip(cases, output.splitlines(), strict=True):
        model = LibstdcxxMap()
        for i, token in enumerate(case):
            if i == len(case) // 2:
                model = model.copy()
            model.add(token, 1)
        bucket_count, *flat = map(int, line.split())
        assert model.bucket_count == bucket_count
        assert list(model.items()) == list(zip(flat[::2], flat[1::2], strict=True))


def run_case(golden: Path, case: dict[str, Any], ties: str) -> Replay:
    order = ORDERS[ties]
    static = read_static((golden / f"{case['case']}.bin").read_bytes(), order) if case["static"] else None
    tokens = read_tokens(golden / f"{case['case']}.test.tok")
    return replay(Specification(order, static), tokens, case["n_ctx"], case["n_draft"])


@pytest.mark.parametrize("ties", ["iteration", "token"])
@pytest.mark.parametrize("case", golden_cases())
def test_specification_drafts_what_llama_cpp_drafts(golden: Path, case: dict[str, Any], ties: str) -> None:
    expected, got = case[ties], run_case(golden, case, ties)
    steps = [step for _, draft in got.drafts for step in draft]
    assert (got.n_drafted, got.n_accept) == (expected["n_drafted"], expected["n_accept"])
    assert len(got.drafts) == expected["draft_calls"]
    by_source = [sum(step.source == source for step in steps) for source in SOURCES]
    assert by_source == expected["drafted_by_context_dynamic_static"]
    ties = [sum(step.source == source and step.tied for step in steps) for source in SOURCES]
    assert ties == expected["ties_context_dynamic_static"]
    assert hashlib.sha256(got.text().encode()).hexdigest() == expected["drafts_sha256"]


@pytest.mark.parametrize("ties", ["iteration", "token"])
def test_every_line_of_the_golden_dump(golden: Path, ties: str) -> None:
    case = {"case": "s", "static": True, "n_ctx": 4096, "n_draft": 3}
    assert run_case(golden, case, ties).text() == (golden / f"s.{ties}.n3.txt").read_text()


def test_static_counting_is_the_file_llama_cpp_wrote(golden: Path) -> None:
    counts = count_static(read_tokens(golden / "s.train.tok"))
    cache = read_static((golden / "s.bin").read_bytes(), ORDERS["token"])
    assert counts == {ngram: dict(successors.items()) for ngram, successors in cache.items()}


@pytest.mark.parametrize("ties", ["iteration", "token"])
def test_hand_counted(ties: str) -> None:
    # Position 4 follows 1 2 3 1: the unigram 1 was followed by 2 once, and needs a total of 2.
    # Position 5: the bigram (1 2) was followed by 3 once, and needs 2.
    # Position 6: once is enough for the trigram (1 2 3) -> 1, and the draft goes on round the circle.
    got = replay(Specification(ORDERS[ties]), [1, 2, 3, 1, 2, 3, 1, 2, 3, 4], 9, 2)
    assert got.text() == "1:\n2:\n3:\n4:\n5:\n6: 1 2\n"
    assert (got.n_chunks, got.n_drafted, got.n_accept) == (1, 2, 2)


@pytest.mark.parametrize("ties", ["iteration", "token"])
def test_score_beyond_32_bits(ties: str) -> None:
    order = ORDERS[ties]
    drafter = Specification(order, read_static(write_static({(1, 2): {10: 30_000, 12: 60_000}}), order))
    for _ in range(10):
        drafter.append(1), drafter.append(2)
    drafter.context = {(2,): order(), (1, 2): order()}
    for token, count in {10: 1000, 11: 100}.items():
        drafter.context[1, 2].add(token, count)
    assert [step.token for step in drafter.draft(1)] == [10]


@pytest.mark.parametrize("n_tokens", [0, 1, 2, 3, 4, 8])
def test_short_sequences_draft_nothing(n_tokens: int) -> None:
    drafter = Specification(ORDERS["token"])
    for token in range(n_tokens):
        drafter.append(token)
    assert drafter.draft(3) == []


@pytest.mark.parametrize(("n_tokens", "n_chunks"), [(4, 0), (8, 0), (9, 1), (16, 1), (17, 2)])
def test_an_exact_last_chunk_is_dropped(n_tokens: int, n_chunks: int) -> None:
    assert replay(Specification(ORDERS["token"]), list(range(n_tokens)), 8, 3).n_chunks == n_chunks
