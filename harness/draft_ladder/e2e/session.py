"""What every end-to-end verb works in: the command line's options, one core, and the opened model."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from draft_ladder.base import host
from draft_ladder.base.manifests import cache_dir, sha256_file
from draft_ladder.base.variants import find
from draft_ladder.bench import environment
from draft_ladder.e2e.inputs import Inputs, Note, prepare_static, prepare_works
from draft_ladder.e2e.records import E2eConfig, model_path
from draft_ladder.llama.draft_model import DEFAULT_VARIANT
from draft_ladder.llama.model import Model
from draft_ladder.llama.vocabulary import model_tokenizer, read_vocabulary


@dataclass(frozen=True)
class Options:
    """What the command line says besides the config."""

    text_dir: Path | None = None
    cache: Path | None = None
    results: Path = Path("results")
    machine: str | None = None
    force: bool = False


@contextmanager
def pinned_to(cpu: int | None) -> Iterator[None]:
    """Run on this core alone for a while, where a core is named and the system can do it."""
    usable = host.affinity()
    if cpu is None or usable is None:
        yield
        return
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, usable)


@contextmanager
def opened(
    config: E2eConfig, options: Options, variants: Sequence[str], note: Note
) -> Iterator[tuple[Inputs, Model]]:
    """The inputs, made where they are missing, and the opened model, on the config's core."""
    environment.check_core(config.cpu)
    cache = cache_dir(options.cache)
    path = model_path(config.model, options.text_dir)
    found = [find(name) for name in variants]
    vocabulary = read_vocabulary(path)
    with (
        pinned_to(config.cpu),
        Model(path, n_ctx=config.n_ctx, n_batch=config.n_batch, threads=config.threads) as model,
    ):
        tokenizer = partial(model_tokenizer, path)
        files, corpus = prepare_static(config, tokenizer, vocabulary, found, cache, options.text_dir, note)
        inputs = Inputs(path, sha256_file(path), vocabulary, files, corpus, found)
        inputs.works = prepare_works(config, model, cache, options.text_dir, note)
        yield inputs, model


def default_variant(config: E2eConfig) -> str:
    """The users' default drafter if the experiment has it, else its last one."""
    return DEFAULT_VARIANT if DEFAULT_VARIANT in config.variants else config.variants[-1]
