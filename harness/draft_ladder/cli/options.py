"""Options and arguments that several verbs share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

INT32_MAX = 2**31 - 1  # what the modules take for a number of tokens
ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The experiment, a TOML file such as configs/smoke.toml.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace one value of the config, such as n_draft=16; may be repeated.",
    ),
]
TextOption = Annotated[
    Path | None,
    typer.Option(
        "--text",
        metavar="DIR",
        help="The folder of your texts: what ${LADDER_TEXT} in the config stands for.",
    ),
]
CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        help="Where texts and caches are kept (default: LADDER_CACHE_DIR or ~/.cache/draft-ladder).",
    ),
]
ResultsOption = Annotated[
    Path, typer.Option("--results", metavar="DIR", help="Where records go, as <machine>/<experiment>/.")
]
PlotsOption = Annotated[
    Path, typer.Option("--plots", metavar="DIR", help="Where charts go, as <machine>/<experiment>/.")
]
MachineOption = Annotated[
    str | None,
    typer.Option(
        "--machine",
        metavar="NAME",
        help="What to call this machine (default: made from the CPU and its cores).",
    ),
]
NCtxOption = Annotated[
    int,
    typer.Option(
        "--n-ctx",
        min=2,
        max=INT32_MAX,
        help="Context length: tokens replayed before the context cache starts anew.",
    ),
]
NDraftOption = Annotated[
    int, typer.Option("--n-draft", min=0, max=INT32_MAX, help="Max tokens in one draft.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
RESULTS, PLOTS = Path("results"), Path("plots")
ForceOption = Annotated[bool, typer.Option("--force", help="Measure again what is already measured.")]
TargetArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG|RESULTS",
        help="The config of an experiment, or its results folder results/<machine>/<experiment>.",
    ),
]
