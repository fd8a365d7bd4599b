"""transformers' PromptLookupCandidateGenerator, which `generate(prompt_lookup_num_tokens=...)` uses."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from draft_ladder.base.peer_sources import missing_modules, missing_source, source_of

PACKAGE, VERSION = "transformers", "5.24.0"
FILE = "src/transformers/generation/candidate_generator.py"
NO_LIMIT = 1 << 30  # the longest text, which `generate` sets to what it was asked for


def requires() -> str | None:
    """Why this peer cannot run here."""
    return missing_source(PACKAGE, VERSION, FILE) or missing_modules(
        "torch", "huggingface_hub", "tokenizers", "safetensors", "regex", "yaml"
    )


class Drafter:
    """The text so far in one tensor; every draft searches all of it."""

    def __init__(self, static: Path | None, options: dict[str, str]) -> None:
        sys.path.insert(0, str(source_of(PACKAGE, VERSION) / "src"))
        import torch
        from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

        torch.set_num_threads(1)
        self.torch: Any = torch
        self.generator: Any = PromptLookupCandidateGenerator(
            max_matching_ngram_size=int(options.get("max_matching_ngram_size", "2")), max_length=NO_LIMIT
        )
        self.tokens = torch.zeros((1, 1 << 16), dtype=torch.long)
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
        if n == 0:
            return []
        self.generator.num_output_tokens = n
        text, _ = self.generator.get_candidates(self.tokens[:, : self.length])
        drafted: list[int] = text[0, self.length :].tolist()
        return drafted

    def accept(self, tokens: Sequence[int]) -> None:
        """Append to the text."""
        end = self.length + len(tokens)
        while end > self.tokens.shape[1]:
            self.tokens = self.torch.cat([self.tokens, self.torch.zeros_like(self.tokens)], dim=1)
        self.tokens[0, self.length : end] = self.torch.tensor(list(tokens), dtype=self.torch.long)
        self.length = end

    def end(self) -> None:
        """Nothing is kept between texts."""

    def memory_bytes(self) -> int:
        """The tensor of the text."""
        return self.length * 8
