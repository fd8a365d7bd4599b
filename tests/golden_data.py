"""Golden data as test parameters: real llama.cpp's drafts on real text (see the README in that folder)."""

from __future__ import annotations

import array
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


def shared_folder() -> Path:
    """Where `golden/` lies: LADDER_SHARED, else `shared` beside the checkout."""
    return Path(os.environ.get("LADDER_SHARED", ROOT.parent / "shared"))


def golden_folder() -> Path:
    return shared_folder() / "golden"


def golden_cases(slow: tuple[str, ...] = ("m",)) -> list[Any]:
    """One parameter a case of cases.json; those of the larger texts named in `slow` run with --slow only."""
    path = golden_folder() / "cases.json"
    reason = f"no golden data at {golden_folder()}: set LADDER_SHARED to the folder that holds golden/"
    if not path.is_file():
        return [pytest.param(None, marks=pytest.mark.skip(reason=reason), id="absent")]
    return [
        pytest.param(
            case,
            id=f"{case['case']}-{'static' if case['static'] else 'bare'}-{case['n_ctx']}-{case['n_draft']}",
            marks=[pytest.mark.slow] if case["case"] in slow else [],
        )
        for case in json.loads(path.read_text())
    ]


def read_tokens(path: Path) -> list[int]:
    tokens = array.array("i")
    tokens.frombytes(path.read_bytes())
    if sys.byteorder == "big":
        tokens.byteswap()
    return tokens.tolist()
