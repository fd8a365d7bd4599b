"""The replay of requests for drafters in Python: as native/drafting/requests.hpp, on Python's clock.

Standard library only: the worker that calls this imports what its drafter needs, and nothing else.
"""

from __future__ import annotations

import array
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Shape = tuple[int, bool, int, int]  # session, whether it continues there, tokens of prompt and of response


class PythonDrafter(Protocol):
    """What a drafter.py has. `resume` and `memory_bytes` may be missing."""

    def begin(self, prompt: Sequence[int]) -> None:
        """A new sequence, which starts with these tokens."""

    def draft(self, n: int) -> Sequence[int]:
        """At most n tokens that may follow."""

    def accept(self, tokens: Sequence[int]) -> None:
        """The tokens that did follow."""

    def end(self) -> None:
        """The sequence is over: commit what was learned."""


class DrafterError(RuntimeError):
    """The drafter did what no drafter may."""


class EmptyDrafter:
    """Does nothing: what a call costs that does nothing is measured with it."""

    def begin(self, prompt: Sequence[int]) -> None:
        """Nothing."""

    def draft(self, n: int) -> Sequence[int]:
        """No token."""
        return ()

    def accept(self, tokens: Sequence[int]) -> None:
        """Nothing."""

    def end(self) -> None:
        """Nothing."""


class Histogram:
    """Times in buckets, eight to an octave, as the native replay has them."""

    PER_OCTAVE = 8
    SHIFT = 3

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.total_ns = 0

    def add(self, ns: int) -> None:
        """One time."""
        self.total_ns += ns
        octave = max(0, ns.bit_length() - 1 - self.SHIFT)
        index = octave * self.PER_OCTAVE + (ns >> octave)
        self.counts[index] = self.counts.get(index, 0) + 1

    def buckets(self) -> list[tuple[float, int]]:
        """(upper bound in ns, count) of each bucket that is not empty, rising."""
        return [(self._upper(index), self.counts[index]) for index in sorted(self.counts)]

    def _upper(self, index: int) -> float:
        if index < 2 * self.PER_OCTAVE:
            return float(index + 1)
        octave = index // self.PER_OCTAVE - 1
        return float((index - octave * self.PER_OCTAVE + 1) << octave)


@dataclass
class _Figures:
    """Counts over all requests, and the drafts."""

    n_draft: int
    vocab_size: int
    response_tokens: int = 0
    learned_tokens: int = 0
    history_tokens: int = 0
    calls: int = 0
    hit_calls: int = 0
    drafted: int = 0
    accepted: int = 0
    judged: int = 0
    tokens_per_call_sum: float = 0.0
    by_drafted: list[int] = field(default_factory=list)
    learn: Histogram = field(default_factory=Histogram)
    draft: Histogram = field(default_factory=Histogram)
    update: Histogram = field(default_factory=Histogram)
    commit: Histogram = field(default_factory=Histogram)

    def check(self, drafted: Sequence[int]) -> None:
        """A drafter keeps to what it was asked for and to the vocabulary."""
        if len(drafted) > self.n_draft:
            raise DrafterError(f"drafted {len(drafted)} tokens where {self.n_draft} were asked for")
        for token in drafted:
            if token < 0 or (self.vocab_size and token >= self.vocab_size):
                raise DrafterError(
                    f"drafted token {token}, which the vocabulary of {self.vocab_size} does not have"
                )


def replay_requests(
    make: Callable[[], PythonDrafter],
    requests: Iterable[Shape],
    tokens: bytes,
    n_draft: int,
    history: str,
    vocab_size: int = 0,
) -> tuple[dict[str, Any], bytes]:
    """The record's measured part and the text of all drafts. `tokens`: int32, those of all requests in order.

    A drafter forgets by being made anew, which is not timed.
    """
    all_tokens = array.array("i")
    all_tokens.frombytes(tokens)
    figures = _Figures(n_draft, vocab_size, by_drafted=[0] * (n_draft + 1))
    lines: list[str] = []
    drafter = make()
    context: list[int] = []
    last_session: int | None = None
    begin = 0
    for number, (session, continues, n_prompt, n_response) in enumerate(requests):
        prompt = all_tokens[begin : begin + n_prompt].tolist()
        response = all_tokens[begin + n_prompt : begin + n_prompt + n_response].tolist()
        begin += n_prompt + n_response
        if history == "none" or (history == "session" and last_session not in (None, session)):
            drafter = make()
            figures.history_tokens = 0
        context = [*context, *prompt] if continues else prompt
        resumes = continues and history != "none" and hasattr(drafter, "resume")
        _learn(drafter, prompt if resumes else context, resumes, figures)
        context = context + response
        lines += _respond(drafter, response, number, figures)
        _timed(figures.commit, drafter.end)
        last_session = session
    return _report(figures, drafter, number + 1), "".join(lines).encode()


def _timed(histogram: Histogram, call: Callable[..., Any], *arguments: Any) -> Any:
    start = time.perf_counter_ns()
    result = call(*arguments)
    histogram.add(time.perf_counter_ns() - start)
    return result


def _learn(drafter: Any, prompt: list[int], resumes: bool, figures: _Figures) -> None:
    _timed(figures.learn, drafter.resume if resumes else drafter.begin, prompt)
    figures.learned_tokens += len(prompt)
    figures.history_tokens += len(prompt)


def _respond(drafter: PythonDrafter, response: list[int], number: int, figures: _Figures) -> list[str]:
    """Draft and judge one response from its second token on; a line a call."""
    lines = []
    calls = accepted_total = 0
    _timed(figures.update, drafter.accept, response[:1])
    at = 1
    while at < len(response):
        drafted = _timed(figures.draft, drafter.draft, figures.n_draft)
        drafted = [int(token) for token in drafted]
        figures.check(drafted)
        accepted = 0
        while accepted < len(drafted) and response[at + accepted : at + accepted + 1] == [drafted[accepted]]:
            accepted += 1
        lines.append(f"{number} {at}:{''.join(f' {token}' for token in drafted)}\n")
        _timed(figures.update, drafter.accept, response[at : at + accepted + 1])
        at += accepted + 1
        calls += 1
        accepted_total += accepted
        figures.by_drafted[len(drafted)] += 1
        figures.hit_calls += bool(drafted)
        figures.drafted += len(drafted)
    figures.calls += calls
    figures.accepted += accepted_total
    figures.response_tokens += len(response) - 1
    figures.history_tokens += len(response)
    if calls:
        figures.judged += 1
        figures.tokens_per_call_sum += (len(response) - 1) / calls
    return lines


def _report(figures: _Figures, drafter: Any, n_requests: int) -> dict[str, Any]:
    memory = getattr(drafter, "memory_bytes", None)
    report: dict[str, Any] = {
        "n_requests": n_requests,
        "n_judged_requests": figures.judged,
        "n_response_tokens": figures.response_tokens,
        "n_learned_tokens": figures.learned_tokens,
        "draft_calls": figures.calls,
        "hit_calls": figures.hit_calls,
        "n_drafted": figures.drafted,
        "n_accept": figures.accepted,
        "calls_by_drafted": figures.by_drafted,
        "tokens_per_call_sum_of_requests": figures.tokens_per_call_sum,
        "history_tokens": figures.history_tokens,
        "memory_bytes": None if memory is None else memory(),
        "histograms": {},
    }
    for name in ("learn", "draft", "update", "commit"):
        histogram: Histogram = getattr(figures, name)
        report[f"{name}_ns_total"] = histogram.total_ns
        report["histograms"][name] = histogram.buckets()
    readings = 2 * (3 * n_requests + 2 * figures.calls)
    report["clock"] = {"name": "perf_counter_ns", "ns_per_reading": clock_cost_ns(), "readings": readings}
    return report


def clock_cost_ns(readings: int = 100_000) -> float:
    """What one reading of the clock costs in a loop like the replay's."""
    start = time.perf_counter_ns()
    for _ in range(readings):
        time.perf_counter_ns()
    return (time.perf_counter_ns() - start) / readings


def call_overhead_ns(n_draft: int, calls: int = 20_000) -> dict[str, float]:
    """What a call of each kind costs that does nothing, timed as the replay times it."""
    shapes: list[Shape] = [(0, False, 1, calls + 1)]
    tokens = array.array("i", [0] * (calls + 2)).tobytes()
    report, _ = replay_requests(EmptyDrafter, shapes, tokens, n_draft, "all")
    return {"draft": report["draft_ns_total"] / calls, "update": report["update_ns_total"] / (calls + 1)}


def digest(text: bytes) -> str:
    """SHA-256 of the text of all drafts."""
    return hashlib.sha256(text).hexdigest()
