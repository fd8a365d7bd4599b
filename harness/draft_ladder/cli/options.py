"""Options and arguments that several verbs share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

INT32_MAX = 2**31 - 1  # what the modules take for a number of tokens
ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The experiment, such as configs/smoke.toml.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace a value of the config; may be repeated."),
]
TextOption = Annotated[
    Path | None,
    typer.Option("--text", metavar="DIR", help="The folder of texts that the config calls ${LADDER_TEXT}."),
]
CacheOption = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        metavar="DIR",
        help="Where files made are kept (default: LADDER_CACHE_DIR or ~/.cache/draft-ladder).",
    ),
]
ResultsOption = Annotated[
    Path, typer.Option("--results", metavar="DIR", help="Where records are kept, by machine.")
]
PlotsOption = Annotated[Path, typer.Option("--plots", metavar="DIR", help="Where charts go, by machine.")]
MachineOption = Annotated[
    str | None,
    typer.Option("--machine", metavar="NAME", help="What to call this machine (default: from its CPU)."),
]
NCtxOption = Annotated[
    int, typer.Option("--n-ctx", min=2, max=INT32_MAX, help="Context length: tokens in a chunk.")
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
        metavar="CONFIG|RESULTS", help="An experiment's config, or its folder results/<machine>/<experiment>."
    ),
]


def out_option(what: str, metavar: str = "FILE") -> Any:
    """Where a verb writes; `what` says to a newcomer what is written there."""
    return typer.Option("--out", metavar=metavar, help=what)
