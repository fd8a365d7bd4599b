"""The sources a config may name, and from its table to a source with its files found.

A new source is a module of its own, with a table like WikitextConfig, and a member of CorpusSource here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import package_version
from draft_ladder.base.validation import read_toml
from draft_ladder.data.sources import (
    WIKITEXT_REVISION,
    FilesConfig,
    Source,
    SourceConfig,
    StdlibConfig,
    stdlib_source,
)
from draft_ladder.data.synthetic import SyntheticConfig
from draft_ladder.data.wikitext import (
    WikitextConfig,
    hub_cached_directory,
    hub_problem,
    wikitext_from_directory,
)


class DefaultConfig(SourceConfig):
    """WikiText-103 where it can be had, else the standard library; `Source.note` says which and why."""

    source: Literal["default"] = "default"

    def resolve(self, base: Path) -> Source:
        """See default_source()."""
        del base
        return default_source()


CorpusSource = Annotated[
    WikitextConfig | FilesConfig | StdlibConfig | SyntheticConfig | DefaultConfig,
    Field(discriminator="source"),
]


def put_named_corpus(content: dict[str, Any], config: Path) -> None:
    """Where a config names its corpus, put the table of that name in the name's place.

    `corpus = "NAME"` is `corpora/NAME.toml` beside the config, or in configs/ of the working directory.
    Raises InputError where there is none.
    """
    name = content.get("corpus")
    if not isinstance(name, str):
        return
    folders = [config.parent / "corpora", Path("configs") / "corpora"]
    known = {file.stem: file for folder in reversed(folders) for file in sorted(folder.glob("*.toml"))}
    if name not in known:
        remedy = f"use {' or '.join(known)}, or write a [corpus] table" if known else "write a [corpus] table"
        raise InputError(f"{config}: corpus", f"there is no corpora/{name}.toml", remedy)
    try:
        content["corpus"] = read_toml(known[name])
    except (OSError, ValueError) as error:
        raise InputError(known[name], f"not readable as TOML ({error})", "correct it") from error


def resolve_source(config: CorpusSource, base_dir: Path | None = None) -> Source:
    """Find the files of a source. Relative paths start at `base_dir` (default: the working directory).

    Raises InputError for what is missing, unreadable or not installed. Reaches for the hub only where
    `wikitext-103` has no path and no cached copy, or for `default`.
    """
    return config.resolve(base_dir or Path())


def default_source() -> Source:
    """WikiText-103 if there is a cached copy or the hub answers, else the standard library; `note` says why.

    Takes at most 5 seconds without a network.
    """
    copy = hub_cached_directory(WIKITEXT_REVISION)
    if copy is not None and package_version("pyarrow") != "not installed":
        return wikitext_from_directory(copy, "corpus: WikiText-103 (copy in the cache of `datasets`)")
    if package_version("datasets") == "not installed":
        return _fallback("the `datasets` package is not installed (pip install 'draft-ladder[datasets]')")
    if problem := hub_problem(WIKITEXT_REVISION):
        return _fallback(problem)
    config = WikitextConfig(source="wikitext-103")
    return config.resolve(Path(), "corpus: WikiText-103 (through `datasets`)")


def _fallback(why: str) -> Source:
    source = stdlib_source()
    source.note = f"corpus: {source.label} instead of WikiText-103: {why}"
    return source
