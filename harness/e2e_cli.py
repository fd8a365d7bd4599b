"""The verb `ladder e2e`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from harness.e2e_records import load_config
from harness.errors import InputError
from harness.ledgers import load_ledgers, write_ledgers

if TYPE_CHECKING:
    from harness.e2e import WorkloadAdvice

_console = Console(stderr=True, highlight=False, soft_wrap=True)


def _note(line: str) -> None:
    _console.print(line, markup=False)


def command(
    config: Annotated[Path, typer.Argument(metavar="CONFIG", help="For example configs/e2e.toml.")] = Path(
        "configs/e2e.toml"
    ),
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the config.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="GGUF", help="A GGUF file instead of the config's.")
    ] = None,
    advise_: Annotated[
        bool,
        typer.Option("--advise", help="Recommend n_draft for each workload instead of comparing variants."),
    ] = False,
    text: Annotated[
        Path | None, typer.Option("--text", metavar="DIR", help="Value of ${LADDER_TEXT} in the config.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option("--cache-dir", metavar="DIR", help="Default: LADDER_CACHE_DIR or the user's."),
    ] = None,
    results: Annotated[
        Path, typer.Option("--results", metavar="DIR", help="Holds <machine>/<experiment>/.")
    ] = Path("results"),
    machine: Annotated[
        str | None, typer.Option("--machine", metavar="NAME", help="Folder name instead of the CPU's.")
    ] = None,
    plots: Annotated[
        Path, typer.Option("--plots", metavar="DIR", help="Holds <machine>/<experiment>/.")
    ] = Path("plots"),
    force: Annotated[bool, typer.Option("--force", help="Measure again what is there.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Answer prompts with a real model, without drafting and with each variant."""
    from harness.e2e import Options, run_advice, run_e2e  # imports llama.cpp where it is installed

    if model == "":
        raise InputError("--model", "names no file", "name a GGUF file")
    overrides = [*(set_ or []), *([f"model={json.dumps(model)}"] if model else [])]
    settings = load_config(config, overrides)
    options = Options(text, cache, results, machine, force)
    if advise_:
        _print_advice(run_advice(settings, options, _note), json_)
        return
    folder = run_e2e(settings, options, _note)
    ledgers = load_ledgers(folder)
    for path in write_ledgers(ledgers, folder, plots):
        _note(str(path))
    print(json.dumps(ledgers.report(), allow_nan=False, indent=1) if json_ else ledgers.text())


def _print_advice(found: Sequence[WorkloadAdvice], json_: bool) -> None:
    if json_:
        print(
            json.dumps(
                [{**asdict(one), "advice": one.advice.report()} for one in found], allow_nan=False, indent=1
            )
        )
        return
    for one in found:
        print(f"{one.workload}: {one.advice.sentence()}")
        for option in one.advice.options:
            print(
                f"  n_draft {option.n_draft:2d}: {option.speedup:.2f} times as fast, "
                f"{option.drafted_per_call:.2f} drafted and {option.accepted_per_call:.2f} accepted a call, "
                f"{option.break_even_per_call:.2f} needed to break even"
            )
