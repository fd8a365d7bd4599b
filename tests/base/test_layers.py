"""One direction: a package imports, and a room of native/ includes, from its own and from those before it."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "harness" / "draft_ladder"
# Shared foundations, the stages of the pipeline in their order, then what uses all of it.
PACKAGES = ("base", "data", "bench", "report", "peers", "studies", "llama", "e2e", "cli")
NATIVE_ROOMS = ("base", "containers", "formats", "drafting", "counting", "textgen", "bindings")
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE)
SOURCES = sorted(path for path in (ROOT / "native").rglob("*") if path.suffix in (".hpp", ".cpp"))
INCLUDE = re.compile(r'#include "(?P<room>\w+)/')
MAX_SOURCES_IN_A_FOLDER = 15


def room(dotted: str) -> str:
    """`draft_ladder.report.stats` -> `report`."""
    return dotted.split(".")[1]


def imported(path: Path) -> set[str]:
    """Every module of the package that a module imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and re.match(r"draft_ladder\.\w+$", node.module or ""):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(
                name
                for name in names
                if (PACKAGE.parent / name.replace(".", "/")).with_suffix(".py").exists()
            )
            found.add(str(node.module))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("draft_ladder."):
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name.startswith("draft_ladder."))
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_nothing_from_a_later_package(path: Path) -> None:
    own = PACKAGES.index(path.relative_to(PACKAGE).parts[0])
    later = {name for name in imported(path) if PACKAGES.index(room(name)) > own}
    assert not later, f"{path.name} belongs to an earlier package than {', '.join(sorted(later))}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "native")))
def test_a_header_includes_nothing_from_a_later_room(path: Path) -> None:
    own = NATIVE_ROOMS.index(path.relative_to(ROOT / "native").parts[0])
    included = {match["room"] for match in INCLUDE.finditer(path.read_text())}
    later = {name for name in included if NATIVE_ROOMS.index(name) > own}
    assert not later, f"{path.name} belongs to an earlier room than {', '.join(sorted(later))}"


def test_no_two_modules_import_each_other() -> None:
    """Not inside a function either, which hides a circle and does not undo it."""
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in MODULES}
    graph = {name: imported(path) & set(names) for name, path in names.items()}
    # What imports nothing that is left is in no circle.
    while free := [name for name, others in graph.items() if not others & set(graph) - {name}]:
        for name in free:
            del graph[name]
    assert sorted(graph) == []


def test_the_worker_imports_nothing_of_the_package() -> None:
    """Its memory is the variant's memory."""
    assert not imported(PACKAGE / "bench" / "worker.py")


def test_every_package_says_what_it_is_for() -> None:
    for folder in (path.parent for path in PACKAGE.glob("*/__init__.py")):
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder


def test_every_folder_can_be_taken_in_at_a_glance() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    counts: dict[str, int] = {}
    for name in listed.splitlines():
        if name.endswith((".py", ".hpp", ".cpp")):
            folder = name.rpartition("/")[0]
            counts[folder] = counts.get(folder, 0) + 1
    crowded = {folder: count for folder, count in counts.items() if count > MAX_SOURCES_IN_A_FOLDER}
    assert not crowded
