"""The verbs that make text and tokens: `ladder corpus` and `ladder tokens`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import cache_dir, copy_artifact, refuse_overwriting
from draft_ladder.bench.config import corpus_source, load_experiment
from draft_ladder.cli.default_verb import CutByDefault
from draft_ladder.cli.display import note, print_json, stages
from draft_ladder.cli.options import CacheOption, JsonOption, SetOption, TextOption, out_option
from draft_ladder.data.corpus import build_corpus, replay_text
from draft_ladder.data.resolve import resolve_source
from draft_ladder.data.tokenizers import load_tokenizer
from draft_ladder.data.tokens import tokenize_file
from draft_ladder.report.style import as_text
from draft_ladder.studies.corpus_comparison import as_record, compare_corpora, write_comparison
from draft_ladder.studies.corpus_comparison import table as comparison_table
from draft_ladder.studies.corpus_stats import corpus_stats
from draft_ladder.studies.corpus_stats import table as stats_table

corpus_app = typer.Typer(
    cls=CutByDefault,
    no_args_is_help=True,
    help="Make a corpus from a text source, or look at the statistics of one.",
)


@corpus_app.command("cut")
def corpus(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="default, wikitext-103, stdlib, files or synthetic.")
    ],
    size_mb: Annotated[float, typer.Option("--size-mb", help="How much text to take, in MB (10^6 bytes).")],
    train: Annotated[
        list[str] | None,
        typer.Option(
            "--train", metavar="GLOB", help="Files to count n-grams from (source `files`); may be repeated."
        ),
    ] = None,
    replay_: Annotated[
        list[str] | None,
        typer.Option(
            "--replay", metavar="GLOB", help="Files to draft along (source `files`); may be repeated."
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option("--path", metavar="DIR", help="A copy you have already (source `wikitext-103`)."),
    ] = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Take all there is where the source has less, instead of an error.")
    ] = False,
    cache: CacheOption = None,
    json_: JsonOption = False,
) -> None:
    """Make a corpus to count and a text to replay from a source of text, as plain files in the cache."""
    options = {"train": train, "replay": replay_, "path": path}
    config = corpus_source({"source": source, **{key: value for key, value in options.items() if value}})
    where = cache_dir(cache)
    with stages() as progress:
        resolved = resolve_source(config)
        if resolved.note:
            note(resolved.note)
        made = build_corpus(resolved, size_mb, where, progress, clip=clip)
        text = replay_text(resolved, where, progress)
    _print_artifacts({"corpus": asdict(made), "replay": asdict(text)}, json_)


def tokens(
    text: Annotated[Path, typer.Argument(metavar="TEXT", help="The text to tokenise.")],
    tokenizer: Annotated[
        str, typer.Option("--tokenizer", help="tekken, gguf:FILE or a tokenizer.json.")
    ] = "tekken",
    out: Annotated[Path | None, out_option("Copy the token file to this file.")] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", min=1, help="Threads to use (default: one for each usable core).")
    ] = None,
    cache: CacheOption = None,
    json_: JsonOption = False,
) -> None:
    """Turn a text into a file of int32 tokens, by the tokenizer you name."""
    if out is not None:
        refuse_overwriting(out, text)
    with stages() as progress:
        made = tokenize_file(
            text,
            load_tokenizer(tokenizer),
            cache_dir(cache),
            jobs=jobs,
            progress=progress,
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


@corpus_app.command("stats")
def stats(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE.tok...", help="The token files to look at; several give a table."),
    ],
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay", metavar="FILE.tok", help="Draft along these tokens, for hit rate and acceptance."
        ),
    ] = None,
    static: Annotated[
        Path | None,
        typer.Option(
            "--static",
            metavar="FILE",
            help="The static cache to draft from (default: FILE.tok's).",
        ),
    ] = None,
    json_: JsonOption = False,
) -> None:
    """Print what decides how well n-gram drafting does on a text: successors, repeats, rare words.

    With --static alone the (one) file itself is what is replayed.
    """
    if static is not None and len(files) > 1:
        raise InputError("--static", "belongs to one token file", "name one file, or leave --static out")
    if static is not None and replay is None:
        replay = files[0]
    found = {str(path): corpus_stats(path, replay, static) for path in files}
    if json_:
        content = {path: asdict(stats) for path, stats in found.items()}
        print(json.dumps(content, indent=2, allow_nan=False))
        return
    names = [Path(path).name for path in found]
    headings = names if len(set(names)) == len(names) else list(found)
    print(stats_table(dict(zip(headings, found.values(), strict=True))))


@corpus_app.command("compare")
def compare(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The experiment whose real text is compared.")
    ],
    set_: SetOption = None,
    text: TextOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Which synthetic language to use.")] = 1,
    out: Annotated[Path | None, out_option("Write the record and its page there.", "FOLDER")] = None,
    cache: CacheOption = None,
    json_: JsonOption = False,
) -> None:
    """Set a config's real text beside synthetic text of the same sizes: can the one stand for the other?"""
    experiment, _ = load_experiment(config, set_ or [])
    pairs = compare_corpora(experiment, cache_dir(cache), text, seed, note)
    if not pairs:
        raise InputError(config, "names no size above 0 that its text has", "set sizes_mb")
    if out is not None:
        write_comparison(pairs, seed, out)
    print(json.dumps(as_record(pairs, seed), allow_nan=False) if json_ else as_text(comparison_table(pairs)))
