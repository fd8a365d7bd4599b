"""Git, asked about one folder and no other: the files of a commit, and the commit of this code's checkout.

Variables such as GIT_DIR, which a hook or a user's shell leaves in the environment, name another repository
than the folder does: git never sees them here.
"""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from draft_ladder.base.errors import InputError

PROJECT = 'name = "draft-ladder"'  # in the pyproject.toml of a checkout
PACKAGE = Path(__file__).resolve().parents[1]


def run_git(
    folder: Path, *arguments: str, timeout_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    """Git in `folder`. OSError where it is not installed; `TimeoutExpired` after `timeout_s`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, errors="replace", timeout=timeout_s
    )


def checkout_of(package: Path = PACKAGE, nearby: Path | None = None) -> Path | None:
    """The top of the git checkout that holds the code which runs, None outside of one.

    An installed copy has none of its own; `nearby` (default: the current folder) counts for it where its
    files are the same. A checkout is its repository's top: a copy inside of another repository is none.
    """
    nearby = nearby or Path.cwd()
    for folder in (package.parents[1], nearby):
        if _is_project(folder) and _is_top(folder) and _holds(folder, package):
            return folder
    return None


def state_of(checkout: Path | None) -> tuple[str | None, bool | None]:
    """(commit, whether anything but results was changed) of a checkout; nulls for none."""
    if checkout is None:
        return None, None
    commit = _answer(checkout, "rev-parse", "HEAD")
    changed = _answer(checkout, "status", "--porcelain", "--", ".", ":!results", ":!plots")
    return commit, None if changed is None else bool(changed)


def _is_project(folder: Path) -> bool:
    try:
        return PROJECT in (folder / "pyproject.toml").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _is_top(folder: Path) -> bool:
    top = _answer(folder, "rev-parse", "--show-toplevel")
    return top is not None and Path(top).resolve() == folder.resolve()


def _holds(folder: Path, package: Path) -> bool:
    """Whether the package of a checkout is this one, or the same as this one in every module."""
    own = folder / "harness" / package.name
    if own.resolve() == package:
        return True
    try:
        return all(
            (own / path.relative_to(package)).read_bytes() == path.read_bytes()
            for path in package.rglob("*.py")
            if "variants" not in path.relative_to(package).parts
        )
    except OSError:
        return False


def _answer(folder: Path, *arguments: str) -> str | None:
    try:
        done = run_git(folder, *arguments, timeout_s=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@contextmanager
def files_of(revision: str, path: str = ".", *, repository: Path = Path(), remedy: str) -> Iterator[Path]:
    """A folder with what the commit has at `path`. InputError where git knows no such commit or path."""
    if revision.startswith("-"):  # git would take it for an option, and some of its options write files
        raise InputError(f"{revision}:{path}", "is no commit", remedy)
    with tempfile.TemporaryDirectory(prefix="ladder-commit-") as name:
        archive, folder = Path(name) / "commit.tar", Path(name) / "files"
        try:
            done = run_git(repository, "archive", "--format=tar", f"--output={archive}", revision, "--", path)
        except FileNotFoundError as error:
            raise InputError("git", "is not installed", "install it") from error
        if done.returncode != 0:
            problem = " ".join(done.stderr.split()) or "git archive failed"
            raise InputError(f"{revision}:{path}", problem, remedy)
        _extract(archive, folder)
        yield folder


def _extract(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        # Python had no filter before 3.11.4, and warns from 3.12 on where none is named.
        if hasattr(tarfile, "data_filter"):
            tar.extractall(folder, filter="data")
        else:
            tar.extractall(folder)
