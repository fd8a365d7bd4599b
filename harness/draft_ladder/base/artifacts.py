"""The store of artifacts: files that can be made again, found by what they are made from.

An artifact says its kind, what it is made from and how. The store finds it, or makes it: one maker at a time,
in a temporary place, its manifest last. A file whose manifest is missing counts as not made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import (
    Manifest,
    base_versions,
    content_key,
    load_manifest,
    manifest_path,
    replacing_artifact,
    sha256_file,
    unwritable,
    write_atomic,
    write_manifest,
)

# Facts that are about the making of an artifact and not about what it is.
COST_SUFFIXES = ("_ns", "_rss_bytes")
COSTS = ("memory_bytes", "n_parts", "n_parts_found", "n_ranges", "largest_range_bytes")


class Made(NamedTuple):
    """What was found out while an artifact was made.

    `sha256`: its digest, where that was computed on the way; `parameters`: those known only afterwards;
    `beside`: further files by the ending that they add to its name, aids that nothing depends on.
    """

    facts: Mapping[str, Any] = {}
    sha256: str | None = None
    parameters: Mapping[str, Any] = {}
    beside: Mapping[str, bytes] = {}


@dataclass(frozen=True)
class Artifact:
    """A file that can be made again.

    `identity`: all that decides its bytes, as JSON: the same identity, kind and suffix are the same file.
    `make` writes it to the path that it is given, and may ask a store for other artifacts first. `inputs`
    (name to SHA-256), `parameters` and `versions` of programs are for the manifest.
    """

    kind: str
    folder: str  # of the cache directory
    suffix: str
    identity: Mapping[str, Any]
    make: Callable[[Path], Made]
    inputs: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its file's name in a store."""
        return content_key({"kind": self.kind, **self.identity}) + self.suffix


class Stored(NamedTuple):
    """An artifact that is there, and its manifest."""

    path: Path
    manifest: Manifest

    @property
    def sha256(self) -> str:
        """The file's digest."""
        return self.manifest.sha256


_made_here: set[Path] = set()


def made_here(path: Path) -> bool:
    """Whether this process made the artifact at `path`; False where it found one of an earlier run."""
    return path.resolve() in _made_here


def without_costs(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of an artifact that hold whoever made it: none of the time and memory that took."""
    return {
        name: value for name, value in facts.items() if not name.endswith(COST_SUFFIXES) and name not in COSTS
    }


class Store:
    """The artifacts of a cache directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, artifact: Artifact) -> Path:
        """Where the artifact is, or will be."""
        return self.root / artifact.folder / artifact.name

    def get(self, artifact: Artifact) -> Stored:
        """The artifact, made now or found. While another process makes it, this one waits.

        Raises InputError for a place that cannot be written, and whatever its maker raises: nothing is left
        behind then.
        """
        path = self.path(artifact)
        manifest = find(path, artifact.kind)
        if manifest is None:
            lock = self.root / "locks" / f"{path.name}.lock"
            try:
                lock.parent.mkdir(parents=True, exist_ok=True)
                with FileLock(lock):
                    manifest = find(path, artifact.kind) or make(artifact, path)
            except OSError as error:
                raise unwritable(path, error) from error
        return Stored(path, manifest)


def find(path: Path, kind: str, *, digest: bool = False) -> Manifest | None:
    """The manifest of a file that is there, whole and of the size its manifest names (with `digest`, of that
    content too); None if it is to be made (again).
    """
    if not path.is_file() or not manifest_path(path).is_file():
        return None
    try:
        manifest = load_manifest(path, kind)
    except InputError:
        return None
    whole = path.stat().st_size == manifest.bytes and (not digest or sha256_file(path) == manifest.sha256)
    return manifest if whole else None


def make(artifact: Artifact, path: Path) -> Manifest:
    """Make an artifact at `path`, whatever is there: in a temporary place beside it, the manifest last."""
    with replacing_artifact(path) as temporary:
        made = artifact.make(temporary)
        manifest = Manifest(
            kind=artifact.kind,
            inputs=dict(artifact.inputs),
            parameters={**artifact.parameters, **made.parameters},
            versions={**base_versions(), **artifact.versions},
            sha256=made.sha256 or sha256_file(temporary),
            bytes=temporary.stat().st_size,
            facts=dict(made.facts),
        )
    for ending, content in made.beside.items():
        write_atomic(path.with_name(path.name + ending), content)
    write_manifest(path, manifest)
    _made_here.add(path.resolve())
    return manifest
