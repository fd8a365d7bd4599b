"""Variants are folders: `variants/<group>/<name>/variant.toml` and what drafts. Finding is looking."""

from __future__ import annotations

import hashlib
from functools import cached_property
from importlib import metadata
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from draft_ladder.base.errors import InputError
from draft_ladder.base.interfaces import VariantModule
from draft_ladder.base.manifests import sha256_file
from draft_ladder.base.native import load_variant, native_root
from draft_ladder.base.validation import first_problem, read_toml

PLACED = ("group", "module", "skipped")  # what the folder says, not the file


class Variant(BaseModel):
    """What `variant.toml` says, and where the folder is. No `rung`: an ablation, or what goes beyond.

    Drafts must be equal among the variants of one `rule` (how a draft is chosen) and `ties` (how it decides
    between equals). `engine` is who runs the loop: the native replay driver over a C++ drafter, or a Python
    loop over the class in `drafter.py`. `skipped` says why the variant was not built here, if it was not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    label: str
    rung: int | None = None
    color: str = Field(pattern=r"^#[0-9a-fA-F]{6}$")
    marker: str
    rule: str = Field(min_length=1)
    ties: Literal["iteration", "token"]
    engine: Literal["native", "python"] = "native"
    shape: Literal["chain", "tree"] = "chain"  # of its drafts; trees are measured on requests alone
    static_format: str
    changes: str
    versus: str | None = None
    axes: dict[str, list[str]] = {}
    # Of a drafter that somebody else wrote: the installed package and where it comes from.
    package: str | None = None
    version: str | None = None
    licence: str | None = None
    source: str | None = None
    group: Literal["ladder", "ablations", "beyond", "peers"]
    module: Path
    skipped: str | None = None

    @model_validator(mode="after")
    def _readable_format(self) -> Variant:
        if self.engine == "python" and self.static_format not in ("llama", "none"):
            raise ValueError('engine "python" reads static_format "llama" or "none" only')
        return self

    @cached_property
    def module_sha256(self) -> str:
        """Digest of the module file: another build, or another version of the package, measures anew."""
        if self.package is None:
            return sha256_file(self.module)
        version = self.version or installed_version(self.package)
        return hashlib.sha256(f"{sha256_file(self.module)} {self.package} {version}".encode()).hexdigest()

    def load(self) -> VariantModule:
        """Its native module, in this process (what is measured runs in a process of its own)."""
        return load_variant(self.module, self.name)


def installed_version(package: str) -> str | None:
    """Version of an installed distribution, None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def discover(root: Path | None = None) -> list[Variant]:
    """Every variant that is built under `root`/variants (default: where the modules are), rungs first."""
    folder = (native_root() if root is None else root) / "variants"
    found = [variant for variant in discover_all(root) if variant.skipped is None]
    if not found:
        raise InputError(
            folder, "no variant is built", "install the package (`make reproduce` does) or set LADDER_NATIVE"
        )
    return found


def discover_all(root: Path | None = None) -> list[Variant]:
    """As `discover`, with those that were skipped because something they link is missing."""
    folder = (native_root() if root is None else root) / "variants"
    found = [_read(file) for file in folder.glob("*/*/variant.toml")]
    return sorted(found, key=lambda variant: (_rank(variant), variant.name))


def find(name: str, root: Path | None = None) -> Variant:
    """The variant of this name; InputError lists the names there are, or says why it was not built."""
    variants = {variant.name: variant for variant in discover_all(root)}
    variant = variants.get(name)
    if variant is not None and variant.skipped is None:
        return variant
    if variant is not None:
        raise InputError(
            f"variant {name}", f"is not built here: {variant.skipped}", "then install the package again"
        )
    names = ", ".join(variant.name for variant in discover(root))
    raise InputError(f"variant {name}", "not known", f"use one of {names}")


def _rank(variant: Variant) -> float:
    return float("inf") if variant.rung is None else variant.rung


def _read(file: Path) -> Variant:
    try:
        content = read_toml(file)
    except (OSError, ValueError) as error:
        raise InputError(file, f"not readable as TOML ({error})", "correct it") from error
    axes = content.get("axes", {})
    if isinstance(axes, dict):
        content["axes"] = {
            axis: [str(value) for value in values] if isinstance(values, list) else values
            for axis, values in axes.items()
        }
    engine = content.get("engine", "native")
    try:
        variant = Variant.model_validate({**content, **_place(file, engine)})
    except ValidationError as error:
        raise _all_wrong(file, error, content) from error
    if variant.name != file.parent.name:
        raise InputError(
            f"{file}: name", f"{variant.name} is not the folder's name", f"call it {file.parent.name}"
        )
    return variant


def _all_wrong(file: Path, error: ValidationError, content: dict[str, Any]) -> InputError:
    """Every missing and every unknown key in one line; else the first thing that is wrong with a value."""
    keys: dict[str, list[str]] = {"missing": [], "extra_forbidden": []}
    for one in error.errors():
        keys.get(one["type"], []).append(".".join(map(str, one["loc"])))
    lines = [
        f"{words} {', '.join(names)}"
        for words, names in (("lacks", keys["missing"]), ("does not know", keys["extra_forbidden"]))
        if names
    ]
    known = sorted(Variant.model_fields.keys() - set(PLACED))
    if lines:
        return InputError(file, " and ".join(lines), f"its keys are: {', '.join(known)}")
    found = first_problem(error, content, known)
    return InputError(found.at(file), found.problem, found.remedy)


def _place(file: Path, engine: object) -> dict[str, Any]:
    """What the folder says: its group, the file that drafts, and why there is none where it was skipped.

    A native module is an extension, or (in tests) a Python file of the same name and interface.
    """
    place: dict[str, Any] = {"group": file.parent.parent.name}
    reason = file.with_name("skipped.txt")
    if reason.exists():
        return {**place, "module": reason, "skipped": " ".join(reason.read_text().split())}
    name = file.parent.name
    names = ["drafter.py"] if engine == "python" else [f"{name}{end}" for end in [*EXTENSION_SUFFIXES, ".py"]]
    for module in map(file.with_name, names):
        if module.exists():
            return {**place, "module": module}
    raise InputError(file, f"{names[0]} does not lie beside it", "build the variants again")
