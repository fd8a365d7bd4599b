"""Whose commit is recorded: the checkout's that holds the running code, and no other's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from draft_ladder.base.commits import checkout_of, files_of, state_of

IDENTITY = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]


def git(folder: Path, *arguments: str) -> str:
    command = ["git", *IDENTITY, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def project(folder: Path) -> Path:
    """A copy of the project, as small as it can be; its package."""
    package = folder / "harness" / "draft_ladder"
    package.mkdir(parents=True)
    (folder / "pyproject.toml").write_text('[project]\nname = "draft-ladder"\n')
    (package / "code.py").write_text("VALUE = 1\n")
    return package


def committed(folder: Path) -> str:
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "all")
    return git(folder, "rev-parse", "HEAD")


def test_a_checkouts_own_commit_and_its_changes(tmp_path: Path) -> None:
    package = project(tmp_path / "mine")
    commit = committed(tmp_path / "mine")
    found = checkout_of(package, tmp_path)
    assert state_of(found) == (commit, False)
    (tmp_path / "mine" / "results").mkdir()
    (tmp_path / "mine" / "results" / "new.json").touch()
    assert state_of(found) == (commit, False)
    (package / "code.py").write_text("VALUE = 2\n")
    assert state_of(found) == (commit, True)


def test_a_copy_inside_of_another_repository_has_no_commit(tmp_path: Path) -> None:
    (tmp_path / "other.txt").touch()
    committed(tmp_path)
    package = project(tmp_path / "vendor" / "copy")
    assert state_of(checkout_of(package, tmp_path / "vendor" / "copy")) == (None, None)
    assert state_of(checkout_of(package, tmp_path)) == (None, None)


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"])
def test_gits_variables_name_no_other_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    package = project(tmp_path / "mine")
    commit = committed(tmp_path / "mine")
    other = project(tmp_path / "other")
    committed(tmp_path / "other")
    other_copy = project(tmp_path / "copy")
    places = {"GIT_DIR": ".git", "GIT_WORK_TREE": ".", "GIT_INDEX_FILE": ".git/index"}
    monkeypatch.setenv(name, str(tmp_path / "other" / places[name]))
    assert state_of(checkout_of(package, other)) == (commit, False)
    assert checkout_of(other_copy, tmp_path) is None
    with files_of(commit, "harness", repository=tmp_path / "mine", remedy="") as folder:
        assert (folder / "harness/draft_ladder/code.py").is_file()


def test_an_installed_copy_is_of_the_checkout_nearby_only_if_it_is_the_same(tmp_path: Path) -> None:
    package = project(tmp_path / "mine")
    committed(tmp_path / "mine")
    installed = tmp_path / "lib" / "site-packages" / "draft_ladder"
    shutil.copytree(package, installed)
    assert checkout_of(installed, tmp_path / "mine") == tmp_path / "mine"
    (installed / "code.py").write_text("VALUE = 3\n")
    assert checkout_of(installed, tmp_path / "mine") is None


def test_a_worktree_is_a_checkout(tmp_path: Path) -> None:
    project(tmp_path / "mine")
    commit = committed(tmp_path / "mine")
    git(tmp_path / "mine", "worktree", "add", "-q", str(tmp_path / "tree"))
    assert state_of(checkout_of(tmp_path / "tree/harness/draft_ladder", tmp_path)) == (commit, False)
