"""An experiment: a TOML file, checked key by key, and what the command line changes in it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from draft_ladder.base.errors import InputError
from draft_ladder.base.validation import first_problem, read_toml
from draft_ladder.data.resolve import CorpusSource, put_named_corpus

TEXT_VARIABLE = "LADDER_TEXT"
_VARIABLE = re.compile(r"\$\{(\w+)\}")


MAX_DRAFTED = 65_536  # what the drafters' own check allows


class Experiment(BaseModel):
    """What to measure. Sizes are in MB (10^6 bytes) of corpus text; 0 is a run without a static cache.

    Strings of the corpus table may name environment variables as `${NAME}`: they are filled in when the
    files are opened, never recorded. `n_ctx`, `n_draft` and `page_cache` take one value or a list: every cell
    is then measured at each.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    corpus: CorpusSource
    clip: bool = False  # take what the source has where it has less than a size asks for
    replay_mb: float | None = Field(default=None, gt=0)  # replay only the text's first MB
    tokenizer: str = "tekken"
    sizes_mb: tuple[float, ...] = Field(min_length=1)
    n_ctx: tuple[Annotated[int, Field(ge=2, lt=2**31)], ...] = Field(default=(4096,), min_length=1)
    n_draft: tuple[Annotated[int, Field(ge=0, le=MAX_DRAFTED)], ...] = Field(default=(3,), min_length=1)
    repeats: int = Field(default=3, ge=1)
    chunk_repeats: int = Field(default=1, ge=0)  # further runs with one pair of clock readings per chunk
    histogram_repeats: int = Field(default=0, ge=0)  # further runs with a histogram of single draft calls
    warmup: int = Field(default=0, ge=0)  # rounds before the first repeat: recorded, left out of the summary
    variants: tuple[str, ...] = Field(min_length=1)
    seed: int = 1
    timeout_s: float = Field(default=3600, gt=0, le=1e7)
    memory_limit_mb: int | None = Field(default=None, gt=0, le=10**9)  # of a worker's address space
    cpu: int | None = Field(default=None, ge=0)  # core the workers are pinned to
    page_cache: tuple[Literal["warm", "cold"], ...] = Field(default=("warm",), min_length=1)
    axes: dict[str, list[str]] = {}

    @field_validator("sizes_mb")
    @classmethod
    def _sizes(cls, sizes: tuple[float, ...]) -> tuple[float, ...]:
        if any(size < 0 for size in sizes):
            raise ValueError("a size is 0 or more")
        if len(set(sizes)) != len(sizes):
            raise ValueError("a size is named twice")
        return tuple(sorted(sizes))

    @field_validator("n_ctx", "n_draft", "page_cache", mode="before")
    @classmethod
    def _one_or_many(cls, values: Any) -> Any:
        return values if isinstance(values, list | tuple) else (values,)

    @field_validator("n_ctx", "n_draft", "page_cache")
    @classmethod
    def _once_each(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(values)) != len(values):
            raise ValueError("a value is named twice")
        return values

    @field_validator("variants")
    @classmethod
    def _variants(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) != len(names):
            raise ValueError("a variant is named twice")
        return names

    @field_validator("axes", mode="before")
    @classmethod
    def _axes(cls, axes: Any) -> Any:
        """Axis values are strings to the variants, whatever TOML made of them."""
        if not isinstance(axes, dict):
            return axes
        return {
            axis: [plain(value) for value in (values if isinstance(values, list) else [values])]
            for axis, values in axes.items()
        }


def load_experiment(path: Path, overrides: Sequence[str] = ()) -> tuple[Experiment, dict[str, Any]]:
    """The experiment of a TOML file with `key=value` overrides put over it, and these for the record.

    Raises InputError that names the file (or the option), the key and a remedy.
    """
    try:
        content = read_toml(path)
    except FileNotFoundError as error:
        raise InputError(path, "no such file", "name a config, such as configs/smoke.toml") from error
    except (OSError, ValueError) as error:
        raise InputError(path, f"not readable as TOML ({error})", "correct it") from error
    put_named_corpus(content, path)
    applied: dict[str, Any] = {}
    for text in overrides:
        key, value = parse_override(text)
        _put(content, key, value)
        applied[key] = value
    put_named_corpus(content, path)  # one that an override names
    if "replay" in content:
        raise InputError(f"{path}: replay", "is of an experiment with requests", "use `ladder peers`")
    try:
        return Experiment.model_validate(content), applied
    except ValidationError as error:
        found = first_problem(error, content, Experiment.model_fields)
        where = f"--set {found.key}" if found.key in applied else found.at(path)
        raise InputError(where, found.problem, found.remedy) from error


def parse_override(text: str) -> tuple[str, Any]:
    """`key=value`, the value in TOML's spelling or a bare word; `axes.hash=murmur` reaches into a table."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise InputError(f"--set {text}", "not key=value", "write, for example, --set n_draft=16")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value.strip()


def corpus_source(table: dict[str, Any]) -> CorpusSource:
    """The source that a corpus table describes. InputError names the key."""
    try:
        return TypeAdapter[CorpusSource](CorpusSource).validate_python(table)
    except ValidationError as error:
        found = first_problem(error, table)
        raise InputError(f"corpus.{found.key}", found.problem, found.remedy) from error


def fill_in_text(text: str, where: str, text_dir: Path | None) -> str:
    """`text` with ${NAME} filled in: LADDER_TEXT by `text_dir` if given, else from the environment."""

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == TEXT_VARIABLE and text_dir is not None:
            return str(text_dir)
        if name not in os.environ:
            remedy = "give --text DIR or set the variable" if name == TEXT_VARIABLE else "set the variable"
            raise InputError(where, f"${{{name}}} has no value", remedy)
        return os.environ[name]

    return _VARIABLE.sub(replace, text)


def fill_in(source: CorpusSource, text_dir: Path | None = None) -> CorpusSource:
    """The corpus table with `${NAME}` filled in, LADDER_TEXT by `text_dir` if that is given."""

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return fill_in_text(value, "corpus", text_dir)
        return [walk(item) for item in value] if isinstance(value, list) else value

    return type(source).model_validate({key: walk(value) for key, value in source.model_dump().items()})


def plain(value: Any) -> str:
    """An axis value as variants take it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _put(content: dict[str, Any], key: str, value: Any) -> None:
    *tables, last = key.split(".")
    for table in tables:
        inner = content.setdefault(table, {})
        if not isinstance(inner, dict):
            raise InputError(f"--set {key}", f"{table} is not a table", "name a key of the config")
        content = inner
    content[last] = value
