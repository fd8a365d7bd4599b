"""The calibrated drafter against its specification, draft by draft, and against itself built otherwise."""

from __future__ import annotations

import random
from typing import Any

import pytest
from calibrated_kit import WAYS, Script, compilers, native, request, specified, tokens_of
from hypothesis import example, given
from hypothesis import strategies as st
from streams import KINDS, VOCABULARIES

pytestmark = pytest.mark.skipif(not compilers(), reason="no C++ compiler")
# Flat, dear, in steps, and falling (which no machine does).
COSTS = [[10] * 9, [100 + 15 * i for i in range(9)], [100, 100, 100, 140, 140, 140, 200], [30, 20, 50, 40]]
BOUNDS = [64, 80, 150, 1 << 20]


@st.composite
def scripts(draw: Any) -> Script:
    """Requests of several sessions, one after another or in turns; sessions are closed and forgotten."""
    rng = random.Random(draw(st.integers(0, 2**32 - 1)))
    vocabulary = draw(st.sampled_from(VOCABULARIES))
    settings = [
        rng.choice([0, 3, 50, 200, 700]),
        rng.choice([1, 1, 1, 0]),
        rng.choice(BOUNDS),
        rng.choice(BOUNDS),
    ]
    script: Script = [("new", settings)]
    if rng.random() < 0.3:
        script.append(("set_costs", rng.choice(COSTS)))
    earlier: list[int] = []
    kinds = [*KINDS, "fibonacci"]
    for kind, session, action in draw(
        st.lists(
            st.tuples(
                st.sampled_from(kinds),
                st.integers(0, 3),
                st.sampled_from(["", "", "", "close", "forget", "save"]),
            ),
            min_size=1,
            max_size=8,
        )
    ):
        prompt = tokens_of(rng.choice(kinds), rng.randrange(40), vocabulary, rng, earlier)
        answer = tokens_of(kind, rng.randint(1, 40), vocabulary, rng, earlier)
        script += request(session, prompt, answer, rng.choice([0, 1, 3, 8, 16]))
        earlier += prompt + answer
        if action:
            script.append((action, [] if action == "save" else [rng.randrange(4)]))
    return script


def one_stream(tokens: list[int], n_draft: int = 8) -> Script:
    return [("new", [20, 1, 4096, 4096]), *request(1, tokens[:5], tokens[5:], n_draft)]


@example(one_stream([7] * 60))
@example(one_stream([1, 2] * 40))
@example(one_stream([2**31 - 1, 0] * 30))
@example(one_stream(list(range(100))))
@given(scripts())
def test_drafts_as_specified(script: Script) -> None:
    assert native(without_stale(script)) == specified(without_stale(script))


def without_stale(script: Script) -> Script:
    """Only commands that have a session to work on: after closing it one has to begin again."""
    now, kept = None, []
    for command, numbers in script:
        if command == "begin":
            now = numbers[0]
        if command == "save" or (command in ("close", "forget") and numbers[0] == now):
            now = None
        if now is not None or command not in ("learn", "draft", "accept"):
            kept.append((command, numbers))
    return kept


def long_script() -> Script:
    rng = random.Random(7)
    script: Script = [("new", [30, 1, 3000, 2000])]
    earlier: list[int] = []
    for i in range(60):
        kind = rng.choice([*KINDS, "fibonacci"])
        prompt = tokens_of("earlier", 60, 300, rng, earlier)
        answer = tokens_of(kind, 90, 300, rng, earlier)
        script += request(i % 7, prompt, answer, 8)
        earlier += prompt + answer
        if i % 9 == 8:
            script.append(("forget", [(i + 3) % 7]))
        if i % 13 == 12:
            script.append(("save", []))
    return script


def test_a_long_script_drafts_as_specified() -> None:
    """Past the bound, with forgetting, until counters learn from every fourth truth only."""
    script = long_script()
    assert native(script) == specified(script)


def test_every_build_drafts_the_same() -> None:
    script = long_script()
    expected = native(script)
    assert any(expected)
    for compiler in compilers():
        for way in WAYS:
            assert native(script, compiler, way) == expected, (compiler, way)


def test_what_was_forgotten_is_not_drafted() -> None:
    """Session 1 alone has said 1000 to 1039; after it is forgotten nobody drafts them."""
    secret, common = list(range(1000, 1040)), [1, 2, 3, 4, 5, 6]
    script: Script = [("new", [0, 1, 4096, 4096])]
    script += request(1, common, secret * 3, 0)
    script += request(2, [], common * 3, 0)
    script.append(("forget", [1]))
    script += request(3, [], common * 4 + secret[:10], 8)
    drafted = {token for draft in native(script) for token in draft}
    # What session 3 says itself it may be offered again.
    assert drafted.isdisjoint(secret[10:])
    assert specified(script) == native(script)
