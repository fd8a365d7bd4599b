"""Run records: what one worker process measured, under which specification. One JSON file each."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from draft_ladder.base.errors import DraftsDifferError, InputError
from draft_ladder.base.likeness import Conditions, conditions, digest
from draft_ladder.base.manifests import canonical_json, write_atomic
from draft_ladder.base.validation import first_problem, load_versioned
from draft_ladder.bench.schema_1 import spec_of_schema_1, upgraded_plan, upgraded_record

SCHEMA = 2  # of a record, and of experiment.json; schema 1 is read as 2
# Settings whose values are series of their own, besides the variants' own axes.
SETTINGS = ("engine", "n_ctx", "n_draft", "page_cache")
# An absolute path's folders: a slash that no word, dot or slash precedes, and all up to the last slash. A
# folder's name may hold spaces; a space before a slash ends the path, as another one begins there.
_FOLDERS = re.compile(r"(?<![\w./])/(?:(?:[^\s/:;,'\"]|[ ](?!/))+/)+")
# Settings that a line about a run names only where they are others.
USUAL: dict[str, Any] = {"engine": "native", "n_ctx": 4096, "n_draft": 3, "page_cache": "warm"}


# What is timed: each draft call and update apart; whole chunks; as `call`, with a histogram of draft calls.
Timing = Literal["call", "chunk", "histogram"]


class _Frozen(BaseModel):
    # "constants": NaN must reach the strict writer and fail there, not turn into null without a reason.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, ser_json_inf_nan="constants")


class CorpusLabel(_Frozen):
    """The text the static cache was counted from; `kind` is "none" where there is no static cache."""

    label: str
    kind: Literal["real", "synthetic", "none"]
    source: str
    sha256: str | None


class TextLabel(_Frozen):
    """The replayed text."""

    label: str
    sha256: str


class TokenizerLabel(_Frozen):
    """The tokenizer both texts went through."""

    name: str
    sha256: str | None


class RunSpec(_Frozen):
    """One cell of an experiment: everything that decides what a run measures, as names and digests only.

    `size_mb` is in units of 10^6 bytes (0: no static cache); `order` is the place in the shuffled order.
    """

    experiment: str
    variant: str
    rule: str
    ties: Literal["iteration", "token"]
    engine: Literal["native", "python"]
    size_mb: float = Field(ge=0)
    repeat: int = Field(ge=0)
    warmup: bool = False
    timing: Timing
    n_ctx: int = Field(ge=2)
    n_draft: int = Field(ge=0)
    axes: dict[str, str]
    corpus: CorpusLabel
    replay_text: TextLabel
    tokenizer: TokenizerLabel
    tokens_sha256: str
    static_sha256: str | None
    static_format: str
    module_sha256: str
    page_cache: Literal["warm", "cold"]
    cpu: int | None
    memory_limit_mb: int | None
    seed: int
    order: int = Field(ge=0)

    @property
    def key(self) -> str:
        """24 hex digits over everything that can change the measurement: no labels, no place in the order."""
        return _digest(self._content())

    @property
    def key_of_schema_1(self) -> str | None:
        """The key this run had, if schema 1 could ask for it: what names such a record's file."""
        content = spec_of_schema_1(self._content())
        return None if content is None else _digest(content)

    def _content(self) -> dict[str, Any]:
        content = self.model_dump(mode="json", exclude={"order"})
        for labelled in ("corpus", "replay_text"):
            content[labelled].pop("label")
        return content

    @property
    def variant_label(self) -> str:
        """The variant's name, with its axis values where it has any: `frozen[hash=murmur]`."""
        axes = ",".join(f"{axis}={value}" for axis, value in sorted(self.axes.items()))
        return f"{self.variant}[{axes}]" if axes else self.variant

    def describe(self) -> str:
        """One line for people."""
        text = f"{self.variant_label} at {self.size_mb:g} MB, {self.timing} timing, repeat {self.repeat + 1}"
        unusual = [f"{name} {getattr(self, name)}" for name in USUAL if getattr(self, name) != USUAL[name]]
        return ", ".join([text, *unusual]) + (" (warm-up)" if self.warmup else "")


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()[:24]


class Failure(_Frozen):
    """Why a run has no figures to chart."""

    reason: str
    detail: str


class RunRecord(_Frozen):
    """What one process measured. `measured` is the worker's own report, kept as it came."""

    # Its name in the file is "schema", which pydantic keeps for itself.
    schema_version: Literal[2] = Field(default=2, alias="schema")
    key: str
    spec: RunSpec
    status: Literal["ok", "failed"]
    failure: Failure | None
    draft_check: Literal["reference", "equal", "unchecked", "differ"] | None = None
    measured: dict[str, Any] | None
    environment: dict[str, Any]
    started_utc: str
    wall_s: float

    @model_validator(mode="after")
    def _consistent(self) -> RunRecord:
        if (self.status == "failed") != (self.failure is not None):
            raise ValueError("status and failure contradict each other")
        if self.status == "ok" and self.measured is None:
            raise ValueError("an ok run without a measured part")
        if self.key not in (self.spec.key, self.spec.key_of_schema_1):
            raise ValueError(f"key does not belong to the spec (expected {self.spec.key})")
        return self

    @property
    def draft_digest(self) -> str | None:
        """SHA-256 of the text of every draft, null if the run did not get that far."""
        found = (self.measured or {}).get("draft_digest")
        return found if isinstance(found, str) else None

    @property
    def conditions(self) -> Conditions:
        """What must be the same for its figures to stand beside another run's, as far as it is recorded."""
        return conditions(self.environment, (self.measured or {}).get("build"), self.spec.cpu)

    @property
    def likeness(self) -> str | None:
        """The digest of its conditions: the recorded one, else of those it has, null where it has none."""
        recorded = self.environment.get("likeness")
        return recorded if isinstance(recorded, str) else digest(self.conditions)


def redact_paths(text: str) -> str:
    """`text` with every absolute path cut to its base name: records are published, folders are private."""
    return _FOLDERS.sub("", text)


def write_record(folder: Path, record: RunRecord) -> Path:
    """Write a record whole or not at all; its file name is its key."""
    path = folder / f"{record.key}.json"
    text = json.dumps(
        record.model_dump(mode="json", by_alias=True), allow_nan=False, indent=1, sort_keys=True
    )
    write_atomic(path, (text + "\n").encode())
    return path


def load_record(path: Path) -> RunRecord:
    """Read one record; InputError names the file, the key and a remedy."""
    content = load_versioned(path, SCHEMA, oldest=1)
    if content["schema"] == 1:
        content = upgraded_record(content)
    try:
        record = RunRecord.model_validate(content)
    except ValidationError as error:
        found = first_problem(error, content)
        raise InputError(found.at(path), found.problem, "remove it and run again") from error
    if path.stem != record.key:
        raise InputError(path, f"holds the record of key {record.key}", "give it back its name")
    return record


def load_plan(path: Path) -> dict[str, Any]:
    """The content of an experiment.json; InputError names the file, the key and a remedy."""
    content = load_versioned(path, SCHEMA, "run the experiment again", oldest=1)
    if content["schema"] == 1:
        content = upgraded_plan(content)
    for name in ("keys", "experiment", "variants"):
        if name not in content:
            raise InputError(f"{path}: {name}", "is missing", "run the experiment again")
    return content


def load_records(folder: Path, keys: Iterable[str] | None = None) -> list[RunRecord]:
    """All records of a folder (or those of `keys` that exist), sorted by their place in the experiment."""
    if keys is None:
        paths = sorted(folder.glob("*.json"))
    else:
        paths = [path for key in keys if (path := folder / f"{key}.json").exists()]
    records = [load_record(path) for path in paths]
    return sorted(records, key=lambda record: (record.spec.order, record.key))


def draft_group(spec: RunSpec) -> tuple[object, ...]:
    """The equivalence group: its runs must draft identically, whoever runs the loop."""
    return (
        spec.rule,
        spec.ties,
        spec.size_mb,
        spec.n_ctx,
        spec.n_draft,
        spec.tokens_sha256,
        spec.corpus.sha256,
    )


def check_drafts(records: Iterable[RunRecord], rungs: dict[str, int | None]) -> dict[str, str]:
    """Compare draft digests in each equivalence group; key -> reference | equal | unchecked | differ.

    The reference is the group's lowest rung among the runs that finished; a group of one is unchecked.
    `rungs` maps variant name -> rung (None: an ablation, never preferred as the reference).
    """
    groups: dict[tuple[object, ...], list[RunRecord]] = {}
    for record in records:
        if record.draft_digest is not None:
            groups.setdefault(draft_group(record.spec), []).append(record)
    verdicts: dict[str, str] = {}
    for group_records in groups.values():
        verdicts.update(_check_group(group_records, rungs))
    return verdicts


def differing_drafts(records: Iterable[RunRecord]) -> tuple[RunRecord, RunRecord] | None:
    """Two finished runs that should have drafted alike and did not, None where there are none."""
    first: dict[tuple[object, ...], RunRecord] = {}
    for record in records:
        if record.status == "ok" and record.draft_digest is not None:
            other = first.setdefault(draft_group(record.spec), record)
            if other.draft_digest != record.draft_digest:
                return other, record
    return None


def refuse_differing_drafts(records: Iterable[RunRecord], where: object) -> None:
    """DraftsDifferError names two of the records, read from `where`, whose drafts differ."""
    pair = differing_drafts(records)
    if pair is not None:
        names = " and ".join(f"{record.key}.json ({record.spec.describe()})" for record in pair)
        raise DraftsDifferError(
            f"{where}: the drafts of {names} differ, their figures say nothing; "
            "find out which is wrong (`ladder audit`), remove its record and run again"
        )


def _check_group(records: list[RunRecord], rungs: dict[str, int | None]) -> dict[str, str]:
    def rank(record: RunRecord) -> tuple[float, str, bool, int, int]:
        rung = rungs.get(record.spec.variant)
        spec = record.spec
        return (
            float("inf") if rung is None else rung,
            spec.variant_label,
            spec.warmup,
            spec.repeat,
            spec.order,
        )

    reference = min(records, key=rank)
    alone = {record.spec.variant_label for record in records} == {reference.spec.variant_label}
    verdicts = {}
    for record in records:
        if record.draft_digest != reference.draft_digest:
            verdicts[record.key] = "differ"
        elif alone:
            verdicts[record.key] = "unchecked"
        else:
            same = record.spec.variant_label == reference.spec.variant_label
            verdicts[record.key] = "reference" if same else "equal"
    return verdicts
