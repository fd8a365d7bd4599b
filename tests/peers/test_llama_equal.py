"""copying_map is llama.cpp: the same drafts as llama.cpp's own n-gram cache, but for its two known faults.

Skipped where the peer is not built. The faults are those that docs/peers.md names: n-grams that reach in
front of a text's beginning, and scores of 32 bits.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import LadderError
from draft_ladder.base.variants import find
from golden_data import golden_cases


def module(name: str) -> Any:
    try:
        return find(name).load()
    except LadderError as error:
        pytest.skip(str(error))


@pytest.fixture
def upstream() -> Any:
    return module("llama_ngram_cache")


@pytest.fixture
def ours() -> Any:
    return module("copying_map")


@pytest.mark.parametrize("case", golden_cases(slow=()))
def test_upstream_drafts_as_it_was_recorded(upstream: Any, golden: Path, case: dict[str, Any]) -> None:
    drafter = upstream.Drafter()
    if case["static"]:
        drafter.load(str(golden / f"{case['case']}.bin"))
    drafter.replay((golden / f"{case['case']}.test.tok").read_bytes(), case["n_ctx"], case["n_draft"])
    assert hashlib.sha256(drafter.replay_dump()).hexdigest() == case["iteration"]["drafts_sha256"]


@pytest.mark.parametrize("with_static", [True, False])
def test_every_difference_is_one_of_the_two_faults(
    upstream: Any, ours: Any, golden: Path, with_static: bool
) -> None:
    """Drafts at every position of a text, each difference counted by its cause: no other cause is left."""
    n_ctx = 512
    tokens = (golden / "s.test.tok").read_bytes()
    drafts = []
    for one in (upstream, ours):
        drafter = one.Drafter()
        if with_static:
            drafter.load(str(golden / "s.bin"))
        drafts.append(drafter.draft_everywhere(tokens, n_ctx, 3))
    causes = Counter(
        "in front of the text" if position % n_ctx < 4 else "not explained"
        for (position, theirs), (_, mine) in zip(*drafts, strict=True)
        if theirs != mine
    )
    assert causes["not explained"] == 0
    assert len(drafts[0]) > 10_000


def static_file(bigrams: Mapping[tuple[int, int], Iterable[tuple[int, int]]]) -> bytes:
    """llama.cpp's static cache of these bigrams and their counted successors."""
    out = b""
    for bigram, successors in bigrams.items():
        pairs = list(successors)
        out += struct.pack("<5i", *bigram, -1, -1, len(pairs))
        out += b"".join(struct.pack("<2i", *pair) for pair in pairs)
    return out


def test_scores_of_32_bits_run_over(upstream: Any, ours: Any) -> None:
    """Token 10 followed a thousand times, 11 a hundred; the static counts of both are large."""
    static = static_file({(1, 2): [(10, 30_000), (12, 60_000)]})
    text = [*[7, 8, 1, 2, 10] * 1000, *[7, 8, 1, 2, 11] * 100, 7, 8, 1, 2]
    found = []
    for one in (upstream, ours):
        drafter = one.Drafter()
        drafter.load_bytes(static)
        drafter.extend(struct.pack(f"<{len(text)}i", *text))
        found.append(drafter.draft(1))
    # The score of 10 is 1000 * 100 * 30000, beyond 2^31: upstream loses it and falls back on the corpus.
    assert found[1] == [10]
    assert found[0] != found[1]
