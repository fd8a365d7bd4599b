"""What a verb says: figures on stdout, progress and notes on stderr."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from draft_ladder.base.manifests import Progress as StageProgress
from draft_ladder.base.manifests import ProgressCallback
from draft_ladder.bench.metrics import HISTOGRAM, metric_values
from draft_ladder.bench.records import RunRecord
from draft_ladder.bench.runner import Job
from draft_ladder.report.style import format_number

stderr = Console(stderr=True, highlight=False, soft_wrap=True)


def note(line: str) -> None:
    """A line on stderr."""
    stderr.print(line, markup=False)


def json_text(content: Any) -> str:
    """Strict JSON."""
    return json.dumps(content, allow_nan=False, indent=1)


def print_json(content: Any) -> None:
    """Strict JSON on stdout."""
    print(json_text(content))


class Stages:
    """Shows how far each stage has come, with its pace and the time left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, Any] = {}

    def __call__(self, state: StageProgress) -> None:
        """Take one stage's progress."""
        if state.stage not in self._tasks:
            self._tasks[state.stage] = self._progress.add_task(state.stage, total=state.total_bytes)
        pace = f" {state.tokens_per_s / 1e6:.1f} million tokens/s" if state.tokens_per_s else ""
        left = f" {state.seconds_left:.0f} s left" if state.seconds_left is not None else ""
        self._progress.update(
            self._tasks[state.stage],
            completed=state.done_bytes,
            total=state.total_bytes,
            description=f"{state.stage}{pace}{left}",
        )


@contextmanager
def stages() -> Iterator[ProgressCallback | None]:
    """What to tell the progress of stages to: a display on stderr, or nothing where that is no terminal."""
    if not stderr.is_terminal:
        yield None
        return
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=stderr, transient=True) as display:
        yield Stages(display)


class RunDisplay:
    """The runner's observer: a bar with the time left, and a line for every run."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: Any = None
        self.skipped_total = 0

    def started(self, total: int) -> None:
        """Set the bar up."""
        self._task = self._progress.add_task("runs", total=total)

    def skipped(self, job: Job, why: str) -> None:
        """Count quietly: a resumed experiment may skip most of its runs."""
        self.skipped_total += 1
        self._progress.update(self._task, advance=1, description=f"skipped {self.skipped_total}: {why}")

    def running(self, job: Job) -> None:
        """Name the run in progress."""
        self._progress.update(self._task, description=job.spec.describe())

    def finished(self, job: Job, record: RunRecord) -> None:
        """One line with the figures."""
        self._progress.update(self._task, advance=1)
        self._progress.console.print(run_line(record), style="red" if record.failure else None, markup=False)

    def note(self, line: str) -> None:
        """One more line."""
        self._progress.console.print(line, style="yellow", markup=False)


def run_line(record: RunRecord) -> str:
    """A record in one line."""
    text = record.spec.describe()
    if record.failure is not None:
        return f"{text}: FAILED ({record.failure.reason}): {record.failure.detail}"
    values = {
        metric.name: value for metric, value in metric_values(record.measured or {}, record.spec.timing)
    }
    latency = values.get("draft_latency_us", values.get("draft_latency_chunk_us"))
    nothing = "nothing drafted" + (" as n_draft is 0" if record.spec.n_draft == 0 else "")
    parts = [nothing if latency is None else f"{format_number(latency, 3)} µs per drafted token"]
    if record.spec.timing == HISTOGRAM:
        median, tail = values["draft_call_p50_us"], values["draft_call_p99_us"]
        figures = f"draft calls p50 {format_number(median, 3)}, p99 {format_number(tail, 3)} µs"
        parts = ["no draft call" if tail is None else figures]
    if values["load_time_s"] is not None:
        parts.append(f"load {format_number(values['load_time_s'], 3)} s")
    if values["peak_rss_mb"] is not None:
        parts.append(f"peak {format_number(values['peak_rss_mb'], 3)} MB")
    return f"{text}: {', '.join(parts)}"
