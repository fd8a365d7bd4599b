"""Requests through every variant of llama.cpp's rule, against that rule in plain Python."""

from __future__ import annotations

import array
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from native_modules import ABSENT, Variant, variants
from specification import ORDERS, Specification

pytestmark = pytest.mark.skipif(not variants(), reason=ABSENT)
by_variant = pytest.mark.parametrize("variant", variants(), ids=str)
HISTORIES = ("all", "session", "none")
N_DRAFT = 4
Drafts = list[list[list[int]]]  # by request, by call


class Ask(NamedTuple):
    """One request."""

    session: int
    continues: bool
    prompt: list[int]
    response: list[int]


def made(seed: int, sessions: int = 6) -> list[Ask]:
    """Requests of few different tokens, so that much repeats; sessions of one to three turns."""
    rng = random.Random(seed)

    def text(shortest: int, longest: int) -> list[int]:
        phrase = [rng.randrange(9) for _ in range(4)]
        length = rng.randint(shortest, longest)
        return [rng.choice((phrase[i % 4], phrase[i % 4], rng.randrange(9))) for i in range(length)]

    return [
        Ask(session, turn > 0 and session % 2 == 0, text(2, 30), text(1, 40))
        for session in range(sessions)
        for turn in range(rng.randint(1, 3))
    ]


def by_specification(asks: list[Ask], ties: str, history: str) -> Drafts:
    """The drafts of each request, by the rule in plain Python."""
    rule = Specification(ORDERS[ties])
    drafts: Drafts = []
    context: list[int] = []
    before: int | None = None
    for ask in asks:
        if history == "none" or (history == "session" and before not in (None, ask.session)):
            rule = Specification(ORDERS[ties])
        known = context if ask.continues else []
        context = [*known, *ask.prompt]
        rule.sequence = list(known) if history != "none" else []
        for token in context[len(rule.sequence) :]:
            rule.append(token)
        drafts.append(respond(rule, ask.response))
        context += ask.response
        rule.end_chunk()
        before = ask.session
    return drafts


def respond(rule: Specification, response: list[int]) -> list[list[int]]:
    return respond_with(lambda n: [step.token for step in rule.draft(n)], rule.append, response)


def respond_with(
    draft_of: Callable[[int], list[int]], tell: Callable[[int], None], response: list[int]
) -> list[list[int]]:
    drafts = []
    tell(response[0])
    at = 1
    while at < len(response):
        draft = draft_of(N_DRAFT)
        drafts.append(draft)
        tell(response[at])
        at += 1
        for token, truth in zip(draft, response[at - 1 :], strict=False):
            if token != truth or at >= len(response):
                break
            tell(response[at])
            at += 1
    return drafts


def by_module(drafter: Any, asks: list[Ask], history: str) -> tuple[dict[str, Any], Drafts]:
    tokens = array.array("i", [token for ask in asks for token in (*ask.prompt, *ask.response)]).tobytes()
    shapes = [(ask.session, ask.continues, len(ask.prompt), len(ask.response)) for ask in asks]
    figures = dict(drafter.replay_requests(tokens, shapes, N_DRAFT, history))
    drafts: Drafts = [[] for _ in asks]
    for line in drafter.requests_dump().decode().splitlines():
        place, _, draft = line.partition(":")
        drafts[int(place.split()[0])].append([int(token) for token in draft.split()])
    return figures, drafts


@by_variant
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("seed", range(4))
def test_drafts_are_the_rules(variant: Variant, history: str, seed: int) -> None:
    asks = made(seed)
    figures, drafts = by_module(variant.drafter(), asks, history)
    wanted = by_specification(asks, variant.ties, history)
    assert drafts == wanted
    assert figures["draft_calls"] == sum(len(of_request) for of_request in wanted)
    assert figures["n_drafted"] == sum(len(draft) for of_request in wanted for draft in of_request)
    assert figures["n_response_tokens"] == sum(len(ask.response) - 1 for ask in asks)


@by_variant
def test_alone_every_request_drafts_the_same_in_any_order(variant: Variant) -> None:
    asks = [Ask(i, False, ask.prompt, ask.response) for i, ask in enumerate(made(7))]
    _, drafts = by_module(variant.drafter(), asks, "none")
    order = list(range(len(asks)))
    random.Random(1).shuffle(order)
    _, shuffled = by_module(variant.drafter(), [asks[i] for i in order], "none")
    assert [shuffled[order.index(i)] for i in range(len(asks))] == drafts


@by_variant
def test_sessions_in_another_order_change_nothing_with_their_own_history(variant: Variant) -> None:
    asks = made(8)
    _, drafts = by_module(variant.drafter(), asks, "session")
    sessions = sorted({ask.session for ask in asks}, reverse=True)
    order = [i for session in sessions for i, ask in enumerate(asks) if ask.session == session]
    _, shuffled = by_module(variant.drafter(), [asks[i] for i in order], "session")
    assert [shuffled[order.index(i)] for i in range(len(asks))] == drafts


@by_variant
def test_what_is_no_list_of_requests_is_refused(variant: Variant) -> None:
    tokens = array.array("i", [1, 2, 3]).tobytes()
    for shapes in ([(0, False, 1, 1)], [(0, True, 1, 2)], [(0, False, 3, 0)]):
        with pytest.raises(ValueError, match=r"^request"):
            variant.drafter().replay_requests(tokens, shapes, 3, "all")
    with pytest.raises(ValueError, match=r"^history"):
        variant.drafter().replay_requests(tokens, [(0, False, 1, 2)], 3, "some")
