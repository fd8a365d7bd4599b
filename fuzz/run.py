"""Builds and runs every fuzz target: `python fuzz/run.py SECONDS [TARGET ...]`, SECONDS for each target.

Prints executions, executions per second and the total.
Exit code 0: no finding; 1: a finding (its input is kept and named); 2: no usable clang.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from seeds import SEEDS, write_seeds, write_summary_files

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "fuzz"
FLAGS = ["-std=c++20", "-g", "-O2", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"]
# Two sections of a summary file begin at multiples of 4096: a sound one has more than 8 KB.
MAX_LEN = {"summary_loader": 20_000}
INSTALL = "apt-get install clang-14 libclang-rt-14-dev (or any clang from 14 on, with its libFuzzer)"


def find_clang() -> str | None:
    """The newest clang++ that can link a fuzz target."""
    for name in ["clang++", *(f"clang++-{version}" for version in range(22, 13, -1))]:
        path = shutil.which(name)
        if path is None:
            continue
        probe = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
        command = [path, "-x", "c++", "-fsanitize=fuzzer", "-o", str(BUILD / "probe"), "-"]
        if subprocess.run(command, input=probe, text=True, capture_output=True, check=False).returncode == 0:
            return path
    return None


def write_variants() -> list[str]:
    """Include every variant's module.cpp, whose own line lists its drafters; return the names.

    A folder with a deps.cmake stays out: what it links was not built for the fuzzer.
    """
    folders = sorted(file.parent for file in (ROOT / "variants").glob("*/*/module.cpp"))
    folders = [folder for folder in folders if not (folder / "deps.cmake").exists()]
    lines = [f'#include "{folder.parent.name}/{folder.name}/module.cpp"\n' for folder in folders]
    (BUILD / "variants.inc").write_text("".join(lines))
    return [folder.name for folder in folders]


def build(clang: str, target: str) -> Path:
    """Compile one target against the headers of all variants."""
    binary = BUILD / target
    includes = [f"-I{ROOT / 'native'}", f"-I{ROOT / 'variants'}", f"-I{ROOT / 'fuzz'}", f"-I{BUILD}"]
    source = ROOT / "fuzz" / f"{target}.cpp"
    subprocess.run([clang, *FLAGS, *includes, str(source), "-o", str(binary), "-pthread"], check=True)
    return binary


def fuzz(binary: Path, target: str, seconds: int) -> tuple[int, float, bool]:
    """Executions, seconds spent, and whether something was found."""
    seeds, corpus, findings = BUILD / "seeds" / target, BUILD / "corpus" / target, BUILD / "findings"
    write_seeds(target, seeds)
    if target == "summary_loader":
        write_summary_files(binary, seeds)
    for folder in (corpus, findings):
        folder.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={seconds}", "-print_final_stats=1", "-timeout=20", "-rss_limit_mb=3000"]
    options += [
        f"-max_len={MAX_LEN.get(target, 1024)}",
        f"-artifact_prefix={findings}/{target}-",
        "-malloc_limit_mb=1000",
    ]
    begin = time.monotonic()
    run = subprocess.run([binary, *options, corpus, seeds], capture_output=True, text=True, check=False)
    spent = time.monotonic() - begin
    match = re.search(r"number_of_executed_units:\s*(\d+)", run.stderr)
    if run.returncode != 0:
        print("\n".join(run.stderr.splitlines()[-60:]), file=sys.stderr)
    return int(match[1]) if match else 0, spent, run.returncode != 0


def main() -> int:
    """Run what the command line asks for; return the exit code."""
    if len(sys.argv) < 2 or not sys.argv[1].isdigit() or not set(sys.argv[2:]) <= set(SEEDS):
        print(f"usage: run.py SECONDS [{' | '.join(SEEDS)} ...]", file=sys.stderr)
        return 2
    BUILD.mkdir(parents=True, exist_ok=True)
    clang = find_clang()
    if clang is None:
        print(f"no clang with libFuzzer found; install it: {INSTALL}", file=sys.stderr)
        return 2
    print(f"variants: {', '.join(write_variants())}", file=sys.stderr)
    total, findings = 0, 0
    targets = sys.argv[2:] or list(SEEDS)
    # Compiling takes longer than fuzzing: all targets at once, as far as there are cores.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        binaries = list(pool.map(lambda target: build(clang, target), targets))
    for target, binary in zip(targets, binaries, strict=True):
        executions, spent, found = fuzz(binary, target, int(sys.argv[1]))
        total += executions
        findings += found
        verdict = f"a finding in {BUILD / 'findings'}" if found else "no finding"
        print(f"{target}: {executions} executions, {executions / spent:.0f} a second, {verdict}", flush=True)
    print(f"total: {total} executions, {findings} targets with findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
