"""Variants are folders: a `variant.toml` with the module beside it. Finding is looking, not registering."""

from __future__ import annotations

import tomllib
from functools import cached_property
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import sha256_file
from draft_ladder.base.native import load_module, native_root
from draft_ladder.base.validation import first_problem


class Variant(BaseModel):
    """What `variant.toml` says, and where the module is. No `rung`: an ablation, or what goes beyond."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    label: str
    rung: int | None = None
    kind: Literal["rung", "ablation", "beyond"]
    color: str = Field(pattern=r"^#[0-9a-fA-F]{6}$")
    marker: str
    tie_class: Literal["iteration", "token"]
    static_format: str
    changes: str
    versus: str | None = None
    axes: dict[str, list[str]] = {}
    module: Path

    @cached_property
    def module_sha256(self) -> str:
        """Digest of the module file: another build is another measurement."""
        return sha256_file(self.module)

    def load(self) -> Any:
        """Its module, in this process (what is measured runs in a process of its own)."""
        return load_module(self.module, f"draft_ladder.variants.{self.name}")


def discover(root: Path | None = None) -> list[Variant]:
    """Every variant under `root`/variants (default: where the modules are installed), rungs first."""
    root = native_root() if root is None else root
    folder = root / "variants"
    found = [_read(file) for file in sorted(folder.glob("*/*/variant.toml"))]
    if not found:
        raise InputError(
            folder, "no variant is built", "install the package (`make reproduce` does) or set LADDER_NATIVE"
        )
    return sorted(found, key=lambda variant: (_rank(variant), variant.name))


def find(name: str, root: Path | None = None) -> Variant:
    """The variant of this name; InputError lists the names there are."""
    variants = discover(root)
    for variant in variants:
        if variant.name == name:
            return variant
    names = ", ".join(variant.name for variant in variants)
    raise InputError(f"variant {name}", "not known", f"use one of {names}")


def _rank(variant: Variant) -> float:
    return float("inf") if variant.rung is None else variant.rung


def _read(file: Path) -> Variant:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(file, f"not readable as TOML ({error})", "correct it") from error
    axes = content.get("axes", {})
    if isinstance(axes, dict):
        content["axes"] = {
            axis: [str(value) for value in values] if isinstance(values, list) else values
            for axis, values in axes.items()
        }
    try:
        variant = Variant.model_validate({**content, "module": _module_beside(file)})
    except ValidationError as error:
        found = first_problem(error, content, Variant.model_fields.keys() - {"module"})
        raise InputError(found.at(file), found.problem, found.remedy) from error
    if variant.name != file.parent.name:
        raise InputError(
            f"{file}: name", f"{variant.name} is not the folder's name", f"call it {file.parent.name}"
        )
    return variant


def _module_beside(file: Path) -> Path:
    """The module of a variant's folder: an extension, or a Python file of the same interface."""
    for suffix in [*EXTENSION_SUFFIXES, ".py"]:
        module = file.parent / f"{file.parent.name}{suffix}"
        if module.exists():
            return module
    raise InputError(file, "no module lies beside it", "build the variants again")
