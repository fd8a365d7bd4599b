"""Greedy generation with a drafter: draft, verify the draft in one batch, keep the longest right prefix.

Every moment belongs to one phase: a clock is read where one phase ends and the next begins, so the phases sum
to the wall time.

    prefill        the prompt through the model
    prompt_update  the prompt into the drafter's context cache
    draft          asking the drafter
    update         counting the new tokens in the drafter
    verify         the model on the last token and the draft, and rolling its cache back
    sample         finding the likeliest token
    merge          the finished sequence into the drafter's dynamic cache
    other          the loop itself
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from draft_ladder.base.errors import InputError
from draft_ladder.llama.library import FloatArray, TokenArray

PHASES = ("prefill", "prompt_update", "draft", "update", "verify", "sample", "merge", "other")
PREFILL, PROMPT_UPDATE, DRAFT, UPDATE, VERIFY, SAMPLE, MERGE, OTHER = range(len(PHASES))


class LanguageModel(Protocol):
    """What generation needs of a model; draft_ladder.llama.model.Model has it."""

    n_ctx: int
    n_batch: int
    n_past: int

    def clear(self) -> None:
        """Forget the sequence."""

    def truncate(self, n_past: int) -> None:
        """Keep the first n_past tokens."""

    def decode(self, tokens: Sequence[int] | TokenArray, *, logits_of: str = "all") -> None:
        """Append tokens."""

    def logits(self, index: int = -1) -> FloatArray:
        """Logits after a token of the last batch."""
        ...

    def is_end(self, token: int) -> bool:
        """Whether the answer ends with this token."""
        ...


class Drafter(Protocol):
    """What generation needs of a drafter; every variant's native Drafter has it."""

    def append(self, token: int) -> None:
        """Take one more token of the sequence."""

    def extend(self, tokens: bytes) -> None:
        """Take many more, as int32."""

    def draft(self, n_draft: int) -> list[int]:
        """What may follow the sequence."""
        ...

    def end_chunk(self) -> None:
        """Put the sequence into the dynamic cache, and begin another."""


class Clock:
    """Sums the time between readings by phase."""

    def __init__(self) -> None:
        self.totals_ns = [0] * len(PHASES)
        self._begin = self._last = time.perf_counter_ns()

    def lap(self, phase: int) -> None:
        """The time since the last reading was this phase."""
        now = time.perf_counter_ns()
        self.totals_ns[phase] += now - self._last
        self._last = now

    @property
    def wall_ns(self) -> int:
        """From the first reading to the last."""
        return self._last - self._begin


@dataclass(frozen=True)
class Divergence:
    """Where a text first differs from the one without drafting. Logits of both tokens in this run's batch."""

    index: int
    token: int
    expected: int
    logit: float
    logit_of_expected: float


@dataclass
class Generation:
    """One answer. `calls` holds [drafted, accepted] of every draft call, `tokens` the answer's ids."""

    prompt_tokens: int
    tokens: list[int] = field(default_factory=list)
    calls: list[tuple[int, int]] = field(default_factory=list)
    decodes: int = 0
    phases_ns: dict[str, int] = field(default_factory=dict)
    wall_ns: int = 0
    ended: str = "n_new"  # or "end token", "n_ctx"
    divergence: Divergence | None = None

    def report(self) -> dict[str, Any]:
        """The record's measured part."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "tokens": self.tokens,
            "n_new": len(self.tokens),
            "ended": self.ended,
            "calls": [list(call) for call in self.calls],
            "draft_calls": len(self.calls),
            "hit_calls": sum(1 for drafted, _ in self.calls if drafted),
            "n_drafted": sum(drafted for drafted, _ in self.calls),
            "n_accept": sum(accepted for _, accepted in self.calls),
            "decodes": self.decodes,
            "phases_ns": self.phases_ns,
            "wall_ns": self.wall_ns,
        }


def draft_room(n_draft: int, length: int, n_ctx: int | None, n_left: int | None) -> int:
    """Max tokens a draft may have after a sequence of `length` tokens, its last one not yet decoded."""
    room = n_draft
    if n_ctx is not None:
        room = min(room, n_ctx - length)
    if n_left is not None:
        room = min(room, n_left)
    return max(room, 0)


class _Run:
    """The state of one generation."""

    def __init__(
        self,
        model: LanguageModel,
        drafter: Drafter | None,
        n_new: int,
        n_draft: int,
        expected: Sequence[int] | None,
    ) -> None:
        self.model, self.drafter, self.n_new, self.n_draft = model, drafter, n_new, n_draft
        self.expected = expected
        self.clock = Clock()
        self.result = Generation(0)
        self.finished = n_new == 0

    def prefill(self, prompt: TokenArray) -> None:
        self.result.prompt_tokens = len(prompt)
        self.model.clear()
        self.model.decode(prompt, logits_of="last")
        self.clock.lap(PREFILL)
        if self.drafter is not None:
            self.drafter.extend(prompt.tobytes())
            self.clock.lap(PROMPT_UPDATE)
        if not self.finished:
            self.sample(-1)

    def sample(self, index: int) -> int:
        """Take the likeliest token after the batch's token `index` into the answer."""
        logits = self.model.logits(index)
        token = int(logits.argmax())
        self.clock.lap(SAMPLE)
        if self.drafter is not None:
            self.drafter.append(token)
            self.clock.lap(UPDATE)
        tokens = self.result.tokens
        if self.expected is not None and self.result.divergence is None:
            self._compare(len(tokens), token, logits)
        tokens.append(token)
        if self.model.is_end(token):
            self.result.ended, self.finished = "end token", True
        elif len(tokens) >= self.n_new:
            self.finished = True
        self.clock.lap(OTHER)
        return token

    def _compare(self, index: int, token: int, logits: FloatArray) -> None:
        assert self.expected is not None
        if index < len(self.expected) and token != self.expected[index]:
            other = self.expected[index]
            self.result.divergence = Divergence(
                index, token, other, float(logits[token]), float(logits[other])
            )

    def step(self) -> None:
        """Draft after the last token, verify, keep what is right, roll the rest back."""
        tokens, model = self.result.tokens, self.model
        draft: list[int] = []
        if self.drafter is not None:
            # The model adds one token of its own to every draft, so one fewer than what is left is of use.
            n_left = self.n_new - len(tokens) - 1
            room = min(draft_room(self.n_draft, model.n_past + 1, model.n_ctx, n_left), model.n_batch - 1)
            draft = self.drafter.draft(room) if room > 0 else []
            self.clock.lap(DRAFT)
        n_past = model.n_past
        model.decode([tokens[-1], *draft])
        self.result.decodes += 1
        self.clock.lap(VERIFY)
        accepted = self._accept(draft)
        model.truncate(n_past + 1 + accepted)
        if self.drafter is not None:
            self.result.calls.append((len(draft), accepted))
        self.clock.lap(VERIFY)

    def _accept(self, draft: list[int]) -> int:
        for i, drafted in enumerate(draft):
            if self.sample(i) != drafted:
                return i
            if self.finished:
                return i + 1
        self.sample(len(draft))
        return len(draft)


def generate(
    model: LanguageModel,
    prompt: TokenArray,
    n_new: int,
    *,
    drafter: Drafter | None = None,
    n_draft: int = 0,
    expected: Sequence[int] | None = None,
) -> Generation:
    """Up to `n_new` tokens after `prompt`, fewer where the model ends or n_ctx is full.

    `drafter`: a variant's native Drafter, or None for no drafting; its dynamic cache goes on across calls.
    `expected`: the same prompt's answer without drafting; the first difference is noted with both logits.
    Raises InputError for an empty prompt or one longer than n_ctx.
    """
    if len(prompt) == 0:
        raise InputError("prompt", "has no tokens", "give it some text")
    if len(prompt) > model.n_ctx:
        raise InputError(
            "prompt", f"{len(prompt)} tokens are more than n_ctx ({model.n_ctx})", "shorten it or raise n_ctx"
        )
    prompt = np.ascontiguousarray(prompt, dtype=np.int32)
    room = model.n_ctx - len(prompt)
    run = _Run(model, drafter, min(n_new, room), n_draft, expected)
    if n_new > room:
        run.result.ended = "n_ctx"
    run.prefill(prompt)
    while not run.finished:
        run.step()
    if drafter is not None:
        run.clock.lap(OTHER)
        drafter.end_chunk()
        run.clock.lap(MERGE)
    run.clock.lap(OTHER)
    run.result.phases_ns = dict(zip(PHASES, run.clock.totals_ns, strict=True))
    run.result.wall_ns = run.clock.wall_ns
    return run.result


def logits_without_drafting(
    model: LanguageModel, prompt: TokenArray, answer: Sequence[int], tokens: Sequence[int]
) -> list[float]:
    """Logits of `tokens` after `prompt` and `answer`, decoded one by one as without drafting."""
    model.clear()
    model.decode(prompt, logits_of="last")
    for token in answer:
        model.decode([token])
    logits = model.logits(-1)
    return [float(logits[token]) for token in tokens]
