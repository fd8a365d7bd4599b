"""Options and arguments that several verbs share, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

INT32_MAX = 2**31 - 1  # what the modules take for a number of tokens
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
NCtxOption = Annotated[int, typer.Option("--n-ctx", min=2, max=INT32_MAX, help="Tokens in a chunk.")]
NDraftOption = Annotated[int, typer.Option("--n-draft", min=0, max=INT32_MAX, help="Most tokens in a draft.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
RESULTS, PLOTS = Path("results"), Path("plots")
ForceOption = Annotated[bool, typer.Option("--force", help="Measure again what was measured already.")]
TargetArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG|RESULTS", help="A config, or results/<machine>/<experiment>.")
]


def out_option(what: str, metavar: str = "FILE") -> Any:
    """Where a verb writes; `what` says to a newcomer what is written there."""
    return typer.Option("--out", metavar=metavar, help=what)
