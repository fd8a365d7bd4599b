"""Where a text comes from: what a source is, and two of them, files and the standard library."""

from __future__ import annotations

import hashlib
import os
import platform
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from draft_ladder.base.errors import InputError
from draft_ladder.data.input_files import (
    InputFile,
    input_file,
    list_digest,
    matching_files,
    named_digests,
    same_content,
)

WIKITEXT_REVISION = "b08601e04326c79dfdd32d625aee71d232d685c3"
HELD_OUT_BYTES = 1_300_000

Split = Literal["train", "test"]


class SourceConfig(BaseModel):
    """A corpus table of a config. It finds its source itself: `resolve(base)`, relative paths from `base`."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FilesConfig(SourceConfig):
    """Text files, plain or .gz, .xz, .zst. Given order; the files of one glob in sorted order."""

    source: Literal["files"]
    train: list[str] = Field(min_length=1)
    replay: list[str] = Field(min_length=1)
    label: str | None = None
    replay_label: str | None = None

    def resolve(self, base: Path) -> FileSource:
        """Its files. InputError for one that is missing or unreadable."""
        train = matching_files(self.train, base)
        label = self.label or _files_label(train)
        replay_label = self.replay_label or f"{label}, replayed text"
        return FileSource("files", (label, replay_label), train, matching_files(self.replay, base))


class StdlibConfig(SourceConfig):
    """The sources of the running Python's standard library."""

    source: Literal["stdlib"]

    def resolve(self, base: Path) -> StdlibSource:
        """See stdlib_source()."""
        del base
        return stdlib_source()


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
        for file in same_content(train, replay):
            raise InputError(
                file.path,
                "is both corpus and replayed text",
                "replay a text that the corpus does not contain",
            )

    def inputs(self, split: Split) -> dict[str, str]:
        """Name -> SHA-256 of every file of a split."""
        return named_digests(self._splits[split])

    def identity(self, split: Split) -> dict[str, Any]:
        """The digests of a split's files in their order."""
        return {"source": self.name, "files": list_digest(self._splits[split])}

    def blocks(self, split: Split) -> Iterator[bytes]:
        """The files of a split, decompressed, one after the other as they are."""
        for file in self._splits[split]:
            yield from file.blocks()


class StdlibSource(FileSource):
    """The standard library; one digest stands in its manifests for some thousand files."""

    def inputs(self, split: Split) -> dict[str, str]:
        """The digest over a split's modules."""
        return {self.replay_label if split == "test" else self.label: list_digest(self._splits[split])}


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
    copies = {file.name for file in same_content(files, held_out)}  # the held-out modules and what equals one
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


def _files_label(files: list[InputFile]) -> str:
    return files[0].name if len(files) == 1 else f"{files[0].name} to {files[-1].name} ({len(files)} files)"
