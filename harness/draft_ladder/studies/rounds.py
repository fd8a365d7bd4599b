"""What the compiler made of the searches of sorted lists: branches, conditional moves, rounds.

Needs a checkout (the headers are compiled again), a C++ compiler and objdump.
Compiles native/containers/sorted_search.hpp with the modules' own flags and disassembles it. The rounds are
counted by running the same source with a token type that counts its comparisons.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from draft_ladder.base.manifests import write_atomic
from draft_ladder.report.claims import ROUNDS_FILE
from draft_ladder.studies.instructions import run_tool

SOURCES = Path(__file__).parents[3] / "native"
COMPILERS = ("g++", "clang++", *(f"clang++-{version}" for version in range(20, 13, -1)))
LENGTHS = 70
REMEDY = "install binutils and a C++ compiler, or see its message"
# The fixed-round search and the library's, as functions with names to find.
PROBE = """
#include "containers/sorted_search.hpp"
#define PROBE(name, search) \\
    extern "C" const ladder::Successor* name(const ladder::Successor* base, std::size_t length, \\
                                             ladder::Token token) { \\
        return ladder::search::closest(base, length, token); \\
    }
PROBE(fixed_rounds, FixedRoundSearch)
PROBE(lower_bound, LowerBoundSearch)
"""
# Stands in for base/types.hpp.
COUNTING_TYPES = """
#pragma once
#include <cstdint>
namespace ladder {
inline int comparisons = 0;
struct Token {
    int value;
    friend bool operator<=(Token a, Token b) { ++comparisons; return a.value <= b.value; }
    friend bool operator<(Token a, Token b) { ++comparisons; return a.value < b.value; }
};
struct Successor { Token token; std::int32_t count; };
}
"""
COUNTER = """
#include "containers/sorted_search.hpp"
#include <cstdio>
#include <vector>
int main() {
    for (int length = 1; length <= %d; ++length) {
        std::vector<ladder::Successor> list;
        for (int i = 0; i < length; ++i) list.push_back({{2 * i}, 1});
        int low = 1000, high = 0;
        for (int wanted = -1; wanted <= 2 * length; ++wanted) {
            ladder::comparisons = 0;
            ladder::FixedRoundSearch::closest(list.data(), list.size(), {wanted});
            if (ladder::comparisons < low) low = ladder::comparisons;
            if (ladder::comparisons > high) high = ladder::comparisons;
        }
        std::printf("%%d %%d %%d\\n", length, low, high);
    }
}
"""
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
_TARGET = re.compile(r"\b([0-9a-f]+) <")
_BRANCH = re.compile(r"^(j[a-z]+|b|b\.[a-z]+|cbn?z|tbn?z)$")
_MOVE = re.compile(r"^(cmov[a-z]+|v?blendv[a-z]*|csel|csinc)$")


@dataclass(frozen=True)
class Shape:
    """Of one compiled function."""

    backward_branches: int
    conditional_branches: int
    conditional_moves: int


@dataclass(frozen=True)
class Rounds:
    """One compiler's search. `fixed`: as the article claims, in the machine code and when run.

    In the machine code that is one loop whose only branches ask whether the list is used up: one at its
    entry and one back. What was read moves the base by a conditional move, or by a mask.
    """

    compiler: str
    cxx_flags: str
    rounds_of_eight: int
    varying_lengths: list[int]  # lengths whose number of rounds depends on the value searched for
    backward_branches: int
    conditional_branches: int
    conditional_moves: int
    fixed: bool
    lower_bound: dict[str, int]


def compilers() -> list[str]:
    """The C++ compilers of this machine, one of each kind."""
    found = [name for name in COMPILERS if shutil.which(name)]
    clangs = [name for name in found if name.startswith("clang")]
    return [name for name in found if name not in clangs[1:]]


def examine(compiler: str, cxx_flags: str) -> Rounds:
    """Compile, disassemble, run. InputError if the compiler or objdump fails."""
    with tempfile.TemporaryDirectory(prefix="ladder-") as name:
        folder = Path(name)
        shapes = _disassemble(_object(compiler, cxx_flags, folder))
        rounds = _count(compiler, folder)
    fixed, library = shapes["fixed_rounds"], shapes["lower_bound"]
    varying = [length for length, low, high in rounds if low != high]
    of_eight = max(high for length, _, high in rounds if length == 8)
    return Rounds(
        compiler=_version(compiler),
        cxx_flags=cxx_flags,
        rounds_of_eight=of_eight,
        varying_lengths=varying,
        backward_branches=fixed.backward_branches,
        conditional_branches=fixed.conditional_branches,
        conditional_moves=fixed.conditional_moves,
        fixed=not varying
        and of_eight == 3
        and fixed.backward_branches == 1
        and fixed.conditional_branches <= 2,
        lower_bound=asdict(library),
    )


def _object(compiler: str, cxx_flags: str, folder: Path) -> Path:
    source, target = folder / "probe.cpp", folder / "probe.o"
    source.write_text(PROBE)
    command = [compiler, "-std=c++20", *cxx_flags.split(), f"-I{SOURCES}"]
    run_tool([*command, "-c", str(source), "-o", str(target)], REMEDY)
    return target


def _count(compiler: str, folder: Path) -> list[tuple[int, int, int]]:
    """(length, min rounds, max rounds) over every value that can be searched for."""
    stand_in = folder / "counting" / "base"
    stand_in.mkdir(parents=True)
    (stand_in / "types.hpp").write_text(COUNTING_TYPES)
    source, program = folder / "counter.cpp", folder / "counter"
    source.write_text(COUNTER % LENGTHS)
    includes = [f"-I{stand_in.parent}", f"-I{SOURCES}"]
    run_tool([compiler, "-std=c++20", "-O1", *includes, str(source), "-o", str(program)], REMEDY)
    lines = run_tool([str(program)], REMEDY).splitlines()
    return [(int(length), int(low), int(high)) for length, low, high in map(str.split, lines)]


def _disassemble(target: Path) -> dict[str, Shape]:
    text = run_tool(["objdump", "-d", "--no-show-raw-insn", str(target)], REMEDY)
    functions: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        head = re.match(r"^[0-9a-f]+ <(\w+)>:$", line)
        if head:
            current = functions.setdefault(head.group(1), [])
        else:
            current.append(line)
    return {name: shape_of(functions[name]) for name in ("fixed_rounds", "lower_bound")}


def shape_of(lines: list[str]) -> Shape:
    """Counts of one function's disassembly, as objdump prints it."""
    backward = conditional = moves = 0
    for line in lines:
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        address, mnemonic, operands = match.groups()
        moves += bool(_MOVE.match(mnemonic))
        target = _TARGET.search(operands)
        if _BRANCH.match(mnemonic) and target:
            backward += int(target.group(1), 16) <= int(address, 16)
            conditional += mnemonic not in ("jmp", "b")
    return Shape(backward, conditional, moves)


def _version(compiler: str) -> str:
    return run_tool([compiler, "--version"], REMEDY).splitlines()[0]


def as_dict(found: list[Rounds]) -> dict[str, Any]:
    """The content of search_rounds.json."""
    return {"schema": 1, "compilers": [asdict(one) for one in found]}


def write(folder: Path, found: list[Rounds]) -> Path:
    """Put the finding beside a run's records, for `ladder claims`."""
    path = folder / ROUNDS_FILE
    write_atomic(path, (json.dumps(as_dict(found), allow_nan=False, indent=1) + "\n").encode())
    return path
