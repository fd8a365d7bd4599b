"""The verbs that judge what was measured: ablate, claims, compare, export, instructions, rounds, audit.

Each imports its own module when it is called: together they would take a tenth of every verb's start.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from draft_ladder.base import native
from draft_ladder.base.errors import ExitCode, InputError
from draft_ladder.base.manifests import refuse_overwriting, write_atomic
from draft_ladder.base.variants import Variant, find
from draft_ladder.bench.config import Experiment, load_experiment, parse_override
from draft_ladder.bench.launch import demand
from draft_ladder.bench.stats import load_results, write_csv_files
from draft_ladder.cli.display import json_text, note, print_json
from draft_ladder.cli.options import (
    PLOTS,
    RESULTS,
    CacheOption,
    JsonOption,
    MachineOption,
    NCtxOption,
    NDraftOption,
    PlotsOption,
    ResultsOption,
    SetOption,
    TextOption,
    out_option,
)
from draft_ladder.cli.run_verbs import measure, plots_of
from draft_ladder.data.cache import tokens_for
from draft_ladder.report.caption import absences
from draft_ladder.report.style import TextTable, as_text

if TYPE_CHECKING:
    from draft_ladder.studies.instructions import Counts

ResultsArguments = Annotated[
    list[Path], typer.Argument(metavar="RESULTS...", help="Results folders, results/<machine>/<experiment>.")
]
ResultsArgument = Annotated[
    Path, typer.Argument(metavar="RESULTS", help="A results folder, results/<machine>/<experiment>.")
]
ROUNDS_ADDED = 2
CLAIMS = Path("configs/claims/article.toml")


def ablate(
    variant: Annotated[
        str, typer.Argument(metavar="VARIANT", help="The variant to judge against the one it changes.")
    ],
    config: Annotated[
        Path, typer.Option("--config", metavar="FILE", help="The experiment whose sizes and texts are used.")
    ] = Path("configs/reproduce.toml"),
    from_: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="RESULTS",
            help="Judge these records, or those --set chooses; measure nothing.",
        ),
    ] = None,
    max_repeats: Annotated[
        int,
        typer.Option(
            "--max-repeats", min=1, help="Measure no further round after this many, be it narrow or not."
        ),
    ] = 15,
    width: Annotated[
        float,
        typer.Option("--width", min=0, help="A 95 % interval is narrow whose ends are this share apart."),
    ] = 0.05,
    set_: SetOption = None,
    text: TextOption = None,
    cache: CacheOption = None,
    results: ResultsOption = RESULTS,
    plots: PlotsOption = PLOTS,
    machine: MachineOption = None,
    json_: JsonOption = False,
) -> None:
    """Measure what one change is worth: a variant against the one it was made from, as ratios and a chart.

    Rounds are added until the interval of every ratio is narrow, or --max-repeats is reached.
    """
    from draft_ladder.report.ablate import as_table, counterpart, ratios, sentence, width_line
    from draft_ladder.report.pictures.ablate_chart import write_chart
    from draft_ladder.report.pictures.canvas import drawn_alone

    chosen = find(variant)
    names = (chosen.name, counterpart(chosen))
    folder, code = from_, ExitCode.OK
    settings = dict(map(parse_override, set_ or [])) if from_ else {}
    if folder is None:
        where = (text, cache, results, machine)
        code, folder = _measure_until_narrow(
            chosen, *load_experiment(config, set_ or []), where, max_repeats, width
        )
    found = load_results(folder)
    if from_ is None:
        write_csv_files(found)
    figures = ratios(found, names, settings)
    line = sentence(figures, found.variants.get(chosen.name, {}), names)
    failed: list[str] = []
    written: list[Path] = []
    with drawn_alone(chosen.name, failed):
        written = write_chart(figures, found, names, plots_of(folder, plots))
    note("\n".join([*absences(found), *map(str, written), *failed]))
    wide = width_line(figures, width)
    if json_:
        print_json({"sentence": line, "not_narrow": wide, "ratios": [asdict(one) for one in figures]})
    else:
        print("\n\n".join(filter(None, (as_text(as_table(figures, names)), line, wide))))
    raise typer.Exit(int(code))


def _measure_until_narrow(
    variant: Variant,
    base: Experiment,
    overrides: dict[str, Any],
    where: tuple[Path | None, Path | None, Path, str | None],
    most: int,
    width: float,
) -> tuple[ExitCode, Path]:
    """Rounds of a variant and its counterpart, as many as narrow intervals take; `where`: for `measure`.

    What was measured before is kept: a round more is all that is run.
    """
    from draft_ladder.report.ablate import counterpart, experiment_for, ratios, too_wide
    from draft_ladder.report.pairs import MIN_PAIRS

    experiment = experiment_for(base, variant)
    repeats = max(experiment.repeats, min(MIN_PAIRS, most))
    while True:
        experiment = experiment.model_copy(update={"repeats": repeats})
        code, folder = measure(experiment, overrides, *where)
        if code == ExitCode.DRAFTS_DIFFER:
            raise typer.Exit(int(code))
        if repeats >= most or code != ExitCode.OK:
            return code, folder
        wide = too_wide(ratios(load_results(folder), (variant.name, counterpart(variant))), width)
        if not wide:
            return code, folder
        repeats = min(repeats + ROUNDS_ADDED, most)
        note(f"{len(wide)} intervals are over {width:.0%} wide: going on to {repeats} repeats")


def claims(
    folders: ResultsArguments,
    file: Annotated[
        Path, typer.Option("--claims", metavar="FILE", help="The claims to judge, a TOML file.")
    ] = CLAIMS,
    format_: Annotated[str, typer.Option("--format", help="Print a table, json or markdown.")] = "table",
    out: Annotated[Path | None, out_option("Write to this file instead of to the terminal.")] = None,
    json_: JsonOption = False,
) -> None:
    """Judge every figure that the article claims by the records of one or more runs."""
    from draft_ladder.report.claims import load_claims
    from draft_ladder.report.claims_page import (
        as_page,
        as_short_table,
        explanations,
        notes_of,
        remarks,
        tally,
    )
    from draft_ladder.report.judge import judge

    chosen = "json" if json_ else format_
    if chosen not in ("table", "json", "markdown"):
        raise InputError("--format", f"{format_!r} is unknown", "use table, json or markdown")
    if out is not None:
        refuse_overwriting(out, file, *_files_of(*folders))
    loaded = load_claims(file)
    found = [load_results(folder) for folder in folders]
    judged = judge(loaded, found)
    if chosen == "json":
        content = {
            "tally": tally(judged),
            "notes": notes_of(found),
            "claims": [one.as_dict() for one in judged],
        }
        text = json_text(content) + "\n"
    elif chosen == "markdown":
        text = as_page(loaded, judged, found)
    else:
        reasons = [f"{name}: {why}" for name, why in explanations(judged) + remarks(judged)]
        text = "\n".join([as_text(as_short_table(judged)), "", *notes_of(found), *reasons]) + "\n"
    if out is not None:
        write_atomic(out, text.encode())
    else:
        print(text, end="")


def _files_of(*folders: Path) -> list[Path]:
    """What a results folder holds: never to be written over by what is made from it."""
    return [path for folder in folders for path in folder.rglob("*.json")]


def compare(
    run_a: Annotated[
        str, typer.Argument(metavar="RUN_A", help="The run before: a results folder, or REV:FOLDER.")
    ],
    run_b: Annotated[
        str, typer.Argument(metavar="RUN_B", help="The run after: a results folder, or REV:FOLDER.")
    ],
    force: Annotated[
        bool, typer.Option("--force", help="Compare even where settings, texts or machines differ.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Compare two runs figure by figure: by what ratio they differ, and whether their ranges overlap."""
    from draft_ladder.report.compare import as_table, compare, opened

    with opened(run_a) as a, opened(run_b) as b:
        found = compare(a, b, force=force)
    for line in found.differences:
        note(f"unlike: {line}")
    for line in found.notes:
        note(line)
    for name, only in (("A", found.only_a), ("B", found.only_b)):
        if only:
            note(f"only in {name}: {', '.join(only)}")
    if json_:
        print_json(asdict(found))
    else:
        print(as_text(as_table(found)))


def export(
    folder: ResultsArgument,
    pyperf: Annotated[bool, typer.Option("--pyperf", help="Write what `python -m pyperf` reads.")] = False,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", help="Only this figure of summary.csv; may be repeated.")
    ] = None,
    out: Annotated[Path | None, out_option("Write to this file instead of to the terminal.")] = None,
) -> None:
    """Write the records as a file for other tools, such as `python -m pyperf compare_to`."""
    from draft_ladder.bench.metrics import shown_in
    from draft_ladder.report.export import pyperf_suite, to_json

    if not pyperf:
        raise InputError("export", "no format is named", "give --pyperf")
    costs = shown_in("export")
    unknown = sorted(set(metric or []) - set(costs))
    if unknown:
        raise InputError("--metric", f"{unknown[0]!r} cannot be exported", f"use {', '.join(costs)}")
    if out is not None:
        refuse_overwriting(out, *_files_of(folder))
    results = load_results(folder)
    if absent := absences(results):
        note("\n".join(absent))
    text = to_json(pyperf_suite(results, metric or ()))
    if out is not None:
        write_atomic(out, text.encode())
    else:
        print(text, end="")


def instructions(
    variant: Annotated[
        list[str] | None,
        typer.Argument(metavar="[VARIANT]...", help="Variants to count (default: the rungs and beyond)."),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Write the counts into tests/instructions.json.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Fail if a phase takes over 2 % more than is committed.")
    ] = False,
    base: Annotated[
        str | None,
        typer.Option("--base", metavar="REV", help="Compare with this commit, counted here and now."),
    ] = None,
    build_folder: Annotated[
        Path, typer.Option("--build", metavar="DIR", help="Where the counted programs are built.")
    ] = Path("build/instructions"),
    json_: JsonOption = False,
) -> None:
    """Count the instructions that drafting one token takes, with valgrind: a check that noise cannot touch.

    Needs a checkout of the project, cmake, a C++ compiler and valgrind.
    """
    from draft_ladder.studies import instructions as counting

    variants = variant or counting.default_variants()
    # Read before --record writes over them: counts compared with themselves have never grown.
    committed = counting.load_figures() if record or check else {}
    key, counts = counting.count_all(checkout(counting.ROOT), build_folder, variants)
    if json_:
        print_json({"key": key, "counts": {name: asdict(found) for name, found in counts.items()}})
    else:
        _print_counts(key, counts)
    if record:
        counting.save_figures(key, counts)
        note(f"{counting.FIGURES}: figures of {key}")
    if check or base:
        before = counting.counts_before(committed.get(key, {}), variants, base, note)
        grown = counting.growths(before, counts)
        for one in grown:
            note(str(one))
        raise typer.Exit(int(ExitCode.RUN_FAILED if grown else ExitCode.OK))


def _print_counts(key: str, counts: dict[str, Counts]) -> None:
    rows = [
        (name, *(f"{value:.1f}" for value in (found.draft, found.update, found.end_chunk)))
        for name, found in counts.items()
    ]
    title = f"Instructions per drafted token, {key}"
    print(as_text(TextTable(title, ("variant", "draft", "update", "merge"), rows)))


def checkout(root: Path) -> Path:
    """InputError for an installed package: it holds no sources to compile."""
    if not (root / "CMakeLists.txt").is_file():
        raise InputError(root, "is not a checkout", "clone the project and `pip install --editable .` there")
    return root


def rounds(
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="RESULTS",
            help="Write it into this results folder, for `ladder claims`.",
        ),
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Compile the search of sorted lists and show its machine code's branches and rounds.

    Needs a checkout of the project, a C++ compiler (g++ or clang++) and objdump.
    """
    from draft_ladder.studies import rounds as machine_code

    checkout(machine_code.SOURCES.parent)
    flags = str(demand(find("sorted_vectors"), "info", {})["build"]["cxx_flags"])
    found = [machine_code.examine(compiler, flags) for compiler in machine_code.compilers()]
    if not found:
        raise InputError("compiler", "there is none", "install g++ or clang++")
    if record is not None:
        note(str(machine_code.write(record, found)))
    if json_:
        print_json(machine_code.as_dict(found))
        return
    for one in found:
        print(
            f"{one.compiler}: {one.rounds_of_eight} rounds for eight entries, "
            f"{one.backward_branches} backward branch, {one.conditional_branches} conditional, "
            f"{one.conditional_moves} conditional move"
            f"{'' if one.fixed else ': NOT fixed'}; std::lower_bound: {one.lower_bound}"
        )


def audit(
    a: Annotated[str, typer.Argument(metavar="A", help="The variant to check.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The variant to compare its drafts with.")],
    tokens: Annotated[
        Path, typer.Option(metavar="FILE", help="The tokens to draft along: a file of int32 numbers.")
    ],
    static: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The static cache to draft from, in llama.cpp's format."),
    ] = None,
    n_ctx: NCtxOption = 4096,
    n_draft: NDraftOption = 3,
    json_: JsonOption = False,
) -> None:
    """Check that two variants draft alike, but for ties between equals; exit code 3 where one is wrong."""
    from draft_ladder.studies import audit as auditor

    try:
        with tokens_for(static, tokens) as raw:
            report = auditor.audit(a, b, raw, static, n_ctx, n_draft)
    except ValueError as error:  # a module's words about bytes it was given
        raise native.input_error(ValueError(str(error).replace("<tokens>", str(tokens), 1))) from error
    if report.positions == 0:
        size = tokens.stat().st_size // 4
        note(f"{tokens}: {size} tokens: nothing was drafted; give a longer token file")
    if json_:
        print(report.as_json())
    else:
        auditor.print_report(report)
    if report.wrong:
        raise typer.Exit(int(ExitCode.DRAFTS_DIFFER))
