"""A drafter for users of llama-cpp-python: any variant behind `llama_cpp.Llama(draft_model=...)`.

    llama = Llama("model.gguf", n_ctx=2048, flash_attn=True, logits_all=True)
    llama.draft_model = LadderDraft("wiki.summary", model=llama)

The interface hands over the whole sequence at every call and never says that a new one begins. So each call
is compared with what is known. A sequence that goes on is appended. If at least half of what is known still
stands, text was taken back: it is forgotten, as if it had never been there. Otherwise a new prompt begins:
what was known goes into the dynamic cache (unless `keep_dynamic` is off), and the context cache starts empty.

The dynamic cache is saved as the text it was made of, four bytes a token: a saved history serves every
variant and gives each of them exactly the cache it had.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.base.interfaces import Drafter
from draft_ladder.base.manifests import open_regular, write_atomic
from draft_ladder.base.variants import find
from draft_ladder.llama.generation import draft_room
from draft_ladder.llama.library import TokenArray
from draft_ladder.llama.static_cache import load_static
from draft_ladder.llama.vocabulary import Vocabulary, read_vocabulary

if TYPE_CHECKING:
    Base = object
else:
    try:
        from llama_cpp.llama_speculative import LlamaDraftModel as Base
    except ImportError:  # the extra is not there: the drafter itself works without it
        Base = object

# source ("context", "dynamic", "static") -> n-gram length -> (min total, min percent)
Thresholds = Mapping[str, Mapping[int, tuple[int, int]]]

# Draft whatever is known: more tokens are accepted per call, and far more are drafted in vain. Worth it where
# verifying a few more tokens costs next to nothing, as on a GPU.
EAGER: Thresholds = {
    "context": dict.fromkeys((1, 2, 3, 4), (1, 0)),
    "dynamic": dict.fromkeys((1, 2, 3, 4), (1, 0)),
    "static": {2: (1, 0)},
}

DEFAULT_VARIANT = "summary_index"
DEFAULT_N_DRAFT = 3
HISTORY_TOKENS = 1 << 20
_HISTORY_SCHEMA = 1
_NOTHING = np.empty(0, dtype=np.int32)


class Counters(NamedTuple):
    """What a drafter did so far. `accepted` is read off the sequence handed over at the next call."""

    calls: int = 0
    hits: int = 0  # calls that drafted anything
    drafted: int = 0
    accepted: int = 0
    prompts: int = 0
    rollbacks: int = 0


class LadderDraft(Base):
    """A `llama_cpp.llama_speculative.LlamaDraftModel` over one of the variants.

    `static`: a static cache in llama.cpp's or the variant's own format, built with the model's tokenizer.
    `n_draft`: max tokens of a draft. `model`: a `llama_cpp.Llama` (its context and vocabulary are taken
    over; it must keep the logits of a whole batch, `logits_all=True`) or the path of a GGUF file (its
    tokenizer is checked); `n_ctx` and `vocab_size` say the same by hand. `thresholds` replaces the rule's
    own, for example by {"context": {1: (3, 80)}} or EAGER; drafting then runs on the tunable drafter, which
    loads llama.cpp's or the frozen format, instead of a variant.
    `max_history_tokens` bounds the dynamic cache: beyond it the older half is forgotten, but never the newest
    text. Raises InputError for a cache of another or a larger vocabulary.
    """

    def __init__(
        self,
        static: str | Path | None = None,
        *,
        variant: str | None = None,
        n_draft: int = DEFAULT_N_DRAFT,
        model: Any = None,
        n_ctx: int | None = None,
        vocab_size: int | None = None,
        thresholds: Thresholds | None = None,
        keep_dynamic: bool = True,
        max_history_tokens: int = HISTORY_TOKENS,
    ) -> None:
        if not isinstance(n_draft, int) or n_draft < 0:
            raise InputError("n_draft", f"{n_draft} is negative or no whole number", "use 0 or more")
        if max_history_tokens < 2:
            raise InputError("max_history_tokens", f"{max_history_tokens} is too small", "use 2 or more")
        self.n_draft, self.keep_dynamic, self.max_history_tokens = n_draft, keep_dynamic, max_history_tokens
        self.vocabulary, known_ctx = _vocabulary_of(model, vocab_size)
        self.n_ctx = n_ctx if n_ctx is not None else known_ctx
        self.counters = Counters()
        self._drafter = _make_drafter(variant, thresholds)
        self._history: list[TokenArray] = []
        self._sequence = np.empty(1024, dtype=np.int32)
        self._length = 0
        self._last_draft: list[int] = []
        if static is not None:
            load_static(self._drafter, Path(static), self.vocabulary)

    def __call__(self, input_ids: npt.NDArray[np.intc], /, **kwargs: Any) -> npt.NDArray[np.intc]:
        """Draft what may follow `input_ids`: int32, contiguous, of 0 to n_draft tokens.

        Keyword `n_left`: how many tokens are still wanted; a draft is never longer, nor longer than the room
        left in n_ctx.
        """
        ids = np.ascontiguousarray(input_ids, dtype=np.int32)
        if ids.ndim != 1:
            raise InputError("input_ids", f"has {ids.ndim} dimensions", "hand over one sequence of tokens")
        self._follow(ids)
        draft = self._draft(len(ids), kwargs.get("n_left"))
        self._last_draft = draft
        counters = self.counters
        self.counters = counters._replace(
            calls=counters.calls + 1, hits=counters.hits + bool(draft), drafted=counters.drafted + len(draft)
        )
        return np.array(draft, dtype=np.int32) if draft else _NOTHING.copy()

    def _draft(self, length: int, n_left: int | None) -> list[int]:
        room = draft_room(self.n_draft, length, self.n_ctx, n_left)
        if room < 1 or length < 2:
            return []
        return self._drafter.draft(room)

    # --- the sequence --------------------------------------------------------------------------------------

    def _follow(self, ids: TokenArray) -> None:
        """Bring the caches to the sequence `ids`."""
        common = common_prefix(self._sequence[: self._length], ids)
        if common == self._length:
            self._count_accepted(ids[common:])
        elif 2 * common >= self._length and common > 0:
            self._roll_back(common)
        else:
            self._begin_prompt()
            common = 0
        if self._length == 0 and len(ids):
            self.counters = self.counters._replace(prompts=self.counters.prompts + 1)
        self._append(ids[common:])

    def _count_accepted(self, more: TokenArray) -> None:
        accepted = common_prefix(np.array(self._last_draft, dtype=np.int32), more) if self._last_draft else 0
        self.counters = self.counters._replace(accepted=self.counters.accepted + accepted)

    def _roll_back(self, length: int) -> None:
        self.counters = self.counters._replace(rollbacks=self.counters.rollbacks + 1)
        kept = self._sequence[:length].copy()
        self._drafter.reset()
        self._length = 0
        self._append(kept)

    def _begin_prompt(self) -> None:
        if self.keep_dynamic:
            self._history.append(self._sequence[: self._length].copy())
            self._drafter.end_chunk()
            self._bound_history()
        else:
            self._drafter.reset()
        self._length = 0

    def _append(self, more: TokenArray) -> None:
        length = self._length + len(more)
        if length > len(self._sequence):
            grown = np.empty(max(length, 2 * len(self._sequence)), dtype=np.int32)
            grown[: self._length] = self._sequence[: self._length]
            self._sequence = grown
        try:
            if len(more) == 1:
                self._drafter.append(int(more[0]))
            elif len(more):
                self._drafter.extend(more.tobytes())
        except ValueError as error:
            said = str(error).removeprefix("<tokens>: ")
            raise native.input_error(ValueError(f"input_ids: {said}")) from error
        self._sequence[self._length : length] = more
        self._length = length

    # --- the dynamic cache ---------------------------------------------------------------------------------

    def _bound_history(self) -> None:
        if sum(map(len, self._history)) <= self.max_history_tokens:
            return
        # The newest text says most about what comes: it stays, or its end, however long it is.
        kept = [self._history[-1][-self.max_history_tokens :]]
        for chunk in reversed(self._history[:-1]):
            if sum(map(len, kept)) + len(chunk) > self.max_history_tokens // 2:
                break
            kept.insert(0, chunk)
        self._relearn(kept)

    def _relearn(self, history: list[TokenArray]) -> None:
        """Make the dynamic cache anew from these chunks; the sequence at hand is gone."""
        self._drafter.forget()
        self._length, self._last_draft = 0, []
        self._history = history
        for chunk in history:
            self._drafter.extend(chunk.tobytes())
            self._drafter.end_chunk()

    def end_prompt(self) -> None:
        """Say that the sequence is over, so that its text counts as earlier text from now on."""
        if self._length:
            self._begin_prompt()
        self._last_draft = []

    def forget(self) -> None:
        """As new, but for the static cache."""
        self._relearn([])

    def save(self, path: str | Path) -> None:
        """Write what the dynamic cache was made of, the sequence at hand included."""
        chunks = [*self._history, self._sequence[: self._length]] if self._length else self._history
        body = b"".join(chunk.astype("<i4").tobytes() for chunk in chunks)
        header = {
            "schema": _HISTORY_SCHEMA,
            "kind": "draft-ladder history",
            "lengths": [len(chunk) for chunk in chunks],
            "vocab_size": self.vocabulary.size,
            "tokenizer_sha256": self.vocabulary.sha256,
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        write_atomic(Path(path), json.dumps(header, allow_nan=False).encode() + b"\n" + body)

    def load(self, path: str | Path) -> None:
        """Take over a saved dynamic cache instead of the present one. Raises InputError for a broken file."""
        self._relearn(_read_history(Path(path), self.vocabulary))
        self._bound_history()

    @property
    def history_tokens(self) -> int:
        """Tokens the dynamic cache was made of."""
        return sum(map(len, self._history))

    def memory_bytes(self) -> int:
        """Bytes of the three caches and of the history."""
        return int(self._drafter.memory_bytes()) + 4 * (self.history_tokens + len(self._sequence))


def common_prefix(known: TokenArray, ids: TokenArray) -> int:
    """How many tokens the two sequences share from their beginning."""
    length = min(len(known), len(ids))
    equal = known[:length] == ids[:length]
    return length if equal.all() else int(equal.argmin())


def _make_drafter(variant: str | None, thresholds: Thresholds | None) -> Drafter:
    if thresholds is None:
        fixed: Drafter = find(variant or DEFAULT_VARIANT).load().Drafter()
        return fixed
    if variant is not None:
        raise InputError(
            "thresholds", f"{variant} drafts by the fixed rule", "leave out `variant` or `thresholds`"
        )
    drafter = native.tunable().TunableDrafter()
    try:
        rows = [(source, n, *pair) for source, by_n in thresholds.items() for n, pair in by_n.items()]
        rows = [(source, n, int(total), int(percent)) for source, n, total, percent in rows]
    except (AttributeError, TypeError, ValueError) as error:
        form = 'give {"context": {1: (3, 80)}}, for example'
        raise InputError("thresholds", f"{thresholds!r} is not of their form", form) from error
    try:
        for row in rows:
            drafter.set_threshold(*row)
    except ValueError as error:
        raise native.input_error(error) from error
    tuned: Drafter = drafter
    return tuned


def _vocabulary_of(model: Any, vocab_size: int | None) -> tuple[Vocabulary, int | None]:
    """What `model` (a Llama, a path or None) tells about its vocabulary, and its n_ctx if it says."""
    if model is None:
        return Vocabulary(size=vocab_size), None
    is_file = isinstance(model, (str, Path))
    if getattr(model, "_logits_all", True) is False:
        raise InputError(
            "model", "keeps the last token's logits only, drafts need all", "open it with logits_all=True"
        )
    path = Path(model if is_file else model.model_path)
    vocabulary = read_vocabulary(path)
    if vocab_size not in (None, vocabulary.size):
        problem = f"is {vocab_size}, but {vocabulary.name or path.stem} has {vocabulary.size} tokens"
        raise InputError("vocab_size", problem, "leave it out: the model says it")
    return vocabulary, None if is_file else int(model.n_ctx())


def _read_history(path: Path, vocabulary: Vocabulary) -> list[TokenArray]:
    remedy = "save the history again"
    with open_regular(path) as file:
        first, body = file.readline(1 << 26), file.read()
    try:
        header = json.loads(first)
        lengths = [int(length) for length in header["lengths"]]
        known = header["kind"] == "draft-ladder history" and header["schema"] == _HISTORY_SCHEMA
        digest, size = header["sha256"], header["vocab_size"]
        tokenizer = header["tokenizer_sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(path, "byte 0: is not a saved history", remedy) from error
    if not known:
        raise InputError(path, "byte 0: is a history of another kind or version", remedy)
    if hashlib.sha256(body).hexdigest() != digest or 4 * sum(lengths) != len(body):
        raise InputError(path, f"byte {len(first)}: the tokens are cut or changed", remedy)
    if None not in (tokenizer, vocabulary.sha256) and tokenizer != vocabulary.sha256:
        raise InputError(path, "was saved with another model's tokenizer", "load it with that model")
    if size is not None and vocabulary.size is not None and size > vocabulary.size:
        problem = f"was saved with {size} tokens in the vocabulary, the model has {vocabulary.size}"
        raise InputError(path, problem, "load it with that model")
    tokens = np.frombuffer(body, dtype="<i4").astype(np.int32)
    if not lengths:
        return []
    return [np.ascontiguousarray(chunk) for chunk in np.split(tokens, np.cumsum(lengths)[:-1])]
