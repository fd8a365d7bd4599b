"""WikiText-103: a local copy in any of its formats, or the hub."""

from __future__ import annotations

import importlib
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import at_home
from draft_ladder.data.input_files import InputFile, input_file, list_digest, named_digests
from draft_ladder.data.sources import WIKITEXT_REVISION, FileSource, Source, SourceConfig, Split

WIKITEXT_REPOSITORY = "Salesforce/wikitext"
WIKITEXT_CONFIG = "wikitext-103-raw-v1"
WIKITEXT_TEST_SHA256 = "173c87a53759e0201f33e0ccf978e510c2042d7f2cb78229d9a50d79b9e7dd08"
WIKITEXT_LABELS = ("WikiText-103", "WikiText-103 test split")
HUB_TIMEOUT_S = 4.0


class WikitextConfig(SourceConfig):
    """WikiText-103: from the hub, or a local copy (parquet, arrow or wiki.*.raw) in the directory `path`."""

    source: Literal["wikitext-103"]
    path: str | None = None
    revision: str = WIKITEXT_REVISION

    def resolve(self, base: Path, note: str | None = None) -> Source:
        """The copy that is named, or one in the cache of `datasets`, or what `datasets` fetches."""
        if self.path is not None:
            return wikitext_from_directory(base / at_home(Path(self.path)), note)
        copy = hub_cached_directory(self.revision)
        if copy is not None:
            return wikitext_from_directory(copy, note)
        return _wikitext_from_hub(self.revision, note)


class RowSource:
    """WikiText rows out of parquet or arrow files, rejoined to the text that they were cut from."""

    kind: Literal["real", "synthetic"] = "real"
    name = "wikitext-103"
    label, replay_label = WIKITEXT_LABELS

    def __init__(self, train: list[InputFile], test: list[InputFile], note: str | None = None) -> None:
        self.note = note
        self._splits: dict[Split, list[InputFile]] = {"train": train, "test": test}

    def inputs(self, split: Split) -> dict[str, str]:
        """Name -> SHA-256 of every file of a split."""
        return named_digests(self._splits[split])

    def identity(self, split: Split) -> dict[str, Any]:
        """The digests of a split's files in their order."""
        return {"source": self.name, "rows": list_digest(self._splits[split])}

    def blocks(self, split: Split) -> Iterator[bytes]:
        """The text of the rows."""
        for file in self._splits[split]:
            for rows in _text_rows(file.path):
                yield rejoin(rows)


def rejoin(rows: Iterable[str | None]) -> bytes:
    """Lines of the raw file out of rows: an empty row stands for the line ' ', which the dataset's maker
    stripped.
    """
    lines = []
    for row in rows:
        line = row or " "
        lines.append(line if line.endswith("\n") else line + "\n")
    return "".join(lines).encode()


def _text_rows(path: Path) -> Iterator[list[str | None]]:
    """Column `text` of a parquet or arrow file, some thousand rows at a time."""
    pyarrow = _pyarrow(path)
    try:
        if path.suffix == ".parquet":
            with importlib.import_module("pyarrow.parquet").ParquetFile(path) as table:
                for batch in table.iter_batches(columns=["text"]):
                    yield batch.column(0).to_pylist()
            return
        with pyarrow.memory_map(str(path)) as mapped:
            for batch in _arrow_batches(pyarrow, mapped):
                yield batch.column(batch.schema.get_field_index("text")).to_pylist()
    except (pyarrow.ArrowException, OSError, KeyError, IndexError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            path, f"has no readable column `text` ({first_line})", "fetch the file again"
        ) from error


def _arrow_batches(pyarrow: Any, mapped: Any) -> Iterator[Any]:
    """Record batches of an arrow file in either of the two layouts (`datasets` writes the stream one)."""
    try:
        yield from pyarrow.ipc.open_stream(mapped)
    except pyarrow.ArrowInvalid:
        mapped.seek(0)
        reader = pyarrow.ipc.open_file(mapped)
        for index in range(reader.num_record_batches):
            yield reader.get_batch(index)


def _pyarrow(path: object) -> Any:
    try:
        importlib.import_module("pyarrow.ipc")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise InputError(
            path, "needs pyarrow, which is not installed", "pip install 'draft-ladder[datasets]'"
        ) from error


def wikitext_from_directory(directory: Path, note: str | None) -> Source:
    """A local copy: wiki.<split>.raw, or parquet or arrow files with the split in their name or their
    folder's.
    """
    if not directory.is_dir():
        raise InputError(
            directory, "is not a directory", "name the directory that holds wiki.train.raw or *.parquet"
        )
    top = directory / WIKITEXT_CONFIG if (directory / WIKITEXT_CONFIG).is_dir() else directory
    raw = [top / "wiki.train.raw", top / "wiki.test.raw"]
    if all(path.is_file() for path in raw):
        train, test = ([input_file(path)] for path in raw)
        return FileSource("wikitext-103", WIKITEXT_LABELS, train, test, note)
    for ending in ("parquet", "arrow"):
        train, test = (_split_files(top, split, ending) for split in ("train", "test"))
        if train and test:
            return RowSource(train, test, note)
    raise InputError(
        directory,
        "holds no copy of WikiText-103",
        "needs wiki.train.raw and wiki.test.raw, or train and test as .parquet or .arrow",
    )


def _split_files(top: Path, split: str, ending: str) -> list[InputFile]:
    """Files of a split: `train-00000-of-00002.parquet`, `wikitext-train.arrow`,
    `train/data-00000-of-00002.arrow`.
    """
    found = [
        path
        for path in sorted(top.rglob(f"*.{ending}"))
        if split in path.stem.replace("_", "-").split("-") or path.parent.name == split
    ]
    return [input_file(path, path.relative_to(top).as_posix()) for path in found]


def hub_cached_directory(revision: str) -> Path | None:
    """Where `datasets` keeps what it fetched earlier, if it is there."""
    home = Path(
        os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    )
    try:
        datasets_home = at_home(Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets"))
    except InputError:  # no home, nothing kept in it
        return None
    owner, name = WIKITEXT_REPOSITORY.split("/")
    directory = datasets_home / f"{owner}___{name}" / WIKITEXT_CONFIG / "0.0.0" / revision
    complete = (
        all(_split_files(directory, split, "arrow") for split in ("train", "test"))
        if directory.is_dir()
        else False
    )
    return directory if complete else None


def _wikitext_from_hub(revision: str, note: str | None) -> Source:
    """Let `datasets` fetch it, then read the arrow files it made."""
    remedy = 'name a local copy with `path`, or use `source = "stdlib"`'
    try:
        datasets = importlib.import_module("datasets")
    except ImportError as error:
        install = f"pip install 'draft-ladder[datasets]', or {remedy}"
        raise InputError(
            "wikitext-103", "needs the `datasets` package, which is not installed", install
        ) from error
    problem = hub_problem(revision)
    if problem:
        raise InputError("wikitext-103", problem, remedy)
    try:
        splits = datasets.load_dataset(WIKITEXT_REPOSITORY, WIKITEXT_CONFIG, revision=revision)
        paths = {
            split: [Path(entry["filename"]) for entry in splits[split].cache_files]
            for split in ("train", "test")
        }
    except Exception as error:  # whatever the hub's libraries raise: one line for the user
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError("wikitext-103", f"could not be fetched ({first_line})", remedy) from error
    return RowSource(
        [input_file(path) for path in paths["train"]], [input_file(path) for path in paths["test"]], note
    )


def hub_problem(revision: str, timeout_s: float = HUB_TIMEOUT_S) -> str | None:
    """Why the hub cannot be used, in a few words, or None; known after `timeout_s` at the latest.

    Asked once, in a thread of its own: a name server that does not answer would hold the process beyond any
    time-out.
    """
    for variable in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        if os.environ.get(variable, "").upper() in ("1", "ON", "YES", "TRUE"):
            return f"{variable} is set"
    endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
    url = f"{endpoint}/api/datasets/{WIKITEXT_REPOSITORY}/revision/{revision}"
    answer: list[str | None] = []
    thread = threading.Thread(target=lambda: answer.append(_ask(url, timeout_s)), daemon=True)
    thread.start()
    thread.join(timeout_s)
    if not answer:
        return f"the hub ({endpoint}) did not answer within {timeout_s:g} s"
    return f"the hub ({endpoint}) cannot be reached ({answer[0]})" if answer[0] else None


def _ask(url: str, timeout_s: float) -> str | None:
    try:
        with urllib.request.urlopen(url, timeout=timeout_s):
            return None
    except urllib.error.HTTPError as error:
        return f"HTTP {error.code}"
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error)) or type(error).__name__
