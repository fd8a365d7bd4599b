"""Whether the runs of results folders were made under like conditions, and in words where they were not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from draft_ladder.base.likeness import (
    DECISIVE,
    KNOWN,
    Conditions,
    conditions,
    differing,
    same,
    several,
    shown,
)
from draft_ladder.bench.stats import Results

# Its words are those of `compare.flag_notes`: which flags there are more.
_SAID_ELSEWHERE = ("cxx_flags",)


def mixed(results: Results) -> list[str]:
    """What is not the same in all runs of a folder, or not what its machine.json says."""
    runs = _conditions(results)
    lines = [f"unlike runs in one median: {line}" for line in several(runs)]
    if not lines and runs:
        unlike = differing(_machine(results), {name: value for run in runs for name, value in run.items()})
        lines = [f"machine.json and the runs: {line}" for line in unlike]
    return lines


def unlike_places(a: Results, b: Results) -> list[str]:
    """The conditions that make the figures of two folders incomparable."""
    lines = [f"{one.folder.name}: {line}" for one in (a, b) for line in mixed(one)]
    return lines + _between(a, b, DECISIVE)


def notes_on_places(folders: Sequence[Results]) -> list[str]:
    """The other conditions in which folders differ from the first."""
    first, *others = folders
    names = [name for name in KNOWN if name not in (*DECISIVE, *_SAID_ELSEWHERE)]
    return [
        f"{first.folder.name} and {other.folder.name}: {line}"
        for other in others
        for line in _between(first, other, names)
    ]


def _between(a: Results, b: Results, names: Sequence[str]) -> list[str]:
    found = []
    for name in names:
        in_a, in_b = _values(a, name), _values(b, name)
        # A folder that does not say is no evidence of another place.
        if in_a and in_b and not (_covers(name, in_a, in_b) and _covers(name, in_b, in_a)):
            texts = ["/".join(sorted(map(shown, values))) for values in (in_a, in_b)]
            found.append(f"{name} is {' and '.join(texts)}")
    return found


def _covers(name: str, some: list[Any], others: list[Any]) -> bool:
    return all(any(same(name, one, other) for other in others) for one in some)


def _values(results: Results, name: str) -> list[Any]:
    """What the runs say of a condition, or machine.json where they say nothing."""
    values: list[Any] = []
    for one in _conditions(results) or [_machine(results)]:
        if name in one and one[name] not in values:
            values.append(one[name])
    machine = _machine(results)
    return values or ([machine[name]] if name in machine else [])


def _conditions(results: Results) -> list[Conditions]:
    return [record.conditions for record in results.records if record.status == "ok"]


def _machine(results: Results) -> Conditions:
    """machine.json's, for workers pinned as these were."""
    pinned = {record.spec.cpu for record in results.records}
    known = conditions(results.machine, cpu=next(iter(pinned)) if len(pinned) == 1 else None)
    if len(pinned) > 1:
        known.pop("affinity", None)
    return known
