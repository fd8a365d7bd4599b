"""One process at a time in a folder, by a lock that the kernel frees when its last holder ends.

Not `filelock` as in the artifact store: a worker inherits the descriptor, so that an orphan keeps the lock.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from draft_ladder.base.errors import InputError

LOCK_NAME = ".lock"
# A killed runner's worker holds the lock until it has ended too, which takes far less than this.
ORPHAN_WAIT_S = 3.0
START_TOLERANCE_S = 2.0  # a start is told in seconds since the epoch, and clocks are set


@contextmanager
def folder_lock(folder: Path, holder: str) -> Iterator[int]:
    """Hold the folder; yields the lock's file descriptor, for child processes to share.

    A dead holder's lock is simply taken over, but not before its children are gone too. The folder may be
    removed while it is held. Raises InputError naming the `holder` ("runner") that is alive.
    """
    descriptor = _open(folder)
    try:
        deadline = time.monotonic() + ORPHAN_WAIT_S
        while not _try_lock(descriptor):
            pid = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            if (pid.isdigit() and is_running(int(pid))) or time.monotonic() > deadline:
                problem = f"another {holder} (pid {pid or 'unknown'}) writes here"
                raise InputError(folder / LOCK_NAME, problem, "wait for it or end it")
            time.sleep(0.05)
            if os.fstat(descriptor).st_nlink == 0:  # its last holder removed the folder
                os.close(descriptor)
                descriptor = _open(folder)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
        os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _open(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    return os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return os.fstat(descriptor).st_nlink > 0


def is_running(process_id: int, started_s: float | None = None) -> bool:
    """Whether a process of that number is alive here, and where `started_s` (seconds since the epoch) is
    given, is the one that started then: a number may be given out again.
    """
    try:
        process = psutil.Process(process_id)
        return started_s is None or abs(process.create_time() - started_s) < START_TOLERANCE_S
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
