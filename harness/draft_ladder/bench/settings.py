"""The settings a run is made at, besides variant and corpus size: columns, parts of no name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from draft_ladder.bench.records import SETTINGS, RunSpec

Value = int | str
AXES = "axes."  # before an axis's name, as in the config


class Settings(dict[str, Value]):
    """Values by the setting's key in the config, such as `n_draft` and `axes.hash`. Never changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    @classmethod
    def of(cls, spec: RunSpec) -> Settings:
        """All settings of a run."""
        axes = {f"{AXES}{name}": value for name, value in spec.axes.items()}
        return cls({name: getattr(spec, name) for name in SETTINGS} | axes)

    @property
    def order(self) -> tuple[tuple[str, float, str], ...]:
        """Sorts by number where a value is one: 1024, 2048, 16384."""
        return tuple((name, *natural(self[name])) for name in sorted(self))

    def agrees(self, other: Settings) -> bool:
        """Whether no setting that both have differs: a variant may lack another's axis."""
        return all(self[name] == other[name] for name in self.keys() & other.keys())

    def of_names(self, names: Collection[str]) -> Settings:
        """These settings alone."""
        return Settings({name: value for name, value in self.items() if name in names})

    def text(self, names: Collection[str]) -> str:
        """`hash=xor,n_draft=16`, of these settings: for people, never read back."""
        shown = {name.removeprefix(AXES): value for name, value in self.of_names(names).items()}
        return ",".join(f"{name}={value}" for name, value in sorted(shown.items()))


def natural(value: Value | float) -> tuple[float, str]:
    """A key that sorts numbers by size, words after them."""
    try:
        return float(value), ""
    except ValueError:
        return float("inf"), str(value)


def numeric_order(text: str) -> tuple[tuple[str, float], ...]:
    """A key that sorts texts with the numbers in them by size: n_ctx=2048 before n_ctx=16384."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return tuple((word, float(number)) for word, number in zip(parts[::2], [*parts[1::2], "0"], strict=True))


def names_of(settings: Iterable[Settings]) -> tuple[str, ...]:
    """Every setting that one of them has: those of all experiments, then the axes."""
    found = dict.fromkeys(name for one in settings for name in one)
    return tuple(sorted(found, key=lambda name: (name.startswith(AXES), name)))


def telling(settings: Iterable[Settings]) -> tuple[str, ...]:
    """The settings that labels must name: those of several values, and every axis."""
    known = list(settings)
    return tuple(
        name
        for name in names_of(known)
        if name.startswith(AXES) or len({one[name] for one in known if name in one}) > 1
    )


def label(variant: str, settings: Settings, names: Collection[str]) -> str:
    """A variant with these settings, for people: `frozen[n_draft=16]`."""
    text = settings.text(names)
    return f"{variant}[{text}]" if text else variant
