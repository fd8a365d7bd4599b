"""Results folders stay of one place: records of another machine or setting are never mixed into one.

A folder's machine.json says where its figures come from. What is measured elsewhere goes into another folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from draft_ladder.base import host
from draft_ladder.base.errors import InputError
from draft_ladder.base.likeness import Conditions, conditions, differing
from draft_ladder.base.manifests import write_atomic
from draft_ladder.bench import environment

NAME = "machine.json"


OWN_FOLDER = "give --machine NAME for a folder of its own, or measure under those"


def refuse_elsewhere(
    folder: Path, cpu: int | None = None, kept: Iterable[Conditions] = (), remedy: str = OWN_FOLDER
) -> None:
    """InputError where a results folder, or a run that is `kept` in it, is of another place than this one.

    `cpu`: the core that workers are pinned to. Builds decide about no folder: a module's digest is part of
    every run's key.
    """
    here = conditions(host.likeness(), cpu=cpu)
    before = _machine(folder)
    for known in ([] if before is None else [conditions(before, cpu=cpu)]) + list(kept):
        if unlike := differing(known, here):
            raise InputError(
                folder,
                f"was measured under other conditions: {'; '.join(unlike)}",
                remedy,
            )


def write_machine(folder: Path, cpu: int | None = None) -> None:
    """machine.json: written anew only when something besides its date changed, never over another place's."""
    refuse_elsewhere(folder, cpu)
    path, content = folder / NAME, environment.machine()
    before = _machine(folder)
    if before is None or {**before, "recorded_utc": None} != {**content, "recorded_utc": None}:
        write_json(path, content)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Strict JSON, whole or not at all; left alone when nothing changed."""
    data = (json.dumps(content, allow_nan=False, indent=1) + "\n").encode()
    if not path.is_file() or path.read_bytes() != data:
        write_atomic(path, data)


def _machine(folder: Path) -> dict[str, Any] | None:
    try:
        content = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
