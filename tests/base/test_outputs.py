"""What an output does to what is there already: files are replaced, everything else stays what it is."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import (
    Manifest,
    copy_artifact,
    manifest_path,
    replacing,
    replacing_artifact,
    sha256_file,
    write_atomic,
    write_manifest,
)
from refusals import refused

HARNESS = Path(__file__).parents[2] / "harness" / "draft_ladder"


def artifact(path: Path, content: bytes = b"content") -> Path:
    path.write_bytes(content)
    write_manifest(path, Manifest(kind="tokens", sha256=sha256_file(path), bytes=len(content)))
    return path


def device(path: Path) -> Path:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("devices are made by root")
    return path


def test_a_device_is_written_through_and_gets_no_manifest(tmp_path: Path) -> None:
    null = device(tmp_path / "null")
    write_atomic(null, b"content")
    copy_artifact(artifact(tmp_path / "made"), null)
    assert stat.S_ISCHR(null.stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "made.json", "null"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux's own")
def test_a_device_that_takes_nothing_is_named() -> None:
    with refused("/dev/full"):
        write_atomic(Path("/dev/full"), b"content")
    assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


def test_a_pipe_is_written_through_to_its_reader(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with refused(pipe):  # nobody reads it
        write_atomic(pipe, b"content")
    content = bytes(range(256)) * 4096  # more than a pipe holds
    got: list[bytes] = []
    with open(os.open(pipe, os.O_RDWR), "rb") as file:
        reader = threading.Thread(target=lambda: got.append(file.read(len(content))))
        reader.start()
        write_atomic(pipe, content)
        reader.join()
    assert got == [content]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_an_open_stream_is_shared(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("wb") as file:
        os.write(file.fileno(), b"before ")
        write_atomic(Path(f"/dev/fd/{file.fileno()}"), b"content")
        os.write(file.fileno(), b" after")
    assert (tmp_path / "stream").read_bytes() == b"before content after"


def test_a_socket_and_a_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        for name in ("socket", "folder"):
            with refused(tmp_path / name):
                write_atomic(tmp_path / name, b"content")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "socket"]
    assert stat.S_ISSOCK((tmp_path / "socket").stat().st_mode)


@pytest.mark.parametrize("there_before", [True, False])
def test_a_link_is_followed_and_the_manifest_lies_beside_its_file(tmp_path: Path, there_before: bool) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to("second")
    (tmp_path / "second").symlink_to("there/real")
    if there_before:
        (tmp_path / "there/real").write_bytes(b"old")
    copy_artifact(artifact(tmp_path / "made"), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there/real").read_bytes() == b"content"
    assert manifest_path(tmp_path / "link") == tmp_path / "there/real.json"
    assert not (tmp_path / "link.json").exists()


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with refused(tmp_path / "a"):
        write_atomic(tmp_path / "a", b"content")


def test_a_file_without_a_manifest_takes_the_old_ones_away(tmp_path: Path) -> None:
    old = artifact(tmp_path / "old")
    with replacing_artifact(old) as temporary:
        temporary.write_bytes(b"new")
    assert old.read_bytes() == b"new"
    assert not manifest_path(old).exists()


def test_a_copy_that_fails_between_file_and_manifest_leaves_no_stale_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = artifact(tmp_path / "target", b"old")
    made = artifact(tmp_path / "made", b"new")

    def fail(*_: object) -> None:
        raise InputError("disk", "is full", "free some space")

    monkeypatch.setattr("draft_ladder.base.manifests.write_manifest", fail)
    with refused("disk"):
        copy_artifact(made, target)
    assert target.read_bytes() == b"new"
    assert not manifest_path(target).exists()


def test_a_users_own_json_is_not_replaced_by_a_manifest(tmp_path: Path) -> None:
    own = tmp_path / "out.json"
    own.write_text('{"mine": 1}')
    with refused(own):
        copy_artifact(artifact(tmp_path / "made"), tmp_path / "out")
    assert own.read_text() == '{"mine": 1}'


def test_a_failed_output_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with replacing(tmp_path / "out") as temporary:
            temporary.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_every_output_goes_through_replacing() -> None:
    """No other place renames a file onto another; what opens files to write does so on what it was given."""
    own = {"base/manifests.py"}
    users = [
        str(path.relative_to(HARNESS))
        for path in HARNESS.rglob("*.py")
        if any(word in path.read_text() for word in ("os.replace(", "os.rename(", ".rename(", "shutil.move("))
    ]
    assert set(users) <= own
