"""vLLM's n-gram proposer for one request: its class and its compiled kernel, out of its source archive.

The file is loaded without the package around it, of which it wants the name of a type and nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from draft_ladder.base.peer_sources import load_file, missing_modules, missing_source, source_of

PACKAGE, VERSION = "vllm", "0.33.0"
FILE = "vllm/v1/spec_decode/ngram_proposer.py"
N_DRAFT_MAX = 256
MODEL_LENGTH = 1 << 18  # a model's longest text; vLLM drafts nothing beyond it


def requires() -> str | None:
    """Why this peer cannot run here."""
    return missing_modules("numba") or missing_source(PACKAGE, VERSION, FILE)


class Drafter:
    """The text so far as the one row of vLLM's table of token ids; every draft searches all of it."""

    def __init__(self, static: Path | None, options: dict[str, str]) -> None:
        shortest, longest = options.get("ngram", "5-5").split("-")
        self.proposer: Any = _load().NgramProposer(_config(int(shortest), int(longest)))
        self.tokens = np.zeros((1, MODEL_LENGTH), dtype=np.int32)
        self.length = np.zeros(1, dtype=np.int32)
        self.begin([1, 2, 1, 2, 1, 2])
        self.draft(1)  # the kernel is compiled at its first call
        self.begin([])

    def begin(self, prompt: Sequence[int]) -> None:
        """A new text."""
        self.length[0] = 0
        self.accept(prompt)

    def resume(self, prompt: Sequence[int]) -> None:
        """The same text goes on."""
        self.accept(prompt)

    def draft(self, n: int) -> Sequence[int]:
        """What followed the first occurrence of the longest n-gram that the text ends with."""
        if n == 0 or self.length[0] == 0:
            return []
        last = int(self.tokens[0, self.length[0] - 1])
        drafted: list[int] = self.proposer.propose(n, [[last]], self.length, self.tokens)[0]
        return drafted

    def accept(self, tokens: Sequence[int]) -> None:
        """Append to the text."""
        begin = int(self.length[0])
        end = begin + len(tokens)
        if end > MODEL_LENGTH:
            raise ValueError(f"the text is longer than {MODEL_LENGTH} tokens")
        self.tokens[0, begin:end] = tokens
        self.length[0] = end

    def end(self) -> None:
        """Nothing is kept between texts."""

    def memory_bytes(self) -> int:
        """The row of the text."""
        return int(self.length[0]) * 4


def _load() -> ModuleType:
    """Its file, with stand-ins for what it imports only to name types."""
    for name, content in (
        ("vllm", {}),
        ("vllm.config", {"VllmConfig": object}),
        ("torch", {"Tensor": object}),
    ):
        if name not in sys.modules:
            module = ModuleType(name)
            module.__dict__.update(content)
            sys.modules[name] = module
    return load_file(source_of(PACKAGE, VERSION) / FILE, "peer_ngram_proposer")


def _config(shortest: int, longest: int) -> SimpleNamespace:
    """The fields of vLLM's configuration that the proposer reads."""
    return SimpleNamespace(
        speculative_config=SimpleNamespace(
            prompt_lookup_min=shortest, prompt_lookup_max=longest, num_speculative_tokens=N_DRAFT_MAX
        ),
        model_config=SimpleNamespace(max_model_len=MODEL_LENGTH),
        scheduler_config=SimpleNamespace(max_num_seqs=1),
        parallel_config=SimpleNamespace(tensor_parallel_size=1),
    )
