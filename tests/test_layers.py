"""The pipeline has one direction: a room of harness/ imports from its own and from those before it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

HARNESS = Path(__file__).parents[1] / "harness"
# What all rooms stand on, the stages of the pipeline in their order, then what uses all of it.
LAYERS = (
    ("commits", "errors", "locks", "manifests", "native", "validation", "variants"),
    ("text",),
    ("caches",),
    ("measure",),
    ("report",),
    ("studies",),
    ("llama",),
    ("draft_model",),
    ("e2e",),
    ("cli",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
MODULES = sorted(path for path in HARNESS.rglob("*.py") if path != HARNESS / "__init__.py")


def room(dotted: str) -> str:
    """`harness.report.stats` -> `report`."""
    return dotted.split(".")[1]


def imported(path: Path) -> set[str]:
    """Every module of the harness that a module imports, at its top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "harness":
            found.update(f"harness.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("harness."):
            found.add(str(node.module))
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names if alias.name.startswith("harness."))
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(HARNESS)))
def test_a_module_imports_nothing_from_a_later_stage(path: Path) -> None:
    own = RANK[path.relative_to(HARNESS).with_suffix("").parts[0]]
    later = {name for name in imported(path) if RANK[room(name)] > own}
    assert not later, f"{path.name} belongs to an earlier stage than {', '.join(sorted(later))}"


def test_no_two_modules_import_each_other() -> None:
    """Not inside a function either, which hides a circle and does not undo it."""
    names = {".".join(path.relative_to(HARNESS.parent).with_suffix("").parts): path for path in MODULES}
    graph = {name: imported(path) & set(names) for name, path in names.items()}
    # What imports nothing that is left is in no circle.
    while free := [name for name, others in graph.items() if not others & set(graph) - {name}]:
        for name in free:
            del graph[name]
    assert sorted(graph) == []


def test_the_worker_imports_nothing_of_the_harness() -> None:
    """Its memory is the variant's memory."""
    assert not imported(HARNESS / "measure" / "worker.py")


def test_every_room_says_what_it_is_for() -> None:
    for folder in (path.parent for path in HARNESS.glob("*/__init__.py")):
        assert ast.get_docstring(ast.parse((folder / "__init__.py").read_text())), folder
