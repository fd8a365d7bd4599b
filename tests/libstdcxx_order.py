"""The order in which libstdc++ iterates a `std::unordered_map<int32_t, int32_t>`: all a tie depends on.

A new element goes to the front of its bucket; a bucket that was empty goes to the front of the whole list.
So the order is: buckets by first use, newest first, and inside a bucket newest first. A rehash walks the list
and inserts again. Nothing is ever erased here. `std::hash<int32_t>` is the value itself, sign-extended.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

# Bucket counts a map passes through when it grows from empty at load factor 1 (each: the first prime of the
# library's list that is at least twice the last). test_specification.py compares with the real container.
BUCKET_COUNTS = [
    1,
    13,
    29,
    59,
    127,
    257,
    541,
    1109,
    2357,
    5087,
    10273,
    20753,
    42043,
    85229,
    172933,
    351061,
    712697,
]


class LibstdcxxMap:
    """Token -> count, iterated as libstdc++ would."""

    __slots__ = ("bucket_count", "buckets", "counts")

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        self.buckets: dict[int, list[int]] = {}  # bucket -> its tokens, oldest first; buckets by first use
        self.bucket_count = BUCKET_COUNTS[0]

    def add(self, token: int, count: int) -> int:
        """Add `count` to the token's count, inserting it if it is missing; return the sum."""
        if token not in self.counts:
            if self._insertion_is_too_much():
                self._rehash()
            self._insert(token)
        self.counts[token] = self.counts.get(token, 0) + count
        return self.counts[token]

    def get(self, token: int) -> int | None:
        return self.counts.get(token)

    def items(self) -> Iterator[tuple[int, int]]:
        for tokens in reversed(self.buckets.values()):
            for token in reversed(tokens):
                yield token, self.counts[token]

    def copy(self) -> LibstdcxxMap:
        """The copy constructor: same bucket count, same order."""
        result = LibstdcxxMap()
        result.counts = dict(self.counts)
        result.buckets = {bucket: list(tokens) for bucket, tokens in self.buckets.items()}
        result.bucket_count = self.bucket_count
        return result

    def __len__(self) -> int:
        return len(self.counts)

    def _insertion_is_too_much(self) -> bool:
        # An empty map has one bucket and takes none; a map of 13 buckets takes 13 elements, and so on.
        return self.bucket_count == 1 or len(self.counts) + 1 > self.bucket_count

    def _insert(self, token: int) -> None:
        self.buckets.setdefault((token & (2**64 - 1)) % self.bucket_count, []).append(token)

    def _rehash(self) -> None:
        in_order = [token for token, _ in self.items()]
        self.bucket_count = BUCKET_COUNTS[bisect_left(BUCKET_COUNTS, 2 * self.bucket_count)]
        self.buckets = {}
        for token in in_order:
            self._insert(token)
