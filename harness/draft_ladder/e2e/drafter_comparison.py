"""LadderDraft beside llama-cpp-python's own prompt lookup, on the same answers, both through Python.

The answers are known, so no model is needed: each drafter is called as `llama_cpp.Llama` calls it, with the
sequence so far, and its draft is compared with what the model did say. As the text is greedy, that is what
the model would have accepted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import numpy.typing as npt

from draft_ladder.llama.draft_model import EAGER, LadderDraft, common_prefix
from draft_ladder.llama.library import TokenArray

Drafting = Callable[[npt.NDArray[np.intc]], npt.NDArray[np.intc]]
Answers = Sequence[tuple[TokenArray, Sequence[int]]]  # (prompt, what the model said) by prompt


@dataclass
class DrafterFigures:
    """Sums over all answers."""

    calls: int = 0
    hit_calls: int = 0
    drafted: int = 0
    accepted: int = 0
    call_ns_total: int = 0


def compare_drafters(
    variant: str, static: Path, eager_static: Path, n_draft: int, answers: Answers
) -> dict[str, DrafterFigures]:
    """Each of the users' drafters along the same answers; `eager_static` is in a format EAGER can load."""
    lookup = import_module("llama_cpp.llama_speculative").LlamaPromptLookupDecoding
    drafters: dict[str, Drafting] = {
        "ladder_static": LadderDraft(static, variant=variant, n_draft=n_draft),
        "ladder_bare": LadderDraft(variant=variant, n_draft=n_draft),
        "ladder_eager": LadderDraft(eager_static, thresholds=EAGER, n_draft=n_draft),
        "ladder_eager_bare": LadderDraft(thresholds=EAGER, n_draft=n_draft),
        "llama_prompt_lookup": lookup(num_pred_tokens=n_draft),
    }
    return {name: follow_answers(drafting, answers) for name, drafting in drafters.items()}


def follow_answers(drafting: Drafting, answers: Answers) -> DrafterFigures:
    """Draft along (prompt, answer) pairs one after the other, with one drafter."""
    figures = DrafterFigures()
    for prompt, answer in answers:
        sequence = np.ascontiguousarray([*prompt.tolist(), *answer], dtype=np.int32)
        # The first token of an answer is sampled after the prompt, before anything is drafted.
        length = len(prompt) + 1
        while length < len(sequence):
            begin = time.perf_counter_ns()
            draft = drafting(sequence[:length])
            figures.call_ns_total += time.perf_counter_ns() - begin
            accepted = common_prefix(draft.astype(np.int32), sequence[length:])
            figures.calls += 1
            figures.hit_calls += len(draft) > 0
            figures.drafted += len(draft)
            figures.accepted += accepted
            length += accepted + 1
    return figures
