"""Static caches as files of their own: `ladder cache build | import | export | merge | info | verify`.

llama.cpp's files carry no tokenizer. Here its digest stands in the manifest beside the file; where both sides
name one they must be the same, and where only a size is known no token may lie beyond it.
"""

from __future__ import annotations

import enum
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from harness import native
from harness.build_bench import command as bench_command
from harness.cache import (
    COUNTING_RULE,
    KIND,
    SUFFIXES,
    build_static_cache,
    cache_key,
    freeze_cache,
    static_format_of,
)
from harness.default_verb import BuildByDefault
from harness.errors import InputError
from harness.manifests import (
    Manifest,
    Progress,
    ProgressCallback,
    base_versions,
    cache_dir,
    content_key,
    copy_artifact,
    load_manifest,
    manifest_path,
    refuse_overwriting,
    sha256_file,
    write_atomic,
    write_manifest,
)
from harness.spill import (
    caches_module,
    merge_sorted_files,
    native_errors,
    parse_memory,
    room_bytes,
    sort_file,
)
from harness.tokenizers import load_tokenizer
from harness.tokens import load_token_file, open_tokens, usable_cores

DEFAULT_MEMORY = "1GB"
LLAMA, SUMMARY = "llama", "summary"
FROZEN_FORMATS = ("frozen", "paired")  # by content; neither keeps a list of its n-grams


@dataclass(frozen=True)
class Vocabulary:
    """Which tokens a file speaks in. `sha256` None: not known; `size` 0: not known."""

    name: str
    sha256: str | None
    size: int

    def __str__(self) -> str:
        return f"{self.name!r} ({self.size or 'an unknown number of'} tokens)"


@dataclass(frozen=True)
class CacheInfo:
    """What a static file holds. `content` is the same for the same n-grams and counts in any order; it, the
    counts and `sorted` are None for formats that keep no list of their bigrams.
    """

    path: Path
    format: str
    sha256: str
    bytes: int
    n_bigrams: int
    n_pairs: int
    token_limit: int
    content: str | None
    sorted: bool | None
    total_count: int | None
    largest_count: int | None
    shares: dict[str, Any]
    vocabulary: Vocabulary | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        vocabulary = self.vocabulary
        return {
            "path": str(self.path),
            "format": self.format,
            "sha256": self.sha256,
            "bytes": self.bytes,
            "n_bigrams": self.n_bigrams,
            "n_pairs": self.n_pairs,
            "token_limit": self.token_limit,
            "content": self.content,
            "sorted": self.sorted,
            "total_count": self.total_count,
            "largest_count": self.largest_count,
            **self.shares,
            "tokenizer": None if vocabulary is None else vocabulary.name,
            "tokenizer_sha256": None if vocabulary is None else vocabulary.sha256,
            "vocab_size": None if vocabulary is None else vocabulary.size,
        }


def vocabulary_of(artifact: Path) -> Vocabulary | None:
    """The tokenizer named by the manifest beside a cache or token file, None where there is none."""
    if not manifest_path(artifact).is_file():
        return None
    manifest = load_manifest(artifact)
    digest = manifest.inputs.get("tokenizer")
    name = manifest.parameters.get("tokenizer")
    size = manifest.parameters.get("vocab_size") or 0
    if digest is None and not size:
        return None
    return Vocabulary(str(name or "an unnamed tokenizer"), digest, int(size))


def vocabulary_named(name: str) -> Vocabulary:
    """That of `tekken`, a tokenizer.json or a `gguf:PATH`."""
    tokenizer = load_tokenizer(name)
    return Vocabulary(tokenizer.name, tokenizer.sha256, tokenizer.vocab_size)


def check_vocabulary(info: CacheInfo, wanted: Vocabulary) -> None:
    """Refuse a cache of another tokenizer, or one that holds tokens beyond the wanted vocabulary.

    Raises InputError naming both tokenizers, or both sizes.
    """
    known = info.vocabulary
    if known is not None and None not in (known.sha256, wanted.sha256) and known.sha256 != wanted.sha256:
        raise InputError(
            info.path,
            f"was built with tokenizer {known}, not with {wanted}",
            "use the cache made with this tokenizer, or build it again",
        )
    size = max(info.token_limit, known.size if known else 0)
    if wanted.size and size > wanted.size:
        has = f"was built with {known.size}" if known and known.size == size else f"needs at least {size}"
        raise InputError(
            info.path,
            f"{has} tokens in the vocabulary, but {wanted.name!r} has {wanted.size}",
            "use the cache made with this tokenizer, or build it again",
        )


def inspect_cache(
    path: Path, progress: ProgressCallback | None = None, vocabulary: Vocabulary | None = None
) -> CacheInfo:
    """Read and check a whole static file of any format. `vocabulary` is taken from its manifest by default.

    Raises InputError naming the byte offset of whatever is wrong.
    """
    vocabulary = vocabulary or vocabulary_of(path)
    kind = static_format_of(path)
    if manifest_path(path).is_file() and load_manifest(path, KIND).bytes != path.stat().st_size:
        raise InputError(path, "is not the file its manifest describes", "build it again")
    facts: dict[str, Any] = {}
    with native_errors():
        if kind in FROZEN_FORMATS:
            frozen = native.builder().check_frozen(str(path))
            size = int(frozen["vocabulary_size"])
            if vocabulary is None and size:
                vocabulary = Vocabulary("an unnamed tokenizer", None, size)
            facts = {key: frozen[key] for key in ("n_bigrams", "n_pairs", "token_limit")}
        elif kind in ("llama", "empty"):
            facts = caches_module().scan(str(path), 0, _as_native("check", progress))
        else:
            facts = _summary_facts(path)
    return CacheInfo(
        path=path,
        format=kind,
        sha256=sha256_file(path),
        bytes=path.stat().st_size,
        n_bigrams=facts["n_bigrams"],
        n_pairs=facts["n_pairs"],
        token_limit=facts["token_limit"],
        content=facts.get("content"),
        sorted=facts.get("sorted"),
        total_count=facts.get("total_count"),
        largest_count=facts.get("largest_count"),
        shares={key: facts.get(key) for key in ("single_share", "at_most_100_share", "largest")},
        vocabulary=vocabulary,
    )


def _summary_facts(path: Path) -> dict[str, Any]:
    """Figures of a summary file, once the drafter that reads such files has checked every byte."""
    drafter = native.variant("summary_index").Drafter()
    drafter.load(str(path))
    drafter.verify_static()
    return {**drafter.static_figures(), "token_limit": drafter.token_limit()}


def _as_native(stage: str, progress: ProgressCallback | None) -> Callable[[str, int, int], None] | None:
    started = time.monotonic()

    def report(phase: str, done: int, total: int) -> None:
        if progress:
            progress(Progress(f"{stage}: {phase}", done, total, time.monotonic() - started))

    return report if progress else None


def _listed(path: Path, progress: ProgressCallback | None, wanted: Vocabulary | None) -> CacheInfo:
    """A checked cache that can be written in llama.cpp's format."""
    info = inspect_cache(path, progress)
    if info.format in FROZEN_FORMATS:
        raise InputError(
            path, "is frozen and keeps no list of its n-grams", "give the .bin it was frozen from"
        )
    if wanted is not None:
        check_vocabulary(info, wanted)
    return info


def import_cache(
    source: Path,
    where: Path,
    vocabulary: Vocabulary,
    *,
    sort: bool = False,
    formats: Sequence[str] = ("llama",),
    memory_bytes: int = 10**9,
    progress: ProgressCallback | None = None,
) -> dict[str, Path]:
    """Take a cache made by llama.cpp's tools into the cache directory `where`, checked, with a manifest.

    The file is kept byte for byte: the order of its n-grams decides ties in llama.cpp. With `sort` it is
    brought into the order of our builder. Returns the paths by format. Raises InputError naming the byte
    offset of whatever is wrong, or both vocabularies.
    """
    info = _listed(source, progress, vocabulary)
    identity = {"kind": KIND, "imported": info.sha256, "sort": sort, "tokenizer": vocabulary.sha256}
    stem = where / "static" / content_key(identity)
    paths = {
        name: stem.with_name(stem.name + SUFFIXES[name]) for name in {"llama": None} | dict.fromkeys(formats)
    }
    paths["llama"].parent.mkdir(parents=True, exist_ok=True)
    _write_llama(info, paths["llama"], sort, memory_bytes, vocabulary.size, progress)
    facts = info.shares | {"n_bigrams": info.n_bigrams, "n_pairs": info.n_pairs}
    for name, path in paths.items():
        if name != "llama":
            freeze_cache(paths["llama"], path, paired=name == "paired", vocab_size=vocabulary.size)
        _describe(path, name, vocabulary, {"imported": info.sha256}, facts)
    return paths


def export_cache(
    source: Path,
    target: Path,
    vocabulary: Vocabulary | None = None,
    *,
    sort: bool = False,
    memory_bytes: int = 10**9,
    progress: ProgressCallback | None = None,
) -> CacheInfo:
    """Write a cache as a file that llama.cpp's lookup tools load, its manifest beside it.

    `vocabulary` is that of the model it is meant for. Raises InputError as import_cache does.
    """
    info = _listed(source, progress, vocabulary)
    _write_llama(info, target, sort, memory_bytes, 0, progress)
    known = info.vocabulary or vocabulary
    if known is not None:
        facts = info.shares | {"n_bigrams": info.n_bigrams, "n_pairs": info.n_pairs}
        _describe(target, "llama", known, {"exported": info.sha256}, facts)
    return info


def _write_llama(
    info: CacheInfo,
    target: Path,
    sort: bool,
    memory_bytes: int,
    vocab_size: int,
    progress: ProgressCallback | None,
) -> None:
    refuse_overwriting(target, info.path)
    room_bytes(memory_bytes)
    if sort and not info.sorted:
        sort_file(info.path, target, memory_bytes, vocab_size, _as_native("sort", progress))
        return
    with info.path.open("rb") as file:
        write_atomic(target, lambda out: shutil.copyfileobj(file, out, 1 << 20))
    if sha256_file(target) != info.sha256:
        target.unlink()
        raise InputError(info.path, "changed while it was read", "let nothing write to it")


def merge_caches(
    sources: Sequence[Path],
    target: Path,
    *,
    memory_bytes: int = 10**9,
    progress: ProgressCallback | None = None,
) -> dict[str, Any]:
    """Add the counts of several caches, as llama-lookup-merge does, in at most `memory_bytes` of memory.

    Inputs in any order (unsorted ones are first sorted on disk); the result is sorted. Returns its figures.
    Raises InputError for inputs of different tokenizers (naming both), for a sum beyond int32 (naming the
    n-gram) and for whatever is wrong in a file (naming the byte).
    """
    if len(sources) < 2:
        raise InputError("merge", f"{len(sources)} caches were given", "give at least two")
    if target.is_dir():
        raise InputError(target, "is a directory", "name a file")
    room_bytes(memory_bytes)
    infos = [_listed(path, progress, None) for path in sources]
    vocabulary = _common_vocabulary(infos)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.merge.", dir=target.parent) as folder:
        inputs = []
        for number, info in enumerate(infos):
            path = info.path
            if not info.sorted:
                path = Path(folder) / f"sorted-{number}.bin"
                sort_file(info.path, path, memory_bytes, 0, _as_native("sort", progress))
            inputs.append(path)
        largest = vocabulary.size if vocabulary else max(info.token_limit for info in infos)
        facts = merge_sorted_files(
            inputs, target, memory_bytes, Path(folder), largest, _as_native("merge", progress)
        )
    if vocabulary is not None:
        digests = {f"merged {number}": info.sha256 for number, info in enumerate(infos)}
        _describe(target, "llama", vocabulary, digests, facts)
    return facts


def _common_vocabulary(infos: Sequence[CacheInfo]) -> Vocabulary | None:
    known = [info for info in infos if info.vocabulary is not None]
    for info in infos:
        if known and known[0].vocabulary is not None:
            check_vocabulary(info, known[0].vocabulary)
    # A result of which one part is of unknown tokens is itself unknown.
    return known[0].vocabulary if known and len(known) == len(infos) else None


def _describe(
    path: Path, name: str, vocabulary: Vocabulary, inputs: dict[str, str], facts: dict[str, Any]
) -> None:
    digest = {} if vocabulary.sha256 is None else {"tokenizer": vocabulary.sha256}
    manifest = Manifest(
        kind=KIND,
        inputs=inputs | digest,
        parameters={
            "format": name,
            "counting_rule": COUNTING_RULE,
            "vocab_size": vocabulary.size,
            "tokenizer": vocabulary.name,
        },
        versions=base_versions(),
        sha256=sha256_file(path),
        bytes=path.stat().st_size,
        facts=facts,
    )
    write_manifest(path, manifest)


def build_with_dask(
    address: str,
    where: Path,
    *,
    scheduler: str | None = None,
    workers: int = 2,
    formats: Sequence[str] = ("llama",),
    progress: ProgressCallback | None = None,
    **division: int,
) -> dict[str, Path]:
    """The static cache of the token file at an fsspec address, counted on Dask; under the name, and with the
    bytes, that the local builder gives it. `division`: `part_tokens` and `range_bytes` of count_with_dask().
    Returns the paths by format. Raises InputError.
    """
    from harness.dask_builder import count_with_dask, describe_tokens

    digest, manifest = describe_tokens(address)
    parameters = manifest.parameters if manifest else {}
    tokenizer = manifest.inputs.get("tokenizer") if manifest else None
    vocabulary = Vocabulary(
        str(parameters.get("tokenizer", "unknown")), tokenizer, int(parameters.get("vocab_size", 0))
    )
    stem = where / "static" / cache_key(digest, vocabulary.size, tokenizer)
    paths = {
        name: stem.with_name(stem.name + SUFFIXES[name]) for name in {"llama": None} | dict.fromkeys(formats)
    }
    counts = count_with_dask(
        address,
        paths["llama"],
        vocab_size=vocabulary.size,
        scheduler=scheduler,
        workers=workers,
        progress=progress,
        **division,
    )
    with native_errors():
        found = caches_module().scan(str(paths["llama"]))
    if found["total_count"] != max(0, counts["n_tokens"] - 2):
        raise InputError(address, "changed while it was counted", "let nothing write to it, run again")
    names = ("n_bigrams", "n_pairs", "single_share", "at_most_100_share", "largest")
    facts = counts | {name: found[name] for name in names}
    for name, path in paths.items():
        if name != "llama":
            freeze_cache(paths["llama"], path, paired=name == "paired", vocab_size=vocabulary.size)
        _describe(path, name, vocabulary, {"tokens": digest}, facts)
    return paths


def verify_cache(
    path: Path,
    *,
    vocabulary: Vocabulary | None = None,
    tokens: Path | None = None,
    same_as: Path | None = None,
    progress: ProgressCallback | None = None,
) -> CacheInfo:
    """Check a static file: every byte, its manifest, a tokenizer, the tokens it was counted from, and whether
    it holds the same as another file. Raises InputError naming the first thing that is not so.
    """
    info = inspect_cache(path, progress)
    if manifest_path(path).is_file() and load_manifest(path, KIND).sha256 != info.sha256:
        raise InputError(path, "is not the file its manifest describes", "build it again")
    if vocabulary is not None:
        check_vocabulary(info, vocabulary)
    if tokens is not None:
        _verify_tokens(info, tokens, progress)
    if same_as is not None:
        other = inspect_cache(same_as, progress)
        if None in (info.content, other.content):
            raise InputError(
                path, "cannot be compared: a frozen file keeps no list", "compare the .bin files"
            )
        if info.content != other.content:
            figures = f"{info.n_bigrams} n-grams, {info.n_pairs} pairs, {info.total_count} counts"
            theirs = f"{other.n_bigrams}, {other.n_pairs}, {other.total_count}"
            raise InputError(
                path, f"({figures}) does not hold the same as {same_as} ({theirs})", "compare their sources"
            )
    return info


def _verify_tokens(info: CacheInfo, tokens: Path, progress: ProgressCallback | None) -> None:
    """Counts the tokens again and compares: lists where the format keeps them, else the bytes of the file."""
    open_tokens(tokens)
    if manifest_path(tokens).is_file():
        token_file = load_token_file(tokens)
        wanted = Vocabulary(token_file.tokenizer, token_file.tokenizer_sha256, token_file.vocab_size)
        check_vocabulary(info, wanted)
    expected = max(0, tokens.stat().st_size // 4 - 2)
    if info.total_count is not None and info.total_count != expected:
        raise InputError(
            info.path,
            f"counts {info.total_count} successors where {tokens.name} has {expected}",
            "build it from these tokens",
        )
    with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
        formats = ["llama", *({info.format} & set(FROZEN_FORMATS))]
        built = build_static_cache(tokens, Path(folder), None, progress, formats)
        counted = inspect_cache(built.paths["llama"], progress)
        if info.content is not None:
            same = info.content == counted.content
        elif info.format in built.sha256s:
            same = info.sha256 == built.sha256s[info.format]
        else:
            again = Path(folder) / "again.summary"
            native.variant("summary_index").convert_static(str(built.paths["llama"]), str(again))
            same = info.sha256 == sha256_file(again)
    if not same:
        raise InputError(info.path, f"was not counted from {tokens.name}", "build it from these tokens")


# --- the verbs --------------------------------------------------------------------------------------------

app = typer.Typer(
    cls=BuildByDefault,
    no_args_is_help=True,
    help="Static caches: build, exchange with llama.cpp, merge, look into.",
)
app.command("bench")(bench_command)


class Engine(enum.StrEnum):
    """What counts."""

    LOCAL = "local"
    DASK = "dask"


CacheDir = Annotated[
    Path | None,
    typer.Option("--cache-dir", metavar="DIR", help="Default: LADDER_CACHE_DIR or ~/.cache/draft-ladder."),
]
Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="Bound on resident memory, e.g. 2GB.")]
TokenizerName = Annotated[
    str | None,
    typer.Option("--tokenizer", metavar="NAME", help="tekken, gguf:PATH of a model, or a tokenizer.json."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Sorted = Annotated[
    bool, typer.Option("--sort", help="Bring n-grams into ascending order; changes llama.cpp's ties.")
]
Source = Annotated[Path, typer.Argument(metavar="CACHE", help="A static cache.")]


@contextmanager
def _display() -> Iterator[ProgressCallback | None]:
    """Progress with pace and time left on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    last = 0.0

    def show(state: Progress) -> None:
        nonlocal last
        if time.monotonic() - last < 0.2:
            return
        last = time.monotonic()
        share = f"{state.done_bytes / state.total_bytes:4.0%}" if state.total_bytes else "    "
        pace = f"  {state.tokens_per_s / 1e6:.1f} million tokens/s" if state.tokens_per_s else ""
        left = f"  {state.seconds_left:.0f} s left" if state.seconds_left is not None else ""
        print(f"\r\x1b[K{state.stage} {share}{pace}{left}", end="", file=sys.stderr, flush=True)

    yield show
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _print(fields: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(fields, allow_nan=False))
        return
    for key, value in fields.items():
        print(f"{key:18} {'unknown' if value is None else value}")


@app.command("build")
def build_verb(
    tokens: Annotated[
        str, typer.Argument(metavar="TOKENS", help="An int32 token file; with Dask any fsspec address.")
    ],
    format_: Annotated[
        list[str] | None, typer.Option("--format", help="llama, frozen, paired or summary; may be repeated.")
    ] = None,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Default: all usable cores.")] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory", metavar="SIZE", help="Bound on resident memory, e.g. 2GB; with spill files."
        ),
    ] = None,
    engine: Annotated[Engine, typer.Option("--engine", help="Where it is counted.")] = Engine.LOCAL,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="ADDRESS", help="Of a running Dask, tcp://...")
    ] = None,
    part_tokens: Annotated[
        int | None,
        typer.Option("--part-tokens", min=1, help="Dask: counted at a time, 16 bytes each in a worker."),
    ] = None,
    range_size: Annotated[
        str | None,
        typer.Option("--range", metavar="SIZE", help="Dask: of a range of n-grams before merging."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Copy the static cache here (one format).")
    ] = None,
    cache: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Count a token file into a static cache, in llama.cpp's or a frozen format."""
    formats = format_ or ["llama"]
    if out is not None and len(formats) > 1:
        raise InputError("--out", "one file for several formats", "give one --format")
    if unknown := [name for name in formats if name not in (*SUFFIXES, SUMMARY)]:
        raise InputError("--format", f"{unknown[0]!r} is unknown", f"use {', '.join((*SUFFIXES, SUMMARY))}")
    counted = list(dict.fromkeys(LLAMA if name == SUMMARY else name for name in formats))
    if scheduler is not None and engine is not Engine.DASK:
        raise InputError("--scheduler", "belongs to Dask", "add --engine dask")
    division = {} if part_tokens is None else {"part_tokens": part_tokens}
    if range_size is not None:
        division["range_bytes"] = parse_memory(range_size, "--range")
    if division and engine is not Engine.DASK:
        raise InputError("--part-tokens, --range", "belong to Dask", "add --engine dask")
    if memory is not None and engine is Engine.DASK:
        raise InputError(
            "--memory", "is the local builder's", "bound the workers: dask worker --memory-limit"
        )
    if out is not None and "://" not in tokens:
        refuse_overwriting(out, Path(tokens))
    bound = None if memory is None else parse_memory(memory)
    if bound is not None:
        room_bytes(bound)
    where = cache_dir(cache)
    with _display() as progress:
        if engine is Engine.DASK:
            workers = jobs or usable_cores()
            paths = build_with_dask(
                tokens,
                where,
                scheduler=scheduler,
                workers=workers,
                formats=counted,
                progress=progress,
                **division,
            )
        else:
            paths = build_static_cache(Path(tokens), where, jobs, progress, counted, memory_bytes=bound).paths
    if SUMMARY in formats:
        paths[SUMMARY] = _summary_of(paths[LLAMA], where)
    for name in formats:
        manifest = load_manifest(paths[name], KIND)
        path = paths[name] if out is None else copy_artifact(paths[name], out)
        _print({"path": str(path), "format": name, "sha256": manifest.sha256, **manifest.facts}, as_json)


def _summary_of(llama: Path, where: Path) -> Path:
    """summary_index's own file of a cache, made once."""
    from harness.prepare import converted  # measuring, and much else, hangs on it
    from harness.runner import StaticFile
    from harness.variants import find

    source = StaticFile(llama, load_manifest(llama, KIND).sha256, LLAMA, None)
    return converted(source, find("summary_index"), where, lambda line: None).path


@app.command("import")
def import_verb(
    source: Source,
    tokenizer: Annotated[
        str,
        typer.Option("--tokenizer", metavar="NAME", help="The one it was made with: gguf:PATH, tekken, ..."),
    ],
    sort: Sorted = False,
    format_: Annotated[list[str] | None, typer.Option("--format", help="Also frozen or paired.")] = None,
    memory: Memory = DEFAULT_MEMORY,
    cache: CacheDir = None,
    as_json: AsJson = False,
) -> None:
    """Check a cache made by llama-lookup-create and take it into the cache directory."""
    formats = ["llama", *(format_ or [])]
    if unknown := [name for name in formats if name not in SUFFIXES]:
        raise InputError("--format", f"{unknown[0]!r} is unknown", f"use {', '.join(SUFFIXES)}")
    with _display() as progress:
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
        Path, typer.Argument(metavar="FILE", help="The file for llama.cpp's tools; replaced if it exists.")
    ],
    tokenizer: TokenizerName = None,
    sort: Sorted = False,
    memory: Memory = DEFAULT_MEMORY,
    as_json: AsJson = False,
) -> None:
    """Write a cache for llama.cpp's lookup tools, checked against the model it is for."""
    wanted = None if tokenizer is None else vocabulary_named(tokenizer)
    with _display() as progress:
        info = export_cache(
            source, target, wanted, sort=sort, memory_bytes=parse_memory(memory), progress=progress
        )
    _print({"path": str(target), "n_bigrams": info.n_bigrams, "n_pairs": info.n_pairs}, as_json)


@app.command("merge")
def merge_verb(
    sources: Annotated[list[Path], typer.Argument(metavar="CACHE...", help="Two or more static caches.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The merged cache; may be one of the others.")
    ],
    memory: Memory = DEFAULT_MEMORY,
    as_json: AsJson = False,
) -> None:
    """Add the counts of several caches, as llama-lookup-merge does, in bounded memory."""
    with _display() as progress:
        facts = merge_caches(sources, out, memory_bytes=parse_memory(memory), progress=progress)
    _print({"path": str(out), **facts}, as_json)


@app.command("info")
def info_verb(source: Source, as_json: AsJson = False) -> None:
    """Say what a static cache holds. `content` is the same for the same n-grams and counts in any order."""
    with _display() as progress:
        info = inspect_cache(source, progress)
    _print(info.as_dict(), as_json)


@app.command("verify")
def verify_verb(
    source: Source,
    tokenizer: TokenizerName = None,
    tokens: Annotated[
        Path | None, typer.Option("--tokens", metavar="TOKENS", help="The token file it was counted from.")
    ] = None,
    same_as: Annotated[
        Path | None, typer.Option("--same-as", metavar="CACHE", help="A file with the same content.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every byte of a static cache, and whether it fits a tokenizer, its tokens or another cache."""
    wanted = None if tokenizer is None else vocabulary_named(tokenizer)
    with _display() as progress:
        info = verify_cache(source, vocabulary=wanted, tokens=tokens, same_as=same_as, progress=progress)
    _print({"verified": True, **info.as_dict()}, as_json)
