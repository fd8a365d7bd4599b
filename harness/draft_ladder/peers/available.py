"""Which drafters can run here, and why the others cannot."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from draft_ladder.base.errors import InputError
from draft_ladder.base.variants import Variant, discover_all


def find_all(names: Sequence[str]) -> list[Variant]:
    """The variants of these names, built or not. InputError lists the names there are."""
    known = {variant.name: variant for variant in discover_all()}
    for name in names:
        if name not in known:
            raise InputError(f"variant {name}", "not known", f"use one of {', '.join(known)}")
    return [known[name] for name in names]


def why_not(variant: Variant) -> str | None:
    """Why it cannot run here: what its build missed, or what its drafter.py says that it lacks."""
    if variant.skipped is not None or variant.engine == "native":
        return variant.skipped
    spec = importlib.util.spec_from_file_location(f"ladder_asked_{variant.name}", variant.module)
    if spec is None or spec.loader is None:
        return f"{variant.module.name} is not a Python file"
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        return f"{error}; `make peers` installs what peers need"
    reason: str | None = module.requires() if hasattr(module, "requires") else None
    return reason
