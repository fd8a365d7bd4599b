"""Every variant against the specification of its ties, draft by draft, on streams made to hurt."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest
from hypothesis import example, given
from native_modules import ABSENT, Variant, variants
from specification import ORDERS, Replay, Specification, draft_everywhere, read_static, replay, write_static
from streams import Example, examples

pytestmark = pytest.mark.skipif(not variants(), reason=ABSENT)
TIMINGS = ["call", "chunk", "histogram"]


def pack(tokens: list[int]) -> bytes:
    return struct.pack(f"<{len(tokens)}i", *tokens)


class Expected:
    """What the specification of one way with ties says about an example."""

    def __init__(self, given_: Example, ties: str) -> None:
        order = ORDERS[ties]
        static = read_static(given_.static, order) if given_.static else None
        self.replay = replay(Specification(order, static), given_.tokens, given_.n_ctx, given_.n_draft)
        self.text = self.replay.text()
        everywhere = draft_everywhere(
            Specification(order, static), given_.tokens, given_.n_ctx, given_.n_draft
        )
        self.everywhere = [(position, [step.token for step in draft]) for position, draft in everywhere]


def options_of(variant: Variant, seed: int) -> dict[str, str]:
    """A value for every axis of the variant's table: none of them may change a draft."""
    rng = random.Random(seed)
    return {axis: str(rng.choice(values)) for axis, values in sorted(variant.toml.get("axes", {}).items())}


def accepted_at(expected: Replay, tokens: list[int], n_ctx: int, n_draft: int) -> list[int]:
    counts = [0] * n_draft
    for position, draft in expected.drafts:
        end = (position // n_ctx + 1) * n_ctx
        for i, step in enumerate(draft):
            if position + i == end or step.token != tokens[position + i]:
                break
            counts[i] += 1
    return counts


def check(variant: Variant, given_: Example, expected: Expected) -> None:
    options = options_of(variant, given_.seed)
    packed, want = pack(given_.tokens), expected.replay
    drafter = variant.drafter(given_.static, options)
    got = drafter.replay(packed, given_.n_ctx, given_.n_draft, TIMINGS[given_.seed % 3])
    assert drafter.replay_dump().decode() == expected.text, f"{variant} {options}"
    lengths = [len(draft) for _, draft in want.drafts]
    counts = {
        "n_tokens": len(given_.tokens),
        "n_chunks": want.n_chunks,
        "n_drafted": want.n_drafted,
        "n_accept": want.n_accept,
        "draft_calls": len(want.drafts),
        "hit_calls": sum(length > 0 for length in lengths),
        "drafted_at": [sum(length > i for length in lengths) for i in range(given_.n_draft)],
        "accepted_at": accepted_at(want, given_.tokens, given_.n_ctx, given_.n_draft),
    }
    assert {name: got[name] for name in counts} == counts, f"{variant} {options}"
    drafter = variant.drafter(given_.static, options)
    everywhere = drafter.draft_everywhere(packed, given_.n_ctx, given_.n_draft)
    assert [(position, list(draft)) for position, draft in everywhere] == expected.everywhere, variant


OVERFLOW = Example(
    # 1 2 is followed by 10 a thousand times and by 11 a hundred times; a 32-bit score would say 11.
    [x for i in range(1100) for x in (1, 2, 11 if i % 11 == 5 else 10)] + [1, 2, 10],
    write_static({(1, 2): {10: 30_000, 12: 60_000}}),
    3301,
    3,
    0,
)


@example(OVERFLOW)
@example(Example([5, 5] * 40, write_static({(5, 5): {6: 1, 5: 1}}), 16, 16, 1))
@example(Example([1, 2, 2, 1] * 20, None, 7, 3, 2))
@example(Example([], b"", 2, 3, 0))
@given(examples())
def test_variants_draft_as_specified(given_: Example) -> None:
    expected = {ties: Expected(given_, ties) for ties in {v.ties for v in variants()}}
    for variant in variants():
        check(variant, given_, expected[variant.ties])


def test_an_ngram_may_pass_cease_to_pass_and_pass_again() -> None:
    """Of the dynamic cache: in every chunk (1, 2) comes once, among tokens that never come again."""
    followers = [3] * 4 + [4] * 4 + [3] * 13
    tokens = [
        x
        for i, follower in enumerate(followers)
        for x in (100 + 3 * i, 101 + 3 * i, 1, 2, follower, 102 + 3 * i)
    ]
    given_ = Example(tokens, None, 6, 1, 0)
    expected = {ties: Expected(given_, ties) for ties in ORDERS}
    drafted = dict(expected["token"].everywhere)
    after = [drafted[6 * i + 4] for i in range(20)]
    assert after == [[]] * 3 + [[3]] * 4 + [[]] * 5 + [[3]] * 8
    for variant in variants():
        check(variant, given_, expected[variant.ties])


def sessions(drafter: Any, given_: Example) -> list[list[int]]:
    """The calls a user makes by hand: one conversation of at most n_ctx tokens after another."""
    drafts = []
    for start in range(0, len(given_.tokens), given_.n_ctx):
        for token in given_.tokens[start : start + given_.n_ctx]:
            drafter.append(token)
            drafts.append(list(drafter.draft(given_.n_draft)))
        drafter.end_chunk()
    return drafts


def specified_sessions(given_: Example, ties: str) -> list[list[int]]:
    order = ORDERS[ties]
    drafter = Specification(order, read_static(given_.static, order) if given_.static else None)
    drafts = []
    for start in range(0, len(given_.tokens), given_.n_ctx):
        for token in given_.tokens[start : start + given_.n_ctx]:
            drafter.append(token)
            drafts.append([step.token for step in drafter.draft(given_.n_draft)])
        drafter.end_chunk()
    return drafts


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_sessions_and_forgetting(variant: Variant) -> None:
    rng = random.Random(5)
    tokens = [rng.choice([1, 2, 2, 3, 70, 70_000]) for _ in range(300)]
    given_ = Example(tokens, write_static({(1, 2): {3: 2, 70: 2}, (70, 70): {1: 9}}), 50, 4, 0)
    drafter = variant.drafter(given_.static)
    want = specified_sessions(given_, variant.ties)
    assert sessions(drafter, given_) == want
    if "forget" in variant.capabilities:  # a long prompt must leave nothing behind for the next
        drafter.forget()
        assert sessions(drafter, given_) == want


@pytest.mark.parametrize("variant", variants(), ids=str)
@pytest.mark.parametrize("length", range(5))
def test_short_sequences(variant: Variant, length: int) -> None:
    for _ in range(5):
        drafter = variant.drafter()
        for token in range(length):
            drafter.append(token)
        assert list(drafter.draft(3)) == []
        assert list(drafter.draft(0)) == []


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_n_ctx_below_two_is_an_error(variant: Variant) -> None:
    for n_ctx in (-1, 0, 1):
        with pytest.raises(ValueError, match="n_ctx"):
            variant.drafter().replay(pack([1, 2, 3]), n_ctx, 3)
