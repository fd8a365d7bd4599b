"""The Python peers: each adapter gives what its library gives when it is called by hand."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from draft_ladder.base.peer_sources import load_file, source_of

ROOT = Path(__file__).parents[2]
N_DRAFT = 6


def small_text(length: int, seed: int) -> list[int]:
    """Phrases that come again in a random order."""
    rng = random.Random(seed)
    text: list[int] = []
    while len(text) < length:
        phrase = rng.randrange(6)
        text += [rng.randrange(60) if rng.random() < 0.05 else phrase * 10 + i for i in range(7 + phrase)]
    return text[:length]


TEXT = small_text(700, 1)


def adapter(name: str) -> ModuleType:
    path = ROOT / "variants" / "peers" / name / "drafter.py"
    spec = importlib.util.spec_from_file_location(f"tested_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if (reason := module.requires()) is not None:
        pytest.skip(f"{name}: {reason}")
    return module


def check(name: str, options: dict[str, str], by_hand: Callable[[Sequence[int]], Sequence[int]]) -> None:
    """The same drafts at every position of the text, and drafts at all."""
    drafter = adapter(name).Drafter(None, options)
    drafter.begin(TEXT[:100])
    drafted = 0
    for length in range(100, len(TEXT)):
        draft = list(drafter.draft(N_DRAFT))
        assert draft == list(by_hand(TEXT[:length])), length
        drafted += len(draft)
        drafter.accept(TEXT[length : length + 1])
    drafter.end()
    assert drafted > 100


@pytest.mark.parametrize("size", ["2", "4"])
def test_llama_cpp_python(size: str) -> None:
    module = adapter("llama_cpp_python_lookup")
    library = load_file(source_of(module.PACKAGE, module.VERSION) / module.FILE, "by_hand_llama")
    look_up = library.LlamaPromptLookupDecoding.find_candidate_pred_tokens
    check(
        "llama_cpp_python_lookup",
        {"max_ngram_size": size},
        lambda text: look_up(np.array(text, dtype=np.intc), int(size), N_DRAFT).tolist(),
    )


def test_transformers() -> None:
    adapter("transformers_lookup").Drafter(None, {})  # makes its source importable
    import torch
    from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

    def by_hand(text: Sequence[int]) -> list[int]:
        generator = PromptLookupCandidateGenerator(num_output_tokens=N_DRAFT, max_length=10_000)
        found, _ = generator.get_candidates(torch.tensor([list(text)]))
        return list(found[0, len(text) :].tolist())

    check("transformers_lookup", {}, by_hand)


@pytest.mark.parametrize(("ngram", "shortest", "longest"), [("5-5", 5, 5), ("2-4", 2, 4)])
def test_vllm(ngram: str, shortest: int, longest: int) -> None:
    module = adapter("vllm_ngram")
    kernel: Any = module._load()._find_longest_matched_ngram_and_propose_tokens

    def by_hand(text: Sequence[int]) -> list[int]:
        tokens = np.array(text, dtype=np.int32)
        return list(kernel(tokens, shortest, longest, 1 << 18, N_DRAFT).tolist())

    check("vllm_ngram", {"ngram": ngram}, by_hand)


def test_arctic() -> None:
    module = adapter("arctic_cache")
    sys.path.insert(0, str(source_of(module.PACKAGE, module.VERSION)))
    from arctic_inference.suffix_decoding import SuffixDecodingCache

    cache = SuffixDecodingCache()
    cache.start_request("by hand", TEXT[:100])
    known = 100

    def by_hand(text: Sequence[int]) -> list[int]:
        nonlocal known
        if len(text) > known:
            cache.add_active_response("by hand", list(text[known:]))
            known = len(text)
        return list(cache.speculate("by hand", list(text), max_spec_tokens=N_DRAFT).token_ids)

    check("arctic_cache", {}, by_hand)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LADDER_PEERS", str(tmp_path))
    path = ROOT / "variants" / "peers" / "llama_cpp_python_lookup" / "drafter.py"
    module = load_file(path, "without_source")
    assert "make peers" in module.requires()
