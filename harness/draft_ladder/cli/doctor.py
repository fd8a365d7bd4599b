"""`ladder doctor`: what is there, what is missing, and the remedy; nothing is changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from draft_ladder.base.errors import LadderError
from draft_ladder.base.native import builder
from draft_ladder.base.variants import discover, discover_all
from draft_ladder.bench import environment
from draft_ladder.bench.launch import demand
from draft_ladder.data.sources import WIKITEXT_REVISION
from draft_ladder.data.tokenizers import load_tokenizer
from draft_ladder.data.wikitext import hub_problem
from draft_ladder.llama.library import describe_installation

# The reference experiment's texts, tokens and caches, and as much again while they are written.
DISK_WANTED_BYTES = 10_000_000_000


class Finding(NamedTuple):
    """One line of the examination."""

    name: str
    state: Literal["ok", "warning", "error"]
    detail: str


def examine(cache: Path) -> list[Finding]:
    """All findings. "error": no run can work; "warning": some runs cannot, or figures may be unstable."""
    return [_compiler(), *_modules(), _builder(), _tokenizer(), _model(), _hub(), _disk(cache), *_noise()]


def _compiler() -> Finding:
    found = environment.compiler_found()
    if found:
        return Finding("compiler", "ok", found)
    return Finding(
        "compiler",
        "warning",
        "no C++ compiler: built modules work, new ones cannot be built; install g++ or clang++",
    )


def _modules() -> Iterator[Finding]:
    try:
        variants = discover()
    except LadderError as error:
        yield Finding("modules", "error", str(error))
        return
    for variant in variants:
        try:
            build = demand(variant, "info", {})["build"]
        except LadderError as error:
            # What a Python engine needs is another's package: the rest runs without it.
            yield Finding("modules", "error" if variant.engine == "native" else "warning", str(error))
            continue
        if variant.engine == "native":
            detail = f"{build.get('compiler')}, {build.get('cxx_flags')}"
        else:
            detail = " ".join(str(build[key]) for key in ("package", "package_version") if build.get(key))
        yield Finding("modules", "ok", f"{variant.name}: {detail or 'Python'}")
    for variant in discover_all():
        if variant.skipped is not None:
            yield Finding("modules", "warning", f"{variant.name}: not built here: {variant.skipped}")


def _builder() -> Finding:
    try:
        builder()
    except LadderError as error:
        return Finding("builder", "error", str(error))
    return Finding("builder", "ok", "static caches can be built")


def _tokenizer() -> Finding:
    try:
        tokenizer = load_tokenizer("tekken")
    except LadderError as error:
        return Finding("tokenizer", "error", str(error))
    return Finding(
        "tokenizer", "ok", f"{tokenizer.name}, {tokenizer.vocab_size} tokens, sha256 {tokenizer.sha256[:12]}"
    )


def _model() -> Finding:
    installed, line = describe_installation()
    return Finding("model", "ok" if installed else "warning", line)


def _hub() -> Finding:
    problem = hub_problem(WIKITEXT_REVISION)
    if problem is None:
        return Finding("hub", "ok", "WikiText-103 can be fetched")
    return Finding("hub", "warning", f"{problem}; the default corpus is then the standard library's sources")


def _disk(cache: Path) -> Finding:
    free = shutil.disk_usage(cache).free
    detail = f"{free / 1e9:.1f} GB free for the cache directory"
    if free >= DISK_WANTED_BYTES:
        return Finding("disk", "ok", detail)
    remedy = "541 MB of text want 10; free some or set LADDER_CACHE_DIR"
    return Finding("disk", "warning", f"{detail}; {remedy}")


def _noise() -> list[Finding]:
    lines = environment.warnings()
    return [Finding("noise", "warning", line) for line in lines] or [
        Finding("noise", "ok", "nothing disturbs")
    ]
