"""Run records: whole, strict, versioned, and their drafts compared inside each group."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.bench.records import (
    Failure,
    check_drafts,
    load_record,
    load_records,
    redact_paths,
    write_record,
)
from pydantic import ValidationError
from sample_records import STYLE, make_measured, make_record, make_spec

RUNGS = {name: style[1] for name, style in STYLE.items()}


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    record = make_record(make_spec(), make_measured())
    path = write_record(tmp_path, record)
    assert path.name == f"{record.key}.json"
    assert load_record(path) == record
    assert json.loads(path.read_text())["schema"] == 2
    assert load_records(tmp_path) == [record]


def test_no_nan_reaches_a_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_record(tmp_path, make_record(make_spec(), make_measured(load_ns=float("nan"))))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 3}, "schema: schema 3 is newer .*; update Draft Ladder"),
        ({"schema": 0}, "schema: schema 0 is not .*; remove it and run again"),
        ({"extra": 1}, "extra: "),
        ({"status": "fine"}, "status: "),
        ({"key": "0" * 24}, "key does not belong to the spec"),
        ({"measured": None}, "an ok run without a measured part"),
        ({"failure": {"reason": "x", "detail": "y"}}, "contradict"),
    ],
)
def test_a_doctored_record_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write_record(tmp_path, make_record(make_spec(), make_measured()))
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(InputError, match=message):
        load_record(path)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": NaN}', "\x00\x01"])
def test_what_is_no_record_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"x\.json: not"):
        load_record(path)


def test_every_cut_of_a_record_is_refused(tmp_path: Path) -> None:
    path = write_record(tmp_path, make_record(make_spec(), make_measured()))
    whole = path.read_bytes()
    for length in range(0, len(whole.rstrip()), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            load_record(path)


def test_a_renamed_record_is_noticed(tmp_path: Path) -> None:
    path = write_record(tmp_path, make_record(make_spec(), make_measured()))
    with pytest.raises(InputError, match="holds the record of key"):
        load_record(path.rename(tmp_path / "other.json"))


def test_a_status_needs_its_part() -> None:
    with pytest.raises(ValidationError):
        make_record(make_spec(), None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/me/data/x.bin: byte 3: bad; fix", "x.bin: byte 3: bad; fix"),
        ("cannot open '/a/b/c d.txt'", "cannot open 'c d.txt'"),
        ("/home/me/My secret plan/x.bin: bad", "x.bin: bad"),
        ("'/a b/c d/e f.txt' is '/c/d'", "'e f.txt' is 'd'"),
        ("neither /a/b or /c/d e/f", "neither b or f"),
        ("3/4 of results/x/y.json", "3/4 of results/x/y.json"),
        ("${LADDER_TEXT}/train-*.zst", "${LADDER_TEXT}/train-*.zst"),
        ("no path", "no path"),
    ],
)
def test_folders_are_cut_off(text: str, expected: str) -> None:
    assert redact_paths(text) == expected


def test_the_lowest_rung_is_the_reference() -> None:
    digests = {"segmented_map": "a", "copying_map": "a", "reference_access": "b", "frozen": "c"}
    records = {
        name: make_record(make_spec(name), make_measured(digest=d * 64)) for name, d in digests.items()
    }
    verdicts = check_drafts(records.values(), RUNGS)
    assert {name: verdicts[record.key] for name, record in records.items()} == {
        "copying_map": "reference",
        "segmented_map": "equal",
        "reference_access": "differ",
        "frozen": "unchecked",
    }


def test_sizes_and_draft_lengths_are_compared_apart() -> None:
    records = [
        make_record(make_spec("copying_map", 25), make_measured(digest="a" * 64)),
        make_record(make_spec("reference_access", 50), make_measured(digest="b" * 64)),
        make_record(make_spec("reference_access", 25, n_draft=8), make_measured(digest="c" * 64)),
    ]
    assert set(check_drafts(records, RUNGS).values()) == {"unchecked"}


def test_a_repeat_that_drafts_otherwise_differs_even_alone() -> None:
    first = make_record(make_spec("frozen", repeat=0), make_measured(digest="a" * 64))
    second = make_record(make_spec("frozen", repeat=1), make_measured(digest="b" * 64))
    assert check_drafts([first, second], RUNGS) == {first.key: "unchecked", second.key: "differ"}


def test_a_failed_reference_leaves_the_next_rung() -> None:
    failed = make_record(make_spec("copying_map"), None, Failure(reason="time-out", detail="x"))
    second = make_record(make_spec("reference_access"), make_measured(digest="a" * 64))
    third = make_record(make_spec("segmented_map"), make_measured(digest="b" * 64))
    assert check_drafts([failed, second, third], RUNGS) == {second.key: "reference", third.key: "differ"}
