"""What a measurement depends on besides the code: machine, kernel, load, build, versions.

The only Python module that calls for Linux by name (/proc, /sys, page cache); elsewhere its figures are null.
No host name and no absolute path leaves this module.
"""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from draft_ladder.base.errors import InputError

_CPU = Path("/sys/devices/system/cpu")
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
# Anything that swaps or tunes the allocator changes the figures without changing the code.
_ALLOCATOR_VARIABLES = (
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "MALLOC_CONF",
    "MALLOC_MMAP_THRESHOLD_",
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


def cpu_model() -> str:
    """The processor's own name for itself."""
    for line in (_text(Path("/proc/cpuinfo")) or "").splitlines():
        if line.lower().startswith("model name"):
            return line.partition(":")[2].strip()
    if sys.platform == "darwin":
        brand = _output(["sysctl", "-n", "machdep.cpu.brand_string"])
        if brand:
            return brand
    return platform.processor() or platform.machine()


def machine() -> dict[str, Any]:
    """The content of machine.json: what stays the same from run to run."""
    memory = psutil.virtual_memory()
    return {
        "schema": 1,
        "machine": machine_slug(),
        "cpu_model": cpu_model(),
        "cpu_arch": platform.machine(),
        "cpu_logical_total": os.cpu_count(),
        "cpu_physical_total": psutil.cpu_count(logical=False),
        "cpu_caches": _caches(),
        "cpu_governor": _text(_CPU / "cpu0/cpufreq/scaling_governor"),
        "cpu_max_mhz": _cpu_max_mhz(),
        "turbo": _turbo(),
        "smt": _text(_CPU / "smt/control"),
        "affinity": affinity(),
        "virtualized": "hypervisor" in (_text(Path("/proc/cpuinfo")) or "")
        if sys.platform == "linux"
        else None,
        "ram_bytes": memory.total,
        "swap_bytes": psutil.swap_memory().total,
        "transparent_hugepage": _selected(_text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))),
        "aslr": _text(Path("/proc/sys/kernel/randomize_va_space")),
        "system": platform.system(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "python": platform.python_version(),
        "python_implementation": platform.python_implementation(),
        "dependencies": dependency_versions(),
        "allocator_variables": allocator_variables(),
        **git_state(),
        "recorded_utc": utc_now(),
    }


def per_run() -> dict[str, Any]:
    """What may change from one run to the next; part of every record."""
    git = git_state()
    frequency = _text(_CPU / "cpu0/cpufreq/scaling_cur_freq")
    return {
        "machine": machine_slug(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_1min": round(os.getloadavg()[0], 2),
        "available_ram_bytes": psutil.virtual_memory().available,
        "cpu_governor": _text(_CPU / "cpu0/cpufreq/scaling_governor"),
        "cpu_mhz": int(frequency) // 1000 if frequency else None,
        "affinity": affinity(),
        "transparent_hugepage": _selected(_text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))),
        "allocator_variables": allocator_variables(),
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
    governor = _text(_CPU / "cpu0/cpufreq/scaling_governor")
    if governor not in (None, "performance"):
        found.append(f"CPU governor is {governor}: the clock rate follows the load; set it to performance")
    if _turbo() is True:
        found.append("turbo is on: the clock rate depends on heat and on the other cores; switch it off")
    smt = _text(_CPU / "smt/control")
    if smt == "on":
        found.append(
            "SMT is on: a sibling thread may share the core; leave the sibling idle or switch SMT off"
        )
    if cpu is None and (os.cpu_count() or 1) > 1:
        found.append(
            "the workers are not pinned: they may move between cores; set `cpu` in the config (`--set cpu=0`)"
        )
    memory = psutil.virtual_memory()
    if memory.available < 0.25 * memory.total:
        found.append(
            f"only {memory.available / 1e9:.1f} GB of memory are free: runs may swap; close other programs"
        )
    return found


def affinity() -> list[int] | None:
    """The cores this process may run on; null where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def allocator_variables() -> dict[str, str]:
    """Environment variables that tune or replace the allocator (base names, no folders)."""
    return {name: os.path.basename(os.environ[name]) for name in _ALLOCATOR_VARIABLES if name in os.environ}


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
    """Commit of the project's checkout and whether anything but results was changed; null outside of one."""
    for folder in (Path(__file__).resolve().parents[2], Path.cwd()):
        project = _text(folder / "pyproject.toml")
        if project and 'name = "draft-ladder"' in project:
            commit = _output(["git", "rev-parse", "HEAD"], folder)
            changed = _output(["git", "status", "--porcelain", "--", ".", ":!results", ":!plots"], folder)
            return {"git_commit": commit, "git_dirty": None if changed is None else bool(changed)}
    return {"git_commit": None, "git_dirty": None}


def oom_kills_total() -> int | None:
    """How many processes the kernel has killed for want of memory since it started; null if unknown."""
    match = re.search(r"^oom_kill (\d+)$", _text(Path("/proc/vmstat")) or "", re.MULTILINE)
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
            version = _output([name, "--version"])
            return version.splitlines()[0] if version else None
    return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _output(command: list[str], folder: Path | None = None) -> str | None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _selected(text: str | None) -> str | None:
    match = re.search(r"\[(\w+)\]", text or "")
    return match.group(1) if match else text


def _caches() -> dict[str, str]:
    caches = {}
    for index in sorted((_CPU / "cpu0/cache").glob("index*")):
        kind = {"Data": "d", "Instruction": "i"}.get(_text(index / "type") or "", "")
        size, level = _text(index / "size"), _text(index / "level")
        if size and level:
            caches[f"L{level}{kind}"] = size
    return caches


def _cpu_max_mhz() -> int | None:
    khz = _text(_CPU / "cpu0/cpufreq/cpuinfo_max_freq")
    return int(khz) // 1000 if khz and khz.isdigit() else None


def _turbo() -> bool | None:
    no_turbo = _text(_CPU / "intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == "0"
    boost = _text(_CPU / "cpufreq/boost")
    return boost == "1" if boost is not None else None
