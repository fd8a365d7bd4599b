"""What verifying costs, and what follows: the break-even accepted length, and advice on n_draft.

A draft of k tokens turns a decode of 1 token into one of k + 1. It pays if the accepted tokens make up for
that: with a mean accepted length of a, (1 + a) / cost(k + 1) has to beat 1 / cost(1).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from draft_ladder.base.errors import InputError
from draft_ladder.llama.generation import LanguageModel
from draft_ladder.llama.library import TokenArray

BATCHES = tuple(range(1, 33))
# Drafting is recommended only if it is expected to gain more than the noise of such measurements.
MIN_GAIN = 0.02


@dataclass(frozen=True)
class CostPoint:
    """Time of one decode of `batch` tokens."""

    batch: int
    median_ns: int
    min_ns: int
    max_ns: int
    repeats: int


@dataclass(frozen=True)
class Option:
    """What drafting with `n_draft` is expected to bring (0: no drafting).

    `mean_accepted_length`: draft tokens accepted per draft call, without the token the model adds itself;
    `break_even_length`: the length at which drafting costs what it brings.
    """

    n_draft: int
    tokens_per_s: float
    speedup: float
    drafted_per_call: float
    mean_accepted_length: float
    break_even_length: float


@dataclass(frozen=True)
class Advice:
    """`n_draft` 0 says: do not draft."""

    n_draft: int
    options: tuple[Option, ...]
    draft_us_per_call: float

    def sentence(self) -> str:
        """The recommendation with the figures that say so."""
        best = max(self.options, key=lambda option: option.speedup)
        if self.n_draft == 0:
            return (
                f"do not draft: with the best, n_draft {best.n_draft}, new tokens are expected "
                f"{best.speedup:.2f} times as fast as without "
                f"(mean accepted length {best.mean_accepted_length:.2f}; "
                f"{best.break_even_length:.2f} is needed to break even)"
            )
        return (
            f"n_draft {self.n_draft}: new tokens are expected {best.speedup:.2f} times as fast as without "
            f"drafting, {best.tokens_per_s:.1f} a second, the prompt's time left out "
            f"(mean accepted length {best.mean_accepted_length:.2f}; "
            f"{best.break_even_length:.2f} is needed to break even)"
        )


def measure_costs(
    model: LanguageModel,
    prompt: TokenArray,
    batches: Iterable[int] = BATCHES,
    repeats: int = 5,
    observe: Callable[[int], None] = lambda done: None,
) -> list[CostPoint]:
    """Time of one decode against its number of tokens, after `prompt`.

    Repeats are the outermost loop, so that a disturbance does not fall on one batch size alone.
    """
    sizes = sorted(set(batches))
    if not sizes or sizes[0] < 1 or len(prompt) < sizes[-1] or len(prompt) + sizes[-1] > model.n_ctx:
        raise InputError(
            "cost_prompt_tokens",
            f"{len(prompt)} do not go with batches of {sizes} and n_ctx {model.n_ctx}",
            "use at least the largest batch, and leave room for it in n_ctx",
        )
    model.clear()
    model.decode(prompt, logits_of="last")
    filler = np.ascontiguousarray(prompt[: sizes[-1]], dtype=np.int32)
    model.decode(filler)  # the first batch of a size allocates
    model.truncate(len(prompt))
    times: dict[int, list[int]] = {size: [] for size in sizes}
    for repeat in range(repeats):
        for size in sizes:
            begin = time.perf_counter_ns()
            model.decode(filler[:size])
            times[size].append(time.perf_counter_ns() - begin)
            model.truncate(len(prompt))
        observe(repeat + 1)
    return [
        CostPoint(size, int(statistics.median(taken)), min(taken), max(taken), repeats)
        for size, taken in times.items()
    ]


class CostCurve:
    """Median cost by batch size, in nanoseconds; sizes that were not measured are interpolated."""

    def __init__(self, points: Sequence[CostPoint]) -> None:
        if not points or points[0].batch != 1:
            raise InputError("cost curve", "has no point for a batch of 1", "measure batch 1 too")
        self._sizes = [point.batch for point in points]
        self._costs = [float(point.median_ns) for point in points]

    def cost_ns(self, batch: int) -> float:
        """Cost of a decode of `batch` tokens; beyond the largest measured one it is an error."""
        if batch > self._sizes[-1]:
            raise InputError(
                "cost curve", f"ends at {self._sizes[-1]}, not {batch}", "measure larger batches"
            )
        return float(np.interp(batch, self._sizes, self._costs))

    def break_even(self, n_draft: int) -> float:
        """Mean accepted length at which a draft of n_draft tokens costs what it brings.

        More than n_draft means that it cannot pay.
        """
        return self.cost_ns(n_draft + 1) / self.cost_ns(1) - 1


def advise(
    curve: CostCurve,
    calls: Sequence[tuple[int, int]],
    draft_ns_per_call: float,
    n_drafts: Iterable[int],
    sample_ns: float = 0.0,
) -> Advice:
    """Which n_draft to use, from [drafted, accepted] of every call of a run with the largest of them.

    A shorter n_draft cuts every draft and what was accepted of it; the calls themselves are taken to stay
    where they are. `draft_ns_per_call` is draft and update, `sample_ns` what every new token costs besides.
    """
    baseline = curve.cost_ns(1) + sample_ns
    options = [Option(0, 1e9 / baseline, 1.0, 0.0, 0.0, 0.0)]
    for n_draft in sorted(set(n_drafts) - {0}):
        cut = [(min(drafted, n_draft), min(accepted, n_draft)) for drafted, accepted in calls]
        if not cut:
            continue
        new_tokens = sum(1 + accepted for _, accepted in cut)
        spent = sum(curve.cost_ns(1 + drafted) for drafted, _ in cut)
        spent += draft_ns_per_call * len(cut) + sample_ns * new_tokens
        # What these very drafts must bring: an empty draft costs nothing more than no drafting.
        even = sum(curve.cost_ns(1 + drafted) / curve.cost_ns(1) - 1 for drafted, _ in cut)
        options.append(
            Option(
                n_draft=n_draft,
                tokens_per_s=new_tokens * 1e9 / spent,
                speedup=new_tokens * baseline / spent,
                drafted_per_call=sum(drafted for drafted, _ in cut) / len(cut),
                mean_accepted_length=sum(accepted for _, accepted in cut) / len(cut),
                break_even_length=even / len(cut),
            )
        )
    best = max(options[1:], key=lambda option: option.speedup, default=options[0])
    chosen = best.n_draft if best.speedup > 1 + MIN_GAIN else 0
    drafting = tuple(options[1:]) or tuple(options)
    return Advice(chosen, drafting, draft_ns_per_call / 1e3)
