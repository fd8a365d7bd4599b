"""Where an output goes: which file is replaced, what is written through instead, and what is refused.

Replacing is a rename, which would turn a device or a pipe into a file and a link into one of its own. So a
link is followed to its file, and a device, a pipe or an open stream (/dev/stdout) is written through.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from typing import NamedTuple

from draft_ladder.base.errors import InputError

_STREAMS = re.compile(r"/proc/\d+(/task/\d+)?/fd|/dev/fd")  # folders whose names are a process's open files
LINKS_AT_MOST = 40  # what Linux follows
COPY_BLOCK_BYTES = 1 << 20


class Destination(NamedTuple):
    """`path` with its links followed. `through`: it is no regular file, and stays what it is."""

    path: Path
    through: bool


def destination(path: Path) -> Destination:
    """Where what is written to `path` goes. InputError for a folder, a socket or a disk."""
    place = path
    for _ in range(LINKS_AT_MOST):
        parent = os.path.realpath(place.parent)
        if _STREAMS.fullmatch(parent):
            return Destination(place, True)
        if not place.is_symlink():
            break
        place = Path(parent, os.readlink(place))
    else:
        raise InputError(path, "is a link that leads in a circle", "name a file")
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        return Destination(place, False)
    for is_kind, what in (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a disk"),
    ):
        if is_kind(mode):
            raise InputError(path, f"is {what}, not a file", "name a file")
    return Destination(place, not stat.S_ISREG(mode))


def is_stored(path: Path) -> bool:
    """Whether what is written to `path` becomes a regular file, which alone can have a manifest beside it."""
    return not destination(path).through


def write_through(source: Path, path: Path) -> None:
    """Copy a file into a device, a pipe or an open stream, which stays what it is.

    InputError for a pipe that nobody reads: waiting for a reader might be for ever.
    """
    with open(_opened(path), "wb") as out, source.open("rb") as file:
        shutil.copyfileobj(file, out, COPY_BLOCK_BYTES)


def _opened(path: Path) -> int:
    """A descriptor to write to. An open stream of this process is shared, for its place in the file is."""
    if os.path.realpath(path.parent) == os.path.realpath("/dev/fd") and path.name.isdigit():
        return os.dup(int(path.name))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if stat.S_ISFIFO(path.stat().st_mode):
            raise InputError(path, "is a pipe that nobody reads", "start its reader first") from error
        raise
    os.set_blocking(descriptor, True)
    return descriptor
