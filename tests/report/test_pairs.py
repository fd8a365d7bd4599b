"""Intervals of ratios: by hand, the same everywhere, and how often a judgement is wrong."""

from __future__ import annotations

import random

from draft_ladder.report.pairs import MIN_PAIRS, paired, unpaired


def test_fewer_than_five_pairs_have_no_interval() -> None:
    for count in range(MIN_PAIRS):
        assert paired([2.0] * count) == unpaired([2.0] * count, [1.0] * 9) == (count, None, None)
        assert paired([2.0] * count).verdict == "too few runs"
        assert not paired([2.0] * count).is_narrow()


def test_the_interval_of_five_reaches_from_the_lowest_to_the_highest() -> None:
    # The median of five draws is the lowest of five with a probability of 5.8 %.
    assert paired([1.1, 1.5, 1.2, 1.4, 1.3]) == (5, 1.1, 1.5)
    assert paired([1.1, 1.5, 1.2, 1.4, 1.3]).verdict == "better"
    assert paired([0.9, 0.5, 0.6, 0.7, 0.8]).verdict == "worse"
    assert paired([0.9, 1.5, 1.2, 1.4, 1.3]).verdict == "not told apart"
    assert paired([1.0] * 9).verdict == "not told apart"


def test_the_same_figures_give_the_same_interval_whatever_was_asked_before() -> None:
    generator = random.Random(1)
    ratios = [1.2 + 0.1 * generator.random() for _ in range(25)]
    paired(ratios[:7])
    many = paired(ratios)
    assert paired(list(ratios)) == many
    assert many.is_narrow(0.1)


def test_a_ratio_of_medians_is_by_the_metrics_direction() -> None:
    before, after = [10.0, 11, 12, 13, 14], [5.0, 5.5, 6, 6.5, 7]
    faster = unpaired(before, after)
    assert faster.verdict == "better"
    assert 10 / 7 <= (faster.low or 0) < 2 < (faster.high or 0) <= 14 / 5
    assert unpaired(before, after, higher_is_better=True).verdict == "worse"


def test_identical_code_is_seldom_told_apart() -> None:
    """Series of the same distribution, of the fewest pairs: one judgement in eight is wrong at most."""
    generator = random.Random(2)
    wrong = sum(
        paired([generator.lognormvariate(0, 0.1) for _ in range(MIN_PAIRS)]).verdict != "not told apart"
        for _ in range(400)
    )
    assert wrong / 400 < 0.125
