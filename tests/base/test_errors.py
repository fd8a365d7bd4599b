"""What a native module's or a file's trouble becomes: one line with place, problem and remedy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from draft_ladder.base.native import input_error
from draft_ladder.base.validation import MEASURE_AGAIN, load_json, load_versioned
from refusals import refused


def test_a_native_line_becomes_its_parts() -> None:
    error = input_error(ValueError("/a b/x.bin: byte 8: token -5 is negative; give token ids of 0 and more"))
    assert error.where == "/a b/x.bin"
    assert error.problem == "byte 8: token -5 is negative"
    assert error.remedy == "give token ids of 0 and more"


@pytest.mark.parametrize("text", ["abc", "", "a: b", "a; b", ": ; abc", "two\nlines", "; ", ": "])
def test_any_other_text_becomes_a_sane_line(text: str) -> None:
    with refused("native module", " ".join(text.split())):
        raise input_error(ValueError(text))


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ('{"schema": 3}', "update Draft Ladder"),
        ('{"schema": 1}', "again"),
        ('{"schema": "3"}', "again"),
        ("{}", "again"),
    ],
)
def test_a_newer_file_asks_for_an_update_and_any_other_to_be_made_again(
    tmp_path: Path, text: str, remedy: str
) -> None:
    path = tmp_path / "record.json"
    path.write_text(text)
    with refused(f"{path}: schema", json.loads(text).get("schema")) as caught:
        load_versioned(path, 2, "again")
    assert caught.value.remedy == remedy
    assert load_versioned(_written(path, '{"schema": 2, "x": 1}'), 2) == {"schema": 2, "x": 1}
    assert load_versioned(_written(path, '{"schema": 1}'), 2, oldest=1) == {"schema": 1}


@pytest.mark.parametrize("text", ["{", "[]", '{"x": NaN}', '{"x": Infinity}', "[" * 100_000, "\udcff"])
def test_what_is_no_strict_json_object_is_refused(tmp_path: Path, text: str) -> None:
    path = _written(tmp_path / "record.json", text)
    with refused(path) as caught:
        load_json(path)
    assert caught.value.remedy == MEASURE_AGAIN
    with refused(tmp_path / "none.json"):
        load_json(tmp_path / "none.json")


def _written(path: Path, text: str) -> Path:
    path.write_bytes(text.encode(errors="surrogateescape"))
    return path
