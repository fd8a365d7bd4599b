"""From what a config says to a source with its files found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from draft_ladder.base.manifests import (
    package_version,
)
from draft_ladder.data.input_files import InputFile, matching_files
from draft_ladder.data.sources import (
    WIKITEXT_REVISION,
    CorpusSource,
    FilesConfig,
    FileSource,
    Source,
    StdlibConfig,
    WikitextConfig,
    stdlib_source,
)
from draft_ladder.data.synthetic import SyntheticConfig, SyntheticSource
from draft_ladder.data.wikitext import (
    hub_cached_directory,
    hub_problem,
    wikitext_from_directory,
    wikitext_source,
)

if TYPE_CHECKING:
    pass


def resolve_source(config: CorpusSource, cache_dir: Path, base_dir: Path | None = None) -> Source:
    """Find the files of a source. Relative paths start at `base_dir` (default: the working directory).

    Raises InputError for what is missing, unreadable or not installed. Reaches for the hub only where
    `wikitext-103` has no path and no cached copy, or for `default`.
    """
    base = base_dir or Path()
    if isinstance(config, FilesConfig):
        train = matching_files(config.train, base)
        label = config.label or _files_label(train)
        replay_label = config.replay_label or f"{label}, replayed text"
        return FileSource("files", (label, replay_label), train, matching_files(config.replay, base))
    if isinstance(config, StdlibConfig):
        return stdlib_source()
    if isinstance(config, SyntheticConfig):
        return SyntheticSource(config.seed, config.replay_tokens)
    if isinstance(config, WikitextConfig):
        return wikitext_source(config, base)
    return default_source(cache_dir)[0]


def default_source(cache_dir: Path) -> tuple[Source, str]:
    """WikiText-103 if there is a cached copy or the hub answers, else the standard library, and the reason
    in one line.

    Takes at most 5 seconds without a network.
    """
    del cache_dir  # the hub's libraries keep their own cache
    copy = hub_cached_directory(WIKITEXT_REVISION)
    if copy is not None and package_version("pyarrow") != "not installed":
        reason = "corpus: WikiText-103 (copy in the cache of `datasets`)"
        source: Source = wikitext_from_directory(copy, reason)
    elif package_version("datasets") == "not installed":
        reason = "the `datasets` package is not installed (pip install 'draft-ladder[datasets]')"
        return _fallback(reason)
    else:
        problem = hub_problem(WIKITEXT_REVISION)
        if problem:
            return _fallback(problem)
        reason = "corpus: WikiText-103 (through `datasets`)"
        source = wikitext_source(WikitextConfig(source="wikitext-103"), Path(), reason)
    return source, reason


def _fallback(why: str) -> tuple[Source, str]:
    source = stdlib_source()
    source.note = f"corpus: {source.label} instead of WikiText-103: {why}"
    return source, source.note


def _files_label(files: list[InputFile]) -> str:
    return files[0].name if len(files) == 1 else f"{files[0].name} to {files[-1].name} ({len(files)} files)"
