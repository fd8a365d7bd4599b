"""Atomic files, and the manifest beside each one that can be made again.

Beside `<file>` stands `<file>.json`, its manifest, which names what it was made from (digests), how
(parameters, versions) and what it is (its own digest and size).
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import itertools
import json
import os
import platform
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import psutil
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from draft_ladder.base.errors import InputError
from draft_ladder.base.locks import is_running
from draft_ladder.base.outputs import destination, is_stored, write_through
from draft_ladder.base.validation import first_problem

MANIFEST_SCHEMA = 1
READ_BLOCK_BYTES = 1 << 20

_temporary_numbers = itertools.count()


class Progress(NamedTuple):
    """How far one stage has come. `total_bytes` is None where it cannot be known; `tokens` is 0 outside
    `tokens`.
    """

    stage: str
    done_bytes: int
    total_bytes: int | None
    elapsed_s: float
    tokens: int = 0

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens per second so far, None before anything was measured."""
        return self.tokens / self.elapsed_s if self.tokens and self.elapsed_s > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """Time left at the pace so far, None while it cannot be told."""
        if not self.total_bytes or not self.done_bytes:
            return None
        return self.elapsed_s * max(0, self.total_bytes - self.done_bytes) / self.done_bytes


ProgressCallback = Callable[[Progress], None]


class Manifest(BaseModel):
    """What stands in `<artifact>.json`. Written by one version of the program, read by any later one.

    `inputs` maps a name to a SHA-256; `facts` holds what was found out while making the artifact.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True, frozen=True)

    schema_: int = Field(default=MANIFEST_SCHEMA, alias="schema")
    kind: str
    inputs: dict[str, str] = Field(default_factory=dict)
    parameters: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)
    facts: dict[str, Any] = Field(default_factory=dict)


def canonical_json(obj: object) -> str:
    """The one spelling of `obj` as JSON: sorted keys, no spaces, no NaN. Raises ValueError for NaN or
    infinity.
    """
    return json.dumps(obj, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def content_key(obj: object) -> str:
    """First 16 hex digits of the SHA-256 of `obj`'s canonical JSON: names the artifact made from `obj`."""
    return hashlib.sha256(canonical_json(obj).encode()).hexdigest()[:16]


def sha256_file(path: Path) -> str:
    """SHA-256 of a regular file as 64 hex digits. Raises InputError if it cannot be read."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; a directory, a device or a pipe is an InputError (a pipe would wait
    forever).
    """
    try:
        if path.is_dir():
            raise InputError(path, "is a directory, not a file", "name a file, or a glob such as 'dir/*.txt'")
        if path.exists() and not path.is_file():
            raise InputError(path, "is not a regular file", "copy its content to a file and name that")
        return path.open("rb")
    except OSError as error:
        raise InputError(path, _reason(error), _remedy(error)) from error


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _remedy(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return "free some space, or choose another place with LADDER_CACHE_DIR or the cache directory option"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "change its permissions or choose another place"
    if error.errno == errno.ENOENT:
        return "check the path"
    return "check the path and the disk"


def unwritable(path: Path, error: OSError, what: str = "cannot be written") -> InputError:
    """The operating system's refusal to write there, in one line."""
    return InputError(path, f"{what}: {_reason(error)}", _remedy(error))


def _temporary_for(path: Path) -> Path:
    """A new name beside `path` that tells which host's which process writes it, and when that started."""
    process = psutil.Process()
    owner = f"{_host_name_hash()}-{process.pid}-{process.create_time():.0f}"
    return path.parent / f".{path.name}.{owner}.{threading.get_ident()}-{next(_temporary_numbers)}.tmp"


def _host_name_hash() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _remove_abandoned(path: Path) -> None:
    """Remove temporary files that a killed process of this host left for this very target, those that the
    native modules make beside a temporary file among them (one more dot before, more letters behind).

    Whether another host's writer is alive cannot be seen from here: its files stay.
    """
    named = re.compile(rf"\.+{re.escape(path.name)}\.([0-9a-f]{{8}})-(\d+)-(\d+)\.")
    for leftover in path.parent.glob(f".*{glob.escape(path.name)}.*.tmp"):
        owner = named.match(leftover.name)
        if owner and owner[1] == _host_name_hash() and not is_running(int(owner[2]), int(owner[3])):
            leftover.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new path to write to, which replaces `path` at the end: a reader sees the old file, the new file, or
    none, never a part of one. Every output is opened here.

    It lies in the same directory and is synced before it is renamed. A link is followed; a device, a pipe or
    an open stream gets the content and stays what it is. Raises InputError (one line) for a folder or a
    socket and when the disk is full or the place cannot be written; whatever goes wrong, no temporary file
    stays.
    """
    try:
        target, through = destination(path)
        if through:
            with tempfile.TemporaryDirectory(prefix="ladder-") as folder:
                temporary = Path(folder, path.name)
                yield temporary
                write_through(temporary, target)
        else:
            with _replacing_file(target) as temporary:
                yield temporary
    except OSError as error:
        raise unwritable(path, error) from error


@contextlib.contextmanager
def _replacing_file(path: Path) -> Iterator[Path]:
    temporary = _temporary_for(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


@contextlib.contextmanager
def replacing_artifact(path: Path) -> Iterator[Path]:
    """As replacing(), for a file that may have a manifest: the old one, which describes the old file, goes
    first, so that file and manifest are of the same make or there is no manifest.
    """
    with replacing(path) as temporary:
        yield temporary
        if is_stored(path):
            for manifest in {manifest_path(path), _manifest_beside(destination(path).path)}:
                manifest.unlink(missing_ok=True)


def write_atomic(path: Path, content: bytes | Callable[[BinaryIO], None]) -> None:
    """Replace `path` by `content`: bytes, or a function that writes them to an open file. See replacing()."""
    with replacing(path) as temporary, temporary.open("xb") as file:
        if callable(content):
            content(file)
        else:
            file.write(content)


def _sync_directory(directory: Path) -> None:
    """Make the rename itself durable, where the system lets a directory be opened."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def manifest_path(artifact: Path) -> Path:
    """Where the manifest of `artifact` stands: `<artifact>.json`, for a link that has none its file's."""
    beside = _manifest_beside(artifact)
    if artifact.is_symlink() and not beside.exists():
        return _manifest_beside(Path(os.path.realpath(artifact)))
    return beside


def _manifest_beside(artifact: Path) -> Path:
    return artifact.with_name(artifact.name + ".json")


def write_manifest(artifact: Path, manifest: Manifest) -> None:
    """Write the manifest beside its artifact: last, because it says that the artifact is whole. What is no
    regular file gets none.
    """
    if not is_stored(artifact):
        return
    fields = manifest.model_dump(by_alias=True)
    text = json.dumps(fields, indent=2, sort_keys=True, allow_nan=False) + "\n"
    write_atomic(manifest_path(artifact), text.encode())


def load_manifest(artifact: Path, kind: str | None = None) -> Manifest:
    """The manifest of `artifact`. Raises InputError if it is missing, malformed, newer than this program,
    or of another kind.
    """
    path = manifest_path(artifact)
    rebuild = f"remove {artifact.name} and its manifest and build it again"
    with open_regular(path) as file:
        raw = file.read()
    try:
        fields = json.loads(raw)
    except ValueError as error:
        raise InputError(path, f"is not JSON ({error})", rebuild) from error
    if not isinstance(fields, dict):
        raise InputError(path, "is not a JSON object", rebuild)
    schema = fields.get("schema")
    if isinstance(schema, int) and schema > MANIFEST_SCHEMA:
        raise InputError(
            path,
            f"schema: {schema} is newer than {MANIFEST_SCHEMA}, the newest this program reads",
            "update the program",
        )
    try:
        manifest = Manifest.model_validate(fields)
    except ValidationError as error:
        found = first_problem(error, fields)
        raise InputError(found.at(path), found.problem, rebuild) from error
    if kind is not None and manifest.kind != kind:
        raise InputError(path, f"kind: is {manifest.kind!r}, not {kind!r}", "name an artifact of that kind")
    return manifest


def cache_dir(override: Path | None = None) -> Path:
    """The cache directory: `override`, else LADDER_CACHE_DIR, else ~/.cache/draft-ladder; made if missing."""
    path = at_home(override or Path(os.environ.get("LADDER_CACHE_DIR") or "~/.cache/draft-ladder"))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error, "cannot be made a cache directory") from error
    return path


def at_home(path: Path) -> Path:
    """`path` with a leading ~ filled in. InputError where this user has no home directory."""
    try:
        return path.expanduser()
    except RuntimeError as error:
        remedy = "set LADDER_CACHE_DIR to a folder for what is made, and name other files without ~"
        raise InputError(path, "there is no home directory here", remedy) from error


def base_versions() -> dict[str, str]:
    """Versions that every manifest names: this program's and Python's."""
    return {"python": platform.python_version(), "draft-ladder": package_version("draft-ladder")}


def package_version(name: str) -> str:
    """Installed version of a distribution, or 'not installed' (as when run from a source tree)."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def iter_blocks(path: Path) -> Iterator[bytes]:
    """The content of a regular file in blocks of at most READ_BLOCK_BYTES."""
    with open_regular(path) as file:
        while block := file.read(READ_BLOCK_BYTES):
            yield block


def refuse_overwriting(target: Path, *inputs: Path | None) -> None:
    """InputError where the file to be written is one of those it is made from."""
    for source in inputs:
        if source is not None and target.exists() and source.exists() and target.samefile(source):
            raise InputError(target, "is the source itself", "name another file")


def stale_remedy(artifact: Path) -> str:
    """What to do about a file that its manifest does not describe: one of the two is of another make."""
    return f"remove {manifest_path(artifact)} if the file is as you want it, or build it again"


def refuse_other_manifest(target: Path) -> None:
    """InputError where a file of the user's own has the name that the manifest of `target` needs."""
    path = manifest_path(target)
    if not path.exists() or not is_stored(target):
        return
    try:
        fields = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict) or not {"kind", "sha256", "bytes"} <= fields.keys():
        raise InputError(path, "is no manifest, and one would replace it", "name another file to write")


def copy_artifact(artifact: Path, target: Path) -> Path:
    """Copy an artifact and its manifest out of the cache; the copy's path.

    Raises InputError for an artifact that is not what its manifest describes: nothing is copied then.
    """
    refuse_overwriting(target, artifact)
    refuse_other_manifest(target)
    manifest = load_manifest(artifact)
    with replacing_artifact(target) as temporary:
        with open_regular(artifact) as source, temporary.open("xb") as out:
            shutil.copyfileobj(source, out, READ_BLOCK_BYTES)
        if sha256_file(temporary) != manifest.sha256:
            raise InputError(artifact, "is not the file its manifest describes", "remove it and run again")
    write_manifest(target, manifest)
    return target
