"""Where the sources of the peers lie, and how one of their files is loaded without installing its package."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType


def peers_folder() -> Path:
    """The folder that `make peers` fills (variants/peers/fetch.py)."""
    cache = os.environ.get("LADDER_CACHE_DIR") or Path.home() / ".cache" / "draft-ladder"
    return Path(os.environ.get("LADDER_PEERS") or Path(cache).expanduser() / "peers")


def source_of(package: str, version: str) -> Path:
    """The unpacked source archive of this version; it may not be there."""
    return peers_folder() / f"{package}-{version}"


def missing_source(package: str, version: str, file: str) -> str | None:
    """Why this file of the package cannot be used; None if it is there."""
    if (source_of(package, version) / file).exists():
        return None
    return f"the source of {package} {version} is not there; `make peers` fetches it"


def missing_modules(*names: str) -> str | None:
    """Which of these modules are not installed; None if all are."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(missing)}; `make peers` installs what peers need" if missing else None


def load_file(path: Path, name: str) -> ModuleType:
    """Import one file of a peer's source under a name of our own."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
