"""`ladder new`: a variant's folder to begin with, copied from another's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from draft_ladder.base.errors import InputError
from draft_ladder.cli.evidence_verbs import checkout
from draft_ladder.studies.instructions import ROOT

GROUPS = ("ladder", "ablations", "beyond", "peers")
EXAMPLES = "docs/examples"
KEYS = "name, label, color, marker, rule, ties, static_format and changes"


def new(
    name: Annotated[str, typer.Argument(help="What to call the variant; its folder has that name.")],
    from_: Annotated[
        str,
        typer.Option("--from", metavar="VARIANT", help="The variant to copy (repeat_last: one in Python)."),
    ],
    group: Annotated[
        str, typer.Option("--group", help="The folder it goes to: ladder, ablations, beyond or peers.")
    ] = "ablations",
) -> None:
    """Make the folder of a new variant, a copy of another that builds and passes as it is.

    Needs a checkout of the project, installed with `pip install --editable .`.
    """
    folder = new_variant(checkout(ROOT), name, from_, group)
    for path in sorted(folder.iterdir()):
        print(path)
    print(f"Make it differ; its variant.toml needs {KEYS}. Then `make test` builds and checks it.")


def new_variant(root: Path, name: str, source: str, group: str = "ablations") -> Path:
    """The new folder in `root`/variants. InputError where the name is unfit or taken, or `source` unknown."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InputError(f"name {name!r}", "is not a name", "use small letters, digits and _")
    if group not in GROUPS:
        raise InputError(f"--group {group}", "is none", f"use one of {', '.join(GROUPS)}")
    known = {file.parent.name: file.parent for file in sorted(root.glob("variants/*/*/variant.toml"))}
    if name in known:
        raise InputError(known[name], "is there already", "choose another name")
    known |= {file.parent.name: file.parent for file in (root / EXAMPLES).glob("*/variant.toml")}
    if source not in known:
        raise InputError(f"--from {source}", "is no variant", f"use one of {', '.join(known)}")
    folder = root / "variants" / group / name
    texts = {
        file.name: _renamed(file.read_text(encoding="utf-8"), known[source], name, group)
        for file in sorted(known[source].iterdir())
        if file.is_file() and file.suffix != ".md"
    }
    texts["variant.toml"] = _described(texts["variant.toml"], known[source], name)
    folder.mkdir(parents=True)
    for file_name, text in texts.items():
        (folder / file_name).write_text(text, encoding="utf-8")
    return folder


def _renamed(text: str, source: Path, name: str, group: str) -> str:
    """The module's name and the paths of its own headers are the new folder's."""
    own = text.replace(f'"{source.parent.name}/{source.name}/', f'"{group}/{name}/')
    return re.sub(rf"\b{re.escape(source.name)}\b", name, own)


def _described(text: str, source: Path, name: str) -> str:
    """The description of a copy: no rung, and what it is to be compared with where that is measured."""
    kept = [line for line in text.splitlines() if not re.match(r"(rung|versus|label|changes)\s*=", line)]
    said = [f'label = "{name.replace("_", " ")}"', f'changes = "nothing yet: a copy of {source.name}"']
    if "variants" in source.parts[-3:]:
        said.append(f'versus = "{source.name}"')
    at = next((index for index, line in enumerate(kept) if line.startswith("[")), len(kept))
    head = [line for line in kept[:at] if line.strip()]
    return "\n".join([*head, *said, *([""] if kept[at:] else []), *kept[at:]]) + "\n"
