"""Prompts for end-to-end runs: records of a JSONL file, or pieces of a text file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import at_home, open_regular
from draft_ladder.bench.config import fill_in_text

_PLACE = "{text}"


class Workload(BaseModel):
    """One kind of work. A `.jsonl` file gives a prompt a line, from `field` ("turns.0" reaches into a list);
    any other file is cut at line ends into pieces of about `piece_bytes`.

    `where` keeps only records with these values. `template` wraps the text, which stands for {text}. `chat`
    puts it into the model's own chat template. `reference` names the fields whose text follows the prompt in
    the replayed text (what a person wrote as the answer).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    file: str
    field: str | None = None
    where: dict[str, str] = {}
    reference: tuple[str, ...] = ()
    template: str = Field(default=_PLACE, pattern=r"\{text\}")
    chat: bool = False
    skip: int = Field(default=0, ge=0)
    n_prompts: int = Field(default=3, ge=1)
    n_new: int = Field(default=64, ge=1)
    piece_bytes: int = Field(default=800, ge=1)

    def path(self, text_dir: Path | None) -> Path:
        """The file, with ${NAME} filled in."""
        return at_home(Path(fill_in_text(self.file, f"workload {self.name}: file", text_dir)))


def read_prompts(workload: Workload, text_dir: Path | None = None) -> list[str]:
    """The workload's prompts, not yet in a chat template. InputError if the file has fewer than asked for."""
    path = workload.path(text_dir)
    prompts: list[str] = []
    for i, (text, _) in enumerate(_texts(workload, path)):
        if not text:
            raise InputError(path, f"workload {workload.name}: record {i + 1} has an empty prompt", "skip it")
        if i >= workload.skip:
            prompts.append(workload.template.replace(_PLACE, text))
        if len(prompts) == workload.n_prompts:
            return prompts
    raise InputError(
        path,
        f"workload {workload.name}: has {len(prompts)} prompts after the first {workload.skip}, "
        f"{workload.n_prompts} are asked for",
        "lower n_prompts or skip",
    )


def reference_text(workload: Workload, text_dir: Path | None = None, limit_bytes: int = 1 << 18) -> str:
    """About `limit_bytes` of the workload's prompts and the answers people gave them: what is replayed."""
    parts: list[str] = []
    size = 0
    for text, reference in _texts(workload, workload.path(text_dir)):
        part = text + ("\n" + reference if reference else "")
        parts.append(part)
        size += len(part.encode())
        if size >= limit_bytes:
            break
    joint = "" if workload.field is None else "\n\n"
    return joint.join(parts)


def _texts(workload: Workload, path: Path) -> Iterator[tuple[str, str]]:
    """(prompt text, reference answer) one after the other."""
    if path.suffix != ".jsonl":
        if workload.field is not None:
            raise InputError(path, "field: only a .jsonl file has fields", "leave out `field`")
        for piece in _pieces(path, workload.piece_bytes):
            yield piece, ""
        return
    if workload.field is None:
        raise InputError(
            f"workload {workload.name}", "field: is missing", "name the field that holds the prompt"
        )
    with open_regular(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            record = _record(line, f"{path}: line {number}")
            if all(str(record.get(key)) == value for key, value in workload.where.items()):
                where = f"{path}: line {number}"
                references = [_reach(record, name, where) for name in workload.reference]
                yield _reach(record, workload.field, where), "\n".join(references)


def _record(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(where, f"is not JSON ({error})", "correct the line") from error
    if not isinstance(record, dict):
        raise InputError(where, "is not a JSON object", "correct the line")
    return record


def _reach(record: dict[str, Any], field: str, where: str) -> str:
    value: Any = record
    for part in field.split("."):
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise InputError(where, f"has no field {field!r}", "correct `field`") from error
    if not isinstance(value, str):
        raise InputError(where, f"field {field!r} is no text", "name a field that holds text")
    return value


def _pieces(path: Path, piece_bytes: int) -> Iterator[str]:
    piece = b""
    with open_regular(path) as file:
        for line in file:
            piece += line
            if len(piece) >= piece_bytes:
                yield piece.decode(errors="replace")
                piece = b""
    if piece:
        yield piece.decode(errors="replace")
