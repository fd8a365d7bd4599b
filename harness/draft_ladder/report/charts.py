"""Charts from a results folder and nothing else: SVG and PNG, the same bytes for the same records."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

from draft_ladder.bench.metrics import METRICS
from draft_ladder.bench.stats import Results, run_rows
from draft_ladder.report.drawing import draw, save
from draft_ladder.report.position_chart import draw_positions
from draft_ladder.report.series import Chart, collect
from draft_ladder.report.style import RC

mpl.use("Agg")

# A further chart, of any metric against any setting, is one more line at the end.
CHARTS = (
    *(Chart(metric.picture.name, metric.name) for metric in METRICS if metric.picture is not None),
    Chart("speedup", "draft_latency_us", relative=True),
    Chart("draft_latency_by_n_draft", "draft_latency_us", x="n_draft"),
    Chart("draft_latency_by_n_ctx", "draft_latency_us", x="n_ctx"),
)


def write_charts(results: Results, folder: Path) -> list[Path]:
    """Draw every chart that has data into `folder`; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = run_rows(results.records)
    written = []
    with mpl.rc_context(RC):
        for chart in CHARTS:
            series = collect(chart, rows, results.variants)
            if series:
                written += save(draw(chart, series, results), folder, chart.name)
        positions = draw_positions(results)
        if positions is not None:
            written += save(positions, folder, "acceptance_by_place")
    return written
