"""Arctic Inference's SuffixDecodingCache, called as vLLM calls it: a Python cache over C++ suffix trees.

Every request starts with its whole prompt in a tree of its own, so that a session's text is learned again at
every turn. arctic_chain is the same trees without that.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from draft_ladder.base.peer_sources import source_of

PACKAGE, VERSION = "arctic-inference", "0.3.0"
FOLDER = "arctic_inference/suffix_decoding"


def requires() -> str | None:
    """Why this peer cannot run here."""
    if any((source_of(PACKAGE, VERSION) / FOLDER).glob("_C.*")):
        return None
    return f"the extension module of {PACKAGE} {VERSION} is not built; `make peers` builds it"


class Drafter:
    """One cache for all requests, which are numbered."""

    def __init__(self, static: Path | None, options: dict[str, str]) -> None:
        sys.path.insert(0, str(source_of(PACKAGE, VERSION)))
        from arctic_inference.suffix_decoding import SuffixDecodingCache

        self.cache: Any = SuffixDecodingCache()
        self.max_spec_factor = float(options.get("max_spec_factor", "1"))
        self.min_token_prob = float(options.get("min_token_prob", "0.1"))
        self.recent = np.zeros(0, dtype=np.int32)
        self.request = 0

    def begin(self, prompt: Sequence[int]) -> None:
        """A new request."""
        tokens = np.asarray(prompt, dtype=np.int32)
        self.cache.start_request(self.request, tokens)
        self.recent = tokens[-self.cache.max_tree_depth :]

    def draft(self, n: int) -> Sequence[int]:
        """The likeliest path on from the longest match, in the request's own tree or the common one."""
        draft = self.cache.speculate(
            self.request,
            self.recent,
            max_spec_tokens=n,
            max_spec_factor=self.max_spec_factor,
            min_token_prob=self.min_token_prob,
        )
        tokens: list[int] = draft.token_ids
        return tokens

    def accept(self, tokens: Sequence[int]) -> None:
        """Response tokens reach both trees."""
        more = np.asarray(tokens, dtype=np.int32)
        self.cache.add_active_response(self.request, more)
        self.recent = np.concatenate([self.recent, more])[-self.cache.max_tree_depth :]

    def end(self) -> None:
        """The request's own tree goes; its response stays in the common one."""
        self.cache.stop_request(self.request)
        self.request += 1
