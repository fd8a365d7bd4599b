"""What is wrong with a file's content, in words for who wrote it: the key, the problem and the remedy."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from draft_ladder.base.errors import InputError

# The beginning of the validator's name for an error -> what would have been right.
KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite_number": "a finite number",
    "decimal": "a number",
    "string_type": "text in quotes",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "a table",
    "model": "a table",
    "path": "a path in quotes",
}
BOUNDS = {
    "greater_than_equal": ("ge", "{} or more"),
    "greater_than": ("gt", "more than {}"),
    "less_than_equal": ("le", "{} or less"),
    "less_than": ("lt", "less than {}"),
}
PATTERNS = {
    r"^[a-z0-9][a-z0-9_-]*$": "made of small letters, digits, - and _, beginning with a letter or digit",
    r"^#[0-9a-fA-F]{6}$": "a colour such as #1f77b4",
    r"^[0-9a-f]{64}$": "a SHA-256, 64 hex digits",
}
LONGEST_VALUE = 60
MEASURE_AGAIN = "remove it and run again"


class Problem(NamedTuple):
    """The first thing that is wrong. `key` is empty where the whole is."""

    key: str
    problem: str
    remedy: str

    def at(self, place: object) -> str:
        """`FILE: key`, or the file alone."""
        return f"{place}: {self.key}" if self.key else str(place)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file, which an editor may have begun with a byte-order mark. Raises OSError, or
    ValueError for what is not TOML.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def load_json(path: Path) -> dict[str, Any]:
    """The strict JSON object of a file: no NaN, no infinity. InputError if it is missing or anything else."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    try:
        content = json.loads(path.read_bytes(), parse_constant=refuse)
    except FileNotFoundError as error:
        raise InputError(path, "no such file", "run `ladder run` first") from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(path, f"not readable as JSON ({error})", MEASURE_AGAIN) from error
    if not isinstance(content, dict):
        raise InputError(path, "not a JSON object", MEASURE_AGAIN)
    return content


def load_versioned(
    path: Path, newest: int, remedy: str = MEASURE_AGAIN, *, oldest: int | None = None
) -> dict[str, Any]:
    """The JSON object of a file whose `schema` is `newest`, which this program writes, or from `oldest` on.

    InputError for another: a newer file is not to be removed, the program is to be updated.
    """
    content = load_json(path)
    schema = content.get("schema")
    if not isinstance(schema, int) or not (newest if oldest is None else oldest) <= schema <= newest:
        is_newer = isinstance(schema, int) and schema > newest
        relation = "newer than" if is_newer else "not"
        problem = f"schema {schema!r} is {relation} the one this version reads ({newest})"
        raise InputError(f"{path}: schema", problem, "update Draft Ladder" if is_newer else remedy)
    return content


def first_problem(error: ValidationError, content: Any, keys: Iterable[str] = ()) -> Problem:
    """Translate the first finding. `content` is what was read; `keys` are told to an unknown one."""
    first = error.errors()[0]
    parts = list(_keys(content, first["loc"]))
    if first["type"].startswith("union_tag"):
        parts.append(str(first["ctx"]["discriminator"]).strip("'"))
    known = ", ".join(sorted(keys)) if len(parts) == 1 else ""
    return Problem(".".join(parts), *_words(dict(first), known))


def _keys(content: Any, location: tuple[int | str, ...]) -> Iterator[str]:
    """The location as who wrote the file knows it: without the names of a union's members."""
    for place, part in enumerate(location):
        is_last = place == len(location) - 1
        if isinstance(content, dict):
            if part in content or is_last:
                yield str(part)
                content = content.get(part)
        elif isinstance(content, list | tuple) and isinstance(part, int) and part < len(content):
            content = content[part]
            if isinstance(content, dict):  # a table of several: by its name, if it has one
                name = content.get("id", content.get("name"))
                yield name if isinstance(name, str) else str(part + 1)


def _words(error: dict[str, Any], known: str) -> tuple[str, str]:
    """(problem, remedy)."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing" and isinstance(error["loc"][-1], int):
        return "has too few values", "add one"
    if kind in ("missing", "union_tag_not_found"):
        return "missing", "add it"
    if kind == "extra_forbidden":
        return "unknown key", f"remove it or use one of: {known}" if known else "remove it"
    if kind == "value_error":
        return str(context["error"]), "correct it"
    if kind == "too_short":
        return f"has {context['actual_length']} values", f"give at least {context['min_length']}"
    if kind == "too_long":
        return f"has {context['actual_length']} values", f"give at most {context['max_length']}"
    wanted = _wanted(kind, context)
    if wanted is None:  # whatever a later pydantic calls an error
        return error["msg"][0].lower() + error["msg"][1:], "correct it"
    return f"is {_shown(context.get('tag', error['input']))} but has to be {wanted}", "correct it"


def _wanted(kind: str, context: dict[str, Any]) -> str | None:
    """What would have been right, in words."""
    if kind in BOUNDS:
        name, words = BOUNDS[kind]
        return words.format(f"{context[name]:g}" if isinstance(context[name], float) else context[name])
    if kind == "literal_error":
        return str(context["expected"])
    if kind == "union_tag_invalid":
        return " or ".join(str(context["expected_tags"]).rsplit(", ", 1))
    if kind == "string_pattern_mismatch":
        return PATTERNS.get(context["pattern"], f"of the form {context['pattern']}")
    return next((words for start, words in KINDS.items() if kind.startswith(start)), None)


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."
