"""The ledgers' figure: four panels, the same bytes for the same records."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from draft_ladder.e2e.cost import CostCurve
from draft_ladder.e2e.ledgers import ALL, Ledgers
from draft_ladder.e2e.records import NO_DRAFTING
from draft_ladder.report.pictures.canvas import new_figure, own_settings, save
from draft_ladder.report.style import format_number

SIZE_INCHES = (12.0, 9.0)
_RC: dict[str, Any] = {"font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold"}
_PLAIN = FuncFormatter(lambda value, _: format_number(value))
_REAL, _REPLAYED, _EVEN = "#0072B2", "#999999", "#D55E00"


def write_figure(ledgers: Ledgers, sentence: str, folder: Path) -> list[Path]:
    """ledgers.svg and ledgers.png in `folder`; `sentence` stands above the panels."""
    folder.mkdir(parents=True, exist_ok=True)
    with own_settings(**_RC):
        return save(draw(ledgers, sentence), folder, "ledgers")


def draw(ledgers: Ledgers, sentence: str) -> Figure:
    """The four panels, their legend and what the figures come to."""
    figure = new_figure(*SIZE_INCHES)
    panels: list[Callable[[Axes, Ledgers], None]] = [_latency, _acceptance, _cache, _answers]
    for place, panel in enumerate(panels, start=1):
        panel(figure.add_subplot(2, 2, place), ledgers)
    variants = ledgers.index["variants"]
    handles = [
        Line2D([], [], linestyle="none", color=v["color"], marker=v["marker"], label=v["label"])
        for v in variants.values()
    ]
    figure.legend(handles=handles, loc="lower center", ncol=len(handles), frameon=False)
    model = ledgers.index["model"]["name"]
    figure.suptitle(f"Four ledgers of drafting: a draft is not an answer  ({model})", fontsize=12)
    figure.text(
        0.5, 0.945, textwrap.fill(sentence, 150, break_on_hyphens=False), ha="center", va="top", fontsize=9
    )
    figure.subplots_adjust(left=0.11, right=0.98, top=0.86, bottom=0.1, hspace=0.36, wspace=0.3)
    return figure


def _workloads(ledgers: Ledgers) -> list[str]:
    return [work["name"] for work in ledgers.index["workloads"]]


def _latency(axes: Axes, ledgers: Ledgers) -> None:
    """Ledger 1: every workload's replay a small point, all of them a large one."""
    variants = ledgers.index["variants"]
    for place, (name, variant) in enumerate(variants.items()):
        style = {"color": variant["color"], "marker": variant["marker"], "linestyle": "none"}
        for workload in _workloads(ledgers):
            value = ledgers.row(workload, name).replayed_us_per_drafted
            if value is not None:
                axes.plot([value], [place], markersize=3.5, alpha=0.5, **style)
        value = ledgers.row(ALL, name).replayed_us_per_drafted
        if value is not None:
            axes.plot([value], [place], markersize=8, **style)
            axes.annotate(f"{value:.3g}", (value, place), (0, 8), textcoords="offset points", ha="center")
    axes.set_yticks(range(len(variants)), [variant["label"] for variant in variants.values()])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_PLAIN)
    axes.set_xlabel("draft + update, µs per drafted token, replayed (log scale; lower is better)")
    axes.set_title("1  Drafting latency, replayed text", loc="left")


def _acceptance(axes: Axes, ledgers: Ledgers) -> None:
    """Ledger 2: what the model accepts, what a replay claims, and what is needed to break even."""
    n_draft = ledgers.index["config"]["n_draft"]
    last = list(ledgers.index["variants"])[-1]
    workloads = _workloads(ledgers)
    width = 0.36
    for place, workload in enumerate(workloads):
        row = ledgers.row(workload, last)
        bars = ((row.acceptance, _REAL, -width / 2), (row.replayed_acceptance, _REPLAYED, width / 2))
        for value, color, shift in bars:
            if value is None:
                axes.annotate("none", (place + shift, 0), (0, 3), textcoords="offset points", ha="center")
                continue
            axes.bar([place + shift], [100 * value], width=width, color=color)
            axes.annotate(
                f"{100 * value:.0f}",
                (place + shift, 100 * value),
                (0, 2),
                textcoords="offset points",
                ha="center",
            )
    even = CostCurve(ledgers.points).break_even(n_draft) / n_draft
    axes.axhline(100 * even, color=_EVEN, linestyle="--", linewidth=1)
    axes.set_ylim(0, max(105.0, 110 * even))
    axes.set_xticks(range(len(workloads)), workloads)
    axes.set_ylabel("accepted, % of drafted tokens")
    handles = [
        Line2D([], [], color=_REAL, linewidth=6, label="real: these answers"),
        Line2D([], [], color=_REPLAYED, linewidth=6, label="replayed: the workload's text"),
        Line2D([], [], color=_EVEN, linestyle="--", label=f"break-even, draft of {n_draft}"),
    ]
    axes.legend(
        handles=handles, frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.07), ncol=3,
        columnspacing=1.0, handlelength=1.2,
    )  # fmt: skip
    axes.set_title("2  Verification: real and replayed acceptance", loc="left")


def _cache(axes: Axes, ledgers: Ledgers) -> None:
    """Ledger 3: loading time against memory."""
    variants = ledgers.index["variants"]
    for row in ledgers.caches:
        if row.load_s is None or row.peak_mb is None:
            continue
        variant = variants[row.variant]
        axes.plot(
            [row.load_s],
            [row.peak_mb],
            linestyle="none",
            color=variant["color"],
            marker=variant["marker"],
            markersize=8,
        )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(_PLAIN)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("load time, s (log scale; lower is better)")
    axes.set_ylabel("peak RSS of a replay, MB (lower is better)")
    corpus = ledgers.static["corpus"]
    size = f" of {corpus['bytes'] / 1e6:.0f} MB of text" if corpus.get("bytes") else ""
    axes.set_title(f"3  Loading and memory of the cache{size}", loc="left")


def _answers(axes: Axes, ledgers: Ledgers) -> None:
    """Ledger 4: tokens a second against no drafting."""
    variants = ledgers.index["variants"]
    workloads = [*_workloads(ledgers), ALL]
    spread = 0.7
    for i, (name, variant) in enumerate(variants.items()):
        shift = (i - (len(variants) - 1) / 2) * spread / max(1, len(variants))
        axes.plot(
            [place + shift for place in range(len(workloads))],
            [ledgers.row(workload, name).speed_against_none for workload in workloads],
            linestyle="none",
            color=variant["color"],
            marker=variant["marker"],
            markersize=6,
        )
    axes.axhline(1, color="#555555", linewidth=1)
    labels = [
        f"{workload}\n{ledgers.row(workload, NO_DRAFTING).tokens_per_s:.0f} tok/s" for workload in workloads
    ]
    axes.set_xticks(range(len(workloads)), labels)
    highest = max(
        ledgers.row(workload, name).speed_against_none for workload in workloads for name in variants
    )
    axes.set_ylim(0, 1.1 * max(1.0, highest))
    axes.set_ylabel("answers: times as fast as without drafting")
    axes.set_title("4  The answer's time (below: tokens/s without drafting)", loc="left")
