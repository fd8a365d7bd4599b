"""What is built here and what is missing: `ladder list` and `ladder doctor`."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table

from draft_ladder.base.errors import ExitCode
from draft_ladder.base.manifests import cache_dir
from draft_ladder.base.variants import discover_all
from draft_ladder.cli.display import print_json
from draft_ladder.cli.doctor import examine
from draft_ladder.cli.options import CacheOption, JsonOption
from draft_ladder.peers.available import why_not


def list_variants(json_: JsonOption = False) -> None:
    """List the variants that can be measured here, what each changes, and why some are not built."""
    variants = discover_all()
    if json_:
        print_json([variant.model_dump(mode="json", exclude={"module"}) for variant in variants])
        return
    table = Table("name", "rung", "group", "rule, ties", "format", "changes", box=None)
    table.columns[0].no_wrap = True
    for variant in variants:
        rung = "" if variant.rung is None else str(variant.rung)
        rule = f"{variant.rule}, {variant.ties}" + (" (in Python)" if variant.engine == "python" else "")
        changes = variant.changes + (f" (against {variant.versus})" if variant.versus else "")
        if (reason := why_not(variant)) is not None:
            changes = f"cannot run here: {reason}"
        table.add_row(variant.name, rung, variant.group, rule, variant.static_format, changes)
    console = Console(highlight=False)
    console.print(table)
    peers = Table("peer", "package", "version", "licence", "source", box=None)
    for variant in variants:
        if variant.package is not None:
            peers.add_row(variant.name, variant.package, variant.version, variant.licence, variant.source)
    if peers.row_count:
        console.print()
        console.print(peers)


def doctor(cache: CacheOption = None, json_: JsonOption = False) -> None:
    """Check this machine for what a run needs, and say how to get what is missing; nothing is changed."""
    findings = examine(cache_dir(cache))
    if json_:
        print_json([finding._asdict() for finding in findings])
    else:
        for finding in findings:
            print(f"{finding.state:8} {finding.name:10} {finding.detail}")
    if any(finding.state == "error" for finding in findings):
        raise typer.Exit(int(ExitCode.USAGE))
