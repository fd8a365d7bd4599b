"""Judged claims in words: tables, reasons and the page."""

from __future__ import annotations

from collections.abc import Sequence

from draft_ladder.bench.stats import Results
from draft_ladder.report.caption import notes_on
from draft_ladder.report.claims import ClaimsFile
from draft_ladder.report.compare import flag_notes
from draft_ladder.report.judge import VERDICTS, Judged, left_out
from draft_ladder.report.style import TextTable, as_markdown, clipped


def as_short_table(judged: Sequence[Judged]) -> TextTable:
    """A row per claim, to fit a terminal."""

    rows = [(one.claim.id, one.verdict, clipped(one.article, 44), clipped(one.ours, 44)) for one in judged]
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


def notes_of(folders: Sequence[Results]) -> list[str]:
    """What is worth knowing of the folders: other compiler flags, what is missing, what is left out."""
    return [*flag_notes(folders), *notes_on(folders), *left_out(folders)]


def as_page(claims: ClaimsFile, judged: Sequence[Judged], folders: Sequence[Results]) -> str:
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
        *(f"{line[0].upper()}{line[1:]}.\n" for line in notes_of(folders)),
        as_markdown(as_table(judged)),
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
