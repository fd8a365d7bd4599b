"""Records of request replays: what one drafter drafted along one workload, one JSON file each."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import canonical_json, write_atomic
from draft_ladder.base.validation import first_problem, load_json
from draft_ladder.bench.records import Failure, TokenizerLabel

SCHEMA = 1


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")


class PackageLabel(_Frozen):
    """Where a peer comes from."""

    name: str
    version: str
    licence: str


class RequestSpec(_Frozen):
    """One cell: everything that decides what a run measures. Every setting is a column."""

    experiment: str
    workload: str
    variant: str
    rule: str
    ties: str
    engine: Literal["native", "python"]
    shape: Literal["chain", "tree"]
    axes: dict[str, str]
    swept: str | None  # the axis that is not at its default
    n_draft: int = Field(ge=1)
    history: Literal["all", "session", "none"]
    n_ctx: int | None
    repeat: int = Field(ge=0)
    n_requests: int
    n_response_tokens: int
    tokens_sha256: str
    tokenizer: TokenizerLabel
    module_sha256: str
    package: PackageLabel | None
    cpu: int | None
    memory_limit_mb: int | None
    seed: int
    order: int = Field(ge=0)

    @property
    def key(self) -> str:
        """24 hex digits over everything that can change the measurement: not the place in the order."""
        content = self.model_dump(mode="json", exclude={"order", "swept"})
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:24]

    def label(self) -> str:
        """The variant with its axis values, for display only."""
        axes = ",".join(f"{axis}={value}" for axis, value in sorted(self.axes.items()))
        return f"{self.variant}[{axes}]" if axes else self.variant

    def describe(self) -> str:
        """One line for people."""
        return (
            f"{self.label()} on {self.workload}, n_draft {self.n_draft}, history {self.history}, "
            f"repeat {self.repeat + 1}"
        )


class RequestRecord(_Frozen):
    """What one process measured. `measured` is the worker's own report, kept as it came."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["requests"] = "requests"
    key: str
    spec: RequestSpec
    status: Literal["ok", "failed", "skipped"]
    failure: Failure | None
    draft_check: Literal["reference", "equal", "unchecked", "differ"] | None = None
    measured: dict[str, Any] | None
    environment: dict[str, Any]
    started_utc: str
    wall_s: float

    @model_validator(mode="after")
    def _consistent(self) -> RequestRecord:
        if (self.status == "ok") != (self.failure is None):
            raise ValueError("status and failure contradict each other")
        if self.status == "ok" and self.measured is None:
            raise ValueError("an ok run without a measured part")
        if self.key != self.spec.key:
            raise ValueError(f"key does not belong to the spec (expected {self.spec.key})")
        return self


def write_request_record(folder: Path, record: RequestRecord) -> Path:
    """Write a record whole or not at all; its file name is its key."""
    path = folder / f"{record.key}.json"
    content = record.model_dump(mode="json", by_alias=True)
    write_atomic(path, (json.dumps(content, allow_nan=False, sort_keys=True) + "\n").encode())
    return path


def load_request_record(path: Path) -> RequestRecord:
    """Read one record; InputError names the file, the key and a remedy."""
    content = load_json(path)
    schema = content.get("schema")
    if schema != SCHEMA:
        newer = isinstance(schema, int) and schema > SCHEMA
        problem = f"schema {schema!r} is {'newer than' if newer else 'not'} what is read here ({SCHEMA})"
        raise InputError(path, problem, "update Draft Ladder" if newer else "remove it and run again")
    try:
        return RequestRecord.model_validate(content)
    except ValidationError as error:
        found = first_problem(error, content, RequestRecord.model_fields)
        raise InputError(found.at(path), found.problem, "remove it and run again") from error


def load_request_records(folder: Path) -> list[RequestRecord]:
    """All records that experiment.json names, in its order."""
    keys = load_json(folder / "experiment.json").get("keys", [])
    paths = [folder / "runs" / f"{key}.json" for key in keys]
    return [load_request_record(path) for path in paths if path.exists()]
