"""Charts from a results folder and nothing else: SVG and PNG, the same bytes for the same records."""

from __future__ import annotations

from pathlib import Path

from draft_ladder.base.errors import RunFailedError
from draft_ladder.bench.metrics import METRICS
from draft_ladder.bench.stats import Results, run_rows
from draft_ladder.report.drawing import draw
from draft_ladder.report.pictures.canvas import drawn_alone, own_settings, save
from draft_ladder.report.pictures.position_chart import draw_positions
from draft_ladder.report.series import Chart, collect

# A further chart, of any metric against any setting, is one more line at the end.
CHARTS = (
    *(Chart(metric.picture.name, metric.name) for metric in METRICS if metric.picture is not None),
    Chart("speedup", "draft_latency_us", relative=True),
    Chart("draft_latency_by_n_draft", "draft_latency_us", x="n_draft"),
    Chart("draft_latency_by_n_ctx", "draft_latency_us", x="n_ctx"),
)


def write_charts(results: Results, folder: Path, failed: list[str] | None = None) -> list[Path]:
    """Draw every chart that has data into `folder`; the files written.

    A chart that cannot be drawn is a line in `failed`. Raises RunFailedError where nobody asks for these,
    when all the others are drawn.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = run_rows(results.records)
    written: list[Path] = []
    lines: list[str] = []
    with own_settings():
        for chart in CHARTS:
            with drawn_alone(chart.name, lines):
                series = collect(chart, rows, results.variants)
                if series:
                    written += save(draw(chart, series, results), folder, chart.name)
        with drawn_alone("acceptance_by_place", lines):
            positions = draw_positions(results)
            if positions is not None:
                written += save(positions, folder, "acceptance_by_place")
    if failed is not None:
        failed += lines
    elif lines:
        raise RunFailedError("\n".join(lines))
    return written
