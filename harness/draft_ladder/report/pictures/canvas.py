"""Figures by our own settings alone, whatever matplotlib is told on this machine; their texts are literal."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, fontManager, get_font
from matplotlib.text import Text

from draft_ladder.base.errors import LadderError
from draft_ladder.base.manifests import write_atomic
from draft_ladder.report.style import FONT, PNG_DPI, RC

REPLACED, NO_GLYPH = "\N{REPLACEMENT CHARACTER}", "\N{WHITE SQUARE}"
# Fonts of symbols under other characters' numbers, and of bitmaps that cannot be scaled.
UNFIT_FONTS = ("cm", "Last", "Webdings", "Wingdings", "Symbol")


@contextmanager
def own_settings(**more: Any) -> Iterator[None]:
    """Matplotlib's defaults and ours (and `more`), not those of a matplotlibrc."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC | more)
        yield


def new_figure(width: float, height: float) -> Figure:
    """A figure (inches) with a canvas of its own, so that no backend is asked for."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


@contextmanager
def drawn_alone(name: str, failed: list[str]) -> Iterator[None]:
    """What goes wrong with this chart is one more line in `failed` and ends no other."""
    try:
        yield
    except LadderError as error:
        failed.append(f"chart {name}: not drawn: {error}")
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        failed.append(f"chart {name}: not drawn ({reason}); draw it again with `ladder charts`")


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """The figure as SVG and PNG, without a date; each whole or not at all."""
    settle_texts(figure)
    drawn: list[tuple[Path, bytes]] = []
    for suffix, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": PNG_DPI})):
        content = io.BytesIO()
        figure.savefig(content, format=suffix, **options)
        drawn.append((folder / f"{name}.{suffix}", content.getvalue()))
    for path, data in drawn:
        write_atomic(path, data)
    return [path for path, _ in drawn]


def settle_texts(figure: Figure) -> None:
    """Give every text fonts for all of its characters; what no font here has becomes a white square."""
    for artist in figure.findobj(Text):
        assert isinstance(artist, Text)
        said = artist.get_text()
        if not said.isascii() or not said.isprintable():
            artist.set_text(literal(said))
            artist.set_fontfamily(families_for(artist.get_text()))


def literal(text: str) -> str:
    """`text` as it can be drawn: without control characters, and only with characters that a font has."""
    return "".join(map(_drawable, text))


def _drawable(character: str) -> str:
    if character == "\n" or ord(character) in _own_characters():
        return character
    if unicodedata.category(character) in ("Cc", "Cs", "Cn"):  # Cs: of a file name that is not UTF-8
        return REPLACED
    return character if family_of(character) else NO_GLYPH


def families_for(text: str) -> list[str]:
    """Our font, then those that have what it lacks."""
    found = (family_of(character) for character in text if ord(character) not in _own_characters())
    return [FONT, *dict.fromkeys(family for family in found if family)]


@cache
def _own_characters() -> frozenset[int]:
    return frozenset(get_font(findfont(FONT)).get_charmap())


@cache
def family_of(character: str) -> str | None:
    """An installed font that has this character, the first by name; None where there is none."""
    for name, file in _fonts():
        if ord(character) in _characters(file):
            return name
    return None


@cache
def _fonts() -> Sequence[tuple[str, str]]:
    """(family, file) of every upright font of this machine that can be used."""
    found = {
        (entry.name, entry.fname)
        for entry in fontManager.ttflist
        if entry.style == "normal" and not entry.name.startswith(UNFIT_FONTS) and "Emoji" not in entry.name
    }
    return sorted(found)


@cache
def _characters(file: str) -> frozenset[int]:
    try:
        return frozenset(get_font(file).get_charmap())
    except (OSError, RuntimeError):  # removed since matplotlib listed it, or broken
        return frozenset()
