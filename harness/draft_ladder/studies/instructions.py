"""Exact counts: instructions per drafted token under callgrind, a check that no noise can touch.

A build of its own for plain x86-64-v2 (valgrind knows no AVX-512), a small generated input, the replay as a
program without Python. Committed figures are keyed by compiler and C library; where there are none for this
machine's, the base commit is counted with the same compiler and compared.
"""

from __future__ import annotations

import array
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from draft_ladder.base.commits import files_of, run_git
from draft_ladder.base.errors import InputError, RunFailedError
from draft_ladder.base.manifests import write_atomic

ROOT = Path(__file__).parents[3]
FIGURES = ROOT / "tests" / "instructions.json"
TOLERANCE = 0.02
SCHEMA = 1
N_CTX, N_DRAFT = 2048, 3
# What the committed figures must share with this program to be comparable at all.
CONDITIONS = {"schema": SCHEMA, "n_ctx": N_CTX, "n_draft": N_DRAFT}
CORPUS_TOKENS, REPLAY_TOKENS = 40_000, 8_200
BASE_VARIABLE = "LADDER_BASE"
# Functions below this share of the whole are left out of the file: they cannot move a figure by 2 %.
FUNCTION_SHARE = 0.005
PHASES = ("draft", "update", "end_chunk")


@dataclass(frozen=True)
class Counts:
    """One variant's instructions per drafted token, by phase, and each large function's own."""

    draft: float
    update: float
    end_chunk: float
    n_drafted: int
    functions: dict[str, float]


@dataclass(frozen=True)
class Growth:
    """A phase that takes more instructions than before, and the function whose own count grew most."""

    variant: str
    phase: str
    before: float
    after: float
    function: str
    function_before: float
    function_after: float

    def __str__(self) -> str:
        return (
            f"{self.variant}: {self.phase} takes {self.after:.0f} instructions per drafted token, "
            f"{self.before:.0f} before ({self.after / self.before - 1:+.1%}); most of it in {self.function} "
            f"({self.function_before:.0f} -> {self.function_after:.0f})"
        )


# --- input -------------------------------------------------------------------------------------------------


def generated_tokens(count: int, seed: int, vocabulary: int = 1500) -> array.array[int]:
    """Text-like tokens: few common and many rare ones, and passages that come again.

    Integer arithmetic only: the same on every machine and Python.
    """
    state = seed
    tokens = array.array("i")

    def draw(below: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % below

    while len(tokens) < count:
        if len(tokens) > 64 and draw(3) == 0:
            start, length = draw(len(tokens) - 32), 2 + draw(14)
            tokens.extend(tokens[start : start + length])
        else:
            # The smallest of three draws: small ids are common.
            tokens.append(min(draw(vocabulary), draw(vocabulary), draw(vocabulary)))
    return tokens[:count]


def write_inputs(folder: Path) -> tuple[Path, Path]:
    """(token file to replay, static cache in llama.cpp's format) of the fixed input."""
    tokens = generated_tokens(REPLAY_TOKENS, seed=1)
    corpus = generated_tokens(CORPUS_TOKENS, seed=2)
    counts: dict[tuple[int, int], dict[int, int]] = {}
    for a, b, c in zip(corpus, corpus[1:], corpus[2:], strict=False):
        successors = counts.setdefault((a, b), {})
        successors[c] = successors.get(c, 0) + 1
    words = array.array("i")
    for (a, b), successors in counts.items():
        words.extend((a, b, -1, -1, len(successors)))
        for pair in successors.items():
            words.extend(pair)
    for data in (tokens, words):
        if sys.byteorder == "big":
            data.byteswap()
    token_file, static = folder / "replay.tok", folder / "static.bin"
    token_file.write_bytes(tokens.tobytes())
    static.write_bytes(words.tobytes())
    return token_file, static


# --- build -------------------------------------------------------------------------------------------------


def default_variants(source: Path = ROOT) -> list[str]:
    """The rungs and what goes beyond, in their order."""
    groups = (source / "variants" / group for group in ("ladder", "beyond"))
    names = [file.parent.name for group in groups for file in group.glob("*/module.cpp")]
    return sorted(names, key=lambda name: (_described(source, name).get("rung", 99), name))


def _described(source: Path, variant: str) -> dict[str, Any]:
    """A source tree's own description of a variant; empty where it has none of that name."""
    files = (source / "variants").glob(f"**/{variant}/variant.toml")
    return next((tomllib.loads(file.read_text(encoding="utf-8")) for file in files), {})


def build(
    source: Path, folder: Path, variants: Sequence[str], compiler: str | None = None
) -> dict[str, Path]:
    """The replay programs of these variants. InputError names what could not be built."""
    if not any(source.glob("*/*/replay_program.hpp")):
        raise InputError(source, "has no replay programs", "name a later commit as base")
    march = "x86-64-v2" if platform.machine() in ("x86_64", "AMD64") else ""
    configure = ["cmake", "-S", str(source), "-B", str(folder), "-DLADDER_REPLAY_PROGRAMS=ON"]
    configure += [f"-DLADDER_MARCH={march}", "-DCMAKE_BUILD_TYPE=Release"]
    # The project's own map, whatever is installed: a package's update must not look like our growth.
    configure += ["-DCMAKE_DISABLE_FIND_PACKAGE_unordered_dense=ON"]
    if compiler is not None:
        configure.append(f"-DCMAKE_CXX_COMPILER={compiler}")
    run_tool(configure, "install cmake and a C++ compiler")
    programs = {}
    for variant in variants:
        target = f"replay_{variant}"
        run_tool(["cmake", "--build", str(folder), "--target", target], "see the compiler's message")
        programs[variant] = folder / target
    return programs


def base_revision(source: Path = ROOT) -> str:
    """LADDER_BASE, else where this branch left main, else (on main) the commit before."""
    named = os.environ.get(BASE_VARIABLE)
    if named:
        return named

    def ask(*arguments: str) -> str | None:
        done = run_git(source, *arguments)
        return done.stdout.strip() if done.returncode == 0 else None

    head = ask("rev-parse", "HEAD")
    for branch in ("origin/main", "main"):
        base = ask("merge-base", "HEAD", branch)
        if base is not None and base != head:
            return base
    before = ask("rev-parse", "HEAD~1")
    if before is None:
        raise InputError("base commit", "there is none here", f"set {BASE_VARIABLE} or give --base")
    return before


def run_tool(command: Sequence[str], remedy: str) -> str:
    """What a compiler or the like prints. InputError, with the line that says why, where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise InputError(command[0], "is not installed", remedy) from error
    if done.returncode != 0:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["no message"]
        raise InputError(Path(command[0]).name, errors[0].strip(), remedy)
    return done.stdout


# --- count -------------------------------------------------------------------------------------------------


def count(program: Path, tokens: Path, static: Path, folder: Path) -> Counts:
    """Run one program under callgrind; `static` is in the format it reads."""
    if shutil.which("valgrind") is None:
        raise InputError("valgrind", "is not installed", "install it (Debian: apt install valgrind)")
    out = folder / f"{program.name}.callgrind"
    command = ["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]
    command += [f"--callgrind-out-file={out}", str(program), "replay", str(tokens), str(static)]
    answer = json.loads(run_tool([*command, str(N_CTX), str(N_DRAFT)], "see valgrind's message"))
    own_costs, inclusive = read_callgrind(out.read_text(errors="replace"))
    drafted = int(answer["n_drafted"])
    if drafted == 0:
        raise RunFailedError(f"{program.name}: nothing was drafted; the figures would mean nothing")
    phases = {phase: _phase_cost(inclusive, phase) / drafted for phase in PHASES}
    min_cost = FUNCTION_SHARE * sum(own_costs.values())
    functions: dict[str, float] = {}
    for name, cost in own_costs.items():
        if cost >= min_cost:
            functions[short(name)] = functions.get(short(name), 0.0) + cost / drafted
    largest_first = dict(sorted(functions.items(), key=lambda item: -item[1]))
    return Counts(n_drafted=drafted, functions=largest_first, **phases)


def own_format(source: Path, variant: str, program: Path, static: Path, folder: Path) -> Path:
    """llama.cpp's file, or the one the program makes of it where its source says it reads another format."""
    if _described(source, variant).get("static_format") == "llama":
        return static
    target = folder / f"{program.name}.static"
    run_tool([str(program), "convert", str(static), str(target)], "see the program's message")
    return target


def _phase_cost(inclusive: dict[str, int], phase: str) -> int:
    pattern = re.compile(rf"ladder::Counted<.*>::{phase}\(")
    found = [cost for name, cost in inclusive.items() if pattern.search(name)]
    if len(found) != 1:
        raise RunFailedError(f"callgrind: {len(found)} functions are called {phase}; one was expected")
    return found[0]


def short(function: str) -> str:
    """A function's name without template arguments and parameters: `ladder::Counted::draft`."""
    depth, kept = 0, []
    for index, letter in enumerate(function):
        depth -= letter == ">" and function[index - 1 : index] != "-"
        if depth == 0 and letter not in "<>":
            kept.append(letter)
        depth += letter == "<" and not function[:index].endswith("operator")
    return "".join(kept).partition("(")[0].rpartition(" ")[2] or function


def read_callgrind(text: str) -> tuple[dict[str, int], dict[str, int]]:
    """(own cost, inclusive cost) of every function in a callgrind file without compression."""
    own: dict[str, int] = {}
    inclusive: dict[str, int] = {}
    name, is_call = "", False
    for line in text.splitlines():
        if line.startswith("fn="):
            name = line[3:]
        elif line.startswith("calls="):
            is_call = True  # the next line is what the callee and all below it cost
        elif line[:1].isdigit() and name:
            cost = int(line.split()[1])
            inclusive[name] = inclusive.get(name, 0) + cost
            if not is_call:
                own[name] = own.get(name, 0) + cost
            is_call = False
    return own, inclusive


def count_all(
    source: Path, build_folder: Path, variants: Sequence[str], compiler: str | None = None
) -> tuple[str, dict[str, Counts]]:
    """(key, counts by variant) of a source tree."""
    programs = build(source, build_folder, variants, compiler)
    with tempfile.TemporaryDirectory(prefix="ladder-") as name:
        folder = Path(name)
        tokens, static = write_inputs(folder)
        counts = {
            variant: count(program, tokens, own_format(source, variant, program, static, folder), folder)
            for variant, program in programs.items()
        }
    return key_of(build_folder), counts


def key_of(build_folder: Path) -> str:
    """Compiler, its version, C library: `GNU 12.2.0, glibc 2.36, x86_64`."""
    found: dict[str, str] = {}
    for file in build_folder.glob("CMakeFiles/*/CMakeCXXCompiler.cmake"):
        found.update(re.findall(r'set\((CMAKE_CXX_COMPILER_(?:ID|VERSION)) "([^"]*)"\)', file.read_text()))
    compiler = (
        f"{found.get('CMAKE_CXX_COMPILER_ID', 'unknown')} {found.get('CMAKE_CXX_COMPILER_VERSION', '')}"
    )
    return ", ".join((compiler.strip(), " ".join(platform.libc_ver()).strip(), platform.machine()))


# --- compare -----------------------------------------------------------------------------------------------


def counts_before(
    committed: dict[str, Counts],
    variants: Sequence[str],
    base: str | None = None,
    note: Callable[[str], None] = lambda line: None,
) -> dict[str, Counts]:
    """What these variants are compared with: the committed figures of this machine's compiler.

    A variant without any is counted in the base commit, and so is every one where `base` names a commit.
    InputError if there is nothing to compare with.
    """
    before = {} if base else {name: committed[name] for name in variants if name in committed}
    missing = [name for name in variants if name not in before]
    if not missing:
        return before
    revision = base or base_revision()
    note(f"{', '.join(missing)}: counting {revision} with the same compiler")
    before |= _counts_of(revision, missing)
    new = [name for name in missing if name not in before]
    if not before:
        remedy = "put figures there with --record, or name with --base a commit that has the variant"
        raise InputError(
            ", ".join(new), f"neither {FIGURES.name} nor {revision} has figures to compare", remedy
        )
    for name in new:
        note(f"{name}: {revision} has no such variant: not compared")
    return before


def _counts_of(revision: str, variants: Sequence[str]) -> dict[str, Counts]:
    """The counts of a commit; only of the variants it has."""
    remedy = "name a commit of this repository with --base"
    with (
        files_of(revision, repository=ROOT, remedy=remedy) as source,
        tempfile.TemporaryDirectory(prefix="ladder-build-") as folder,
    ):
        known = [name for name in variants if _described(source, name)]
        return count_all(source, Path(folder), known)[1] if known else {}


def growths(
    before: dict[str, Counts], after: dict[str, Counts], tolerance: float = TOLERANCE
) -> list[Growth]:
    """Every phase of every variant that takes more instructions than before, beyond the tolerance."""
    found = []
    for variant, now in after.items():
        old = before.get(variant)
        for phase in PHASES if old is not None else ():
            assert old is not None
            was, is_ = getattr(old, phase), getattr(now, phase)
            if is_ > was * (1 + tolerance):
                found.append(Growth(variant, phase, was, is_, *_grown_function(old, now)))
    return found


def _grown_function(before: Counts, after: Counts) -> tuple[str, float, float]:
    name = max(after.functions, key=lambda name: after.functions[name] - before.functions.get(name, 0.0))
    return name, before.functions.get(name, 0.0), after.functions[name]


def load_figures(path: Path = FIGURES) -> dict[str, dict[str, Counts]]:
    """Committed figures by key; empty if there is no file."""
    if not path.exists():
        return {}
    content = json.loads(path.read_text())
    for name, value in CONDITIONS.items():
        if content.get(name) != value:
            problem = f"{name}: is {content.get(name)!r}, this program counts with {value}"
            raise InputError(path, problem, "remove the file and count again with --record")
    return {
        key: {variant: Counts(**counts) for variant, counts in variants.items()}
        for key, variants in content["figures"].items()
    }


def save_figures(key: str, counts: dict[str, Counts], path: Path = FIGURES) -> None:
    """Put the counts under their key."""
    figures = {
        name: {v: asdict(c) for v, c in variants.items()} for name, variants in load_figures(path).items()
    }
    figures[key] = {**figures.get(key, {}), **{variant: asdict(found) for variant, found in counts.items()}}
    content: dict[str, Any] = {**CONDITIONS, "figures": figures}
    write_atomic(path, (json.dumps(_rounded(content), allow_nan=False, indent=1) + "\n").encode())


def _rounded(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _rounded(value) for key, value in content.items()}
    return round(content, 2) if isinstance(content, float) else content
