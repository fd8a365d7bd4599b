"""Which conditions make runs unlike, and that what is not recorded is no evidence."""

from __future__ import annotations

import pytest
from draft_ladder.base.likeness import KNOWN, conditions, differing, digest, several

HERE = {
    "cpu_model": "A CPU",
    "cpu_logical_total": 2,
    "ram_bytes": 8_000_000_000,
    "system": "Linux",
    "kernel": "6.1",
    "libc": "glibc 2.36",
    "transparent_hugepage": "madvise",
    "transparent_hugepage_defrag": "madvise",
    "allocator_variables": {},
    "memory_limit_bytes": None,
    "cpu_quota_cores": None,
    "affinity": [0, 1],
    "python": "3.11.7",
}
BUILD = {
    "compiler": "gcc 12.2.0",
    "cxx_flags": "-O3",
    "standard_library": "libstdc++",
    "build_type": "Release",
    "unordered_dense": "ladder",
}
OTHERS = {
    "cpu_model": "Another",
    "cpu_logical_total": 4,
    "ram_bytes": 4_000_000_000,
    "system": "Darwin",
    "kernel": "6.2",
    "libc": "musl",
    "transparent_hugepage": "always",
    "transparent_hugepage_defrag": "always",
    "allocator_variables": {"MALLOC_ARENA_MAX": "1"},
    "memory_limit_bytes": 10**9,
    "cpu_quota_cores": 1.5,
    "affinity": [0],
    "python": "3.12.1",
    "compiler": "clang 14",
    "cxx_flags": "-O2",
    "standard_library": "libc++",
    "build_type": "Debug",
    "unordered_dense": "system",
}


@pytest.mark.parametrize("name", KNOWN)
def test_every_condition_makes_unlike_and_another_digest(name: str) -> None:
    here = conditions(HERE, BUILD)
    assert set(here) == set(KNOWN) == set(OTHERS)
    other = {**here, name: OTHERS[name]}
    assert [line.split()[0] for line in differing(here, other)] == [name]
    assert [line.split()[0] for line in several([here, here, other])] == [name]
    assert digest(here) != digest(other)
    older = {key: value for key, value in here.items() if key != name}
    assert differing(older, other) == differing(other, older) == several([older, other]) == []


def test_what_does_not_count() -> None:
    here = conditions(HERE, BUILD)
    assert digest(here) == digest(conditions({**HERE, "load_1min": 3.0}, BUILD))
    rebooted = {**here, "ram_bytes": 8_000_100_000}
    assert differing(here, rebooted) == []
    assert digest(here) == digest(rebooted)
    # A pinned worker's cores are its own, whatever its runner's.
    assert conditions(HERE, cpu=1) == conditions({**HERE, "affinity": [1]}, cpu=1)
    assert digest(conditions({})) is None
    assert "transparent_hugepage" not in conditions({**HERE, "transparent_hugepage": None})


def test_lines_say_how_many_runs() -> None:
    here, there = {"kernel": "6.1"}, {"kernel": "6.2"}
    assert several([here] * 3 + [there] * 2 + [{}]) == ["kernel is 6.1 in 3 runs and 6.2 in 2 runs"]
