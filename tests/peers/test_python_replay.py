"""The replay of requests in Python against a case worked by hand, and what a drafter may not do."""

from __future__ import annotations

import array
from collections.abc import Sequence

import pytest
from draft_ladder.bench.python_requests import (
    DrafterError,
    EmptyDrafter,
    Shape,
    call_overhead_ns,
    replay_requests,
)

# The case of tests/native/test_requests.cpp: two turns of session 0, the second a delta; then session 1.
REQUESTS: list[Shape] = [(0, False, 3, 3), (0, True, 1, 3), (1, False, 2, 4)]
TOKENS = array.array("i", [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 6, 1, 2, 3, 4, 8]).tobytes()


class Follower:
    """Drafts what followed the last token the last time, over and over; writes down what it is told."""

    told: list[str]

    def __init__(self, told: list[str]) -> None:
        self.told = told
        self.next: dict[int, int] = {}
        self.last = -1

    def begin(self, prompt: Sequence[int]) -> None:
        self.last = -1
        self.told.append(f"begin {list(prompt)}")
        self._learn(prompt)

    def resume(self, prompt: Sequence[int]) -> None:
        self.told.append(f"resume {list(prompt)}")
        self._learn(prompt)

    def draft(self, n: int) -> list[int]:
        drafted: list[int] = []
        last = self.last
        while len(drafted) < n and last in self.next:
            last = self.next[last]
            drafted.append(last)
        return drafted

    def accept(self, tokens: Sequence[int]) -> None:
        self._learn(tokens)

    def end(self) -> None:
        self.told.append("end")

    def _learn(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            if self.last >= 0:
                self.next[self.last] = token
            self.last = token


def replay(history: str, n_draft: int = 2) -> tuple[dict[str, object], str, list[str]]:
    told: list[str] = []
    figures, text = replay_requests(lambda: Follower(told), REQUESTS, TOKENS, n_draft, history, 10)
    return figures, text.decode(), told


def test_everything_is_learned_once_and_committed_once() -> None:
    figures, text, told = replay("all")
    assert told == ["begin [1, 2, 3]", "end", "resume [5]", "end", "begin [6, 1]", "end"]
    assert text == "0 1:\n0 2: 2 3\n1 1: 2 5\n2 1: 3 4\n"
    assert figures["draft_calls"] == 4
    assert figures["hit_calls"] == 3
    assert figures["n_drafted"] == 6
    assert figures["n_accept"] == 4
    assert figures["n_response_tokens"] == 7
    assert figures["calls_by_drafted"] == [1, 0, 3]
    assert figures["tokens_per_call_sum_of_requests"] == pytest.approx(2 / 2 + 2 / 1 + 3 / 1)
    assert figures["history_tokens"] == 16


def test_none_reads_the_whole_context_again_and_learns_nothing_else() -> None:
    figures, text, told = replay("none")
    assert told == ["begin [1, 2, 3]", "end", "begin [1, 2, 3, 4, 1, 2, 5]", "end", "begin [6, 1]", "end"]
    assert text == "0 1:\n0 2: 2 3\n1 1: 2 5\n2 1:\n2 2:\n2 3:\n"
    assert figures["n_learned_tokens"] == 3 + 7 + 2


def test_a_session_forgets_the_ones_before() -> None:
    _, text, told = replay("session")
    assert told[2] == "resume [5]"
    assert text.endswith("2 1:\n2 2:\n2 3:\n")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_alone_a_request_drafts_the_same_in_any_order(order: tuple[int, ...]) -> None:
    whole = [([1, 2, 3], [4, 1, 2, 5]), ([5, 1], [2, 3, 5]), ([6, 1, 6], [1, 6, 8])]
    told: list[str] = []
    tokens = array.array("i", [t for i in order for t in whole[i][0] + whole[i][1]]).tobytes()
    shapes: list[Shape] = [(i, False, len(whole[i][0]), len(whole[i][1])) for i in order]
    _, text = replay_requests(lambda: Follower(told), shapes, tokens, 2, "none")
    drafts = {i: [] for i in order}
    for line in text.decode().splitlines():
        drafts[order[int(line.split()[0])]].append(line.split(maxsplit=1)[1])
    alone = {}
    for i in order:
        one = array.array("i", whole[i][0] + whole[i][1]).tobytes()
        _, found = replay_requests(
            lambda: Follower(told), [(0, False, len(whole[i][0]), len(whole[i][1]))], one, 2, "none"
        )
        alone[i] = [line.split(maxsplit=1)[1] for line in found.decode().splitlines()]
    assert drafts == alone


class Talker(Follower):
    def __init__(self, drafted: list[int]) -> None:
        super().__init__([])
        self.drafted = drafted

    def draft(self, n: int) -> list[int]:
        return self.drafted


@pytest.mark.parametrize("drafted", [[1, 2, 3], [10], [-1]])
def test_too_many_tokens_and_tokens_of_no_vocabulary_fail(drafted: list[int]) -> None:
    with pytest.raises(DrafterError):
        replay_requests(lambda: Talker(drafted), REQUESTS, TOKENS, 2, "all", 10)


def test_a_drafter_that_does_nothing_needs_a_call_a_token() -> None:
    figures, _ = replay_requests(EmptyDrafter, REQUESTS, TOKENS, 4, "all")
    assert figures["draft_calls"] == figures["n_response_tokens"] == 7
    assert figures["memory_bytes"] is None


def test_the_overhead_of_a_call_is_measured() -> None:
    overhead = call_overhead_ns(4, calls=100)
    assert overhead["draft"] > 0
    assert overhead["update"] > 0
