"""Two series of runs against each other: the interval of their ratio, and whether it says better or worse.

Nothing is judged on fewer than MIN_PAIRS pairs, nor where the interval holds 1. The interval is that of the
middle 95 % of the medians of RESAMPLES resampled series, drawn by a generator with a fixed seed: the same
figures give the same interval everywhere.
"""

from __future__ import annotations

import functools
import random
import statistics
from collections.abc import Sequence
from typing import Literal, NamedTuple

MIN_PAIRS = 5
RESAMPLES = 2000
CONFIDENCE = 0.95
NARROW = 0.05

Verdict = Literal["better", "worse", "not told apart", "too few runs"]


class Interval(NamedTuple):
    """Where a ratio (above 1 is better) lies; `low` and `high` are None on too few pairs."""

    n_pairs: int
    low: float | None
    high: float | None

    @property
    def verdict(self) -> Verdict:
        """What may be said."""
        if self.low is None or self.high is None:
            return "too few runs"
        return "better" if self.low > 1 else "worse" if self.high < 1 else "not told apart"

    def is_narrow(self, width: float = NARROW) -> bool:
        """Whether its ends lie within a factor of 1 + `width` of each other."""
        return self.low is not None and self.high is not None and self.high <= self.low * (1 + width)

    def __str__(self) -> str:
        return (
            f"{self.low:.3f} to {self.high:.3f}"
            if self.low is not None
            else f"{self.n_pairs} of {MIN_PAIRS} runs"
        )


def paired(ratios: Sequence[float]) -> Interval:
    """Of the median of ratios of runs that were made in turn, one pair each."""
    if len(ratios) < MIN_PAIRS:
        return Interval(len(ratios), None, None)
    return _middle(
        len(ratios), [statistics.median([ratios[i] for i in draw]) for draw in _draws(len(ratios), "")]
    )


def unpaired(before: Sequence[float], after: Sequence[float], *, higher_is_better: bool = False) -> Interval:
    """Of the ratio of two medians of runs that were made apart. All values are above 0."""
    count = min(len(before), len(after))
    if count < MIN_PAIRS:
        return Interval(count, None, None)
    tops, bottoms = (after, before) if higher_is_better else (before, after)
    found = [
        statistics.median([tops[i] for i in top]) / statistics.median([bottoms[i] for i in bottom])
        for top, bottom in zip(_draws(len(tops), "top"), _draws(len(bottoms), "bottom"), strict=True)
    ]
    return _middle(count, found)


@functools.cache
def _draws(count: int, series: str) -> list[list[int]]:
    """Which runs each resampled series is made of."""
    generator = random.Random(f"draft-ladder/{series}/{count}")
    return [[int(generator.random() * count) for _ in range(count)] for _ in range(RESAMPLES)]


def _middle(count: int, medians: list[float]) -> Interval:
    ordered = sorted(medians)
    outside = int((1 - CONFIDENCE) / 2 * len(ordered))
    return Interval(count, ordered[outside], ordered[-1 - outside])
