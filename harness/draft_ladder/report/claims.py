"""The article's claims as a checked TOML file. Its head states the rule they are judged by."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from draft_ladder.base.errors import InputError
from draft_ladder.base.validation import first_problem
from draft_ladder.bench.metrics import shown_in

# The claims' words for what is judged by its ratio -> the metric.
METRICS = {metric.stem: metric for metric in shown_in("claims").values()}
SIZES = {"static_bytes": "static_mb", "static_file_bytes": "static_file_mb"}
OTHER_KINDS = (*SIZES, "acceptance", "unit_test", "corpus_statistics")
PAIRS = ("absolute_us", "absolute_s", "absolute_gb")
ROUNDS_FILE = "search_rounds.json"  # beside the records: what a claim of kind unit_test is judged by


class Claim(BaseModel):
    """One sentence of the article with its figure. `ratio`: how many times better than `versus`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    says: str
    metric: str  # a cost by its stem, two of them joined by " and ", or one of OTHER_KINDS
    variant: str | None = None
    versus: str | None = None
    size_mb: float | None = None  # else over all sizes
    static: bool = False  # only the sizes with a static cache
    unchanged: bool = False  # the article reports no change: judged on both sides of its range
    ratio: tuple[float, float] | None = None
    our_reading: bool = False  # the article gives no figure: `ratio` is what we make of its words
    ratio_max: float | None = None
    absolute_us: tuple[float, float] | None = None  # versus, variant
    absolute_s: tuple[float, float] | None = None
    absolute_gb: tuple[float, float] | None = None
    absolute_mb: float | None = None
    file_over_memory: float | None = None  # the file beside the resident memory that loading it takes
    share: float | None = None
    share_min: float | None = None
    warning: bool = False  # the article reports that this road is worse
    note: str = ""
    explanation: str = ""  # the mechanism, where our figures differ; measured on the file's `machine`
    remark: str = ""  # worth knowing though reproduced

    @model_validator(mode="after")
    def _complete(self) -> Claim:
        if self.ratio is not None and not 0 < self.ratio[0] <= self.ratio[1] < math.inf:
            raise ValueError("`ratio` goes from a lowest to a highest number above 0")
        for name in ("ratio_max", "file_over_memory", "absolute_mb", "share", "share_min"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"`{name}` must be a number above 0")
        for name in PAIRS:
            if not all(0 < value < math.inf for value in getattr(self, name) or ()):
                raise ValueError(f"`{name}` holds two numbers above 0")
        if self.unchanged and (self.warning or not (self.ratio and self.ratio[0] <= 1 <= self.ratio[1])):
            raise ValueError("`unchanged` needs a `ratio` around 1, and no `warning`")
        if self.our_reading and self.ratio is None:
            raise ValueError("`our_reading` says whose `ratio` it is, and there is none")
        self._check_metric()
        return self

    def _check_metric(self) -> None:
        """What a claim of its metric cannot be judged without."""
        if self.metric not in OTHER_KINDS:
            if unknown := [name for name in self.metric.split(" and ") if name not in METRICS]:
                known = ", ".join([*METRICS, *OTHER_KINDS])
                raise ValueError(f"`metric` {unknown[0]!r} is unknown: give one of {known}")
            if not (self.variant and self.versus):
                raise ValueError("a ratio needs `variant` and `versus`")
            ranges = [name for name in ("ratio", "ratio_max", *PAIRS) if getattr(self, name) is not None]
            if len(ranges) > 1 or not (ranges or self.warning):
                named = f"has {' and '.join(ranges)}" if ranges else "has no range"
                raise ValueError(f"{named}: give one of `ratio`, `ratio_max`, `absolute_us`, `_s`, `_gb`")
        elif self.metric == "corpus_statistics":
            if self.size_mb is None or (self.share is None) == (self.share_min is None):
                raise ValueError("corpus_statistics needs `size_mb`, and `share` or `share_min`")
        elif self.metric in SIZES and (self.variant is None or self.size_mb is None):
            raise ValueError(f"{self.metric} needs `variant` and `size_mb`")

    @property
    def article_pair(self) -> tuple[float, float] | None:
        """The article's two absolute figures, whatever their unit."""
        return self.absolute_us or self.absolute_s or self.absolute_gb

    @property
    def article_range(self) -> tuple[float, float] | None:
        """The article's ratio, lowest to highest."""
        pair = self.article_pair
        return (pair[0] / pair[1], pair[0] / pair[1]) if pair else self.ratio


class ClaimsFile(BaseModel):
    """All claims; `machine` is where the explanations were measured."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    machine: str
    claim: tuple[Claim, ...] = Field(min_length=1)


def load_claims(path: Path) -> ClaimsFile:
    """The claims file. InputError names file, claim and key."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(path, f"not readable as TOML ({error})", "name a claims file") from error
    try:
        loaded = ClaimsFile.model_validate(content)
    except ValidationError as error:
        found = first_problem(error, content, ClaimsFile.model_fields)
        raise InputError(found.at(path), found.problem, found.remedy) from error
    ids = [claim.id for claim in loaded.claim]
    for name in ids:
        if ids.count(name) > 1:
            raise InputError(f"{path}: claim {name}", "its id is there twice", "give each claim its own")
    return loaded
