"""Claims against our records: our figure, a verdict by the rule, and why where it fails.

A pure function of results folders: what no record shows is `not measured`.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from draft_ladder.base.errors import InputError
from draft_ladder.base.validation import load_json
from draft_ladder.bench.records import SETTINGS, refuse_differing_drafts
from draft_ladder.bench.settings import AXES, Settings, label, numeric_order
from draft_ladder.bench.stats import Results, SummaryRow, run_rows, summarize
from draft_ladder.report.alike import mixed
from draft_ladder.report.caption import telling_of
from draft_ladder.report.claims import METRICS, ROUNDS_FILE, SIZES, Claim, ClaimsFile
from draft_ladder.report.compare import unlikeness
from draft_ladder.report.style import format_number, format_range

Verdict = Literal["reproduced", "direction only", "not reproduced", "not measured"]
# From best to worst.
VERDICTS: tuple[Verdict, ...] = ("reproduced", "direction only", "not reproduced", "not measured")
TOLERANCE = 0.10
ACCEPTANCE_POINTS = 0.005


@dataclass(frozen=True)
class Judged:
    """A claim with what we found. `figures`: by corpus size (MB); `ours` is their text."""

    claim: Claim
    ours: str
    verdict: Verdict
    figures: dict[str, float] = field(default_factory=dict)
    median: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def article(self) -> str:
        """The article's figure in words."""
        return article_text(self.claim)

    @property
    def explanation(self) -> str:
        """The mechanism, for every verdict but `reproduced`."""
        if self.verdict == "reproduced":
            return ""
        return self.claim.explanation or "not explained yet"

    def as_dict(self) -> dict[str, Any]:
        """JSON content."""
        own = ("article", "ours", "verdict", "median", "low", "high", "explanation")
        return {
            **{name: getattr(self.claim, name) for name in ("id", "says", "variant", "versus", "metric")},
            **{name: getattr(self, name) for name in own},
            "by_size_mb": self.figures,
            "remark": self.claim.remark,
        }


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
        return sorted({variant for cells in self._cells for variant, _, _ in cells})

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
    """Figures at the variants' default axes, by variant, size and metric."""
    rows = summarize(run_rows(results.records))
    return {(row.variant, row.size_mb, row.metric): row for row in rows if not _has_axes(row.settings)}


def _has_axes(settings: Settings) -> bool:
    return any(name.startswith(AXES) for name in settings)


def left_out(folders: Sequence[Results]) -> list[str]:
    """A line per folder with variants that no claim is judged by, for they were measured at other axes."""
    lines = []
    for results in folders:
        cells = {(record.spec.variant, Settings.of(record.spec)) for record in results.records}
        found = {label(*cell, cell[1].keys() - {*SETTINGS}) for cell in cells if _has_axes(cell[1])}
        names = sorted(found, key=numeric_order)
        if names:
            lines.append(
                f"{results.folder.name}: left out, measured at axes of their own: {', '.join(names)}"
            )
    return lines


def check_alike(folders: Sequence[Results]) -> None:
    """Folders may be combined only if nothing but variants and compiler flags (`flag_notes`) differs."""
    together = [record for results in folders for record in results.records]
    refuse_differing_drafts(together, ", ".join(results.folder.name for results in folders))
    for results in folders:
        if varying := [name for name in telling_of(results) if name in SETTINGS]:
            raise InputError(
                results.folder,
                f"has several values of {', '.join(varying)}, and claims are judged at one",
                "give folders of one setting",
            )
        if lines := mixed(results):
            raise InputError(results.folder, "; ".join(lines), "measure it again in a folder of its own")
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
    if claim.metric in SIZES:
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
            pair = evidence.pair(claim.versus, claim.variant, size, METRICS[metric].name)
            if pair is not None and min(pair) > 0:
                suffix = f" {metric}" if " and " in claim.metric else ""
                own.append(METRICS[metric].gain(*pair))
                figures[f"{size:g}{suffix}"] = own[-1]
                absolute = pair
        if own:
            verdicts.append(verdict_of(claim, *_spread(own)))
    if not figures:
        return Judged(claim, "-", "not measured")
    low, median, high = _spread(figures.values())
    ours = format_number(median, 3)
    if low != high:
        ours += f" ({format_range(low, high, 3)})"
    if claim.article_pair and absolute:
        ours += f": {_absolute_text(claim, absolute)}"
    # Of two metrics in one sentence, both must agree with it.
    verdict = max(verdicts, key=VERDICTS.index)
    return Judged(claim, ours, verdict, figures, median, low, high)


def _spread(ratios: Iterable[float]) -> tuple[float, float, float]:
    """Lowest, median, highest."""
    values = sorted(ratios)
    return values[0], statistics.median(values), values[-1]


def _absolute_text(claim: Claim, pair: tuple[float, float]) -> str:
    if claim.absolute_gb:
        return f"{format_range(pair[0] / 1000, pair[1] / 1000, 3)} GB"
    before, after = format_number(pair[0]), format_number(pair[1], 3)
    return f"{before} to {after} {'s' if claim.absolute_s else 'µs'}"


def article_text(claim: Claim) -> str:
    """The article's figure in words."""
    if claim.article_pair:
        unit = "µs" if claim.absolute_us else "s" if claim.absolute_s else "GB"
        a, b = claim.article_pair
        return f"{format_number(a / b, 3)}: {format_number(a, 6)} to {format_number(b, 6)} {unit}"
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
        return Judged(claim, "-", "not measured")
    compilers = found["compilers"]
    text = "; ".join(
        f"{one['compiler']}: {one['rounds_of_eight']} rounds, "
        f"{one['backward_branches']} backward branch, {one['conditional_moves']} conditional move"
        for one in compilers
    )
    verdict: Verdict = "reproduced" if all(one["fixed"] for one in compilers) else "not reproduced"
    return Judged(claim, text, verdict)


def _judge_share(claim: Claim, evidence: Evidence) -> Judged:
    assert claim.size_mb is not None
    found = evidence.statistics(claim.size_mb)
    name = "single_share" if claim.share is not None else "at_most_100_share"
    if found is None or found.get(name) is None:
        return Judged(claim, "-", "not measured")
    ours = float(found[name])
    verdict: Verdict
    if claim.share is not None:
        near = abs(ours - claim.share) <= TOLERANCE * claim.share
        verdict = "reproduced" if near else "direction only" if ours > 0.5 else "not reproduced"
    else:
        verdict = "reproduced" if ours >= (claim.share_min or 0) else "not reproduced"
    return Judged(claim, f"{ours:.2%}", verdict, {f"{claim.size_mb:g}": ours}, ours)


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
    if not figures:
        return Judged(claim, "-", "not measured")
    worst = max(figures.values())
    reproduced = worst == 0 if exactly else worst <= ACCEPTANCE_POINTS
    ours = f"at most {format_number(worst * 100, 3)} percentage points apart" if worst else "exactly equal"
    return Judged(claim, ours, "reproduced" if reproduced else "not reproduced", figures, worst, worst, worst)


def _judge_size(claim: Claim, evidence: Evidence) -> Judged:
    """Sizes depend on the tokenizer: bytes per pair is the measure, and the file beside the memory."""
    assert claim.variant is not None
    assert claim.size_mb is not None
    mine = evidence.value(claim.variant, claim.size_mb, SIZES[claim.metric])
    counted = evidence.statistics(claim.size_mb)
    if mine is None:
        return Judged(claim, "-", "not measured")
    ours = f"{format_number(mine)} MB"
    if counted and counted.get("n_pairs"):
        ours += f", {format_number(mine * 1e6 / counted['n_pairs'], 3)} bytes per (bigram, successor) pair"
    verdict: Verdict = "direction only"
    if claim.file_over_memory is not None:
        memory = _resident_mb(claim.variant, claim.size_mb, evidence)
        if memory is None or memory <= 0:
            return Judged(claim, ours, "not measured")
        over = format_number(mine / memory), format_number(claim.file_over_memory)
        ours += f"; file over resident memory {over[0]} (article {over[1]})"
        close = abs(mine / memory / claim.file_over_memory - 1) <= TOLERANCE
        verdict = "reproduced" if close else "not reproduced"
    return Judged(claim, ours, verdict, {f"{claim.size_mb:g}": mine}, mine)


def _resident_mb(variant: str, size: float, evidence: Evidence) -> float | None:
    """What the load added to the process: a frozen cache's own count is its file's size by construction."""
    loaded, before = (evidence.value(variant, size, f"{name}_rss_mb") for name in ("loaded", "baseline"))
    return None if loaded is None or before is None else loaded - before
