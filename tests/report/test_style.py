"""Numbers and tables as people read them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from draft_ladder.report.style import TextTable, as_markdown, as_text, darkened, format_number, shade


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (None, 4, "-"),
        (0, 4, "0"),
        (0.0, 4, "0"),
        (6058, 3, "6,058"),
        (6058.4, 3, "6,058"),
        (9999.7, 4, "10,000"),
        (10000.0, 4, "10,000"),
        (1234567, 4, "1,234,567"),
        (2.0**53, 4, "9,007,199,254,740,992"),
        (12.34567, 4, "12.35"),
        (12.0, 4, "12"),
        (100.0, 4, "100"),
        (0.0123456, 3, "0.0123"),
        (3.518e-05, 4, "0.00003518"),
        (-1.5, 4, "-1.5"),
        (0.2, 6, "0.2"),
    ],
)
def test_numbers_have_no_exponent_and_keep_their_whole_digits(
    value: float | None, digits: int, text: str
) -> None:
    assert format_number(value, digits) == text


def test_zeros_stay_where_figures_stand_alone() -> None:
    shown = [format_number(value, 3, pad=True) for value in (0.01234, 1.5, 65.83, 3751.2, 0.0)]
    assert shown == ["0.0123", "1.50", "65.8", "3,751", "0"]


def test_a_table_is_aligned_as_text_and_escaped_as_markdown() -> None:
    table = TextTable("title", ("name", "MB"), (("a|b", "1"), ("c", "1,024")))
    lines = as_text(table).splitlines()
    assert lines[0] == "title"
    assert len({len(line) for line in lines[1:]}) == 1
    assert lines[2].split() == ["a|b", "1"]
    untitled = TextTable("", table.columns, table.rows)
    assert as_text(untitled).splitlines() == lines[1:]
    cells = as_markdown(table).splitlines()
    assert cells[2] == "| a\\|b | 1 |"
    assert cells[1] == "| --- | --- |"


def test_shades_of_one_colour_differ_and_begin_with_it() -> None:
    shades = [shade("#D55E00", index, 5) for index in range(5)]
    assert shades[0] == "#D55E00"
    assert len(set(shades)) == 5
    assert all(sum(darkened(a)) < sum(darkened(b)) for a, b in pairwise(shades))
