"""What makes runs alike: conditions that change figures although neither code nor input is another.

`conditions` are a flat dictionary of those known. What an older record does not say is no evidence of
another machine: only keys that both sides have are compared.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from draft_ladder.base.manifests import canonical_json

Conditions = dict[str, Any]
# Figures under other values of these say nothing about each other.
MACHINE = ("cpu_model", "cpu_logical_total", "ram_bytes", "system", "kernel", "libc")
SETTING = ("transparent_hugepage", "transparent_hugepage_defrag", "allocator_variables")
LIMITS = ("memory_limit_bytes", "cpu_quota_cores")  # null is a value here: no limit
BUILD = ("compiler", "standard_library", "build_type", "unordered_dense")
DECISIVE = (*MACHINE, *SETTING, *LIMITS, *BUILD)
# Worth a line between two experiments; within one they do not change either.
NOTED = ("affinity", "python", "cxx_flags")
KNOWN = (*DECISIVE, *NOTED)
# The kernel keeps more or less for itself from boot to boot.
RAM_TOLERANCE = 0.01


def conditions(
    around: Mapping[str, Any], build: Mapping[str, Any] | None = None, cpu: int | None = None
) -> Conditions:
    """Those of `around` (a record's environment, a machine.json, `host.likeness()`) and of a module's build.

    `cpu`: the core that the worker was pinned to, whatever the cores of its runner.
    """
    known = {**around, **(build or {})}
    found = {
        name: known[name] for name in KNOWN if name in known and (name in LIMITS or known[name] is not None)
    }
    if cpu is not None:
        found["affinity"] = [cpu]
    return found


def digest(known: Conditions) -> str | None:
    """16 hex digits: the same for runs whose conditions are the same; None where none is known."""
    if not known:
        return None
    rounded = {**known, "ram_bytes": round(known.get("ram_bytes", 0) / 1e9, 1)}
    return hashlib.sha256(canonical_json(rounded).encode()).hexdigest()[:16]


def differing(one: Conditions, other: Conditions, names: Iterable[str] = KNOWN) -> list[str]:
    """`kernel is 6.1 and 6.2` for each condition that both have and that differs."""
    return [
        f"{name} is {shown(one[name])} and {shown(other[name])}"
        for name in names
        if name in one and name in other and not same(name, one[name], other[name])
    ]


def several(runs: Iterable[Conditions], names: Iterable[str] = KNOWN) -> list[str]:
    """`kernel is 6.1 in 26 runs and 6.2 in 10` for each condition that is not the same in all runs."""
    known = list(runs)
    lines = []
    for name in names:
        counts = Counter(canonical_json({"": one[name]}) for one in known if name in one)
        values = {canonical_json({"": one[name]}): one[name] for one in known if name in one}
        first = next(iter(values.values()), None)
        if any(not same(name, first, value) for value in values.values()):
            texts = [f"{shown(values[key])} in {count} runs" for key, count in counts.most_common()]
            lines.append(f"{name} is {' and '.join(texts)}")
    return lines


def same(name: str, one: Any, other: Any) -> bool:
    """Whether two values of a condition are the same one."""
    if name == "ram_bytes" and isinstance(one, int) and isinstance(other, int):
        return abs(one - other) <= RAM_TOLERANCE * max(one, other)
    return bool(one == other)


def shown(value: Any) -> str:
    """A value in words."""
    if isinstance(value, dict):
        return " ".join(f"{name}={text}" for name, text in sorted(value.items())) or "none"
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
