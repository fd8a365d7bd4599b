"""What a measurement depends on besides the code: machine, kernel, load, build, versions.

With `base.host`, the only Python module that calls for Linux by name (/proc, /sys, page cache); elsewhere its
figures are null. No host name and no absolute path leaves this module.
"""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import os
import platform
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import psutil

from draft_ladder.base.commits import checkout_of, state_of
from draft_ladder.base.errors import InputError
from draft_ladder.base.host import CPU as _CPU
from draft_ladder.base.host import (
    affinity,
    available_ram_bytes,
    cpu_model,
    host_ram_bytes,
    likeness,
    memory_limit_bytes,
    output_of,
    text_of,
    usable_ram_bytes,
)

_DEPENDENCIES = (
    "draft-ladder",
    "llama-cpp-python",
    "matplotlib",
    "numpy",
    "pandas",
    "psutil",
    "pydantic",
    "rich",
    "tiktoken",
    "typer",
)


def utc_now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def machine_slug() -> str:
    """A folder name for this kind of machine, such as `amd-epyc-2c-linux`; no host name in it."""
    model = re.sub(r"\(r\)|\(tm\)|\bcpu\b|\bprocessor\b|@.*", " ", cpu_model().lower())
    name = "-".join(re.findall(r"[a-z0-9]+", model)) or platform.machine().lower()
    return f"{name}-{os.cpu_count() or 1}c-{platform.system().lower()}"


def machine_folder(name: str | None) -> str:
    """The folder of a machine's results: `name`, or one made from the CPU. InputError for a path."""
    if name is not None and (name in ("", ".", "..") or Path(name).name != name):
        raise InputError("--machine", f"{name!r} is no name of a folder", "give a name without a slash")
    return name or machine_slug()


def check_core(cpu: int | None, key: str = "cpu") -> None:
    """InputError where the core is not there for this process."""
    usable = affinity()
    if cpu is not None and usable is not None and cpu not in usable:
        raise InputError(key, f"core {cpu} is not usable here", f"use one of {', '.join(map(str, usable))}")


def machine() -> dict[str, Any]:
    """The content of machine.json: what stays the same from run to run."""
    return {
        "schema": 1,
        "machine": machine_slug(),
        **likeness(),
        "cpu_arch": platform.machine(),
        "cpu_physical_total": psutil.cpu_count(logical=False),
        "cpu_caches": _caches(),
        "cpu_governor": text_of(_CPU / "cpu0/cpufreq/scaling_governor"),
        "cpu_max_mhz": _cpu_max_mhz(),
        "turbo": _turbo(),
        "smt": text_of(_CPU / "smt/control"),
        "virtualized": "hypervisor" in (text_of(Path("/proc/cpuinfo")) or "")
        if sys.platform == "linux"
        else None,
        "host_ram_bytes": host_ram_bytes(),
        "swap_bytes": psutil.swap_memory().total,
        "aslr": text_of(Path("/proc/sys/kernel/randomize_va_space")),
        "python_implementation": platform.python_implementation(),
        "dependencies": dependency_versions(),
        **git_state(),
        "recorded_utc": utc_now(),
    }


def per_run() -> dict[str, Any]:
    """What may change from one run to the next; part of every record."""
    git = git_state()
    frequency = text_of(_CPU / "cpu0/cpufreq/scaling_cur_freq")
    return {
        "machine": machine_slug(),
        **likeness(),
        "load_1min": round(os.getloadavg()[0], 2),
        "available_ram_bytes": available_ram_bytes(),
        "cpu_governor": text_of(_CPU / "cpu0/cpufreq/scaling_governor"),
        "cpu_mhz": int(frequency) // 1000 if frequency else None,
        "git_commit": git["git_commit"],
        "git_dirty": git["git_dirty"],
    }


def warnings(cpu: int | None = None) -> list[str]:
    """One line each: why the figures may be unstable, and the remedy."""
    found = []
    load = os.getloadavg()[0]
    if load > 0.5 * len(affinity() or [0]):
        found.append(
            f"load average is {load:.1f}: other work shares the caches and cores; wait until it is over"
        )
    governor = text_of(_CPU / "cpu0/cpufreq/scaling_governor")
    if governor not in (None, "performance"):
        found.append(f"CPU governor is {governor}: the clock rate follows the load; set it to performance")
    if _turbo() is True:
        found.append("turbo is on: the clock rate depends on heat and on the other cores; switch it off")
    smt = text_of(_CPU / "smt/control")
    if smt == "on":
        found.append(
            "SMT is on: a sibling thread may share the core; leave the sibling idle or switch SMT off"
        )
    if cpu is None and (os.cpu_count() or 1) > 1:
        found.append(
            "the workers are not pinned: they may move between cores; set `cpu` in the config (`--set cpu=0`)"
        )
    limit, free = memory_limit_bytes(), available_ram_bytes()
    if free < 0.25 * usable_ram_bytes():
        bound = "" if limit is None else f" of the {limit / 1e9:.1f} that a control group allows"
        found.append(
            f"only {free / 1e9:.1f} GB of memory{bound} are free: runs may swap or end; close other programs"
        )
    return found


def dependency_versions() -> dict[str, str | None]:
    """Installed versions of what the harness runs on; null for what is not installed."""
    versions: dict[str, str | None] = {}
    for name in _DEPENDENCIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return versions


@functools.cache  # asked for before every run, when the machine should be quiet
def git_state() -> dict[str, Any]:
    """Commit of the checkout this code is from and whether anything but results was changed; null without."""
    commit, dirty = state_of(checkout_of())
    return {"git_commit": commit, "git_dirty": dirty}


def oom_kills_total() -> int | None:
    """How many processes the kernel has killed for want of memory since it started; null if unknown."""
    match = re.search(r"^oom_kill (\d+)$", text_of(Path("/proc/vmstat")) or "", re.MULTILINE)
    return int(match.group(1)) if match else None


_brought_in: set[Path] = set()


def set_page_cache(path: Path, state: str) -> str:
    """Bring a file into the page cache ("warm") or out of it ("cold"); the state reached, for the record.

    Warm always means read from front to end: a file's first time here drops what is cached of it. Pages that
    came in one by one, by the faults of an earlier process that mapped the file, lie scattered in memory, and
    whoever maps it next pays a tenth to a fifth more.
    """
    with path.open("rb") as file:
        first_time = path.resolve() not in _brought_in
        if (state == "cold" or first_time) and hasattr(os, "posix_fadvise"):
            os.fsync(file.fileno())  # only clean pages can be dropped
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if state == "cold":
            _brought_in.discard(path.resolve())
            return "cold" if hasattr(os, "posix_fadvise") else "unknown"
        while file.read(1 << 22):
            pass
    _brought_in.add(path.resolve())
    return "warm"


def compiler_found() -> str | None:
    """First line of the C++ compiler's version, null if there is none."""
    for name in (os.environ.get("CXX"), "c++", "g++", "clang++"):
        if name and shutil.which(name):
            version = output_of([name, "--version"])
            return version.splitlines()[0] if version else None
    return None


def _caches() -> dict[str, str]:
    caches = {}
    for index in sorted((_CPU / "cpu0/cache").glob("index*")):
        kind = {"Data": "d", "Instruction": "i"}.get(text_of(index / "type") or "", "")
        size, level = text_of(index / "size"), text_of(index / "level")
        if size and level:
            caches[f"L{level}{kind}"] = size
    return caches


def _cpu_max_mhz() -> int | None:
    khz = text_of(_CPU / "cpu0/cpufreq/cpuinfo_max_freq")
    return int(khz) // 1000 if khz and khz.isdigit() else None


def _turbo() -> bool | None:
    no_turbo = text_of(_CPU / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == "0"
    boost = text_of(_CPU / "cpufreq/boost")
    return boost == "1" if boost is not None else None
