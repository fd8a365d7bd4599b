"""llama-cpp-python's LlamaPromptLookupDecoding, called as its Llama class calls it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from draft_ladder.base.peer_sources import load_file, missing_source, source_of

PACKAGE, VERSION = "llama-cpp-python", "0.3.36"
FILE = "llama_cpp/llama_speculative.py"


def requires() -> str | None:
    """Why this peer cannot run here."""
    return missing_source(PACKAGE, VERSION, FILE)


class Drafter:
    """The text so far in one array, as llama-cpp-python keeps it; every draft searches all of it."""

    def __init__(self, static: Path | None, options: dict[str, str]) -> None:
        module = load_file(source_of(PACKAGE, VERSION) / FILE, "peer_llama_speculative")
        self.model = module.LlamaPromptLookupDecoding(max_ngram_size=int(options.get("max_ngram_size", "2")))
        self.tokens = np.zeros(1 << 16, dtype=np.intc)
        self.length = 0

    def begin(self, prompt: Sequence[int]) -> None:
        """A new text."""
        self.length = 0
        self.accept(prompt)

    def resume(self, prompt: Sequence[int]) -> None:
        """The same text goes on."""
        self.accept(prompt)

    def draft(self, n: int) -> Sequence[int]:
        """What followed the first occurrence of the last tokens."""
        self.model.num_pred_tokens = n
        drafted: list[int] = self.model(self.tokens[: self.length]).tolist()
        return drafted

    def accept(self, tokens: Sequence[int]) -> None:
        """Append to the text."""
        end = self.length + len(tokens)
        while end > len(self.tokens):
            self.tokens = np.concatenate([self.tokens, np.zeros_like(self.tokens)])
        self.tokens[self.length : end] = tokens
        self.length = end

    def end(self) -> None:
        """Nothing is kept between texts."""

    def memory_bytes(self) -> int:
        """The array of the text."""
        return self.length * self.tokens.itemsize
