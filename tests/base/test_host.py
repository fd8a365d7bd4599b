"""Limits of control groups as files of v1 and v2 say them, and allocator variables without folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from draft_ladder.base import host

GB = 10**9


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(host, "CGROUP", tmp_path / "fs")
    monkeypatch.setattr(host, "OWN_CGROUPS", tmp_path / "own")
    monkeypatch.setattr(host, "host_ram_bytes", lambda: 8 * GB)
    return tmp_path


def write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def test_the_tightest_limit_of_v2_counts(groups: Path) -> None:
    write(groups / "own", "0::/outer/inner")
    write(groups / "fs/outer/inner/memory.max", "max")
    write(groups / "fs/outer/memory.max", 2 * GB)
    write(groups / "fs/outer/memory.current", GB // 2)
    write(groups / "fs/outer/cpu.max", "150000 100000")
    assert (host.memory_limit_bytes(), host.usable_ram_bytes()) == (2 * GB, 2 * GB)
    assert host.available_ram_bytes() <= 2 * GB - GB // 2
    assert host.cpu_quota_cores() == 1.5


def test_a_container_sees_its_own_group_as_the_root(groups: Path) -> None:
    write(groups / "own", "4:memory:/docker/of-the-host\n1:cpu,cpuacct:/\n0::/")
    write(groups / "fs/memory/memory.limit_in_bytes", GB)
    write(groups / "fs/cpu/cpu.cfs_quota_us", 200_000)
    write(groups / "fs/cpu/cpu.cfs_period_us", 100_000)
    assert host.memory_limit_bytes() == GB
    assert host.cpu_quota_cores() == 2
    (groups / "fs/cpu").rename(groups / "fs/cpu,cpuacct")  # as some distributions mount it
    assert host.cpu_quota_cores() == 2


@pytest.mark.parametrize("limit", [9223372036854771712, "max", 0, "nonsense"])
def test_no_limit_is_null_and_leaves_the_machines_memory(groups: Path, limit: object) -> None:
    write(groups / "own", "4:memory:/a\n0::/")
    write(groups / "fs/memory/a/memory.limit_in_bytes", limit)
    write(groups / "fs/memory.max", limit)
    assert (host.memory_limit_bytes(), host.cpu_quota_cores()) == (None, None)
    assert host.usable_ram_bytes() == 8 * GB


def test_no_proc_and_no_groups_is_no_limit(groups: Path) -> None:
    assert (host.memory_limit_bytes(), host.cpu_quota_cores()) == (None, None)


def test_allocator_variables_keep_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/home/me/liba.so:/opt/x/libb.so")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.arena_max=1:glibc.malloc.hugetlb=2")
    monkeypatch.setenv("MIMALLOC_LARGE_OS_PAGES", "1")
    monkeypatch.setenv("MALLOC_CONF", "")
    found = host.allocator_variables()
    assert found["LD_PRELOAD"] == "liba.so:libb.so"
    assert found["GLIBC_TUNABLES"] == "glibc.malloc.arena_max=1:glibc.malloc.hugetlb=2"
    assert found["MIMALLOC_LARGE_OS_PAGES"] == "1"
    assert "MALLOC_CONF" not in found
