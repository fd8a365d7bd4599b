"""The native calibrated drafter as a program, built by whatever compilers there are, and scripts for it."""

from __future__ import annotations

import functools
import random
import shutil
import subprocess
import tempfile
from pathlib import Path

from calibrated_specification import Specification
from streams import segment

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "tests" / "native" / "calibrated_driver.cpp"
FLAGS = ["-std=c++20", f"-I{ROOT / 'native'}", f"-I{ROOT / 'variants'}"]
# The portable path is what a processor without vectors of eight takes.
WAYS = {
    "O3": ["-O3", "-march=native"],
    "O1": ["-O1"],
    "portable": ["-O3", "-DLADDER_PORTABLE"],
}
Script = list[tuple[str, list[int]]]


def compilers() -> list[str]:
    found = [shutil.which("g++"), shutil.which("clang++") or shutil.which("clang++-14")]
    return [compiler for compiler in found if compiler]


@functools.cache
def driver(compiler: str, way: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="calibrated-"))
    program = folder / f"driver-{way}"
    subprocess.run([compiler, *FLAGS, *WAYS[way], str(SOURCE), "-o", str(program)], check=True)
    return program


def native(script: Script, compiler: str | None = None, way: str = "O3") -> list[list[int]]:
    """Every draft of the script."""
    text = "".join(f"{command} {' '.join(map(str, numbers))}\n" for command, numbers in script)
    program = driver(compiler or compilers()[0], way)
    result = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [[int(token) for token in line.split()] for line in result.stdout.splitlines()]


def specified(script: Script) -> list[list[int]]:
    drafter, drafts = Specification(), []
    for command, numbers in script:
        if command == "new":
            tau, share, history_bound, session_bound = numbers
            drafter = Specification(tau, bool(share), history_bound, session_bound)
        elif command == "learn":
            drafter.learn(numbers)
        elif command == "accept":
            for token in numbers:
                drafter.accept(token)
        elif command == "draft":
            drafts.append(drafter.draft(numbers[0]))
        else:
            getattr(drafter, command)(*numbers)
    return drafts


def request(session: int, prompt: list[int], answer: list[int], n_draft: int) -> Script:
    """One request as a replay makes it: a draft at every position, each token accepted."""
    script: Script = [("begin", [session])]
    if prompt:
        script.append(("learn", prompt))
    for token in answer:
        script += [("draft", [n_draft]), ("accept", [token])]
    return script


def fibonacci_word(length: int, a: int, b: int) -> list[int]:
    one, two = [a], [a, b]
    while len(two) < length:
        one, two = two, two + one
    return two[:length]


def tokens_of(kind: str, length: int, vocabulary: int, rng: random.Random, earlier: list[int]) -> list[int]:
    if kind == "fibonacci":
        return fibonacci_word(length, rng.randrange(vocabulary), rng.randrange(vocabulary))
    return segment(kind, length, vocabulary, rng, earlier)
