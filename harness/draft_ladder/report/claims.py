"""The article's claims against our records: our figure, a verdict by the rule, and why where it fails.

The claims file states the rule at its head. A pure function of results folders: what no record shows is
`not measured`.
"""

from __future__ import annotations

import math
import statistics
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from draft_ladder.base.errors import InputError
from draft_ladder.base.validation import first_problem, load_json
from draft_ladder.bench.records import refuse_differing_drafts
from draft_ladder.bench.stats import Results, SummaryRow, run_rows, summarize
from draft_ladder.report.compare import flag_notes, unlikeness
from draft_ladder.report.stats_table import TextTable
from draft_ladder.report.stats_table import as_markdown as table_markdown

Verdict = Literal["reproduced", "direction only", "not reproduced", "not measured"]
# From best to worst.
VERDICTS: tuple[Verdict, ...] = ("reproduced", "direction only", "not reproduced", "not measured")
TOLERANCE = 0.10
ACCEPTANCE_POINTS = 0.005
# The claim's words -> ours. A claim may name two.
METRICS = {
    "draft_latency": "draft_latency_us",
    "load_time": "load_time_s",
    "peak_rss": "peak_rss_mb",
}
PAIRS = ("absolute_us", "absolute_s", "absolute_gb")
ROUNDS_FILE = "search_rounds.json"


class Claim(BaseModel):
    """One sentence of the article with its figure. `ratio`: how many times better than `versus`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    says: str
    metric: Literal[
        "draft_latency",
        "load_time",
        "peak_rss",
        "load_time and peak_rss",
        "static_bytes",
        "static_file_bytes",
        "acceptance",
        "unit_test",
        "corpus_statistics",
    ]
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
        if self.metric in METRICS or self.metric == "load_time and peak_rss":
            if not (self.variant and self.versus):
                raise ValueError("a ratio needs `variant` and `versus`")
            ranges = [name for name in ("ratio", "ratio_max", *PAIRS) if getattr(self, name) is not None]
            if len(ranges) > 1 or not (ranges or self.warning):
                named = f"has {' and '.join(ranges)}" if ranges else "has no range"
                raise ValueError(f"{named}: give one of `ratio`, `ratio_max`, `absolute_us`, `_s`, `_gb`")
        elif self.metric == "corpus_statistics":
            if self.size_mb is None or (self.share is None) == (self.share_min is None):
                raise ValueError("corpus_statistics needs `size_mb`, and `share` or `share_min`")
        elif self.metric in ("static_bytes", "static_file_bytes") and (
            self.variant is None or self.size_mb is None
        ):
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


@dataclass(frozen=True)
class Judged:
    """A claim with what we found. `figures`: by corpus size (MB); `ours` is their text."""

    claim: Claim
    article: str
    ours: str
    verdict: Verdict
    figures: dict[str, float] = field(default_factory=dict)
    median: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def explanation(self) -> str:
        """The mechanism, for every verdict but `reproduced`."""
        if self.verdict == "reproduced":
            return ""
        return self.claim.explanation or "not explained yet"

    def as_dict(self) -> dict[str, Any]:
        """JSON content."""
        return {
            "id": self.claim.id,
            "says": self.claim.says,
            "variant": self.claim.variant,
            "versus": self.claim.versus,
            "metric": self.claim.metric,
            "article": self.article,
            "ours": self.ours,
            "verdict": self.verdict,
            "median": self.median,
            "low": self.low,
            "high": self.high,
            "by_size_mb": self.figures,
            "explanation": self.explanation,
            "remark": self.claim.remark,
        }


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


class Evidence:
    """Several results folders as one source of figures."""

    def __init__(self, folders: Sequence[Results]) -> None:
        self._folders = folders
        self._cells = [_cells(results) for results in folders]

    def value(self, variant: str, size: float, metric: str) -> float | None:
        """Median of the first folder that has it."""
        for cells in self._cells:
            row = cells.get((variant, size, metric))
            if row is not None and row.median is not None:
                return float(row.median)
        return None

    def pair(self, versus: str, variant: str, size: float, metric: str) -> tuple[float, float] | None:
        """Both variants' medians, of one folder where one has both: they were measured in turn there."""
        for cells in self._cells:
            rows = [cells.get((name, size, metric)) for name in (versus, variant)]
            medians = [row.median for row in rows if row is not None and row.median is not None]
            if len(medians) == 2:
                return float(medians[0]), float(medians[1])
        values = self.value(versus, size, metric), self.value(variant, size, metric)
        if values[0] is None or values[1] is None:
            return None
        return values[0], values[1]

    def sizes(self) -> list[float]:
        """Every corpus size measured."""
        return sorted({size for cells in self._cells for _, size, _ in cells})

    def variants(self) -> list[str]:
        """Every variant measured at its default axes."""
        return sorted({variant for cells in self._cells for variant, _, _ in cells if "[" not in variant})

    def statistics(self, size: float) -> dict[str, Any] | None:
        """What the static cache's builder counted in the corpus of this size."""
        for results in self._folders:
            found = results.corpus_statistics.get(f"{size:g}")
            if found is not None:
                return found
        return None

    def rounds(self) -> dict[str, Any] | None:
        """What `ladder rounds` found in the compiled search."""
        for results in self._folders:
            path = results.folder / ROUNDS_FILE
            if path.exists():
                return load_json(path)
        return None


def _cells(results: Results) -> dict[tuple[str, float, str], SummaryRow]:
    rows = summarize(run_rows(results.records))
    return {(row.variant, row.size_mb, row.metric): row for row in rows}


def check_alike(folders: Sequence[Results]) -> None:
    """Folders may be combined only if nothing but variants and compiler flags (`flag_notes`) differs."""
    together = [record for results in folders for record in results.records]
    refuse_differing_drafts(together, ", ".join(results.folder.name for results in folders))
    first, *others = folders
    for other in others:
        differences = unlikeness(first, other)
        if differences:
            raise InputError(
                other.folder,
                f"cannot be combined with {first.folder.name}: {'; '.join(differences)}",
                "give folders of one machine, compiler, corpus and setting",
            )


def judge(claims: ClaimsFile, folders: Sequence[Results]) -> list[Judged]:
    """Every claim, in the file's order."""
    check_alike(folders)
    evidence = Evidence(folders)
    return [judge_one(claim, evidence) for claim in claims.claim]


def judge_one(claim: Claim, evidence: Evidence) -> Judged:
    """One claim by its kind."""
    if claim.metric == "unit_test":
        return _judge_rounds(claim, evidence)
    if claim.metric == "corpus_statistics":
        return _judge_share(claim, evidence)
    if claim.metric == "acceptance":
        return _judge_acceptance(claim, evidence)
    if claim.metric in ("static_bytes", "static_file_bytes"):
        return _judge_size(claim, evidence)
    return _judge_ratio(claim, evidence)


# --- ratios ------------------------------------------------------------------------------------------------


def verdict_of(claim: Claim, low: float, median: float, high: float) -> Verdict:
    """The rule at the head of the claims file. `low`, `median`, `high`: of our ratios over the sizes."""
    if claim.unchanged:
        assert claim.ratio is not None, claim.id
        near = low <= (1 + TOLERANCE) * claim.ratio[1] and high >= (1 - TOLERANCE) * claim.ratio[0]
        # No change has no direction: twice as good is as far from it as half as good.
        return "reproduced" if near else "not reproduced"
    if claim.warning:
        # Worse everywhere is the warning; worse on the whole but not everywhere has its direction.
        return "reproduced" if high < 1 else "direction only" if median < 1 else "not reproduced"
    if claim.ratio_max is not None:
        # The highest counts.
        reached, ours, article = high >= (1 - TOLERANCE) * claim.ratio_max, high, claim.ratio_max
    else:
        wanted = claim.article_range
        assert wanted is not None, claim.id
        # Overlapping the widened range or lying above it is the same as reaching its lower end.
        reached, ours, article = high >= (1 - TOLERANCE) * wanted[0], median, statistics.mean(wanted)
    # Widened, a range just above 1 takes in ratios below 1: a slowdown is no improvement, however small.
    if reached and (ours > 1 or not _better_throughout(claim)):
        return "reproduced"
    return "direction only" if (ours > 1) == (article > 1) else "not reproduced"


def _better_throughout(claim: Claim) -> bool:
    """Whether the article reports an improvement at every size."""
    if claim.ratio_max is not None:
        return claim.ratio_max > 1
    return claim.article_range is not None and claim.article_range[0] > 1


def _judge_ratio(claim: Claim, evidence: Evidence) -> Judged:
    assert claim.variant is not None
    assert claim.versus is not None
    sizes = evidence.sizes() if claim.size_mb is None else [claim.size_mb]
    figures: dict[str, float] = {}
    verdicts: list[Verdict] = []
    absolute: tuple[float, float] | None = None
    for metric in claim.metric.split(" and "):
        own: list[float] = []
        for size in sizes:
            if size == 0 and claim.static:
                continue
            pair = evidence.pair(claim.versus, claim.variant, size, METRICS[metric])
            if pair is not None and pair[1] > 0:
                suffix = f" {metric}" if " and " in claim.metric else ""
                own.append(pair[0] / pair[1])
                figures[f"{size:g}{suffix}"] = own[-1]
                absolute = pair
        if own:
            verdicts.append(verdict_of(claim, *_spread(own)))
    article = article_text(claim)
    if not figures:
        return Judged(claim, article, "-", "not measured")
    low, median, high = _spread(figures.values())
    ours = f"{median:.3g}" if low == high else f"{median:.3g} ({low:.3g} to {high:.3g})"
    if claim.article_pair and absolute:
        ours += f": {_absolute_text(claim, absolute)}"
    # Of two metrics in one sentence, both must agree with it.
    verdict = max(verdicts, key=VERDICTS.index)
    return Judged(claim, article, ours, verdict, figures, median, low, high)


def _spread(ratios: Iterable[float]) -> tuple[float, float, float]:
    """Lowest, median, highest."""
    values = sorted(ratios)
    return values[0], statistics.median(values), values[-1]


def _absolute_text(claim: Claim, pair: tuple[float, float]) -> str:
    if claim.absolute_gb:
        return f"{pair[0] / 1000:.3g} to {pair[1] / 1000:.3g} GB"
    return f"{pair[0]:.4g} to {pair[1]:.3g} {'s' if claim.absolute_s else 'µs'}"


def article_text(claim: Claim) -> str:
    """The article's figure in words."""
    if claim.article_pair:
        unit = "µs" if claim.absolute_us else "s" if claim.absolute_s else "GB"
        a, b = claim.article_pair
        return f"{a / b:.3g}: {a:g} to {b:g} {unit}"
    if claim.ratio_max is not None:
        return f"up to {claim.ratio_max:g}"
    if claim.absolute_mb is not None:
        return f"{claim.absolute_mb:g} MB"
    if claim.share is not None:
        return f"{claim.share:.0%}"
    if claim.share_min is not None:
        return f"over {claim.share_min:.0%}"
    if claim.ratio is not None and not claim.our_reading:
        low, high = claim.ratio
        return f"{low:g}" if low == high else f"{low:g} to {high:g}"
    return claim.note or "-"


# --- the other kinds ---------------------------------------------------------------------------------------


def _judge_rounds(claim: Claim, evidence: Evidence) -> Judged:
    found = evidence.rounds()
    if found is None:
        return Judged(claim, article_text(claim), "-", "not measured")
    compilers = found["compilers"]
    text = "; ".join(
        f"{one['compiler']}: {one['rounds_of_eight']} rounds, "
        f"{one['backward_branches']} backward branch, {one['conditional_moves']} conditional move"
        for one in compilers
    )
    verdict: Verdict = "reproduced" if all(one["fixed"] for one in compilers) else "not reproduced"
    return Judged(claim, article_text(claim), text, verdict)


def _judge_share(claim: Claim, evidence: Evidence) -> Judged:
    assert claim.size_mb is not None
    found = evidence.statistics(claim.size_mb)
    name = "single_share" if claim.share is not None else "at_most_100_share"
    if found is None or found.get(name) is None:
        return Judged(claim, article_text(claim), "-", "not measured")
    ours = float(found[name])
    verdict: Verdict
    if claim.share is not None:
        near = abs(ours - claim.share) <= TOLERANCE * claim.share
        verdict = "reproduced" if near else "direction only" if ours > 0.5 else "not reproduced"
    else:
        verdict = "reproduced" if ours >= (claim.share_min or 0) else "not reproduced"
    return Judged(claim, article_text(claim), f"{ours:.2%}", verdict, {f"{claim.size_mb:g}": ours}, ours)


def _judge_acceptance(claim: Claim, evidence: Evidence) -> Judged:
    exactly = claim.variant is not None
    names = [claim.variant] if claim.variant else evidence.variants()
    reference = claim.versus or "copying_map"
    figures: dict[str, float] = {}
    for size in evidence.sizes():
        base = evidence.value(reference, size, "acceptance")
        others = [evidence.value(name, size, "acceptance") for name in names if name and name != reference]
        distances = [abs(value - base) for value in others if value is not None and base is not None]
        if distances:
            figures[f"{size:g}"] = max(distances)
    article = article_text(claim)
    if not figures:
        return Judged(claim, article, "-", "not measured")
    worst = max(figures.values())
    reproduced = worst == 0 if exactly else worst <= ACCEPTANCE_POINTS
    ours = f"at most {worst * 100:.3g} percentage points apart"
    return Judged(
        claim, article, ours, "reproduced" if reproduced else "not reproduced", figures, worst, worst, worst
    )


def _judge_size(claim: Claim, evidence: Evidence) -> Judged:
    """Sizes depend on the tokenizer: bytes per pair is the measure, and the file beside the memory."""
    assert claim.variant is not None
    assert claim.size_mb is not None
    name = "static_mb" if claim.metric == "static_bytes" else "static_file_mb"
    mine = evidence.value(claim.variant, claim.size_mb, name)
    counted = evidence.statistics(claim.size_mb)
    article = article_text(claim)
    if mine is None:
        return Judged(claim, article, "-", "not measured")
    ours = f"{mine:.4g} MB"
    if counted and counted.get("n_pairs"):
        ours += f", {mine * 1e6 / counted['n_pairs']:.3g} bytes per (bigram, successor) pair"
    verdict: Verdict = "direction only"
    if claim.file_over_memory is not None:
        memory = _resident_mb(claim.variant, claim.size_mb, evidence)
        if memory is None or memory <= 0:
            return Judged(claim, article, ours, "not measured")
        ours += f"; file over resident memory {mine / memory:.4g} (article {claim.file_over_memory:.4g})"
        close = abs(mine / memory / claim.file_over_memory - 1) <= TOLERANCE
        verdict = "reproduced" if close else "not reproduced"
    return Judged(claim, article, ours, verdict, {f"{claim.size_mb:g}": mine}, mine)


def _resident_mb(variant: str, size: float, evidence: Evidence) -> float | None:
    """What the load added to the process: a frozen cache's own count is its file's size by construction."""
    loaded, before = (evidence.value(variant, size, f"{name}_rss_mb") for name in ("loaded", "baseline"))
    return None if loaded is None or before is None else loaded - before


# --- words -------------------------------------------------------------------------------------------------


def as_short_table(judged: Sequence[Judged]) -> TextTable:
    """A row per claim, to fit a terminal."""

    def clipped(text: str) -> str:
        return text if len(text) <= 44 else text[:43] + "…"

    rows = [(one.claim.id, one.verdict, clipped(one.article), clipped(one.ours)) for one in judged]
    return TextTable(tally(judged), ("claim", "verdict", "article", "ours"), rows)


def as_table(judged: Sequence[Judged]) -> TextTable:
    """A row per claim."""
    rows = [(one.claim.id, one.claim.says, one.article, one.ours, one.verdict) for one in judged]
    return TextTable(tally(judged), ("claim", "says", "article", "ours", "verdict"), rows)


def tally(judged: Sequence[Judged]) -> str:
    """How many of each verdict."""
    counts = [(sum(one.verdict == name for one in judged), name) for name in VERDICTS]
    return f"{len(judged)} claims: " + ", ".join(f"{count} {name}" for count, name in counts)


def explanations(judged: Sequence[Judged]) -> list[tuple[str, str]]:
    """(claim, why) of every verdict but `reproduced`."""
    return [
        (f"{one.claim.id} ({one.verdict})", " ".join(one.explanation.split()))
        for one in judged
        if one.verdict != "reproduced"
    ]


def remarks(judged: Sequence[Judged]) -> list[tuple[str, str]]:
    """(claim, remark) of what is reproduced, but not as one would think."""
    return [
        (one.claim.id, " ".join(one.claim.remark.split()))
        for one in judged
        if one.claim.remark and one.verdict == "reproduced"
    ]


def as_markdown(claims: ClaimsFile, judged: Sequence[Judged], folders: Sequence[Results]) -> str:
    """The whole report."""
    names = ", ".join(f"`{results.folder.parent.name}/{results.folder.name}`" for results in folders)
    lines = [
        "# Claims",
        "",
        f"{claims.source} Ours: {names}. A ratio says how many times better than what it is compared with: "
        "median over the corpus sizes, lowest to highest in brackets.",
        "",
        f"{tally(judged)}.",
        "",
        *(f"{line[0].upper()}{line[1:]}.\n" for line in flag_notes(folders)),
        table_markdown(as_table(judged)),
        "",
        "## Why not",
        "",
        f"Measured on {claims.machine}.",
        "",
    ]
    lines += [f"- **{name}**: {why}" for name, why in explanations(judged)]
    known = remarks(judged)
    if known:
        lines += ["", "## Worth knowing", "", *(f"- **{name}**: {what}" for name, what in known)]
    return "\n".join(lines) + "\n"
