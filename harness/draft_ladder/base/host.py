"""What a process finds here: processor, memory and the limits on it, pages, allocator, kernel, cores.

The figures of a machine that decide how fast and how large something runs. Reads /proc and /sys where the
system is Linux; elsewhere a figure is null. No host name and no absolute path leaves this module.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CPU = Path("/sys/devices/system/cpu")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage")
CGROUP = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
# cgroup v1 writes a number of pages near 2^63 where nothing is limited.
UNLIMITED_BYTES = 1 << 60
# Anything that swaps or tunes the allocator changes the figures without changing the code.
ALLOCATOR_VARIABLES = re.compile(
    r"(GLIBC_TUNABLES|LD_PRELOAD|(MALLOC|JE_MALLOC|MIMALLOC|TCMALLOC|RPMALLOC)_\w+)$"
)


def cpu_model() -> str:
    """The processor's own name for itself."""
    for line in (text_of(Path("/proc/cpuinfo")) or "").splitlines():
        if line.lower().startswith("model name"):
            return line.partition(":")[2].strip()
    if sys.platform == "darwin":
        brand = output_of(["sysctl", "-n", "machdep.cpu.brand_string"])
        if brand:
            return brand
    return platform.processor() or platform.machine()


def affinity() -> list[int] | None:
    """The cores this process may run on; null where the system does not say."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def allocator_variables() -> dict[str, str]:
    """Environment variables that tune or replace the allocator (base names, no folders)."""
    return {
        name: re.sub(r"[^\s:=,;]*/", "", os.environ[name])
        for name in sorted(os.environ)
        if ALLOCATOR_VARIABLES.match(name) and os.environ[name]
    }


def huge_pages() -> dict[str, str | None]:
    """Whether the kernel hands out huge pages unasked, and how hard it tries."""
    return {
        "transparent_hugepage": selected(text_of(HUGE_PAGES / "enabled")),
        "transparent_hugepage_defrag": selected(text_of(HUGE_PAGES / "defrag")),
    }


def likeness() -> dict[str, Any]:
    """What decides about figures besides code, build and input: see `base.likeness`, which compares it."""
    return {
        **_lasting(),
        "ram_bytes": usable_ram_bytes(),
        **huge_pages(),
        "allocator_variables": allocator_variables(),
        "affinity": affinity(),
        "memory_limit_bytes": memory_limit_bytes(),
        "cpu_quota_cores": cpu_quota_cores(),
    }


@functools.cache  # asked for before every run, when the machine should be quiet
def _lasting() -> dict[str, Any]:
    return {
        "cpu_model": cpu_model(),
        "cpu_logical_total": os.cpu_count(),
        "system": platform.system(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "python": platform.python_version(),
    }


# --- memory and its limits ---------------------------------------------------------------------------------


def host_ram_bytes() -> int:
    """The memory of the machine."""
    import psutil  # costs a process that only asks for the limits 20 ms

    return int(psutil.virtual_memory().total)


def usable_ram_bytes() -> int:
    """The memory that this process may use: the machine's, or less where a control group limits it."""
    return min(host_ram_bytes(), memory_limit_bytes() or UNLIMITED_BYTES)


def available_ram_bytes() -> int:
    """What is free of it, as far as the machine and the control groups have any left."""
    import psutil

    free = int(psutil.virtual_memory().available)
    for limit, used in _memory_groups():
        free = min(free, max(0, limit - used))
    return free


def memory_limit_bytes() -> int | None:
    """The tightest limit of the control groups this process is in (v1 or v2); null where there is none."""
    return min((limit for limit, _ in _memory_groups()), default=None)


def cpu_quota_cores() -> float | None:
    """How many cores' worth of time the control groups allow; null where there is no quota."""
    quotas = []
    for folder in _groups("cpu"):
        whole = (text_of(folder / "cpu.max") or "").split()
        split = [text_of(folder / f"cpu.cfs_{name}_us") for name in ("quota", "period")]
        quota, period = whole if len(whole) == 2 else split
        if _number(quota) and _number(period):
            quotas.append(round(_number(quota) / _number(period), 3))
    return min(quotas, default=None)


def _memory_groups() -> list[tuple[int, int]]:
    """(limit, used) bytes of every control group above this process that limits memory."""
    found = []
    for folder in _groups("memory"):
        limits = _number(text_of(folder / "memory.max")), _number(text_of(folder / "memory.limit_in_bytes"))
        used = _number(text_of(folder / "memory.current")), _number(text_of(folder / "memory.usage_in_bytes"))
        if 0 < max(limits) < UNLIMITED_BYTES:
            found.append((max(limits), max(used)))
    return found


def _groups(controller: str) -> Iterator[Path]:
    """The folders of this process's control groups, from its own up to the root.

    Within a container the own path may be the host's, which is not to be seen here: the root is then its own.
    """
    for line in (text_of(OWN_CGROUPS) or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        together = CGROUP / controllers  # v2 has no names here, and all in one folder
        root = together if together.is_dir() else CGROUP / controller
        folder = root / path.lstrip("/")
        while folder != root and root in folder.parents:
            yield folder
            folder = folder.parent
        yield root


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() else 0


# --- reading -----------------------------------------------------------------------------------------------


def text_of(path: Path) -> str | None:
    """What a small file says, null where it is not there."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def output_of(command: list[str]) -> str | None:
    """What a program prints, null where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def selected(text: str | None) -> str | None:
    """The choice in brackets, as in `always [madvise] never`."""
    match = re.search(r"\[([\w+]+)\]", text or "")
    return match.group(1) if match else text
