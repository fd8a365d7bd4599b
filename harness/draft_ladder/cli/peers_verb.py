"""`ladder peers`: replay requests with drafters that others wrote and with ours, and compare them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import cache_dir
from draft_ladder.base.variants import Variant
from draft_ladder.bench import environment
from draft_ladder.cli.display import note, print_json, stderr
from draft_ladder.cli.options import (
    PLOTS,
    RESULTS,
    CacheOption,
    ConfigArgument,
    ForceOption,
    JsonOption,
    MachineOption,
    PlotsOption,
    ResultsOption,
    SetOption,
    TextOption,
)
from draft_ladder.data.tokenizers import Tokenizer, load_tokenizer
from draft_ladder.peers.available import find_all, why_not
from draft_ladder.peers.charts import write_charts
from draft_ladder.peers.costs import load_cost_curve
from draft_ladder.peers.experiment import RequestExperiment, fill_in, load_request_experiment
from draft_ladder.peers.page import write_page
from draft_ladder.peers.records import RequestRecord
from draft_ladder.peers.requests import RequestTokens, tokenize_requests
from draft_ladder.peers.runner import RequestJob, check_sweeps, plan, run_requests


def peers(
    config: ConfigArgument,
    set_: SetOption = None,
    text: TextOption = None,
    cache: CacheOption = None,
    results: ResultsOption = RESULTS,
    plots: PlotsOption = PLOTS,
    machine: MachineOption = None,
    force: ForceOption = False,
    json_: JsonOption = False,
) -> None:
    """Replay requests with every drafter of a config: records, tables and charts."""
    experiment, overrides = load_request_experiment(config, set_ or [])
    curves = [load_cost_curve(config.parent / "costs" / f"{name}.toml") for name in experiment.costs]
    environment.check_core(experiment.cpu)
    variants, skipped = _usable(experiment)
    tokenizer = load_tokenizer(fill_in(experiment.tokenizer, "tokenizer", text))
    workloads = _workloads(experiment, tokenizer, text, config.parent, cache_dir(cache))
    for line in environment.warnings(experiment.cpu):
        stderr.print(f"warning: {line}", style="yellow", markup=False)
    place = Path(environment.machine_folder(machine)) / experiment.name
    jobs = plan(experiment, workloads, tokenizer, variants)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True) as bar:
        code = run_requests(
            experiment,
            jobs,
            results / place,
            _Display(bar),
            skipped=skipped,
            overrides=overrides,
            force=force,
        )
    written = [*write_page(results / place), *write_charts(results / place, plots / place, curves)]
    for path in written:
        note(f"wrote {path}")
    if json_:
        print_json({"folder": str(results / place), "runs_total": len(jobs), "exit_code": code})
    raise typer.Exit(int(code))


def _usable(experiment: RequestExperiment) -> tuple[list[Variant], dict[str, str]]:
    """The experiment's drafters that can run here, and why the others cannot."""
    known = find_all(experiment.variants)
    skipped = {variant.name: reason for variant in known if (reason := why_not(variant)) is not None}
    for name, reason in skipped.items():
        note(f"{name} is left out: {reason}")
    check_sweeps(experiment, {variant.name: variant for variant in known})
    usable = [variant for variant in known if variant.name not in skipped]
    if not usable:
        raise InputError("variants", "none of them can run here", "`make peers` builds the peers")
    return usable, skipped


def _workloads(
    experiment: RequestExperiment, tokenizer: Tokenizer, text: Path | None, base: Path, cache: Path
) -> list[RequestTokens]:
    workloads: dict[str, RequestTokens] = {}
    for path in experiment.files(text, base):
        found = tokenize_requests(path, tokenizer, cache, experiment.replay.max_response_tokens)
        if found.workload in workloads:
            raise InputError(
                path, f"workload {found.workload} was given before", "give each workload one file"
            )
        workloads[found.workload] = found
        note(f"{found.workload}: {len(found.requests)} requests, {found.n_response:,} response tokens")
    return list(workloads.values())


class _Display:
    """A bar with the time left, and a line for every run that failed."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task: Any = None

    def started(self, total: int) -> None:
        self._task = self._progress.add_task("replaying", total=total)

    def skipped(self, job: RequestJob, why: str) -> None:
        self._progress.advance(self._task)

    def running(self, job: RequestJob) -> None:
        self._progress.update(self._task, description=job.spec.describe())

    def finished(self, job: RequestJob, record: RequestRecord) -> None:
        self._progress.advance(self._task)
        if record.failure is not None:
            note(f"{record.spec.describe()}: {record.failure.reason}: {record.failure.detail}")

    def note(self, line: str) -> None:
        note(line)
