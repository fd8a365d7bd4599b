"""How everything looks: colours, matplotlib's settings, numbers, tables and lines, each decided here once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

# --- pictures ----------------------------------------------------------------------------------------------

GREY, PALE, WARNING = "#555555", "#DDDDDD", "#AA3300"
SIZE_INCHES = (9.6, 6.0)
PNG_DPI = 150
CAPTION_CHARACTERS = 165  # of a line as wide as the picture
FONT = "DejaVu Sans"  # comes with matplotlib
MAX_SERIES = 8  # of one pair of axes; more get small panels
RC: dict[Any, Any] = {
    "svg.hashsalt": "draft-ladder",  # without it every SVG has new ids
    "svg.fonttype": "path",
    "font.family": FONT,
    "text.parse_math": False,  # a file may be called $x_^
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
SOLID_LINES, BROKEN_LINES = ("-", "-.", ":"), ("--", ":", "-.")


def shade(color: str, index: int, total: int) -> str:
    """The colour of the series at place `index` of the `total` of one variant: paler from one to the next."""
    pale = 0.6 * index / max(1, total - 1)
    channels = [round(channel + (255 - channel) * pale) for channel in _channels(color)]
    return "#" + "".join(f"{channel:02X}" for channel in channels) if index else color


def darkened(color: str) -> tuple[float, ...]:
    """The colour, dark enough for text on white."""
    return tuple(channel / 255 * 0.72 for channel in _channels(color))


def _channels(color: str) -> list[int]:
    return [int(color[place : place + 2], 16) for place in (1, 3, 5)]


def clipped(text: str, length: int) -> str:
    """`text`, with an ellipsis where it is longer than `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


# --- numbers -----------------------------------------------------------------------------------------------


def format_number(value: float | int | None, digits: int = 4, *, pad: bool = False) -> str:
    """`digits` significant digits as people write them: 6,058 and 0.0123, never an exponent; - for None.

    Whole digits are never rounded away; zeros after the point stay only where `pad` says so.
    """
    if value is None:
        return "-"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text and not pad else text


def format_range(low: float | int | None, high: float | int | None, digits: int = 4) -> str:
    """Lowest to highest, or a dash."""
    return "-" if low is None else f"{format_number(low, digits)} to {format_number(high, digits)}"


# --- tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TextTable:
    """A title, column names, and rows of text."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def as_text(table: TextTable) -> str:
    """Aligned columns, names to the left and figures to the right, below the title where there is one."""
    lines = [table.columns, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def aligned(line: tuple[str, ...]) -> str:
        figures = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        return "  ".join([line[0].ljust(widths[0]), *figures]).rstrip()

    return "\n".join([*filter(None, [table.title]), *map(aligned, lines)])


def as_markdown(table: TextTable) -> str:
    """A Markdown table; its title is left to the page."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(table.columns), line(["---"] * len(table.columns)), *map(line, table.rows)])
