"""The verb `ladder replay`: one variant, one worker process, one run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import refuse_overwriting, replacing
from draft_ladder.base.variants import Variant, find
from draft_ladder.bench import environment
from draft_ladder.bench.launch import WorkerInputError, convert_apart, demand
from draft_ladder.bench.metrics import NOTHING_ASKED, metric_values
from draft_ladder.bench.records import Timing
from draft_ladder.bench.runner import axis_values, check_axes
from draft_ladder.cli.display import print_json, stderr
from draft_ladder.cli.options import JsonOption, NCtxOption, NDraftOption
from draft_ladder.data.cache import tokens_for


def replay(
    variant: Annotated[
        str, typer.Argument(metavar="VARIANT", help="The drafter to run; `ladder list` names them.")
    ],
    tokens: Annotated[
        Path,
        typer.Option("--tokens", metavar="FILE", help="The tokens to draft along: a file of int32 numbers."),
    ],
    static: Annotated[
        Path | None,
        typer.Option(
            "--static", metavar="FILE", help="The static cache, in llama.cpp's or the variant's format."
        ),
    ] = None,
    n_ctx: NCtxOption = 4096,
    n_draft: NDraftOption = 3,
    dump: Annotated[
        Path | None,
        typer.Option("--dump", metavar="FILE", help="Write every draft to this file, one a line."),
    ] = None,
    timing: Annotated[str, typer.Option("--timing", help="call, chunk or histogram (of calls).")] = "call",
    axis: Annotated[
        list[str] | None,
        typer.Option("--axis", metavar="NAME=VALUE", help="A setting of this variant, such as hash=xor."),
    ] = None,
    cpu: Annotated[int | None, typer.Option("--cpu", min=0, help="Run on this core alone.")] = None,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout-s", help="Give up after this many seconds.")
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Draft along a token file with one variant, in a process of its own, and print what it took."""
    _check_options(timing, timeout_s, cpu)
    if dump is not None:
        refuse_overwriting(dump, tokens, static)
    chosen = find(variant)
    request = {
        "n_ctx": n_ctx,
        "n_draft": n_draft,
        "timing": timing,
        "options": _axis_options(chosen, axis or []),
        "cpu": cpu,
    }
    with tokens_for(static, tokens) as raw, _dump_file(dump) as target:
        measured = _run(chosen, raw, static, {**request, "tokens": str(raw), "dump": target}, timeout_s)
    _explain_absence(measured, tokens)
    if json_:
        print_json(measured)
    else:
        _print_measured(measured)


@contextmanager
def _dump_file(dump: Path | None) -> Iterator[str | None]:
    """Where the worker writes the drafts, put in place once the run is over."""
    if dump is None:
        yield None
        return
    with replacing(dump) as target:
        try:
            yield str(target)
        except WorkerInputError as error:
            raise WorkerInputError(str(error).replace(str(target), str(dump))) from error


def _check_options(timing: str, timeout_s: float | None, cpu: int | None) -> None:
    if timing not in get_args(Timing):
        raise InputError("--timing", f"{timing!r} is unknown", "use call, chunk or histogram")
    if timeout_s is not None and not 0 < timeout_s < float("inf"):
        raise InputError("--timeout-s", f"{timeout_s:g} s is no time to wait", "give seconds above 0")
    environment.check_core(cpu, "--cpu")


def _run(
    variant: Variant, tokens: Path, static: Path | None, request: dict[str, Any], timeout_s: float | None
) -> dict[str, Any]:
    """What the worker measured, with its files in memory and the static cache in a format it reads."""
    with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
        static_path, convert_ns = _own_format(variant, static, Path(folder))
        for path in (tokens, static_path):
            if path is not None:
                _warm(path)
        request = {**request, "static": None if static_path is None else str(static_path)}
        measured = demand(variant, "replay", request, timeout_s=timeout_s)
    measured["convert_ns"] = convert_ns
    return measured


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
    return target, convert_apart(variant, static, target)


def _warm(path: Path) -> None:
    if path.exists() and not path.is_file():
        raise InputError(path, "not a regular file", "give a file")
    try:
        environment.set_page_cache(path, "warm")
    except OSError as error:
        raise InputError(path, f"not readable ({error.strerror})", "give an existing file") from error


def _explain_absence(measured: dict[str, Any], tokens: Path) -> None:
    """Add the latency, or the reason for its absence."""

    values = {metric.name: value for metric, value in metric_values(measured, measured["timing"])}
    latency = values.get("draft_latency_us", values.get("draft_latency_chunk_us"))
    reason = None
    if measured["n_chunks"] == 0:
        sizes = f"{measured['n_tokens']} tokens are not more than one chunk of {measured['n_ctx']}"
        reason = f"{sizes}: nothing was replayed"
        remedy = "give a longer token file or a smaller --n-ctx"
        stderr.print(f"{tokens}: {reason}; {remedy}", style="yellow", markup=False)
    elif latency is None:
        reason = NOTHING_ASKED if measured["n_draft"] == 0 else "nothing was drafted"
        stderr.print(f"{tokens}: {reason}", style="yellow", markup=False)
    measured["draft_latency_us"] = latency
    measured["draft_latency_note"] = reason


def _print_measured(measured: dict[str, Any]) -> None:
    for name, value in measured.items():
        if not isinstance(value, dict | list):
            print(f"{name:28} {'null' if value is None else value}")
