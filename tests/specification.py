"""The drafting rule in plain Python: slow, short, and meant to be checked by eye against drafting.md.

A tie goes to the first maximum met, so the *order* in which a successor map is iterated is the whole
difference between the two groupes, and it is an input: `Specification(order)` takes a class of maps.

* `TokenOrderMap`: smallest token first (ties `token`);
* `LibstdcxxMap`: as libstdc++'s `std::unordered_map` iterates (ties `iteration`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from libstdcxx_order import LibstdcxxMap

NULL = -1
COUNT_MAX = 2**31 - 1
#                        n:     1   2   3   4
MIN_TOTAL = {"context": {1: 2, 2: 2, 3: 1, 4: 1}, "dynamic": {1: 4, 2: 3, 3: 2, 4: 2}}
MIN_PERCENT = {"context": {1: 66, 2: 50, 3: 50, 4: 50}, "dynamic": {1: 75, 2: 66, 3: 66, 4: 66}}
STATIC_MIN_TOTAL = 2
STATIC_MIN_PERCENT = 50


class Successors(Protocol):
    """Token -> how often it followed."""

    def add(self, token: int, count: int) -> int: ...
    def get(self, token: int) -> int | None: ...
    def items(self) -> Iterator[tuple[int, int]]: ...
    def copy(self) -> Successors: ...


class TokenOrderMap(dict[int, int]):
    """Successors iterated from the smallest token up."""

    def add(self, token: int, count: int) -> int:
        self[token] = self.get(token, 0) + count
        return self[token]

    def items(self) -> Iterator[tuple[int, int]]:  # type: ignore[override]
        return iter(sorted(super().items()))

    def copy(self) -> TokenOrderMap:
        return TokenOrderMap(self)


ORDERS: dict[str, Callable[[], Successors]] = {"iteration": LibstdcxxMap, "token": TokenOrderMap}
Ngram = tuple[int, ...]
Cache = dict[Ngram, Successors]


class Step(NamedTuple):
    """One drafted token, and why it was chosen."""

    token: int
    source: str  # context, dynamic or static
    n: int
    score: int
    tied: bool  # another successor had the same score


@dataclass
class Replay:
    n_drafted: int = 0
    n_accept: int = 0
    n_chunks: int = 0
    drafts: list[tuple[int, list[Step]]] = field(default_factory=list)  # (position of the next token, draft)

    def text(self) -> str:
        return dump_text((position, [step.token for step in draft]) for position, draft in self.drafts)


def dump_text(drafts: Iterator[tuple[int, list[int]]]) -> str:
    return "".join(f"{position}:{''.join(f' {token}' for token in draft)}\n" for position, draft in drafts)


class Specification:
    """A drafter: the three caches and the sequence so far."""

    def __init__(self, order: Callable[[], Successors], static: Cache | None = None) -> None:
        self.order = order
        self.context: Cache = {}
        self.dynamic: Cache = {}
        self.static: Cache = static or {}
        self.sequence: list[int] = []

    # --- counting -------------------------------------------------------------------------------------------

    def append(self, token: int) -> None:
        """Update: every n-gram that ends before position i gains one count for the token at i."""
        i = len(self.sequence)
        for n in range(1, 5):
            if i >= n:
                ngram = tuple(self.sequence[i - n : i])
                self.context.setdefault(ngram, self.order()).add(token, 1)
        self.sequence.append(token)

    def end_chunk(self) -> None:
        """Merge context into dynamic, then start a new sequence."""
        for ngram, successors in self.context.items():
            if ngram not in self.dynamic:
                self.dynamic[ngram] = successors.copy()
                continue
            for token, count in successors.items():
                if self.dynamic[ngram].add(token, count) > COUNT_MAX:
                    raise OverflowError(f"count of n-gram {ngram} exceeds 2^31-1")
        self.context = {}
        self.sequence = []

    # --- drafting -------------------------------------------------------------------------------------------

    def draft(self, n_draft: int) -> list[Step]:
        """Up to n_draft steps; each drafted token is as if appended for the look-ups of the next."""
        steps: list[Step] = []
        if len(self.sequence) < 2:
            return steps
        while len(steps) < n_draft:
            step = self.step(self.sequence[-4:] + [step.token for step in steps[-4:]])
            if step is None:
                break
            steps.append(step)
        return steps

    def step(self, tail: list[int]) -> Step | None:
        """The next token after `tail` (the last four tokens or more, or all there are)."""
        static = self.static.get(tuple(tail[-2:]))
        for source, cache in (("context", self.context), ("dynamic", self.dynamic)):
            for n in (4, 3, 2, 1):
                successors = cache.get(tuple(tail[-n:])) if n <= len(tail) else None
                if successors is None:
                    continue
                best = best_of(successors, static)
                minimum, percent = MIN_TOTAL[source][n], MIN_PERCENT[source][n]
                if best.total >= minimum and 100 * best.count >= percent * best.total:
                    return Step(best.token, source, n, best.score, best.tied)
        if static is not None:
            best = best_of(static, None)
            if best.total >= STATIC_MIN_TOTAL and 100 * best.count >= STATIC_MIN_PERCENT * best.total:
                return Step(best.token, "static", 2, best.score, best.tied)
        return None


class Best(NamedTuple):
    token: int
    count: int
    score: int
    total: int
    tied: bool


def best_of(successors: Successors, static: Successors | None) -> Best:
    """The first highest score in the map's own order."""
    token, count, score, total, tied = NULL, 0, -1, 0, False
    for t, c in successors.items():
        weight = 1
        if static is not None and (s := static.get(t)) is not None:
            weight = 100 * s
        if c * weight > score:
            token, count, score, tied = t, c, c * weight, False
        elif c * weight == score:
            tied = True
        total += c
    return Best(token, count, score, total, tied)


# --- replay -------------------------------------------------------------------------------------------------


def chunks_of(tokens: Sequence[int], n_ctx: int) -> Iterator[int]:
    """First positions of the chunks that are replayed: an exact last chunk is dropped."""
    start = 0
    while start + n_ctx < len(tokens):
        yield start
        start += n_ctx


def replay(drafter: Specification, tokens: Sequence[int], n_ctx: int, n_draft: int) -> Replay:
    """What is timed in the native modules."""
    result = Replay()
    for start in chunks_of(tokens, n_ctx):
        drafter.append(tokens[start])
        while len(drafter.sequence) < n_ctx:
            draft = drafter.draft(n_draft)
            result.drafts.append((start + len(drafter.sequence), draft))
            result.n_drafted += len(draft)
            for step in draft:
                if len(drafter.sequence) == n_ctx or step.token != tokens[start + len(drafter.sequence)]:
                    break
                result.n_accept += 1
                drafter.append(step.token)
            if len(drafter.sequence) < n_ctx:
                drafter.append(tokens[start + len(drafter.sequence)])
        drafter.end_chunk()
        result.n_chunks += 1
    return result


def draft_everywhere(
    drafter: Specification, tokens: Sequence[int], n_ctx: int, n_draft: int
) -> list[tuple[int, list[Step]]]:
    """A draft at every position of every chunk, each from the true history."""
    drafts = []
    for start in chunks_of(tokens, n_ctx):
        drafter.append(tokens[start])
        for position in range(start + 1, start + n_ctx):
            drafts.append((position, drafter.draft(n_draft)))
            drafter.append(tokens[position])
        drafter.end_chunk()
    return drafts


# --- static cache -------------------------------------------------------------------------------------------


def read_static(data: bytes, order: Callable[[], Successors]) -> Cache:
    """llama.cpp's file, in file order (the order of insertion decides ties in the `iteration` class)."""
    cache: Cache = {}
    offset = 0
    while offset < len(data):
        a, b, c, d, k = struct.unpack_from("<5i", data, offset)
        assert (c, d) == (NULL, NULL)
        assert (a, b) not in cache
        pairs = struct.unpack_from(f"<{2 * k}i", data, offset + 20)
        successors = order()
        for token, count in zip(pairs[::2], pairs[1::2], strict=True):
            successors.add(token, count)
        cache[a, b] = successors
        offset += 20 + 8 * k
    return cache


def count_static(tokens: Sequence[int]) -> dict[tuple[int, int], dict[int, int]]:
    """Static counting: no chunks, no BOS."""
    counts: dict[tuple[int, int], dict[int, int]] = {}
    for i in range(2, len(tokens)):
        successors = counts.setdefault((tokens[i - 2], tokens[i - 1]), {})
        successors[tokens[i]] = successors.get(tokens[i], 0) + 1
    return counts


def write_static(counts: dict[tuple[int, int], dict[int, int]]) -> bytes:
    """llama.cpp's file, n-grams and successors in the order given."""
    return b"".join(
        struct.pack(
            f"<5i{2 * len(successors)}i",
            a,
            b,
            NULL,
            NULL,
            len(successors),
            *(x for p in successors.items() for x in p),
        )
        for (a, b), successors in counts.items()
    )
