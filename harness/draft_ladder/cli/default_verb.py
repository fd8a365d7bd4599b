"""A group of verbs that does its first job without being told: `ladder cache my.tok` builds."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, ClassVar

from typer.core import TyperGroup

from draft_ladder.base.errors import InputError


class DefaultVerb(TyperGroup):
    """Where the first word is none of the group's verbs, `default_verb` is meant."""

    default_verb: ClassVar[str]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default verb in front of arguments that begin with something else."""
        if args and args[0] not in self.commands and args[0] not in ("--help",):
            meant = difflib.get_close_matches(args[0], self.commands, n=1, cutoff=0.75)
            if meant and len(args) > 1 and not Path(args[0]).exists():
                raise InputError(args[0], "is no verb and no file", f"did you mean {meant[0]!r}?")
            args = [self.default_verb, *args]
        return super().parse_args(ctx, args)


class BuildByDefault(DefaultVerb):
    """`ladder cache TOKENS` is `ladder cache build TOKENS`."""

    default_verb = "build"


class CutByDefault(DefaultVerb):
    """`ladder corpus SOURCE` is `ladder corpus cut SOURCE`."""

    default_verb = "cut"
