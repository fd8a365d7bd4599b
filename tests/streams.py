"""Token streams and static caches for hypothesis: structured enough to shrink, fast to draw."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from hypothesis import strategies as st
from specification import count_static, write_static

TOKEN_MAX = 2**31 - 1
VOCABULARIES = [2, 3, 5, 16, 300, 50_000, TOKEN_MAX]
KINDS = ["random", "skewed", "star", "block", "swapped", "run", "different", "earlier"]
STATIC_FACTORS = [1, 1, 1, 2, 7, 30_000, 2**24]


class Example(NamedTuple):
    """One replay: everything a drafter is given."""

    tokens: list[int]
    static: bytes | None
    n_ctx: int
    n_draft: int
    seed: int


def segment(kind: str, length: int, vocabulary: int, rng: random.Random, earlier: list[int]) -> list[int]:
    """`length` tokens of one kind."""
    # Few tokens, anywhere in the vocabulary: they meet in buckets, and sort otherwise than they come.
    some = [rng.randrange(vocabulary) for _ in range(min(vocabulary, 6))]
    if kind == "random":
        return [rng.randrange(vocabulary) for _ in range(length)]
    if kind == "skewed":
        return [some[min(int(rng.expovariate(1)), len(some) - 1)] for _ in range(length)]
    if kind == "star":  # few tokens with many successors: maps that grow past their first buckets
        return [
            some[-1] if i % 2 else rng.choice([some[0], rng.randrange(vocabulary)]) for i in range(length)
        ]
    if kind == "block":
        block = [rng.choice(some) for _ in range(rng.randint(2, 9))]
        return [block[i % len(block)] for i in range(length)]
    if kind == "swapped":
        a, b = some[0], some[-1]
        return [x for _ in range(length // 2 + 1) for x in ((a, b) if rng.random() < 0.5 else (b, a))][
            :length
        ]
    if kind == "run":
        return [some[0]] * length
    if kind == "different":
        first = rng.randrange(vocabulary)
        return [(first + i) % (TOKEN_MAX + 1) for i in range(length)]
    if not earlier:
        return []
    start = rng.randrange(len(earlier))
    return earlier[start : start + length]


def stream(parts: list[tuple[str, int]], vocabulary: int, rng: random.Random) -> list[int]:
    tokens: list[int] = []
    for kind, length in parts:
        tokens += segment(kind, length, vocabulary, rng, tokens)
    return tokens


def static_cache(tokens: list[int], factors: list[int], rng: random.Random) -> bytes:
    """A cache counted from `tokens`, its counts multiplied, in an order of its own."""
    counts = count_static(tokens)
    ngrams = list(counts)
    rng.shuffle(ngrams)
    result = {}
    for ngram in ngrams:
        successors = list(counts[ngram].items())
        rng.shuffle(successors)
        result[ngram] = {token: min(count * rng.choice(factors), TOKEN_MAX) for token, count in successors}
    return write_static(result)


parts_strategy = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 80)), min_size=1, max_size=6)


@st.composite
def examples(draw: Any) -> Example:
    """Either a short list of tokens drawn one by one (it shrinks best) or segments from a seed."""
    n_ctx = draw(st.one_of(st.integers(2, 9), st.integers(2, 64)))
    n_draft = draw(st.one_of(st.integers(0, 4), st.integers(0, 16)))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = random.Random(seed)
    if draw(st.integers(0, 4)) == 0:
        tokens = draw(st.lists(st.integers(0, 3), max_size=24))
        static = draw(st.one_of(st.none(), st.lists(st.integers(0, 3), max_size=16)))
    else:
        vocabulary = draw(st.sampled_from(VOCABULARIES))
        tokens = stream(draw(parts_strategy), vocabulary, rng)
        parts = draw(st.one_of(st.none(), parts_strategy))
        # Part of the corpus is the text itself, or no bigram of a large vocabulary would ever be found.
        static = None if parts is None else tokens[:: rng.choice([1, 1, -1])] + stream(parts, vocabulary, rng)
    cache = None if static is None else static_cache(static, rng.sample(STATIC_FACTORS, 3), rng)
    return Example(tokens, cache, n_ctx, n_draft, seed)
