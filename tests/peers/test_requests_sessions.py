"""Requests through the calibrated drafter's sessions, against its specification in plain Python."""

from __future__ import annotations

from itertools import pairwise

import pytest
from calibrated_specification import Specification
from draft_ladder.base.variants import find
from native_modules import ABSENT, variants
from test_requests_native import HISTORIES, Ask, by_module, made, respond_with

pytestmark = pytest.mark.skipif(not variants(), reason=ABSENT)
TAUS = ("3", "50", "400")


def by_specification(asks: list[Ask], tau: int, history: str) -> list[list[list[int]]]:
    """The drafts of each request; every text that begins anew is a session of its own."""
    drafter = Specification(tau)
    context: list[int] = []
    drafts = []
    session = 0
    for before, ask in pairwise([None, *asks]):
        assert ask is not None
        if history == "none" or (history == "session" and before and before.session != ask.session):
            drafter = Specification(tau)
        known = context if ask.continues else []
        context = [*known, *ask.prompt]
        goes_on = ask.continues and history != "none"
        if not goes_on:
            drafter.close(session)
            session += 1
        drafter.begin(session)
        drafter.learn(ask.prompt if goes_on else context)
        drafts.append(respond_with(drafter.draft, drafter.accept, ask.response))
        context += ask.response
    return drafts


@pytest.mark.parametrize("tau", TAUS)
@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("seed", range(2))
def test_drafts_are_as_specified(tau: str, history: str, seed: int) -> None:
    module = find("calibrated").load()
    asks = made(seed)
    _, drafts = by_module(module.Drafter({"tau": tau}), asks, history)
    assert drafts == by_specification(asks, int(tau), history)
    assert any(draft for of_request in drafts for draft in of_request)
