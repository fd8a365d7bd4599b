"""The command line: `ladder VERB`. Data goes to stdout, progress to stderr."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from harness import cache_files, e2e_cli, environment, ledgers
from harness.audit import audit_command
from harness.config import Experiment, load_experiment
from harness.corpus_comparison import command as compare_command
from harness.corpus_stats import stats_command
from harness.default_verb import CutByDefault
from harness.errors import ExitCode, InputError, LadderError
from harness.launch import demand
from harness.manifests import Progress as StageProgress
from harness.manifests import cache_dir, copy_artifact, refuse_overwriting
from harness.records import RunRecord
from harness.runner import Job, axis_values, check_axes, plan, run_experiment
from harness.variants import Variant, discover, find

INT32_MAX = 2**31 - 1

app = typer.Typer(
    name="ladder",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Measures prompt-lookup drafting, one data structure at a time, from text to chart.",
    epilog="Exit codes: 0 ok, 1 some run failed, 2 usage, config or input, 3 drafts differ, 130 interrupted.",
)
app.add_typer(cache_files.app, name="cache")
app.command("audit")(audit_command)
app.command("e2e")(e2e_cli.command)
app.command("ledgers")(ledgers.command)
stderr = Console(stderr=True, highlight=False, soft_wrap=True)

ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="Experiment as TOML, e.g. configs/smoke.toml.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the config; may be repeated."),
]
TextOption = Annotated[
    Path | None, typer.Option("--text", metavar="DIR", help="Value of ${LADDER_TEXT} in the config.")
]
CacheOption = Annotated[
    Path | None,
    typer.Option("--cache-dir", metavar="DIR", help="Default: LADDER_CACHE_DIR or ~/.cache/draft-ladder."),
]
ResultsOption = Annotated[
    Path, typer.Option("--results", metavar="DIR", help="Holds <machine>/<experiment>/.")
]
PlotsOption = Annotated[Path, typer.Option("--plots", metavar="DIR", help="Holds <machine>/<experiment>/.")]
MachineOption = Annotated[
    str | None,
    typer.Option("--machine", metavar="NAME", help="Folder name instead of the one made from the CPU."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
RESULTS, PLOTS = Path("results"), Path("plots")


def main() -> None:
    """Entry point: turns every foreseen error into one line and its exit code."""
    from harness.cli_evidence import register

    register(app)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = app(standalone_mode=False)
    except LadderError as error:
        stderr.print(f"ladder: {error}", style="red", markup=False)
        code = error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = ExitCode.INTERRUPTED
    except typer.Exit as exit_:
        code = exit_.exit_code
    except OSError as error:  # of a place nobody foresaw; what is half written is removed where it was opened
        where, reason = error.filename or "the system", error.strerror or type(error).__name__
        stderr.print(
            f"ladder: {where}: {reason}; check free space and permissions", style="red", markup=False
        )
        code = ExitCode.USAGE
    except Exception as error:
        code = _usage_error(error)
    if code == ExitCode.INTERRUPTED:  # typer may have turned the interrupt into this code itself
        stderr.print("ladder: interrupted; run again to continue", style="red")
    sys.stdout.flush()
    sys.exit(int(code or 0))


def _terminate(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _usage_error(error: Exception) -> int:
    """Show a mistake in the command line itself; anything else is a bug and keeps its traceback."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    show(file=sys.stderr)
    return int(getattr(error, "exit_code", ExitCode.USAGE))


def json_text(content: Any) -> str:
    """Strict JSON."""
    return json.dumps(content, allow_nan=False, indent=1)


def print_json(content: Any) -> None:
    """Strict JSON on stdout."""
    print(json_text(content))


# --- progress ----------------------------------------------------------------------------------------------


class Stages:
    """Shows how far the preparation has come, at most a few times a second."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, Any] = {}

    def __call__(self, state: StageProgress) -> None:
        """Take one stage's progress."""
        if state.stage not in self._tasks:
            self._tasks[state.stage] = self._progress.add_task(state.stage, total=state.total_bytes)
        left = f"{state.seconds_left:.0f} s left" if state.seconds_left is not None else ""
        self._progress.update(
            self._tasks[state.stage],
            completed=state.done_bytes,
            total=state.total_bytes,
            description=f"{state.stage} {left}",
        )


def stage_display() -> Progress:
    """A transient progress display on stderr."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=stderr, transient=True
    )


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
    from harness.stats import metric_values

    text = record.spec.describe()
    if record.failure is not None:
        return f"{text}: FAILED ({record.failure.reason}): {record.failure.detail}"
    values = {
        metric.name: value for metric, value in metric_values(record.measured or {}, record.spec.timing)
    }
    latency = values.get("draft_latency_us", values.get("draft_latency_chunk_us"))
    parts = ["nothing drafted" if latency is None else f"{latency:.3g} µs per drafted token"]
    if record.spec.timing == "histogram":
        median, tail = values["draft_call_p50_us"], values["draft_call_p99_us"]
        parts = ["no draft call" if tail is None else f"draft calls p50 {median:.3g}, p99 {tail:.3g} µs"]
    if values["load_time_s"] is not None:
        parts.append(f"load {values['load_time_s']:.3g} s")
    if values["peak_rss_mb"] is not None:
        parts.append(f"peak {values['peak_rss_mb']:.0f} MB")
    return f"{text}: {', '.join(parts)}"


# --- verbs -------------------------------------------------------------------------------------------------


@app.command("list")
def list_variants(json_: JsonOption = False) -> None:
    """List the variants that are built."""
    variants = discover()
    if json_:
        print_json([variant.model_dump(mode="json", exclude={"module"}) for variant in variants])
        return
    table = Table("name", "rung", "kind", "ties", "format", "changes", box=None)
    for variant in variants:
        rung = "" if variant.rung is None else str(variant.rung)
        changes = variant.changes + (f" (against {variant.versus})" if variant.versus else "")
        table.add_row(variant.name, rung, variant.kind, variant.tie_class, variant.static_format, changes)
    Console(highlight=False).print(table)


@app.command()
def replay(
    variant: Annotated[str, typer.Argument(metavar="VARIANT", help="Name of a variant, see `ladder list`.")],
    tokens: Annotated[Path, typer.Option("--tokens", metavar="FILE", help="int32 token file to replay.")],
    static: Annotated[
        Path | None,
        typer.Option(
            "--static", metavar="FILE", help="Static cache: llama.cpp's format or the variant's own."
        ),
    ] = None,
    n_ctx: Annotated[int, typer.Option("--n-ctx", min=2, max=INT32_MAX, help="Tokens in a chunk.")] = 4096,
    n_draft: Annotated[
        int, typer.Option("--n-draft", min=0, max=INT32_MAX, help="Most tokens in a draft.")
    ] = 3,
    dump: Annotated[
        Path | None, typer.Option("--dump", metavar="FILE", help="Write every draft here.")
    ] = None,
    timing: Annotated[str, typer.Option("--timing", help="section, chunk or histogram.")] = "section",
    axis: Annotated[
        list[str] | None, typer.Option("--axis", metavar="NAME=VALUE", help="The variant's own option.")
    ] = None,
    cpu: Annotated[int | None, typer.Option("--cpu", min=0, help="Pin the worker to this core.")] = None,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout-s", help="End the worker after this time.")
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Replay a token file with one variant in one fresh process: the primitive under everything."""
    if timing not in ("section", "chunk", "histogram"):
        raise InputError("--timing", f"{timing!r} is unknown", "use section, chunk or histogram")
    if timeout_s is not None and not 0 < timeout_s < float("inf"):
        raise InputError("--timeout-s", f"{timeout_s:g} s is no time to wait", "give seconds above 0")
    if dump is not None:
        refuse_overwriting(dump, tokens, static)
    environment.check_core(cpu, "--cpu")
    chosen = find(variant)
    options = _axis_options(chosen, axis or [])
    if static is not None:
        from harness.cache import check_same_tokenizer

        check_same_tokenizer(static, tokens)
    with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
        static_path, convert_ns = _own_format(chosen, static, Path(folder))
        request = {
            "tokens": str(tokens),
            "static": None if static_path is None else str(static_path),
            "n_ctx": n_ctx,
            "n_draft": n_draft,
            "timing": timing,
            "options": options,
            "cpu": cpu,
            "dump": None if dump is None else str(dump),
        }
        for path in (tokens, static_path):
            if path is not None:
                _warm(path)
        measured = demand(chosen, "replay", request, timeout_s=timeout_s)
    measured["convert_ns"] = convert_ns
    _explain_absence(measured, tokens)
    if json_:
        print_json(measured)
    else:
        _print_measured(measured)


def _axis_options(variant: Variant, axes: list[str]) -> dict[str, str]:
    options = {}
    for text in axes:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--axis {text}", "not name=value", "write, for example, --axis hash=murmur")
        options[name] = value
    check_axes({name: [value] for name, value in options.items()}, [variant])
    return axis_values({name: [value] for name, value in options.items()}, variant)[0]


def _own_format(variant: Variant, static: Path | None, folder: Path) -> tuple[Path | None, int | None]:
    """The static file in a format the variant reads; converting is timed apart and is no part of the load."""
    if static is None or variant.static_format == "llama":
        return static, None
    _warm(static)
    found = demand(variant, "info", {"static": str(static)})["static_format"]
    if found != "llama":
        return static, None
    target = folder / f"{static.name}.{variant.static_format}"
    done = demand(variant, "convert", {"source": str(static), "target": str(target)})
    return target, done["convert_ns"]


def _warm(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise InputError(path, "not a regular file", "give a file")
    try:
        environment.set_page_cache(path, "warm")
    except OSError as error:
        raise InputError(path, f"not readable ({error.strerror})", "give an existing file") from error


def _explain_absence(measured: dict[str, Any], tokens: Path) -> None:
    """Add the latency, or the reason for its absence."""
    from harness.stats import metric_values

    values = {metric.name: value for metric, value in metric_values(measured, measured["timing"])}
    latency = values.get("draft_latency_us", values.get("draft_latency_chunk_us"))
    reason = None
    if measured["n_chunks"] == 0:
        sizes = f"{measured['n_tokens']} tokens are not more than one chunk of {measured['n_ctx']}"
        reason = f"{sizes}: nothing was replayed"
        remedy = "give a longer token file or a smaller --n-ctx"
        stderr.print(f"{tokens}: {reason}; {remedy}", style="yellow", markup=False)
    elif latency is None:
        reason = "nothing was drafted"
    measured["draft_latency_us"] = latency
    measured["draft_latency_note"] = reason


def _print_measured(measured: dict[str, Any]) -> None:
    for name, value in measured.items():
        if not isinstance(value, dict | list):
            print(f"{name:28} {'null' if value is None else value}")


@app.command()
def run(
    config: ConfigArgument,
    set_: SetOption = None,
    text: TextOption = None,
    cache: CacheOption = None,
    results: ResultsOption = RESULTS,
    machine: MachineOption = None,
    force: Annotated[bool, typer.Option("--force", help="Measure again what was measured already.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the runs in their order and make none.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Run an experiment: make what it needs, measure what is missing, check the drafts."""
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
    from harness.prepare import Preparation

    variants = [find(name) for name in experiment.variants]
    check_axes(experiment.axes, variants)
    folder = results / environment.machine_folder(machine) / experiment.name
    environment.check_core(experiment.cpu)
    for line in environment.warnings(experiment.cpu):
        stderr.print(f"warning: {line}", style="yellow", markup=False)
    with stage_display() as display:
        preparation = Preparation(
            experiment, cache_dir(cache), text_dir=text, note=note, progress=Stages(display)
        )
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


def note(line: str) -> None:
    """A line on stderr."""
    stderr.print(line, markup=False)


def _print_plan(jobs: list[Job], folder: Path, force: bool, json_: bool) -> None:
    from harness.records import load_record

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


@app.command()
def doctor(cache: CacheOption = None, json_: JsonOption = False) -> None:
    """Check what a run needs: compiler, modules, tokenizer, hub, disk, quiet."""
    from harness.doctor import examine

    findings = examine(cache_dir(cache))
    if json_:
        print_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            print(f"{finding.state:8} {finding.name:10} {finding.detail}")
    if any(finding.state == "error" for finding in findings):
        raise typer.Exit(int(ExitCode.USAGE))


corpus_app = typer.Typer(
    cls=CutByDefault, no_args_is_help=True, help="Corpora: cut one from a source, or look into tokens."
)
corpus_app.command("stats")(stats_command)
corpus_app.command("compare")(compare_command)
app.add_typer(corpus_app, name="corpus")


@corpus_app.command("cut")
def corpus(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="default, wikitext-103, stdlib, files, synthetic.")
    ],
    size_mb: Annotated[
        float, typer.Option("--size-mb", help="MB (10^6 bytes) of the source, cut at a line end.")
    ],
    train: Annotated[
        list[str] | None, typer.Option("--train", metavar="GLOB", help="Corpus files (source files).")
    ] = None,
    replay_: Annotated[
        list[str] | None, typer.Option("--replay", metavar="GLOB", help="Text to replay (source files).")
    ] = None,
    path: Annotated[
        str | None, typer.Option("--path", metavar="DIR", help="A local copy (source wikitext-103).")
    ] = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Take what there is where the source has less.")
    ] = False,
    cache: CacheOption = None,
    json_: JsonOption = False,
) -> None:
    """Make a corpus and the text to replay, as plain files in the cache."""
    from dataclasses import asdict

    from harness.config import corpus_source
    from harness.corpus import build_corpus, replay_text, resolve_source

    options = {"train": train, "replay": replay_, "path": path}
    config = corpus_source({"source": source, **{key: value for key, value in options.items() if value}})
    where = cache_dir(cache)
    with stage_display() as display:
        resolved = resolve_source(config, where)
        if resolved.note:
            note(resolved.note)
        made = build_corpus(resolved, size_mb, where, Stages(display), clip=clip)
        text = replay_text(resolved, where, Stages(display))
    _print_artifacts({"corpus": asdict(made), "replay": asdict(text)}, json_)


@app.command()
def tokens(
    text: Annotated[Path, typer.Argument(metavar="TEXT", help="A text file.")],
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", help="tekken, gguf:PATH, or a tokenizer.json.")
    ] = "tekken",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Copy the token file here.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Threads; default: all usable cores.")
    ] = None,
    cache: CacheOption = None,
    json_: JsonOption = False,
) -> None:
    """Turn a text into a file of int32 tokens."""
    from dataclasses import asdict

    if out is not None:
        refuse_overwriting(out, text)

    from harness.tokenizers import load_tokenizer
    from harness.tokens import tokenize_file

    with stage_display() as display:
        made = tokenize_file(
            text,
            load_tokenizer(tokenizer),
            cache_dir(cache),
            jobs=jobs,
            progress=Stages(display),
            report=note,
        )
    content = asdict(made)
    if out is not None:
        content["path"] = copy_artifact(made.path, out)
    _print_artifacts({"tokens": content}, json_)


def _print_artifacts(artifacts: dict[str, dict[str, Any]], json_: bool) -> None:
    plain = {
        name: {key: str(value) if isinstance(value, Path) else value for key, value in fields.items()}
        for name, fields in artifacts.items()
    }
    if json_:
        print_json(plain)
        return
    for fields in plain.values():
        size = f"{fields['bytes']} bytes" if "bytes" in fields else f"{fields['n_tokens']} tokens"
        print(f"{fields['path']}  {size}  sha256 {fields['sha256']}")


TargetArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG|RESULTS", help="A config, or results/<machine>/<experiment>.")
]


@app.command()
def stats(
    target: TargetArgument,
    results: ResultsOption = RESULTS,
    machine: MachineOption = None,
    json_: JsonOption = False,
) -> None:
    """Write runs.csv and summary.csv from a results folder's records, and print the figures."""
    _stats(_results_folder(target, results, machine), json_)


def _results_folder(target: Path, results: Path, machine: str | None) -> Path:
    """The results folder that is meant: itself, or the one this machine's run of a config writes."""
    if target.suffix != ".toml":
        return target
    return results / environment.machine_folder(machine) / load_experiment(target)[0].name


def _stats(folder: Path, json_: bool) -> None:
    from dataclasses import asdict

    from harness.stats import failures, load_results, write_csv_files
    from harness.stats_table import as_text, tables

    results = load_results(folder)
    _, summary = write_csv_files(results)
    for line in failures(results.records):
        stderr.print(f"failed, left out: {line}", style="red", markup=False)
    if results.missing_total:
        note(f"unfinished: {results.missing_total} runs are still to be made")
    if results.superseded_total:
        note(f"{results.superseded_total} records of earlier settings or builds are left out")
    note(f"{folder / 'runs.csv'}, {folder / 'summary.csv'}")
    if json_:
        print_json([asdict(row) for row in summary])
        return
    print("\n\n".join(as_text(table) for table in tables(summary)))


@app.command()
def charts(
    target: TargetArgument,
    results: ResultsOption = RESULTS,
    plots: PlotsOption = PLOTS,
    machine: MachineOption = None,
) -> None:
    """Draw the charts from a results folder alone."""
    _charts(_results_folder(target, results, machine), plots)


def _charts(folder: Path, plots: Path) -> None:
    from harness.charts import write_charts
    from harness.stats import load_results

    # results/<machine>/<experiment> -> plots/<machine>/<experiment>
    target = plots / folder.resolve().parent.name / folder.resolve().name
    for path in write_charts(load_results(folder), target):
        print(path)


@app.command("all")
def all_(
    config: ConfigArgument,
    set_: SetOption = None,
    text: TextOption = None,
    cache: CacheOption = None,
    results: ResultsOption = RESULTS,
    plots: PlotsOption = PLOTS,
    machine: MachineOption = None,
    force: Annotated[bool, typer.Option("--force", help="Measure again what was measured already.")] = False,
) -> None:
    """Run an experiment, then write its statistics and charts: from text to picture."""
    code = _run(config, set_, text, cache, results, machine, force, dry_run=False, json_=False)
    experiment, _ = load_experiment(config, set_ or [])
    folder = results / environment.machine_folder(machine) / experiment.name
    _stats(folder, json_=False)
    _charts(folder, plots)
    raise typer.Exit(int(code))
