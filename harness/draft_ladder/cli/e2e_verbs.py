"""The verbs of a real model: `ladder e2e` and `ladder ledgers`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from draft_ladder.base.errors import InputError
from draft_ladder.cli.display import json_text, note, print_json
from draft_ladder.cli.options import (
    PLOTS,
    RESULTS,
    CacheOption,
    JsonOption,
    MachineOption,
    PlotsOption,
    ResultsOption,
    SetOption,
    TextOption,
)
from draft_ladder.e2e.ledger_page import as_markdown, as_report, write_ledgers
from draft_ladder.e2e.ledgers import load_ledgers
from draft_ladder.e2e.records import load_config

if TYPE_CHECKING:
    from draft_ladder.e2e.advice import WorkloadAdvice


def e2e(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="The experiment, a TOML file.")] = Path(
        "configs/e2e.toml"
    ),
    set_: SetOption = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="GGUF", help="The model to run, instead of the config's.")
    ] = None,
    advise_: Annotated[
        bool,
        typer.Option(
            "--advise",
            help="Say for each workload whether drafting pays, and with what n_draft.",
        ),
    ] = False,
    text: TextOption = None,
    cache: CacheOption = None,
    results: ResultsOption = RESULTS,
    machine: MachineOption = None,
    plots: PlotsOption = PLOTS,
    force: Annotated[bool, typer.Option("--force", help="Measure again what is already measured.")] = False,
    json_: JsonOption = False,
) -> None:
    """Let a real model answer prompts without drafting and with each variant: what is a draft worth?"""
    # These import llama.cpp where it is installed.
    from draft_ladder.e2e.advice import run_advice
    from draft_ladder.e2e.runner import run_e2e
    from draft_ladder.e2e.session import Options

    if model == "":
        raise InputError("--model", "names no file", "name a GGUF file")
    overrides = [*(set_ or []), *([f"model={json.dumps(model)}"] if model else [])]
    settings = load_config(config, overrides)
    options = Options(text, cache, results, machine, force)
    if advise_:
        _print_advice(run_advice(settings, options, note), json_)
        return
    folder = run_e2e(settings, options, note)
    found = load_ledgers(folder)
    failed: list[str] = []
    for line in [*map(str, write_ledgers(found, folder, plots, failed)), *failed]:
        note(line)
    print(json_text(as_report(found)) if json_ else as_markdown(found))


def _print_advice(found: Sequence[WorkloadAdvice], json_: bool) -> None:
    if json_:
        print_json([asdict(one) for one in found])
        return
    for one in found:
        print(f"{one.workload}: {one.advice.sentence()}")
        for option in one.advice.options:
            print(
                f"  n_draft {option.n_draft:2d}: {option.speedup:.2f} times as fast, "
                f"{option.drafted_per_call:.2f} drafted a call, mean accepted length "
                f"{option.mean_accepted_length:.2f}, {option.break_even_length:.2f} needed to break even"
            )


def ledgers(
    folder: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="Its folder, results/<machine>/<experiment>.")
    ],
    plots: PlotsOption = PLOTS,
) -> None:
    """Write the end-to-end report, a page and a figure, from the records of `ladder e2e` alone."""
    for path in write_ledgers(load_ledgers(folder), folder, plots):
        print(path)
