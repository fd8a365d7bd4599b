"""Charts of a request experiment: the frontier of drafting, and what it is worth at a verification cost."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from draft_ladder.base.validation import load_json
from draft_ladder.peers.costs import CostCurve, speed_up
from draft_ladder.peers.metrics import Cell, cells
from draft_ladder.peers.records import load_request_records
from draft_ladder.report.style import PNG_DPI, RC

FAINT = 0.25
_RC: dict[Any, Any] = {**RC, "font.size": 8, "axes.titlesize": 9, "axes.titleweight": "bold"}


def write_charts(results: Path, folder: Path, curves: Sequence[CostCurve]) -> list[Path]:
    """The charts of the experiment in `results`, as SVG and PNG in `folder`; chains and trees apart."""
    found = cells(load_request_records(results))
    index = load_json(results / "experiment.json")
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    with mpl.rc_context(_RC):
        for shape in sorted({cell.record.spec.shape for cell in found}):
            of_shape = [cell for cell in found if cell.record.spec.shape == shape]
            for history in sorted({cell.record.spec.history for cell in of_shape}):
                chosen = [cell for cell in of_shape if cell.record.spec.history == history]
                place = f"{shape}_{history}"
                written += _save(frontier(chosen, index, shape, history), folder / f"frontier_{place}")
                for n_draft in sorted({cell.record.spec.n_draft for cell in chosen}):
                    at = [
                        c for c in chosen if c.record.spec.n_draft == n_draft and c.record.spec.swept is None
                    ]
                    if curves and at:
                        figure = goodput(at, index, curves, f"{shape}s, n_draft {n_draft}, history {history}")
                        written += _save(figure, folder / f"goodput_{place}_n{n_draft}")
    return written


# --- frontier ----------------------------------------------------------------------------------------------


def frontier(chosen: Sequence[Cell], index: dict[str, Any], shape: str, history: str) -> Figure:
    """Tokens per call against drafted per call, a panel a workload, each drafter over its settings."""
    workloads = sorted({cell.record.spec.workload for cell in chosen})
    columns = min(4, len(workloads))
    rows = math.ceil(len(workloads) / columns)
    figure = Figure(figsize=(3.6 * columns + 0.4, 2.9 * rows + 1.6), layout="constrained")
    FigureCanvasAgg(figure)
    names = list(dict.fromkeys(cell.record.spec.variant for cell in chosen))
    for place, workload in enumerate(workloads, start=1):
        axes = figure.add_subplot(rows, columns, place)
        _panel(axes, [cell for cell in chosen if cell.record.spec.workload == workload], names, index)
        axes.set_title(workload)
    figure.suptitle(
        f"Tokens per call against drafted per call: {shape}s, history {history}\n"
        "(a drafter is better only if its curve lies above; dominated points are faint)"
    )
    handles = [
        Line2D(
            [],
            [],
            color=index["variants"][name]["color"],
            marker=index["variants"][name]["marker"],
            markersize=5,
            label=index["variants"][name]["label"],
        )
        for name in names
    ]
    figure.legend(handles=handles, loc="outside lower center", ncol=4, frameon=False)
    return figure


def _panel(axes: Axes, chosen: Sequence[Cell], names: Sequence[str], index: dict[str, Any]) -> None:
    points = {id(cell): _point(cell) for cell in chosen}
    for name in names:
        style = index["variants"][name]
        own = sorted(points[id(c)] for c in chosen if c.record.spec.variant == name)
        axes.plot(*zip(*own, strict=True), color=style["color"], linewidth=0.8, alpha=0.6) if own else None
        for x, y in own:
            alpha = FAINT if dominated((x, y), list(points.values())) else 1.0
            axes.plot(x, y, color=style["color"], marker=style["marker"], markersize=5, alpha=alpha)
    axes.set_xlabel("drafted per call")
    axes.set_ylabel("tokens per call")
    axes.grid(alpha=0.2)


def _point(cell: Cell) -> tuple[float, float]:
    return cell.values["drafted_per_call"] or 0.0, cell.values["tokens_per_call"] or 1.0


def dominated(point: tuple[float, float], others: Sequence[tuple[float, float]]) -> bool:
    """Whether another point yields as much or more for as few drafted tokens or fewer."""
    return any(other[0] <= point[0] and other[1] >= point[1] and other != point for other in others)


# --- goodput -----------------------------------------------------------------------------------------------


def goodput(chosen: Sequence[Cell], index: dict[str, Any], curves: Sequence[CostCurve], what: str) -> Figure:
    """Speed-up over no drafting, drafters by workloads, a panel a cost curve; below 1 is red."""
    workloads = sorted({cell.record.spec.workload for cell in chosen})
    names = list(dict.fromkeys(cell.record.spec.variant for cell in chosen))
    columns = min(2, len(curves))
    rows = math.ceil(len(curves) / columns)
    size = (columns * (2.6 + 0.55 * len(workloads)), rows * (1.6 + 0.24 * len(names)) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    for place, curve in enumerate(curves, start=1):
        axes = figure.add_subplot(rows, columns, place)
        values = np.full((len(names), len(workloads)), np.nan)
        for cell in chosen:
            spec = cell.record.spec
            found = speed_up(curve, cell.record.measured or {})
            if found is not None:
                values[names.index(spec.variant), workloads.index(spec.workload)] = found
        _heat(axes, values)
        axes.set_title(textwrap.fill(f"{curve.label} ({curve.kind})", 40))
        axes.set_xticks(range(len(workloads)), workloads, rotation=40, ha="right")
        axes.set_yticks(range(len(names)), [index["variants"][name]["label"] for name in names])
    figure.suptitle(f"Times as fast as without drafting: {what}")
    return figure


def _heat(axes: Axes, values: np.ndarray[Any, Any]) -> None:
    highest = max(1.01, float(np.nanmax(values)))
    lowest = min(0.99, float(np.nanmin(values)))
    axes.imshow(
        values, cmap="RdBu", norm=TwoSlopeNorm(1.0, vmin=lowest, vmax=highest), aspect="auto", alpha=0.6
    )
    for (row, column), value in np.ndenumerate(values):
        if not math.isnan(value):
            weight = "bold" if value < 1 else "normal"
            color = "#8b0000" if value < 1 else "black"
            axes.text(
                column, row, f"{value:.2f}", ha="center", va="center", color=color, weight=weight, size=6
            )


def _save(figure: Figure, stem: Path) -> list[Path]:
    written = []
    for suffix, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": PNG_DPI})):
        path = stem.with_suffix(f".{suffix}")
        figure.savefig(path, format=suffix, **options)
        written.append(path)
    return written
