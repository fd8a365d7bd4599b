"""The verbs of an experiment: `ladder run`, `stats`, `charts`, and `all` of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from draft_ladder.base.errors import ExitCode, InputError, RunFailedError
from draft_ladder.base.manifests import cache_dir
from draft_ladder.base.variants import Variant, discover_all, find
from draft_ladder.bench import environment
from draft_ladder.bench.config import Experiment, load_experiment
from draft_ladder.bench.places import refuse_elsewhere
from draft_ladder.bench.prepare import Preparation
from draft_ladder.bench.records import load_record
from draft_ladder.bench.runner import Job, check_axes, plan, run_experiment
from draft_ladder.bench.stats import failures, load_results, run_rows, summarize, write_csv_files
from draft_ladder.cli.display import RunDisplay, note, print_json, stages, stderr
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
    TargetArgument,
    TextOption,
)
from draft_ladder.report.alike import mixed
from draft_ladder.report.stats_table import tables
from draft_ladder.report.style import as_text


def run(
    config: ConfigArgument,
    set_: SetOption = None,
    text: TextOption = None,
    cache: CacheOption = None,
    results: ResultsOption = RESULTS,
    machine: MachineOption = None,
    force: ForceOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show which runs there would be, in their order, and make none.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Run an experiment: make the texts and caches it needs, measure what is missing, check the drafts."""
    code = _run(config, set_, text, cache, results, machine, force, dry_run, json_)
    raise typer.Exit(int(code))


def _run(
    config: Path,
    set_: list[str] | None,
    text: Path | None,
    cache: Path | None,
    results: Path,
    machine: str | None,
    force: bool,
    dry_run: bool,
    json_: bool,
) -> ExitCode:
    experiment, overrides = load_experiment(config, set_ or [])
    return measure(experiment, overrides, text, cache, results, machine, force, dry_run, json_)[0]


def measure(
    experiment: Experiment,
    overrides: dict[str, Any],
    text: Path | None,
    cache: Path | None,
    results: Path,
    machine: str | None,
    force: bool = False,
    dry_run: bool = False,
    json_: bool = False,
) -> tuple[ExitCode, Path]:
    """Prepare and run an experiment with its progress on stderr; the exit code and the results folder."""
    variants = _found(experiment.variants)
    check_axes(experiment.axes, variants)
    folder = results / environment.machine_folder(machine) / experiment.name
    environment.check_core(experiment.cpu)
    if not dry_run:
        refuse_elsewhere(folder, experiment.cpu)
    for line in environment.warnings(experiment.cpu):
        stderr.print(f"warning: {line}", style="yellow", markup=False)
    with stages() as progress:
        preparation = Preparation(experiment, cache_dir(cache), text_dir=text, note=note, progress=progress)
        inputs = preparation.inputs(variants)
    jobs = plan(experiment, inputs, variants)
    if dry_run:
        _print_plan(jobs, folder, force, json_)
        return ExitCode.OK, folder
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True) as bar:
        observer = RunDisplay(bar)
        code = run_experiment(experiment, jobs, folder, observer, overrides=overrides, force=force)
    note(f"{len(jobs)} runs, {observer.skipped_total} of them measured before, in {folder}")
    if json_:
        print_json(
            {
                "folder": str(folder),
                "runs_total": len(jobs),
                "skipped_total": observer.skipped_total,
                "exit_code": code,
            }
        )
    return code, folder


def _found(names: Sequence[str]) -> list[Variant]:
    """The variants of these names. A peer that is not built here is left out with its reason: nobody has to
    have other projects' code to run an experiment.
    """
    skipped = {variant.name: variant for variant in discover_all() if variant.skipped is not None}
    absent = [name for name in names if name in skipped and skipped[name].group == "peers"]
    for name in absent:
        note(f"{name} is left out: {skipped[name].skipped}")
    return [find(name) for name in names if name not in absent]


def _print_plan(jobs: list[Job], folder: Path, force: bool, json_: bool) -> None:
    rows = []
    for job in jobs:
        path = folder / "runs" / f"{job.spec.key}.json"
        state = "missing"
        if path.exists():
            state = "failed" if load_record(path).status == "failed" else "measured"
        rows.append(
            {
                "order": job.spec.order,
                "key": job.spec.key,
                "run": job.spec.describe(),
                "state": state,
                "action": "skip" if state == "measured" and not force else "run",
            }
        )
    if json_:
        print_json(rows)
        return
    for row in rows:
        print(f"{row['order']:4} {row['key']} {row['action']:4} ({row['state']}) {row['run']}")


def stats(
    target: TargetArgument,
    results: ResultsOption = RESULTS,
    machine: MachineOption = None,
    json_: JsonOption = False,
) -> None:
    """Print the figures of an experiment and write them to runs.csv and summary.csv."""
    _stats(_results_folder(target, results, machine), json_)


def _results_folder(target: Path, results: Path, machine: str | None) -> Path:
    """The results folder that is meant: itself, or the one this machine's run of a config writes."""
    if target.suffix != ".toml":
        return target
    return results / environment.machine_folder(machine) / load_experiment(target)[0].name


def _stats(folder: Path, json_: bool) -> None:

    results = load_results(folder)
    summary = summarize(run_rows(results.records))
    try:
        write_csv_files(results)
        note(f"{folder / 'runs.csv'}, {folder / 'summary.csv'}")
    except InputError as error:  # the figures can be read all the same
        note(f"not written: {error}")
    for line in failures(results.records):
        stderr.print(f"failed, left out: {line}", style="red", markup=False)
    for line in mixed(results):
        stderr.print(f"warning: {line}", style="yellow", markup=False)
    if results.missing_total:
        note(f"unfinished: {results.missing_total} runs are still to be made")
    if results.superseded_total:
        note(f"{results.superseded_total} records of earlier settings or builds are left out")
    if json_:
        print_json([asdict(row) for row in summary])
        return
    print("\n\n".join(as_text(table) for table in tables(summary)))


def charts(
    target: TargetArgument,
    results: ResultsOption = RESULTS,
    plots: PlotsOption = PLOTS,
    machine: MachineOption = None,
) -> None:
    """Draw the charts of an experiment from its records alone."""
    failed: list[str] = []
    _charts(_results_folder(target, results, machine), plots, failed)
    if failed:
        raise RunFailedError("\n".join(failed))


def _charts(folder: Path, plots: Path, failed: list[str]) -> None:
    from draft_ladder.report.charts import write_charts  # brings matplotlib

    for path in write_charts(load_results(folder), plots_of(folder, plots), failed):
        print(path)


def plots_of(folder: Path, plots: Path) -> Path:
    """results/<machine>/<experiment> -> plots/<machine>/<experiment>."""
    return plots / folder.resolve().parent.name / folder.resolve().name


def all_(
    config: ConfigArgument,
    set_: SetOption = None,
    text: TextOption = None,
    cache: CacheOption = None,
    results: ResultsOption = RESULTS,
    plots: PlotsOption = PLOTS,
    machine: MachineOption = None,
    force: ForceOption = False,
) -> None:
    """Run an experiment, print its figures and draw its charts: `run`, `stats` and `charts` in one."""
    code = _run(config, set_, text, cache, results, machine, force, dry_run=False, json_=False)
    experiment, _ = load_experiment(config, set_ or [])
    folder = results / environment.machine_folder(machine) / experiment.name
    _stats(folder, json_=False)
    failed: list[str] = []
    try:
        _charts(folder, plots, failed)
    except (ImportError, OSError, ValueError) as error:  # of matplotlib itself, or of the folder
        failed.append(
            f"charts: {' '.join(str(error).split())}; draw them again with `ladder charts {folder}`"
        )
    for line in failed:
        stderr.print(line, style="yellow", markup=False)
    raise typer.Exit(int(code))  # what was measured decides, not what could be drawn of it
