"""The store: an artifact is made once, whole or not at all, and found by what it is made from."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from draft_ladder.base.artifacts import Artifact, Made, Store, find, make
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import load_manifest, manifest_path, sha256_file


def artifact(make: Callable[[Path], Made], **identity: object) -> Artifact:
    return Artifact("tokens", "tokens", ".tok", identity, make, {"text": "0" * 64}, {"rule": 1})


def writer(content: bytes, calls: list[Path] | None = None) -> Callable[[Path], Made]:
    def write(target: Path) -> Made:
        target.write_bytes(content)
        if calls is not None:
            calls.append(target)
        return Made({"n": len(content)}, parameters={"found": True}, beside={".aid": b"aid"})

    return write


def test_an_artifact_is_made_once_and_recorded(tmp_path: Path) -> None:
    calls: list[Path] = []
    store = Store(tmp_path)
    first = store.get(artifact(writer(b"abc", calls), a=1))
    assert first.path.parent == tmp_path / "tokens"
    assert calls[0].parent == first.path.parent  # so that it can be renamed
    assert calls[0] != first.path
    assert first.sha256 == sha256_file(first.path)
    assert load_manifest(first.path, "tokens") == first.manifest
    assert first.manifest.parameters == {"rule": 1, "found": True}
    assert (first.manifest.bytes, first.manifest.facts) == (3, {"n": 3})
    assert first.path.with_name(first.path.name + ".aid").read_bytes() == b"aid"
    assert store.get(artifact(writer(b"never", calls), a=1)) == first
    assert len(calls) == 1
    assert store.get(artifact(writer(b"abcd"), a=2)).path != first.path


def test_inputs_and_parameters_describe_but_do_not_name(tmp_path: Path) -> None:
    one = artifact(writer(b""), a=1)
    assert replace(one, inputs={}, parameters={"rule": 2}, make=writer(b"x")).name == one.name
    assert replace(one, kind="static").name != one.name


@pytest.mark.parametrize("damage", ["cut", "no manifest", "no file", "another kind"])
def test_what_is_not_whole_is_made_again(tmp_path: Path, damage: str) -> None:
    wanted = artifact(writer(b"abc"), a=1)
    path = Store(tmp_path).get(wanted).path
    if damage == "cut":
        path.write_bytes(b"ab")
    elif damage == "no manifest":
        manifest_path(path).unlink()
    elif damage == "no file":
        path.unlink()
    else:
        make(replace(wanted, kind="static"), path)
    assert find(path, "tokens") is None
    assert Store(tmp_path).get(wanted).path.read_bytes() == b"abc"


def test_a_changed_byte_is_seen_where_the_digest_is_asked_for(tmp_path: Path) -> None:
    path = Store(tmp_path).get(artifact(writer(b"abc"), a=1)).path
    path.write_bytes(b"abd")
    assert find(path, "tokens") is not None
    assert find(path, "tokens", digest=True) is None


def test_a_failing_maker_leaves_nothing(tmp_path: Path) -> None:
    def fail(target: Path) -> Made:
        target.write_bytes(b"part")
        raise InputError("text", "changed", "run again")

    with pytest.raises(InputError):
        Store(tmp_path).get(artifact(fail, a=1))
    assert list((tmp_path / "tokens").iterdir()) == []
    Store(tmp_path).get(artifact(writer(b"abc"), a=1))  # nobody holds the lock


def test_others_wait_for_the_maker_and_find_what_it_made(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls: list[Path] = []

    def slow(target: Path) -> Made:
        begun.set()
        assert go_on.wait(30)
        return writer(b"abc", calls)(target)

    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.append(Store(tmp_path).get(artifact(slow, a=1))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    assert not found
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert len(calls) == 1
    assert len(found) == 3
    assert found[0] == found[1] == found[2]


HOLD = """
import sys, time
from pathlib import Path
from draft_ladder.base.artifacts import Artifact, Made, Store

def make(target):
    print("begun", flush=True)
    time.sleep(600)

Store(Path(sys.argv[1])).get(Artifact("tokens", "tokens", ".tok", {"a": 1}, make))
"""


def test_a_killed_maker_is_succeeded_at_once(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
    assert Store(tmp_path).get(artifact(writer(b"abc"), a=1)).path.read_bytes() == b"abc"


def test_a_place_that_cannot_be_made_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError):
        Store(tmp_path / "file").get(artifact(writer(b""), a=1))
