"""Finds and imports the compiled extension modules: the variants and the helpers."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import cast

from draft_ladder.base.errors import InputError
from draft_ladder.base.interfaces import (
    BuilderModule,
    CachesModule,
    SyntheticModule,
    TunableModule,
    VariantModule,
)

REBUILD = (
    "install the project again (pip install .), or point LADDER_NATIVE at the folder of the built modules"
)


def native_root() -> Path:
    """The folder that holds the built modules (`_builder`, `variants/<group>/<name>/<name>`).

    LADDER_NATIVE if set, else the installed distribution's `draft_ladder`, else this package's own folder.
    """
    override = os.environ.get("LADDER_NATIVE")
    if override:
        return Path(override)
    from importlib import metadata  # costs a megabyte: only where it is needed

    try:
        return Path(str(metadata.distribution("draft-ladder").locate_file("draft_ladder")))
    except metadata.PackageNotFoundError:
        return Path(__file__).parents[1]


def find_module(folder: Path, name: str) -> Path:
    """File of extension module `name` in `folder`. Raises InputError if it was not built for this Python."""
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = folder / f"{name}{suffix}"
        if path.is_file():
            return path
    raise InputError(folder, f"has no module {name!r} built for this Python", REBUILD)


def load_module(path: Path, name: str) -> ModuleType:
    """Import the extension module in file `path`; `name` is its dotted name, which ends in the file's own.

    Importing a file again gives the same module. Raises InputError if it cannot be imported.
    """
    known = sys.modules.get(name)
    if known is not None and known.__spec__ is not None and known.__spec__.origin == str(path):
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(path, "is not a Python extension module", REBUILD)
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise InputError(path, f"cannot be imported: {' '.join(str(error).split())}", REBUILD) from error
    sys.modules[name] = module
    return module


def builder() -> BuilderModule:
    """The module `_builder`."""
    return cast(BuilderModule, _helper("_builder"))


def caches() -> CachesModule:
    """The module `_caches`."""
    return cast(CachesModule, _helper("_caches"))


def synthetic() -> SyntheticModule:
    """The module `_synthetic`."""
    return cast(SyntheticModule, _helper("_synthetic"))


def tunable() -> TunableModule:
    """The module `_tunable`: a drafter for users, whose thresholds are set at run time."""
    return cast(TunableModule, _helper("_tunable"))


def _helper(name: str) -> ModuleType:
    return load_module(find_module(native_root(), name), f"draft_ladder.{name}")


def load_variant(path: Path, name: str) -> VariantModule:
    """A variant's module, in this process (what is measured runs in a process of its own)."""
    return cast(VariantModule, load_module(path, f"draft_ladder.variants.{name}"))


def variant(name: str) -> VariantModule:
    """The module of a built variant, by its name alone."""
    folders = sorted((native_root() / "variants").glob(f"*/{name}"))
    folder = folders[0] if folders else native_root() / "variants"
    return load_variant(find_module(folder, name), name)


@contextmanager
def errors() -> Iterator[None]:
    """A native module's ValueError as an InputError."""
    try:
        yield
    except ValueError as error:
        raise input_error(error) from error


def input_error(error: ValueError) -> InputError:
    """The one line of a native module's ValueError ("<where>: <problem>; <remedy>") as an InputError.

    A text of another form, the interpreter's own for example, is a mistake of ours and is said to be one.
    """
    text = " ".join(str(error).split())
    sentence, _, remedy = text.rpartition("; ")
    where, _, problem = sentence.partition(": ")
    if where and problem and remedy:
        return InputError(where, problem, remedy)
    return InputError("native module", text or type(error).__name__, "report it, with what was run")
