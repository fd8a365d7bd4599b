"""What verifying a batch costs: curves in small TOML files, measured ones and ideal ones."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from draft_ladder.base.errors import InputError
from draft_ladder.base.validation import first_problem


class CostCurve(BaseModel):
    """The time of one pass over a batch, in ms by the batch's tokens.

    One of three shapes: `slope`, the share of a one-token pass that every further token costs; `step_rows`,
    a further pass for every so many tokens; `measured_ms`, milliseconds by batch size, straight lines between
    and the last line's slope beyond.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    label: str
    kind: Literal["ideal", "measured"]
    source: str
    model: str
    machine: str
    pass_ms: float | None = Field(default=None, gt=0)
    slope: float | None = Field(default=None, ge=0)
    step_rows: int | None = Field(default=None, ge=1)
    measured_ms: dict[int, float] | None = None

    @model_validator(mode="after")
    def _one_shape(self) -> CostCurve:
        shapes = [self.slope, self.step_rows, self.measured_ms]
        if sum(shape is not None for shape in shapes) != 1:
            raise ValueError("give one of slope, step_rows and measured_ms")
        if self.measured_ms is None and self.pass_ms is None:
            raise ValueError("pass_ms is missing")
        if self.measured_ms is not None and (1 not in self.measured_ms or len(self.measured_ms) < 2):
            raise ValueError("measured_ms wants a batch of 1 and at least one other")
        if self.measured_ms is not None and min(self.measured_ms.values()) <= 0:
            raise ValueError("measured_ms wants times above 0")
        return self

    def ms(self, tokens: int) -> float:
        """The time of a pass over a batch of this many tokens."""
        if self.measured_ms is not None:
            return _between(self.measured_ms, tokens)
        assert self.pass_ms is not None
        if self.step_rows is not None:
            return self.pass_ms * math.ceil(tokens / self.step_rows)
        return self.pass_ms * (1 + (self.slope or 0) * (tokens - 1))


def _between(points: Mapping[int, float], at: int) -> float:
    sizes = sorted(points)
    upper = next((i for i, size in enumerate(sizes) if size >= at), len(sizes) - 1)
    low, high = sizes[max(upper, 1) - 1], sizes[max(upper, 1)]
    slope = (points[high] - points[low]) / (high - low)
    return points[low] + slope * (at - low)


def load_cost_curve(path: Path) -> CostCurve:
    """Read a curve; InputError names the file and the key."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(path, "no such file", "name a curve of configs/costs") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(path, f"not readable as TOML ({error})", "correct it") from error
    try:
        return CostCurve.model_validate({"name": path.stem, **content})
    except ValidationError as error:
        found = first_problem(error, content, CostCurve.model_fields)
        raise InputError(found.at(path), found.problem, found.remedy) from error


def speed_up(curve: CostCurve, measured: Mapping[str, Any]) -> float | None:
    """Times as fast as one pass a token: what the tokens cost without drafting, over what they cost with it.

    The drafter's time is all that generation waits for: drafts, updates, and the commit at the end.
    """
    tokens = measured["n_response_tokens"]
    if not tokens:
        return None
    passes = sum(count * curve.ms(1 + size) for size, count in enumerate(measured["calls_by_drafted"]))
    own_ns = sum(measured[f"{phase}_ns_total"] for phase in ("draft", "update", "commit"))
    return float(tokens * curve.ms(1) / (passes + own_ns / 1e6))
