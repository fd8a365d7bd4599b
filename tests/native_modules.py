"""The built native variants of llama.cpp's rule, found by looking; one way to give them a static cache."""

from __future__ import annotations

import importlib.machinery
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from draft_ladder.base import native

ROOT = Path(__file__).parents[1]
ABSENT = (
    "no native variants found: install the package (make test does), or set LADDER_NATIVE to the folder that "
    "holds variants/<group>/<name>/<name>*.so"
)


class Variant:
    """A built variant: its module and what its variant.toml says."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.toml: dict[str, Any] = tomllib.loads((path.parent / "variant.toml").read_text())
        # Under the harness's own name for it: a file imported under two names registers its types twice.
        self.module: Any = native.load_module(path, f"draft_ladder.variants.{name}")

    @property
    def ties(self) -> str:
        return str(self.toml["ties"])

    @property
    def capabilities(self) -> list[str]:
        """What its drafter can do beyond the concept `ladder::Drafter`."""
        return list(self.module.info()["capabilities"])

    @property
    def static_format(self) -> str:
        return str(self.toml["static_format"])

    def drafter(self, static: bytes | None = None, options: dict[str, str] | None = None) -> Any:
        result = self.module.Drafter(options) if options else self.module.Drafter()
        if static is not None:
            result.load_bytes(static)
        return result

    def __repr__(self) -> str:
        return self.name


@cache
def variants() -> tuple[Variant, ...]:
    for folder in (native.native_root(), ROOT / "build" / "inst" / "draft_ladder"):
        found = {
            path.parent.name: path
            for suffix in importlib.machinery.EXTENSION_SUFFIXES
            for path in sorted(folder.glob(f"variants/*/*/*{suffix}"))
        }
        if found:
            made = (Variant(name, path) for name, path in sorted(found.items()))
            # Peers are not ours to hold to every test: a damaged file ends llama.cpp's process.
            return tuple(v for v in made if v.toml["rule"] == "llama" and "package" not in v.toml)
    return ()
