"""Request files: what is read, and what is refused with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import zstandard
from draft_ladder.base.errors import InputError
from draft_ladder.peers.requests import RequestShape, read_requests, tokenize_requests


class Letters:
    """A token a letter."""

    name = "letters"
    sha256 = "0" * 64
    vocab_size = 0x110000

    def encode(self, text: str) -> npt.NDArray[np.int32]:
        return np.array([ord(letter) for letter in text], dtype=np.int32)


def line(session: str, prompt: str, response: str, **more: Any) -> dict[str, Any]:
    return {"workload": "w", "session": session, "prompt": prompt, "response": response, **more}


GOOD = [line("a", "ab", "cd"), line("a", "e", "fgh", prompt_is_delta=True), line("b", "i", "j")]


def write(path: Path, lines: list[Any]) -> Path:
    text = "".join((entry if isinstance(entry, str) else json.dumps(entry)) + "\n" for entry in lines)
    data = text.encode()
    path.write_bytes(zstandard.ZstdCompressor().compress(data) if path.suffix == ".zst" else data)
    return path


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.zst"])
def test_requests_become_tokens(tmp_path: Path, name: str) -> None:
    found = tokenize_requests(write(tmp_path / name, GOOD), Letters(), tmp_path / "cache")  # type: ignore[arg-type]
    assert found.workload == "w"
    assert found.requests == (
        RequestShape(0, False, 2, 2),
        RequestShape(0, True, 1, 3),
        RequestShape(1, False, 1, 1),
    )
    assert np.fromfile(found.tokens, dtype="<i4").tolist() == [ord(letter) for letter in "abcdefghij"]
    assert found.n_response == 6


def test_they_are_made_once_and_made_again_when_damaged(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", GOOD)
    first = tokenize_requests(path, Letters(), tmp_path)  # type: ignore[arg-type]
    before = first.tokens.stat().st_mtime_ns
    assert tokenize_requests(path, Letters(), tmp_path) == first  # type: ignore[arg-type]
    assert first.tokens.stat().st_mtime_ns == before
    first.tokens.write_bytes(b"")
    assert tokenize_requests(path, Letters(), tmp_path) == first  # type: ignore[arg-type]


def test_whole_sessions_are_taken_up_to_a_number_of_response_tokens(tmp_path: Path) -> None:
    path = write(tmp_path / "r.jsonl", GOOD)
    found = tokenize_requests(path, Letters(), tmp_path, max_response_tokens=2)  # type: ignore[arg-type]
    assert [shape.session for shape in found.requests] == [0, 0]


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ([GOOD[0], "{"], 2),
        ([GOOD[0], "[]"], 2),
        ([GOOD[0], {"workload": "w", "session": "a", "prompt": "p"}], 2),
        ([line("a", "p", "")], 1),
        ([line("a", "p", "r", prompt_is_delta="yes")], 1),
        ([line("a", "p", "r", prompt_is_delta=True)], 1),
        ([line("a", "p", "r"), line("b", "p", "r"), line("a", "p", "r")], 3),
        ([line("a", "p", "r"), {**line("a", "p", "r"), "workload": "v"}], 2),
        ([{**line("a", "p", "r"), "session": 7}], 1),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, lines: list[Any], number: int) -> None:
    path = write(tmp_path / "r.jsonl", lines)
    with pytest.raises(InputError) as caught:
        read_requests(path)
    assert str(caught.value).startswith(f"{path}: line {number}: ")


def test_no_request_and_no_sound_compression_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_requests(write(tmp_path / "r.jsonl", []))
    broken = tmp_path / "r.jsonl.zst"
    broken.write_bytes(b"no zstandard at all")
    with pytest.raises(InputError):
        read_requests(broken)
