"""An experiment that replays requests: `[replay] kind = "requests"` in its TOML file."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from draft_ladder.base.errors import InputError
from draft_ladder.base.validation import first_problem
from draft_ladder.bench.config import MAX_DRAFTED, TEXT_VARIABLE, _put, parse_override

History = Literal["all", "session", "none"]
_VARIABLE = re.compile(r"\$\{(\w+)\}")


class RequestReplay(BaseModel):
    """Which requests are replayed. Files may name environment variables as `${NAME}`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["requests"]
    files: tuple[str, ...] = Field(min_length=1)
    # Whole sessions are taken from the front of each file until their responses come to this many tokens.
    max_response_tokens: int | None = Field(default=None, ge=1)


class Sweep(BaseModel):
    """A drafter's own knob: every value of one of its axes is measured besides its defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    variant: str
    axis: str
    values: tuple[str, ...] | None = None  # default: all that the variant has

    @field_validator("values", mode="before")
    @classmethod
    def _as_text(cls, values: Any) -> Any:
        return [str(value) for value in values] if isinstance(values, list) else values


class RequestExperiment(BaseModel):
    """What to measure: every drafter on every workload, at each draft length and history.

    Sweeps are made at `sweep_n_draft` and with the first of `history` alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    replay: RequestReplay
    tokenizer: str = "tekken"
    n_ctx: int | None = Field(default=None, ge=2)  # longer requests are replayed whole, and counted
    n_draft: tuple[Annotated[int, Field(ge=1, le=MAX_DRAFTED)], ...] = Field(default=(8,), min_length=1)
    history: tuple[History, ...] = Field(default=("all",), min_length=1)
    variants: tuple[str, ...] = Field(min_length=1)
    sweeps: tuple[Sweep, ...] = ()
    sweep_n_draft: int | None = Field(default=None, ge=1, le=MAX_DRAFTED)
    costs: tuple[str, ...] = ()  # cost curves of the goodput chart, files beside the config
    repeats: int = Field(default=1, ge=1)
    seed: int = 1
    timeout_s: float = Field(default=600, gt=0, le=1e7)
    memory_limit_mb: int | None = Field(default=None, gt=0, le=10**9)
    cpu: int | None = Field(default=None, ge=0)

    @field_validator("n_draft", "history", mode="before")
    @classmethod
    def _one_or_many(cls, values: Any) -> Any:
        return values if isinstance(values, list | tuple) else (values,)

    @field_validator("n_draft", "history", "variants")
    @classmethod
    def _once_each(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(values)) != len(values):
            raise ValueError("a value is named twice")
        return values

    def files(self, text_dir: Path | None, base: Path) -> list[Path]:
        """The request files, `${NAME}` filled in; relative ones lie beside the config."""
        return [
            base / Path(fill_in(file, "replay.files", text_dir)).expanduser() for file in self.replay.files
        ]


def load_request_experiment(
    path: Path, overrides: Sequence[str] = ()
) -> tuple[RequestExperiment, dict[str, Any]]:
    """The experiment of a TOML file with `key=value` overrides over it, and these for the record."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(path, "no such file", "name a config, such as configs/peers-smoke.toml") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(path, f"not readable as TOML ({error})", "correct it") from error
    applied: dict[str, Any] = {}
    for text in overrides:
        key, value = parse_override(text)
        _put(content, key, value)
        applied[key] = value
    try:
        return RequestExperiment.model_validate(content), applied
    except ValidationError as error:
        found = first_problem(error, content, RequestExperiment.model_fields)
        where = f"--set {found.key}" if found.key in applied else found.at(path)
        raise InputError(where, found.problem, found.remedy) from error


def fill_in(text: str, key: str, text_dir: Path | None) -> str:
    """`text` with its variables filled in: LADDER_TEXT by `text_dir` where that is given."""

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == TEXT_VARIABLE and text_dir is not None:
            return str(text_dir.absolute())
        if name not in os.environ:
            remedy = "give --text DIR or set the variable" if name == TEXT_VARIABLE else "set the variable"
            raise InputError(key, f"${{{name}}} has no value", remedy)
        return os.environ[name]

    return _VARIABLE.sub(replace, text)
