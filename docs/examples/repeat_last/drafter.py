"""The smallest drafter in Python: the last token, again and again."""

from __future__ import annotations

from pathlib import Path


class Drafter:
    """What a replay calls; tokens are ints of 0 and more.

    `static` is a cache file in llama.cpp's format (None: without one), `options` the values of the axes that
    variant.toml names.
    """

    def __init__(self, static: Path | None, options: dict[str, str]) -> None:
        self.last = 0

    def begin(self, prompt: list[int]) -> None:
        """A chunk begins with these tokens: at least one."""
        self.last = prompt[-1]

    def draft(self, n: int) -> list[int]:
        """At most `n` tokens that may come next; nothing is counted here."""
        return [self.last] * n

    def accept(self, tokens: list[int]) -> None:
        """The text goes on with these tokens: at least one."""
        self.last = tokens[-1]

    def end(self) -> None:
        """The chunk is over: what it taught may be kept for the next ones."""
