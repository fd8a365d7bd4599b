"""Atomic files, manifests and the cache directory; writes fail for real where the system lets them."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import (
    Manifest,
    Progress,
    cache_dir,
    canonical_json,
    content_key,
    load_manifest,
    manifest_path,
    open_regular,
    replacing,
    sha256_file,
    write_atomic,
    write_manifest,
)

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def manifest(**fields: object) -> Manifest:
    return Manifest.model_validate({"kind": "tokens", "sha256": EMPTY, "bytes": 0, **fields})


def test_canonical_json_has_one_spelling_and_no_nan() -> None:
    assert canonical_json({"b": 1, "a": [1.5, "ü"]}) == '{"a":[1.5,"\\u00fc"],"b":1}'
    assert content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    assert len(content_key(None)) == 16
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"a": float("nan")})


def test_sha256_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    assert sha256_file(tmp_path / "a") == EMPTY


@pytest.mark.parametrize("special", ["directory", "pipe", "missing", "device"])
def test_only_regular_files_are_opened(tmp_path: Path, special: str) -> None:
    path = tmp_path / "x"
    if special == "directory":
        path.mkdir()
    elif special == "pipe":
        os.mkfifo(path)
    elif special == "device":
        path = Path("/dev/zero")
    with pytest.raises(InputError, match=str(path)) as caught:
        open_regular(path)
    assert "\n" not in str(caught.value)


def test_a_failing_writer_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "x"
    write_atomic(target, b"old")

    def full(file: BinaryIO) -> None:
        file.write(b"part")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match=rf"^{target}: .*no space left"):
        write_atomic(target, full)

    def interrupted(file: BinaryIO) -> None:
        file.write(b"part")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomic(target, interrupted)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert target.read_bytes() == b"old"


def test_a_file_beyond_the_allowed_size_is_one_clear_line(tmp_path: Path) -> None:
    """A real failing write: the process may not write files of more than 4096 bytes."""
    code = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from draft_ladder.base.manifests import write_atomic\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "from draft_ladder.base.errors import InputError\n"
        "try:\n    write_atomic(Path(sys.argv[1]), bytes(1 << 20))\n"
        "except InputError as error:\n    print(error)"
    )
    root = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x")],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert "cannot be written: file too large; free some space" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_made_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match=str(tmp_path / "file" / "x")):
        write_atomic(tmp_path / "file" / "x", b"")
    with pytest.raises(InputError, match=f"^{tmp_path / 'file'}: "):
        cache_dir(tmp_path / "file")


def test_only_temporary_files_of_dead_processes_of_this_host_are_removed(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    with replacing(tmp_path / "x") as of_the_living:
        of_the_living.write_bytes(b"part")
        host, pid, start = of_the_living.name.split(".")[2].split("-")
        assert int(pid) == os.getpid()
        abandoned = [
            tmp_path / f".x.{host}-{dead.pid}-{start}.1-0.tmp",
            tmp_path / f"..x.{host}-{dead.pid}-{start}.1-0.tmp.{dead.pid}.a2b3c4.tmp",  # a native module's
            tmp_path / f".x.{host}-{pid}-{int(start) - 60}.1-0.tmp",  # the number was given out again
        ]
        foreign = tmp_path / f".x.{'0' * 8}-{dead.pid}-{start}.1-0.tmp"  # alive elsewhere?
        for path in (*abandoned, foreign):
            path.write_bytes(b"part")
        write_atomic(tmp_path / "x", b"new")
        assert of_the_living.exists()
    assert sorted(tmp_path.iterdir()) == sorted([foreign, tmp_path / "x"])


def test_manifest_round_trip(tmp_path: Path) -> None:
    artifact = tmp_path / "a.tok"
    artifact.write_bytes(b"")
    write_manifest(artifact, manifest(facts={"n": 1}))
    assert json.loads(manifest_path(artifact).read_text())["schema"] == 1
    assert load_manifest(artifact, "tokens").facts == {"n": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[]", "JSON"),
        (b'{"schema": 2}', "schema: 2 "),
        (b'{"schema": 1, "kind": "tokens"}', "sha256: "),
        (canonical_json({"kind": "tokens", "sha256": EMPTY, "bytes": 0, "x": 1}).encode(), "x: "),
        (canonical_json({"kind": "corpus", "sha256": EMPTY, "bytes": 0}).encode(), "kind: .*'corpus'"),
        (canonical_json({"kind": "tokens", "sha256": EMPTY, "bytes": -1}).encode(), "bytes: "),
    ],
)
def test_malformed_manifests_are_named(tmp_path: Path, text: bytes, message: str) -> None:
    artifact = tmp_path / "a.tok"
    manifest_path(artifact).write_bytes(text)
    with pytest.raises(InputError, match=message) as caught:
        load_manifest(artifact, "tokens")
    assert "a.tok.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_cache_dir_option_variable_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LADDER_CACHE_DIR", str(tmp_path / "variable"))
    assert cache_dir() == tmp_path / "variable"
    assert cache_dir(tmp_path / "option") == tmp_path / "option"
    monkeypatch.delenv("LADDER_CACHE_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "draft-ladder"
    assert cache_dir().is_dir()


def test_progress_tells_pace_and_time_left() -> None:
    progress = Progress("tokens", 25, 100, 2.0, 50)
    assert progress.tokens_per_s == 25
    assert progress.seconds_left == 6
    assert Progress("corpus", 0, None, 0.0).seconds_left is None
    assert Progress("corpus", 0, None, 0.0).tokens_per_s is None
