"""From what a config says to a source with its files found."""

from __future__ import annotations

from pathlib import Path

from draft_ladder.base.manifests import package_version
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


def resolve_source(config: CorpusSource, base_dir: Path | None = None) -> Source:
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
    return default_source()


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
    return wikitext_source(config, Path(), "corpus: WikiText-103 (through `datasets`)")


def _fallback(why: str) -> Source:
    source = stdlib_source()
    source.note = f"corpus: {source.label} instead of WikiText-103: {why}"
    return source


def _files_label(files: list[InputFile]) -> str:
    return files[0].name if len(files) == 1 else f"{files[0].name} to {files[-1].name} ({len(files)} files)"
