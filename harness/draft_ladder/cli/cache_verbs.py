"""The verbs of static caches: `ladder cache build | bench | import | export | merge | info | verify`."""

from __future__ import annotations

import enum
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import cache_dir, copy_artifact, load_manifest, refuse_overwriting
from draft_ladder.bench import environment
from draft_ladder.bench.launch import convert_apart
from draft_ladder.bench.places import refuse_elsewhere
from draft_ladder.cli.default_verb import BuildByDefault
from draft_ladder.cli.display import note, stages
from draft_ladder.cli.options import RESULTS, CacheOption, JsonOption, out_option
from draft_ladder.data.cache import KIND, LLAMA, SUFFIXES, build_static_cache
from draft_ladder.data.cache_files import (
    DEFAULT_MEMORY,
    SUMMARY,
    build_with_dask,
    export_cache,
    import_cache,
    inspect_cache,
    merge_caches,
    verify_cache,
    vocabulary_named,
)
from draft_ladder.data.own_format import own_format, reader_of
from draft_ladder.data.spill import parse_memory, room_bytes
from draft_ladder.data.tokens import open_tokens, usable_cores
from draft_ladder.report.style import as_text
from draft_ladder.studies.build_bench import OPTIONAL, Bench, run_bench, sentences, table, write_bench
from draft_ladder.studies.build_steps import STEPS

app = typer.Typer(
    cls=BuildByDefault,
    no_args_is_help=True,
    help="Count tokens into a static cache, exchange caches with llama.cpp, merge or check them.",
)


class Engine(enum.StrEnum):
    """What counts."""

    LOCAL = "local"
    DASK = "dask"


Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="Max memory to use, such as 2GB.")]
TokenizerName = Annotated[
    str | None,
    typer.Option(
        "--tokenizer",
        metavar="NAME",
        help="The tokenizer it must fit: tekken, gguf:FILE or a tokenizer.json.",
    ),
]
Sorted = Annotated[
    bool, typer.Option("--sort", help="Sort the n-grams; llama.cpp may then draft another of equals.")
]
Source = Annotated[Path, typer.Argument(metavar="CACHE", help="The file of a static cache.")]


def _print(fields: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(fields, allow_nan=False))
        return
    for key, value in fields.items():
        print(f"{key:18} {'unknown' if value is None else value}")


@app.command("build")
def build_verb(
    tokens: Annotated[
        str, typer.Argument(metavar="TOKENS", help="The token file; with Dask any fsspec address.")
    ],
    format_: Annotated[
        list[str] | None,
        typer.Option("--format", help="What to write: llama, frozen, paired or summary; may be repeated."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Cores to use (default: all usable ones).")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="Max memory, such as 2GB; the rest goes to disk."),
    ] = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="Count on this machine (local) or on a cluster (dask).")
    ] = Engine.LOCAL,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="A running Dask scheduler, tcp://HOST:8786."),
    ] = None,
    part_tokens: Annotated[
        int | None,
        typer.Option("--part-tokens", min=1, help="Dask: tokens counted at a time, 16 bytes each."),
    ] = None,
    range_size: Annotated[
        str | None,
        typer.Option("--range", metavar="SIZE", help="Dask: size of the n-grams merged at a time."),
    ] = None,
    out: Annotated[Path | None, out_option("Copy the static cache (one format) to this file.")] = None,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count a token file's n-grams into a static cache, in llama.cpp's format or one that loads faster."""
    formats = format_ or ["llama"]
    _check_formats(formats, out)
    division = _division(engine, scheduler, memory, part_tokens, range_size)
    if out is not None and "://" not in tokens:
        refuse_overwriting(out, Path(tokens))
    bound = None if memory is None else parse_memory(memory)
    if bound is not None:
        room_bytes(bound)
    where = cache_dir(cache)
    counted = list(dict.fromkeys(LLAMA if name == SUMMARY else name for name in formats))
    with stages() as progress:
        if engine is Engine.DASK:
            division |= {"scheduler": scheduler, "workers": jobs or usable_cores()}
            paths = build_with_dask(tokens, where, formats=counted, progress=progress, **division)
        else:
            paths = build_static_cache(Path(tokens), where, jobs, progress, counted, memory_bytes=bound).paths
    if SUMMARY in formats:
        llama_sha256 = load_manifest(paths[LLAMA], KIND).sha256
        reader = reader_of(SUMMARY)
        paths[SUMMARY] = own_format(paths[LLAMA], llama_sha256, reader, where, convert=convert_apart).path
    for name in formats:
        manifest = load_manifest(paths[name], KIND)
        path = paths[name] if out is None else copy_artifact(paths[name], out)
        _print({"path": str(path), "format": name, "sha256": manifest.sha256, **manifest.facts}, as_json)


def _check_formats(formats: Sequence[str], out: Path | None) -> None:
    if out is not None and len(formats) > 1:
        raise InputError("--out", "one file for several formats", "give one --format")
    if unknown := [name for name in formats if name not in (*SUFFIXES, SUMMARY)]:
        raise InputError("--format", f"{unknown[0]!r} is unknown", f"use {', '.join((*SUFFIXES, SUMMARY))}")


def _division(
    engine: Engine,
    scheduler: str | None,
    memory: str | None,
    part_tokens: int | None,
    range_size: str | None,
) -> dict[str, Any]:
    """How Dask divides the work, in build_with_dask's names; InputError for the other engine's options."""
    division: dict[str, Any] = {} if part_tokens is None else {"part_tokens": part_tokens}
    if range_size is not None:
        division["range_bytes"] = parse_memory(range_size, "--range")
    if engine is Engine.DASK and memory is not None:
        raise InputError(
            "--memory", "is the local builder's", "bound the workers: dask worker --memory-limit"
        )
    if engine is not Engine.DASK and scheduler is not None:
        raise InputError("--scheduler", "belongs to Dask", "add --engine dask")
    if engine is not Engine.DASK and division:
        raise InputError("--part-tokens, --range", "belong to Dask", "add --engine dask")
    return division


@app.command("import")
def import_verb(
    source: Source,
    tokenizer: Annotated[
        str,
        typer.Option(
            "--tokenizer", metavar="NAME", help="Its tokenizer: tekken, gguf:FILE or a tokenizer.json."
        ),
    ],
    sort: Sorted = False,
    format_: Annotated[
        list[str] | None,
        typer.Option("--format", help="Write this format too: frozen or paired; may be repeated."),
    ] = None,
    memory: Memory = DEFAULT_MEMORY,
    cache: CacheOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a static cache that llama-lookup-create made and copy it into the cache directory."""
    formats = ["llama", *(format_ or [])]
    if unknown := [name for name in formats if name not in SUFFIXES]:
        raise InputError("--format", f"{unknown[0]!r} is unknown", f"use {', '.join(SUFFIXES)}")
    with stages() as progress:
        paths = import_cache(
            source,
            cache_dir(cache),
            vocabulary_named(tokenizer),
            sort=sort,
            formats=formats,
            memory_bytes=parse_memory(memory),
            progress=progress,
        )
    _print({name: str(path) for name, path in paths.items()}, as_json)


@app.command("export")
def export_verb(
    source: Source,
    target: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The file to write for llama.cpp's tools; replaced if it exists."
        ),
    ],
    tokenizer: TokenizerName = None,
    sort: Sorted = False,
    memory: Memory = DEFAULT_MEMORY,
    as_json: JsonOption = False,
) -> None:
    """Write a static cache for llama.cpp's lookup tools, checked against the model it is for."""
    wanted = None if tokenizer is None else vocabulary_named(tokenizer)
    with stages() as progress:
        info = export_cache(
            source, target, wanted, sort=sort, memory_bytes=parse_memory(memory), progress=progress
        )
    _print({"path": str(target), "n_bigrams": info.n_bigrams, "n_pairs": info.n_pairs}, as_json)


@app.command("merge")
def merge_verb(
    sources: Annotated[list[Path], typer.Argument(metavar="CACHE...", help="Two or more static caches.")],
    out: Annotated[Path, out_option("Write the merged cache to this file, which may be one of the others.")],
    memory: Memory = DEFAULT_MEMORY,
    as_json: JsonOption = False,
) -> None:
    """Add up the counts of several static caches, as llama-lookup-merge does, in bounded memory."""
    with stages() as progress:
        facts = merge_caches(sources, out, memory_bytes=parse_memory(memory), progress=progress)
    _print({"path": str(out), **facts}, as_json)


@app.command("info")
def info_verb(source: Source, as_json: JsonOption = False) -> None:
    """Say what a static cache holds; `content` is the same for equal n-grams and counts in any order."""
    with stages() as progress:
        info = inspect_cache(source, progress)
    _print(info.as_dict(), as_json)


@app.command("verify")
def verify_verb(
    source: Source,
    tokenizer: TokenizerName = None,
    tokens: Annotated[
        Path | None,
        typer.Option("--tokens", metavar="TOKENS", help="Check that it was counted from this token file."),
    ] = None,
    same_as: Annotated[
        Path | None,
        typer.Option("--same-as", metavar="CACHE", help="Check that it holds what this one holds."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check every byte of a static cache, and whether it fits a tokenizer, its tokens or another cache."""
    wanted = None if tokenizer is None else vocabulary_named(tokenizer)
    with stages() as progress:
        info = verify_cache(source, vocabulary=wanted, tokens=tokens, same_as=same_as, progress=progress)
    _print({"verified": True, **info.as_dict()}, as_json)


@app.command("bench")
def bench_verb(
    source: Annotated[
        Path, typer.Argument(metavar="TEXT", help="The text to measure with, or its tokens (.tok).")
    ],
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", help="tekken, gguf:FILE or a tokenizer.json.")
    ] = "tekken",
    memory: Annotated[
        str,
        typer.Option("--memory", metavar="SIZE", help="Max memory of the builder that works within a bound."),
    ] = "500MB",
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="How often each step is measured.")] = 3,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Cores to use (default: all usable ones).")
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            "--skip", metavar="STEP", help=f"Leave a step out: {', '.join(OPTIONAL)}; may be repeated."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        out_option("Write the record and its page there; default: results/<machine>/builder.", "FOLDER"),
    ] = None,
    cache: CacheOption = None,
    json_: JsonOption = False,
) -> None:
    """Measure what it takes to make a static cache from a text: time and memory of every step."""
    if unknown := [step for step in skip or [] if step not in OPTIONAL]:
        raise InputError("--skip", f"{unknown[0]!r} cannot be left out", f"use {', '.join(OPTIONAL)}")
    steps = tuple(step for step in STEPS if step not in (skip or []))
    tokenizer_name = None if source.suffix == ".tok" else tokenizer
    if tokenizer_name is None:
        open_tokens(source)
    bound = parse_memory(memory)
    work = cache_dir(cache)
    work.mkdir(parents=True, exist_ok=True)
    bench = Bench(source, tokenizer_name, bound, jobs or usable_cores(), repeats, steps)
    target = out or RESULTS / environment.machine_slug() / "builder"
    refuse_elsewhere(target, remedy="give --out FOLDER for a folder of its own")
    record = run_bench(bench, work, note)
    write_bench(record, target)
    if json_:
        print(json.dumps(record, allow_nan=False))
        return
    print("\n".join([as_text(table(record)), *sentences(record)]))
