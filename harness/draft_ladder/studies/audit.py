"""The auditor: are two variants' different drafts explained by ties, or is one of them wrong?

Both variants draft at every position from the true history, where the caches of both hold equal counts.
At the first token that differs the step is replayed on the auditor's own count tables:

* `tie`: both chose at the same level (source and n), with equal scores;
* `threshold_after_tie`: at a level tried earlier equal-scored winners differ in passing the percent
  threshold, so that the two went on differently;
* `wrong`: everything else. That includes any difference inside one equivalence group, and a variant whose
  ties go to the smallest token (`token`) that chose another.

Later tokens of a draft that differed `follow`. Nothing is excused for coming after an earlier tie.
"""

from __future__ import annotations

import json
import sys
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from draft_ladder.base import variants
from draft_ladder.base.errors import InputError, LadderError

NULL_TOKEN = -1
# (source, n) in the order they are tried, with the thresholds: min total, min percentage.
THRESHOLDS: dict[tuple[str, int], tuple[int, int]] = {
    ("context", 4): (1, 50),
    ("context", 3): (1, 50),
    ("context", 2): (2, 50),
    ("context", 1): (2, 66),
    ("dynamic", 4): (2, 66),
    ("dynamic", 3): (2, 66),
    ("dynamic", 2): (3, 66),
    ("dynamic", 1): (4, 75),
    ("static", 2): (2, 50),
}
Draft = Sequence[int]
Bigram = tuple[int, int]


class Drafter(Protocol):
    """The part of a native module's drafter that an audit uses."""

    def load(self, path: str) -> object:
        """Load a static cache file."""

    def draft_everywhere(self, tokens: bytes, n_ctx: int, n_draft: int) -> Sequence[tuple[int, Draft]]:
        """Draft at every position from the true history."""


@dataclass(frozen=True)
class Winner:
    """One of the successors that share the highest score of a level."""

    token: int
    score: int
    count: int
    passes: bool


@dataclass(frozen=True)
class Level:
    """What one look-up of a step offered."""

    source: str
    n: int
    total: int
    min_total: int
    min_percent: int
    winners: tuple[Winner, ...]  # smallest token first


@dataclass(frozen=True)
class Difference:
    """A first difference of two drafts: `index` in the draft; a token is None where a draft had ended."""

    kind: str
    position: int
    index: int
    token_a: int | None
    token_b: int | None
    tail: tuple[int, ...]
    levels: tuple[Level, ...]
    reason: str


@dataclass
class AuditReport:
    """Counts over all positions, and the first few differences of each kind.

    `positions` is the number of drafts compared; `drafted` the tokens in them, by the longer of each two.
    """

    a: str
    b: str
    n_ctx: int
    n_draft: int
    positions: int = 0
    drafted: int = 0
    drafted_a: int = 0
    drafted_b: int = 0
    tie: int = 0
    threshold_after_tie: int = 0
    follows: int = 0
    wrong: int = 0
    samples: dict[str, list[Difference]] = field(
        default_factory=lambda: {"tie": [], "threshold_after_tie": [], "wrong": []}
    )

    @property
    def tie_share(self) -> float | None:
        """First differences that ties explain, per drafted token; None if nothing was drafted."""
        return (self.tie + self.threshold_after_tie) / self.drafted if self.drafted else None

    def as_json(self) -> str:
        """Strict JSON, one object."""
        return json.dumps({**asdict(self), "tie_share": self.tie_share}, allow_nan=False)


SAMPLES_MAX = {"tie": 5, "threshold_after_tie": 5, "wrong": 20}


class Counts:
    """N-gram -> successor -> count of one cache. An n-gram seen once, as most are, costs one slot."""

    def __init__(self) -> None:
        self._table: dict[bytes, int | dict[int, int]] = {}

    def add(self, ngram: bytes, token: int, count: int) -> None:
        """Add to one count."""
        known = self._table.get(ngram)
        if known is None and count == 1:
            self._table[ngram] = token
            return
        if not isinstance(known, dict):
            known = self._table[ngram] = {} if known is None else {known: 1}
        known[token] = known.get(token, 0) + count

    def get(self, ngram: bytes) -> Mapping[int, int] | None:
        """The successors of an n-gram, None if it was never seen."""
        known = self._table.get(ngram)
        return {known: 1} if isinstance(known, int) else known

    def merge_from(self, other: Counts) -> None:
        """Add another table's counts and empty it."""
        for ngram, successors in other._table.items():
            for token, count in ({successors: 1} if isinstance(successors, int) else successors).items():
                self.add(ngram, token, count)
        other._table = {}


class History:
    """The true history of a token text: what context and dynamic hold at a position. Moves forward only."""

    def __init__(self, tokens: array[int], n_ctx: int) -> None:
        self._bytes = tokens.tobytes()
        self._tokens = tokens
        self._n_ctx = n_ctx
        self._chunk_start = 0
        self._at = 0  # tokens before this one are counted
        self.context = Counts()
        self.dynamic = Counts()

    def advance(self, position: int) -> None:
        """Count every token before `position`, merging at the end of each chunk."""
        if position < self._at:
            raise LadderError(f"audit: position {position} comes after {self._at}; a bug, report it")
        width = self._tokens.itemsize
        while self._at < position:
            if self._at == self._chunk_start + self._n_ctx:
                self._start_chunk()
            token = self._tokens[self._at]
            for n in range(1, min(4, self._at - self._chunk_start) + 1):
                self.context.add(self._bytes[(self._at - n) * width : self._at * width], token, 1)
            self._at += 1

    def _start_chunk(self) -> None:
        self.dynamic.merge_from(self.context)
        self._chunk_start = self._at


def read_tokens(path: Path) -> array[int]:
    """A token file: int32 little-endian. InputError unless it is whole."""
    data = _read(path, "give a token file")
    if len(data) % 4:
        raise InputError(
            f"{path}: byte {len(data) - len(data) % 4}", "the file ends inside a token", "build it again"
        )
    tokens = array("i")
    tokens.frombytes(data)
    if sys.byteorder == "big":
        tokens.byteswap()
    return tokens


def _read(path: Path, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, f"not readable ({error.strerror})", remedy) from error


def read_static(path: Path, wanted: set[Bigram]) -> dict[Bigram, dict[int, int]]:
    """The successors of the wanted bigrams from llama.cpp's file; all others are passed over."""
    data = _read(path, "give the static cache's file")
    if len(data) % 4:
        raise InputError(f"{path}: byte {len(data)}", "ends inside a number", "build the cache again")
    words = array("i")
    words.frombytes(data)
    if sys.byteorder == "big":
        words.byteswap()
    found: dict[Bigram, dict[int, int]] = {}
    at = 0
    while at < len(words):
        end = at + 5 + 2 * words[at + 4] if at + 5 <= len(words) else 0
        if end <= at + 5 or end > len(words) or words[at + 2] != NULL_TOKEN:
            problem = "is not llama.cpp's format, or was cut"
            raise InputError(f"{path}: byte {4 * at}", problem, "give the .bin that `ladder cache` wrote")
        bigram = (words[at], words[at + 1])
        if bigram in wanted:
            found[bigram] = dict(zip(words[at + 5 : end : 2], words[at + 6 : end : 2], strict=True))
        at = end
    return found


def level_of(
    key: tuple[str, int], successors: Mapping[int, int] | None, static: Mapping[int, int] | None
) -> Level | None:
    """Score one look-up; None if the n-gram is absent."""
    if not successors:
        return None
    min_total, min_percent = THRESHOLDS[key]
    total = sum(successors.values())
    scores = {
        token: count * (100 * static[token] if static and token in static else 1)
        for token, count in successors.items()
    }
    best = max(scores.values())
    winners = (
        Winner(t, best, successors[t], total >= min_total and 100 * successors[t] >= min_percent * total)
        for t in sorted(scores)
        if scores[t] == best
    )
    return Level(*key, total, min_total, min_percent, tuple(winners))


def levels_of_step(history: History, tail: Sequence[int], static: Mapping[int, int] | None) -> list[Level]:
    """All levels of one step that find something, in the order they are tried."""
    levels = []
    for key in THRESHOLDS:
        source, n = key
        if source == "static":
            level = level_of(key, static, None)
        elif n <= len(tail):
            counts = history.context if source == "context" else history.dynamic
            level = level_of(key, counts.get(array("i", tail[-n:]).tobytes()), static)
        else:
            level = None
        if level is not None:
            levels.append(level)
    return levels


Outcome = tuple[int | None, int | None]  # (index of the level, token); (None, None): nothing drafted


def possible_outcomes(levels: Sequence[Level], ties: str) -> list[Outcome]:
    """What a drafter may choose: one where `ties` go to the smallest token, else any of the equals."""
    outcomes: list[Outcome] = []
    for i, level in enumerate(levels):
        winners = level.winners[:1] if ties == "token" else level.winners
        outcomes += [(i, winner.token) for winner in winners if winner.passes]
        if all(winner.passes for winner in winners):
            return outcomes
    return [*outcomes, (None, None)]


def classify(
    levels: Sequence[Level], tokens: tuple[int | None, int | None], ties_of: tuple[str, str]
) -> tuple[str, str]:
    """Kind of a first difference, and the reason in words."""
    if ties_of[0] == ties_of[1]:
        return "wrong", f"both are of the group {ties_of[0]!r}, where drafts are identical"
    chosen = []
    for name, token, ties in zip("ab", tokens, ties_of, strict=True):
        at = {level for level, outcome in possible_outcomes(levels, ties) if outcome == token}
        if not at:
            return "wrong", f"{name} cannot choose {'nothing' if token is None else token} here"
        chosen.append(at)
    if chosen[0] & chosen[1]:
        return "tie", "equal scores at one level"
    return "threshold_after_tie", "equal-scored winners of an earlier level differ in passing its threshold"


def first_differences(
    drafts_a: Sequence[tuple[int, Draft]], drafts_b: Sequence[tuple[int, Draft]]
) -> Iterator[tuple[int, int, Draft, Draft]]:
    """(position, index of the first token that differs, draft of a, draft of b), in order of position."""
    if [position for position, _ in drafts_a] != [position for position, _ in drafts_b]:
        raise LadderError("audit: the variants drafted at different positions; one of the modules is broken")
    for (position, a), (_, b) in zip(drafts_a, drafts_b, strict=True):
        if list(a) != list(b):
            shared = (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
            yield position, next(shared, min(len(a), len(b))), a, b


def load_module(name: str) -> Any:
    """The module of a built variant, by name; InputError lists the names there are."""
    return variants.find(name).load()


def drafts_of(
    module: Any, tokens: bytes, static: Path | None, n_ctx: int, n_draft: int
) -> Sequence[tuple[int, Draft]]:
    """Draft everywhere; a variant with a format of its own gets the file converted, as a run would."""
    drafter: Drafter = module.Drafter()
    if static is not None:
        if module.info()["static_format"] == "llama":
            drafter.load(str(static))
        else:
            with tempfile.TemporaryDirectory(prefix="ladder-audit-") as folder:
                own = Path(folder) / "static"
                module.convert_static(str(static), str(own))
                drafter.load(str(own))
    return drafter.draft_everywhere(tokens, n_ctx, n_draft)


def audit(
    variant_a: Any, variant_b: Any, tokens: Path, static: Path | None, n_ctx: int = 4096, n_draft: int = 3
) -> AuditReport:
    """Compare two variants (names, or modules) on a token file and a static cache in llama.cpp's format.

    InputError for files that cannot be used. The caller decides what a `wrong` means for the exit code.
    """
    modules = [load_module(v) if isinstance(v, str) else v for v in (variant_a, variant_b)]
    infos = [module.info() for module in modules]
    text = read_tokens(tokens)
    packed = tokens.read_bytes()
    if static is not None:
        read_static(static, set())  # refuses any other format before a module converts it
    drafts_a, drafts_b = (drafts_of(module, packed, static, n_ctx, n_draft) for module in modules)
    report = AuditReport(str(infos[0]["name"]), str(infos[1]["name"]), n_ctx, n_draft)
    _count(report, drafts_a, drafts_b)
    differences = list(first_differences(drafts_a, drafts_b))
    del drafts_a, drafts_b
    classes = (str(infos[0]["ties"]), str(infos[1]["ties"]))
    _explain(report, differences, text, static, classes)
    return report


def _count(
    report: AuditReport, drafts_a: Sequence[tuple[int, Draft]], drafts_b: Sequence[tuple[int, Draft]]
) -> None:
    report.positions = len(drafts_a)
    report.drafted_a = sum(len(draft) for _, draft in drafts_a)
    report.drafted_b = sum(len(draft) for _, draft in drafts_b)
    report.drafted = sum(max(len(a), len(b)) for (_, a), (_, b) in zip(drafts_a, drafts_b, strict=False))


def _explain(
    report: AuditReport,
    differences: list[tuple[int, int, Draft, Draft]],
    text: array[int],
    static: Path | None,
    ties_of: tuple[str, str],
) -> None:
    tails = [_tail(text, report.n_ctx, position, a[:index]) for position, index, a, _ in differences]
    wanted = {(tail[-2], tail[-1]) for tail in tails if len(tail) >= 2}
    statics = read_static(static, wanted) if static is not None else {}
    history = History(text, report.n_ctx)
    for (position, index, a, b), tail in zip(differences, tails, strict=True):
        history.advance(position)
        successors = statics.get((tail[-2], tail[-1])) if len(tail) >= 2 else None
        levels = levels_of_step(history, tail, successors)
        tokens = (_token_at(a, index), _token_at(b, index))
        kind, reason = classify(levels, tokens, ties_of)
        setattr(report, kind, getattr(report, kind) + 1)
        report.follows += max(len(a), len(b)) - index - 1
        if len(report.samples[kind]) < SAMPLES_MAX[kind]:
            sample = Difference(kind, position, index, *tokens, tuple(tail), tuple(levels), reason)
            report.samples[kind].append(sample)


def _tail(text: array[int], n_ctx: int, position: int, drafted: Draft) -> list[int]:
    chunk_start = (position - 1) // n_ctx * n_ctx
    return [*text[max(chunk_start, position - 4) : position], *drafted][-4:]


def _token_at(draft: Draft, index: int) -> int | None:
    return draft[index] if index < len(draft) else None


def describe(difference: Difference) -> str:
    """One line of a sample: position, both choices, and every level with its equal-scored winners."""
    levels = "; ".join(
        f"{level.source} {level.n} total {level.total} (at least {level.min_total}, {level.min_percent} %): "
        + ", ".join(
            f"{w.token} score {w.score} count {w.count} {'passes' if w.passes else 'fails'}"
            for w in level.winners
        )
        for level in difference.levels
    )
    d = difference
    return (
        f"{d.kind} at {d.position}+{d.index}: a {d.token_a}, b {d.token_b}; {d.reason}; "
        f"after {list(d.tail)}: {levels or 'nothing found'}"
    )


def print_report(report: AuditReport) -> None:
    """The counts, then the samples, on stdout."""
    share = (
        "nothing drafted" if report.tie_share is None else f"{100 * report.tie_share:.3f} % of drafted tokens"
    )
    print(f"{report.a} and {report.b}: {report.positions} positions, {report.drafted} drafted tokens")
    print(f"tie {report.tie}, threshold after tie {report.threshold_after_tie} ({share})")
    print(f"follows {report.follows}")
    print(f"wrong {report.wrong}")
    for samples in report.samples.values():
        for difference in samples:
            print("  " + describe(difference))
