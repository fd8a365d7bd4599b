"""Corpora: the first N MB (10^6 bytes) of a source, cut at a line end, and the text to be replayed.

Sources: `wikitext-103`, `files`, and `stdlib`, which every machine has; and `synthetic`, which has any size
but gives token files in place of texts. The replayed text is never part of the corpus.

What happens to odd text: bytes are kept as they are (no decoding, no change of line ends, NUL included, no
line feed added); decoding belongs to `tokens`, which counts what is not UTF-8. A file is read up to the
size it had when the source was resolved, so one that grows gives the same corpus; one that shrinks or
changes is an error. Directories, devices and pipes are errors, and so is a source without a single byte.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import importlib
import io
import lzma
import os
import platform
import sysconfig
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, BinaryIO, Literal, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field

from harness.errors import InputError
from harness.manifests import (
    READ_BLOCK_BYTES,
    Manifest,
    Progress,
    ProgressCallback,
    base_versions,
    cached_manifest,
    canonical_json,
    content_key,
    load_manifest,
    open_regular,
    package_version,
    write_atomic,
    write_manifest,
)
from harness.text.synthetic import SyntheticConfig, SyntheticSource, text_bytes, tokens_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MB = 1_000_000
MOST_MB = 1e9  # a petabyte
ZSTD_WINDOW_BYTES = 1 << 27  # what `zstd --long=27` needs
ZSTD_INPUT_BYTES = 1 << 13  # small, so that a file of zeros does not unpack to gigabytes in one step

WIKITEXT_REPOSITORY = "Salesforce/wikitext"
WIKITEXT_CONFIG = "wikitext-103-raw-v1"
WIKITEXT_REVISION = "b08601e04326c79dfdd32d625aee71d232d685c3"
WIKITEXT_TEST_SHA256 = "173c87a53759e0201f33e0ccf978e510c2042d7f2cb78229d9a50d79b9e7dd08"
WIKITEXT_LABELS = ("WikiText-103", "WikiText-103 test split")

HUB_TIMEOUT_S = 4.0
HELD_OUT_BYTES = 1_300_000

Split = Literal["train", "test"]


# --- configuration --------------------------------------------------------------------------------


class _Config(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class WikitextConfig(_Config):
    """WikiText-103: from the hub, or a local copy (parquet, arrow or wiki.*.raw) in the directory `path`."""

    source: Literal["wikitext-103"]
    path: str | None = None
    revision: str = WIKITEXT_REVISION


class FilesConfig(_Config):
    """Text files, plain or .gz, .xz, .zst. Given order; the files of one glob in sorted order."""

    source: Literal["files"]
    train: list[str] = Field(min_length=1)
    replay: list[str] = Field(min_length=1)
    label: str | None = None
    replay_label: str | None = None


class StdlibConfig(_Config):
    """The sources of the running Python's standard library."""

    source: Literal["stdlib"]


class DefaultConfig(_Config):
    """WikiText-103 where it can be had, else the standard library; `Source.note` says which and why."""

    source: Literal["default"] = "default"


CorpusSource = Annotated[
    WikitextConfig | FilesConfig | StdlibConfig | SyntheticConfig | DefaultConfig,
    Field(discriminator="source"),
]


# --- what the rest of the pipeline sees -----------------------------------------------------------


class Source(Protocol):
    """A resolved source: a text to build corpora from (`train`) and one to be replayed (`test`)."""

    name: str
    label: str
    replay_label: str
    kind: Literal["real", "synthetic"]
    note: str | None

    def identity(self, split: Split) -> dict[str, Any]:
        """JSON-able; equal identities give equal bytes."""
        ...

    def inputs(self, split: Split) -> dict[str, str]:
        """Name -> SHA-256 of what a split is read from, for manifests; base names, never absolute paths."""
        ...

    def blocks(self, split: Split) -> Iterator[bytes]:
        """The text of a split in blocks of any size."""
        ...


@dataclass(frozen=True)
class CorpusFile:
    """A corpus in the cache. `bytes` is its effective size: two clipped sizes with one `sha256` are the
    same corpus.
    """

    path: Path
    sha256: str
    bytes: int
    label: str
    kind: Literal["real", "synthetic"]
    source: str
    clipped: bool

    @property
    def size_mb(self) -> float:
        """Effective size in MB (10^6 bytes)."""
        return self.bytes / MB


@dataclass(frozen=True)
class ReplayText:
    """The text to be replayed, as one plain file in the cache."""

    path: Path
    sha256: str
    bytes: int
    label: str


# --- files: plain and compressed, bounded and digested --------------------------------------------


@dataclass(frozen=True)
class InputFile:
    """A file as it was when the source was resolved."""

    path: Path
    name: str
    size: int

    @cached_property
    def sha256(self) -> str:
        """Digest of the file as stored (compressed or not), of the bytes it had when resolved."""
        reader = _BoundedReader(self)
        with reader:
            while reader.read(READ_BLOCK_BYTES):
                pass
        return reader.digest.hexdigest()

    def blocks(self) -> Iterator[bytes]:
        """The content, decompressed, in blocks. Raises InputError if it is damaged or changed since it was
        digested.
        """
        expected = self.sha256
        with _BoundedReader(self) as reader:
            yield from _decompressed(reader, self.path)
            while reader.read(READ_BLOCK_BYTES):  # what a decompressor left unread
                pass
            if reader.digest.hexdigest() != expected:
                raise InputError(
                    self.path, "changed while it was read", "wait until nothing writes to it, then run again"
                )


def input_file(path: Path, name: str | None = None) -> InputFile:
    """Note a regular file's size now. Raises InputError for anything else."""
    with open_regular(path) as file:
        return InputFile(path, name or path.name, os.fstat(file.fileno()).st_size)


class _BoundedReader(io.RawIOBase):
    """Reads the first `size` bytes of a file, digests them, and notices when there are fewer."""

    def __init__(self, file: InputFile) -> None:
        super().__init__()
        self._input = file
        self._file = open_regular(file.path)
        self.position = 0
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        wanted = min(len(view), self._input.size - self.position)
        if wanted <= 0:
            return 0
        try:
            block = self._file.read(wanted)
        except OSError as error:
            raise InputError(
                self._input.path, f"byte {self.position}: {error.strerror}", "check the disk"
            ) from error
        if not block:
            raise InputError(
                self._input.path,
                f"byte {self.position}: ends here, but had {self._input.size} bytes before",
                "wait until nothing writes to it, then run again",
            )
        view[: len(block)] = block
        self.digest.update(block)
        self.position += len(block)
        return len(block)

    def close(self) -> None:
        self._file.close()
        super().close()


def _decompressed(reader: _BoundedReader, path: Path) -> Iterator[bytes]:
    """Blocks of the decompressed content, chosen by the file name's ending."""
    try:
        if path.suffix == ".gz":
            yield from _read_blocks(gzip.GzipFile(fileobj=reader))
        elif path.suffix == ".xz":
            with lzma.LZMAFile(cast(IO[bytes], reader)) as unpacked:
                yield from _read_blocks(unpacked)
        elif path.suffix == ".zst":
            yield from _zstd_blocks(reader)
        else:
            yield from _read_blocks(reader)
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        where = f"byte {reader.position}: is damaged or cut short ({error})"
        raise InputError(path, where, "fetch or compress the file again") from error


def _read_blocks(file: Any) -> Iterator[bytes]:
    while block := file.read(READ_BLOCK_BYTES):
        yield block


def _zstd_blocks(reader: _BoundedReader) -> Iterator[bytes]:
    """Frames one after the other; a frame that does not end is an error, which zstandard's own reader lets
    pass.
    """
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    frame = decompressor.decompressobj()
    begun = False
    try:
        while block := reader.read(ZSTD_INPUT_BYTES):
            while block:
                begun = True
                if data := frame.decompress(block):
                    yield data
                block = frame.unused_data if frame.eof else b""
                if frame.eof:
                    frame, begun = decompressor.decompressobj(), False
    except zstandard.ZstdError as error:
        raise EOFError(str(error)) from error
    if begun:
        raise EOFError("the last frame is not complete")


# --- the sources ----------------------------------------------------------------------------------


class FileSource:
    """Text out of files: of the user, of the standard library, or WikiText's own wiki.*.raw."""

    kind: Literal["real", "synthetic"] = "real"

    def __init__(
        self,
        name: str,
        labels: tuple[str, str],
        train: list[InputFile],
        replay: list[InputFile],
        note: str | None = None,
    ) -> None:
        self.name, self.note = name, note
        self.label, self.replay_label = labels
        self._splits: dict[Split, list[InputFile]] = {"train": train, "test": replay}
        for file in _same_content(train, replay):
            raise InputError(
                file.path,
                "is both corpus and replayed text",
                "replay a text that the corpus does not contain",
            )

    def inputs(self, split: Split) -> dict[str, str]:
        """Name -> SHA-256 of every file of a split."""
        return _named_digests(self._splits[split])

    def identity(self, split: Split) -> dict[str, Any]:
        """The digests of a split's files in their order."""
        return {"source": self.name, "files": _list_digest(self._splits[split])}

    def blocks(self, split: Split) -> Iterator[bytes]:
        """The files of a split, decompressed, one after the other as they are."""
        for file in self._splits[split]:
            yield from file.blocks()


def _same_content(files: list[InputFile], others: list[InputFile]) -> list[InputFile]:
    """Those of `files` that have the content of one of `others`, whatever their names."""
    sizes = {other.size for other in others if other.size}
    candidates = [file for file in files if file.size in sizes]
    digests = {other.sha256 for other in others} if candidates else set()
    return [file for file in candidates if file.sha256 in digests]


def _list_digest(files: list[InputFile]) -> str:
    """One SHA-256 over the content of files in their order."""
    return hashlib.sha256(canonical_json([file.sha256 for file in files]).encode()).hexdigest()


def _named_digests(files: list[InputFile]) -> dict[str, str]:
    """Name -> SHA-256; files of one name in several directories get a number."""
    named: dict[str, str] = {}
    for file in files:
        number, name = 1, file.name
        while name in named:
            number += 1
            name = f"{file.name} ({number})"
        named[name] = file.sha256
    return named


class StdlibSource(FileSource):
    """The standard library; one digest stands in its manifests for some thousand files."""

    def inputs(self, split: Split) -> dict[str, str]:
        """The digest over a split's modules."""
        return {self.replay_label if split == "test" else self.label: _list_digest(self._splits[split])}


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
        return _named_digests(self._splits[split])

    def identity(self, split: Split) -> dict[str, Any]:
        """The digests of a split's files in their order."""
        return {"source": self.name, "rows": _list_digest(self._splits[split])}

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


# --- resolving ------------------------------------------------------------------------------------


def resolve_source(config: CorpusSource, cache_dir: Path, base_dir: Path | None = None) -> Source:
    """Find the files of a source. Relative paths start at `base_dir` (default: the working directory).

    Raises InputError for what is missing, unreadable or not installed. Reaches for the hub only where
    `wikitext-103` has no path and no cached copy, or for `default`.
    """
    base = base_dir or Path()
    if isinstance(config, FilesConfig):
        train = _matches(config.train, base)
        label = config.label or _files_label(train)
        replay_label = config.replay_label or f"{label}, replayed text"
        return FileSource("files", (label, replay_label), train, _matches(config.replay, base))
    if isinstance(config, StdlibConfig):
        return stdlib_source()
    if isinstance(config, SyntheticConfig):
        return SyntheticSource(config.seed, config.replay_tokens)
    if isinstance(config, WikitextConfig):
        return _wikitext_source(config, base)
    return default_source(cache_dir)[0]


def default_source(cache_dir: Path) -> tuple[Source, str]:
    """WikiText-103 if there is a cached copy or the hub answers, else the standard library, and the reason
    in one line.

    Takes at most 5 seconds without a network.
    """
    del cache_dir  # the hub's libraries keep their own cache
    copy = _hub_cached_directory(WIKITEXT_REVISION)
    if copy is not None and package_version("pyarrow") != "not installed":
        reason = "corpus: WikiText-103 (copy in the cache of `datasets`)"
        source: Source = _wikitext_from_directory(copy, reason)
    elif package_version("datasets") == "not installed":
        reason = "the `datasets` package is not installed (pip install 'draft-ladder[datasets]')"
        return _fallback(reason)
    else:
        problem = hub_problem(WIKITEXT_REVISION)
        if problem:
            return _fallback(problem)
        reason = "corpus: WikiText-103 (through `datasets`)"
        source = _wikitext_source(WikitextConfig(source="wikitext-103"), Path(), reason)
    return source, reason


def _fallback(why: str) -> tuple[Source, str]:
    source = stdlib_source()
    source.note = f"corpus: {source.label} instead of WikiText-103: {why}"
    return source, source.note


def _matches(patterns: list[str], base: Path) -> list[InputFile]:
    """Files in the order given, those of one glob sorted; every pattern must match."""
    found: list[InputFile] = []
    for pattern in patterns:
        path = base / Path(pattern).expanduser()
        if path.exists() or not glob.has_magic(str(path)):
            found.append(input_file(path))
            continue
        names = sorted(glob.glob(str(path), recursive=True))
        if not names:
            raise InputError(pattern, "matches no file", "check the pattern and the directory it starts from")
        found += [input_file(Path(name)) for name in names]
    return found


def _files_label(files: list[InputFile]) -> str:
    return files[0].name if len(files) == 1 else f"{files[0].name} to {files[-1].name} ({len(files)} files)"


def stdlib_source(root: Path | None = None) -> StdlibSource:
    """The standard library's .py files (those of pydoc_data among them) in sorted order, some modules held
    out.

    Held out are modules in the order of the SHA-256 of their names until HELD_OUT_BYTES (or an eighth of
    all, if that is less) are together. Left out altogether: installed packages and files made when Python
    was built, which hold paths of that machine.
    """
    top = root or Path(sysconfig.get_path("stdlib"))
    files = [input_file(path, path.relative_to(top).as_posix()) for path in _stdlib_files(top)]
    files = [file for file in files if file.size]
    label = f"{platform.python_implementation()} {platform.python_version()} standard library"
    wanted = min(HELD_OUT_BYTES, sum(file.size for file in files) // 8)
    held_out: list[InputFile] = []
    for file in sorted(files, key=lambda file: hashlib.sha256(_module_name(file.name).encode()).digest()):
        if file.size <= wanted - sum(other.size for other in held_out):
            held_out.append(file)
    if not held_out:
        raise InputError(
            top,
            "holds no sources of the standard library",
            'use a Python that has them, or `source = "files"`',
        )
    held_out.sort(key=lambda file: file.name)
    copies = {
        file.name for file in _same_content(files, held_out)
    }  # the held-out modules and what equals one
    train = [file for file in files if file.name not in copies]
    return StdlibSource("stdlib", (label, f"{label}, held-out modules"), train, held_out)


def _stdlib_files(top: Path) -> list[Path]:
    skipped = ("site-packages", "dist-packages", "__pycache__", "lib-dynload")
    found = []
    for directory, names, files in os.walk(top):
        names[:] = [name for name in names if name not in skipped and not name.startswith("config-")]
        found += [
            Path(directory, name)
            for name in files
            if name.endswith(".py")
            and not name.startswith(("_sysconfigdata", "sitecustomize", "usercustomize"))
        ]
    regular = [path for path in found if path.is_file() and os.access(path, os.R_OK)]
    return sorted(regular, key=lambda path: path.relative_to(top).as_posix())


def _module_name(name: str) -> str:
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


# --- WikiText-103 ---------------------------------------------------------------------------------


def _wikitext_source(config: WikitextConfig, base: Path, note: str | None = None) -> Source:
    if config.path is not None:
        return _wikitext_from_directory(base / Path(config.path).expanduser(), note)
    copy = _hub_cached_directory(config.revision)
    if copy is not None:
        return _wikitext_from_directory(copy, note)
    return _wikitext_from_hub(config.revision, note)


def _wikitext_from_directory(directory: Path, note: str | None) -> Source:
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


def _hub_cached_directory(revision: str) -> Path | None:
    """Where `datasets` keeps what it fetched earlier, if it is there."""
    home = Path(
        os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    )
    datasets_home = Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets").expanduser()
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


# --- building -------------------------------------------------------------------------------------


class _LineCutter:
    """Writes the first `limit` bytes of a text and remembers the last line end and its digest."""

    def __init__(self, file: BinaryIO, limit: int | None) -> None:
        self._file, self._limit = file, limit
        self.bytes = 0
        self._digest = hashlib.sha256()
        self._line_end: tuple[int, hashlib._Hash] | None = None

    @property
    def full(self) -> bool:
        return self._limit is not None and self.bytes >= self._limit

    def add(self, block: bytes) -> None:
        if self._limit is not None:
            block = block[: self._limit - self.bytes]
        self._file.write(block)
        head = block.rfind(b"\n") + 1
        if head:
            self._digest.update(block[:head])
            self._line_end = (self.bytes + head, self._digest.copy())
        self._digest.update(block[head:])
        self.bytes += len(block)

    def finish(self) -> str:
        """Cut a full text back to its last line end (one without any stays as it is); returns the digest."""
        if self.full and self._line_end is not None:
            self.bytes, self._digest = self._line_end
            self._file.flush()
            self._file.truncate(self.bytes)
        return self._digest.hexdigest()


@dataclass
class _Written:
    bytes: int = 0
    sha256: str = ""
    whole: bool = False  # the source ended before the limit


def _write_text(
    target: Path,
    blocks: Iterator[bytes],
    limit: int | None,
    stage: str,
    check: Callable[[_Written], None],
    progress: ProgressCallback | None,
) -> _Written:
    """Write a text, or its first `limit` bytes to a line end; `check` may refuse the result before it is
    kept.
    """
    result = _Written()
    started = time.monotonic()

    def write(file: BinaryIO) -> None:
        cutter = _LineCutter(file, limit)
        for block in blocks:
            cutter.add(block)
            if progress:
                progress(Progress(stage, cutter.bytes, limit, time.monotonic() - started))
            if cutter.full:
                break
        result.whole = not cutter.full
        result.sha256 = cutter.finish()
        result.bytes = cutter.bytes
        check(result)

    write_atomic(target, write)
    return result


def build_corpus(
    source: Source,
    size_mb: float,
    cache_dir: Path,
    progress: ProgressCallback | None = None,
    *,
    clip: bool = False,
) -> CorpusFile:
    """The first `size_mb` * 10^6 bytes of `source`, cut at a line end, made now or found in
    `cache_dir`/corpora.

    A source that has less is an InputError that says how much there is; with `clip` it gives all it has (see
    `CorpusFile.bytes`). A synthetic corpus is a token file, and `bytes` the text that its tokens stand for.
    Raises InputError for a size that is not positive.
    """
    if not 0 < size_mb < MOST_MB or round(size_mb * MB) < 1:
        raise InputError(
            f"size {size_mb:g} MB", "is not a corpus size", f"name one above 0, below {MOST_MB:g}"
        )
    limit = round(size_mb * MB)
    if isinstance(source, SyntheticSource):
        return _synthetic_corpus(source, limit, cache_dir, progress)
    parameters = {"source": source.identity("train"), "limit_bytes": limit}
    target = cache_dir / "corpora" / f"{content_key(parameters)}.txt"
    manifest = cached_manifest(target, "corpus")

    def check(written: _Written) -> None:
        _check_size(source, written.bytes, written.whole and not clip, limit)

    if manifest is None:
        written = _write_text(target, source.blocks("train"), limit, "corpus", check, progress)
        facts = {"clipped": written.whole, "label": source.label, "kind": source.kind}
        manifest = _text_manifest("corpus", source.inputs("train"), parameters, written, facts)
        write_manifest(target, manifest)
    clipped = bool(manifest.facts["clipped"])
    _check_size(source, manifest.bytes, clipped and not clip, limit)
    return CorpusFile(
        target, manifest.sha256, manifest.bytes, source.label, source.kind, source.name, clipped
    )


def _synthetic_corpus(
    source: SyntheticSource, limit: int, cache_dir: Path, progress: ProgressCallback | None
) -> CorpusFile:
    tokens = source.tokens("corpus", tokens_of(limit), cache_dir, progress)
    size = text_bytes(tokens.n_tokens)
    return CorpusFile(tokens.path, tokens.sha256, size, source.label, source.kind, source.name, False)


def corpus_or_synthetic(
    source: Source, size_mb: float, cache_dir: Path, progress: ProgressCallback | None = None, seed: int = 1
) -> tuple[Source, CorpusFile]:
    """`size_mb` MB of `source` where it has them, else of a synthetic language, and the source it is from.

    The replayed text must be of that source too. Its `note` says what was filled in and why.
    """
    found = build_corpus(source, size_mb, cache_dir, progress, clip=True)
    if not found.clipped:
        return source, found
    note = f"corpus: {size_mb:g} MB are synthetic: {source.label} has only {found.size_mb:.3g} MB"
    filled = SyntheticSource(seed, note=note)
    return filled, build_corpus(filled, size_mb, cache_dir, progress)


def _check_size(source: Source, found_bytes: int, too_small: bool, limit: int) -> None:
    if found_bytes == 0:
        raise InputError(source.label, "holds no text", "name files that are not empty")
    if too_small:
        raise InputError(
            source.label,
            f"has only {found_bytes / MB:.6g} MB ({found_bytes} bytes), {limit / MB:.6g} MB were asked for",
            "ask for less, or say `clip = true` to take what there is",
        )


def _text_manifest(
    kind: str, inputs: dict[str, str], parameters: dict[str, Any], written: _Written, facts: dict[str, Any]
) -> Manifest:
    return Manifest(
        kind=kind,
        inputs=inputs,
        parameters=parameters,
        versions=base_versions(),
        sha256=written.sha256,
        bytes=written.bytes,
        facts=facts,
    )


def replay_text(source: Source, cache_dir: Path, progress: ProgressCallback | None = None) -> ReplayText:
    """The text of `source` to be replayed, whole, as a plain file in `cache_dir`/corpora; of a synthetic
    source its token file.
    """
    if isinstance(source, SyntheticSource):
        tokens = source.tokens("replay", source.replay_tokens, cache_dir, progress)
        size = text_bytes(tokens.n_tokens)
        return ReplayText(tokens.path, tokens.sha256, size, source.replay_label)
    parameters = {"source": source.identity("test"), "split": "test"}
    target = cache_dir / "corpora" / f"{content_key(parameters)}.txt"

    def check(written: _Written) -> None:
        _check_size(source, written.bytes, False, 0)
        if source.name == "wikitext-103" and written.sha256 != WIKITEXT_TEST_SHA256:
            raise InputError(
                source.label,
                f"its test split is not the text of wiki.test.raw (sha256 {written.sha256[:16]}...)",
                f'use {WIKITEXT_CONFIG} at revision {WIKITEXT_REVISION}, or `source = "files"`',
            )

    if cached_manifest(target, "replay-text") is None:
        written = _write_text(target, source.blocks("test"), None, "replay text", check, progress)
        write_manifest(
            target,
            _text_manifest(
                "replay-text", source.inputs("test"), parameters, written, {"label": source.label}
            ),
        )
    manifest = load_manifest(target, "replay-text")
    return ReplayText(target, manifest.sha256, manifest.bytes, source.replay_label)
