"""Synthetic token streams of any size that draft like English text, for machines without network or corpus.

They are tokens, not text: ids have no words behind them, and nothing made from them may be called a result
on text; every label says "synthetic". What is kept of real text are its statistics, as numbers in
`LanguageParameters`; no text and no list of words is needed or contained.

The generator (native/textgen/synthetic.hpp) is a hierarchical Pitman-Yor language, trigram over bigram over
unigram, whose atoms are hashes of their context, under a document cache that repeats words and phrases. It
keeps no history but the current document: about 10 MB whatever the length of the stream. One seed gives
one language with two streams of documents, `corpus` and `replay`, so the replayed text is new text in the
language of the corpus, as a test split is. The first n tokens of a stream do not depend on how many are
asked for, so the corpora of all sizes are beginnings of the largest one.

Sizes in MB: synthetic tokens count as BYTES_PER_TOKEN bytes each, as English text does under Tekken. So
"541 MB synthetic" has as many tokens as 541 MB of text.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from draft_ladder.base import native
from draft_ladder.base.artifacts import Artifact, Made, Store
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import Progress, ProgressCallback, canonical_json
from draft_ladder.data.tokens import TOKEN_BYTES, TokenFile, load_token_file

BYTES_PER_TOKEN = 4.37  # of English Wikipedia text under Tekken: 541.0 MB are 123.8 million tokens
REPLAY_TOKENS = 304_410  # as many as WikiText-103's test split
RULE = 1  # raised when the same parameters and seed would give other tokens
TOKENIZER = "synthetic"
BLOCK_TOKENS = 1 << 20

Stream = Literal["corpus", "replay"]
_STREAM_SEEDS: dict[Stream, int] = {"corpus": 3, "replay": 2}


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Branching(_Parameters):
    """How many different successors a context has, and how unequal they are.

    A share 1 - `head` of the draws falls on successor k or a later one with probability
    (1 + k / 2^scale_log2) ^ -(1 / discount - 1): the power law of a Pitman-Yor process. The share `head`
    falls there with (1 + k / 2^head_scale_log2) ^ -1: the few favourites that function words have beside
    their long tails. Both scales differ between contexts, log-normally, by `spread_log2`, and by
    `frequent_log2` for each doubling of the last token's occurrences per million.
    """

    discount: float
    scale_log2: float
    head: float
    head_scale_log2: float
    spread_log2: float
    frequent_log2: float


class LanguageParameters(_Parameters):
    """All parameters of the generator, in one place.

    Fitted to WikiText-style Wikipedia text under Tekken and to the replay of WikiText's test split: first all
    at once by damped Gauss-Newton at 1.4 and 5.7 million tokens, then by trials of `discount`, the scales,
    `head`, `copy` and `jump` at 23 and 124 million, because growth there had been too fast.

    Where it stays off (real against synthetic, 124 million tokens): bigrams grow as tokens^0.63 against 0.70
    there; the longest successor list has 24,394 against 19,689 tokens (at 5.7 million 8,102 against 3,450);
    rare tokens come again within 1000 tokens in 38 % against 24 % of cases. Shares, hit rate and acceptance
    are within 3.5 percentage points, bigrams and pairs per million tokens within 13 %, at 25, 100 and 541 MB.

    `vocabulary`: ids lie below it; Tekken's 2^17. `frequencies`: (rank, occurrences per million tokens),
    straight lines in both logarithms between; the corpus' own, corrected for what the contexts do to them.
    `bigram`, `trigram`: fitted to the number of bigrams and of (bigram, successor) pairs and to the share of
    bigrams with one successor, each at 1.4 and 5.7 million tokens. `openness`: how much of the spread of a
    token's bigram scale its trigram scales share.

    `copy`: probability to go on as the document did after the last m tokens, m = 0, 1, 2, ...; `jump`:
    probability to repeat any token of the document. A copy probability is raised to a power, different for
    each token (log2: `copy_spread_log2`) and for each pair of tokens (`copy_pair_spread_log2`), and greater
    for frequent tokens (`copy_frequent_log2` for each doubling): some words have one continuation in a
    document, others none. Fitted to how often each n of the context cache drafts, how often it is right,
    and how many tokens of a draft are accepted, all without a static cache; and to how long the longest
    suffix is that occurred in the same 4096 tokens before. `document_tokens`: (per mille of the documents,
    have at most so many tokens), the corpus' own.
    """

    vocabulary: int = 131_072
    frequencies: tuple[tuple[int, float], ...] = ()
    bigram: Branching
    trigram: Branching
    openness: float
    copy_spread_log2: float
    copy_pair_spread_log2: float
    copy_frequent_log2: float
    copy_: tuple[float, ...] = Field(alias="copy")
    jump: float
    document_tokens: tuple[tuple[int, float], ...]


PARAMETERS = LanguageParameters(
    frequencies=(
        (1, 32680.0),
        (2, 51830.0),
        (3, 44880.0),
        (4, 27700.0),
        (5, 19920.0),
        (7, 17180.0),
        (10, 18170.0),
        (14, 11140.0),
        (20, 5891.0),
        (35, 2959.0),
        (50, 1978.0),
        (70, 664.9),
        (100, 307.0),
        (200, 297.8),
        (500, 149.4),
        (1000, 102.7),
        (2000, 56.62),
        (5000, 26.66),
        (10000, 14.19),
        (20000, 7.976),
        (30000, 4.875),
        (40000, 1.52),
        (45000, 0.7201),
        (50000, 0.3346),
        (60000, 0.1029),
        (67000, 0.05162),
        (131072, 0.001),
    ),
    bigram=Branching(
        discount=0.5,
        scale_log2=5.5,
        head=0.23,
        head_scale_log2=-2.882,
        spread_log2=4.459,
        frequent_log2=0.07689,
    ),
    trigram=Branching(
        discount=0.95,
        scale_log2=-3.0,
        head=0.02596,
        head_scale_log2=-2.218,
        spread_log2=0.1677,
        frequent_log2=-0.1427,
    ),
    openness=1.263,
    copy_spread_log2=4.6,
    copy_pair_spread_log2=3.6,
    copy_frequent_log2=0.4218,
    copy=(0.0, 0.05612, 0.17, 0.4635, 0.4, 0.6, 0.68),
    jump=0.09,
    document_tokens=(
        (0, 1200.0),
        (100, 1350.0),
        (250, 1669.0),
        (500, 2508.0),
        (750, 4746.0),
        (900, 8241.0),
        (950, 11235.0),
        (990, 17346.0),
        (1000, 40000.0),
    ),
)


class SyntheticConfig(BaseModel):
    """A corpus table of an experiment: `source = "synthetic"`, and a seed for another language."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: Literal["synthetic"]
    seed: int = Field(default=1, ge=0, lt=2**32)
    replay_tokens: int = Field(default=REPLAY_TOKENS, gt=0)

    def resolve(self, base: Path) -> SyntheticSource:
        """The language of that seed."""
        del base
        return SyntheticSource(self.seed, self.replay_tokens)


class SyntheticSource:
    """A language: the corpora of every size in it, and a text to be replayed."""

    name = "synthetic"
    kind: Literal["real", "synthetic"] = "synthetic"

    def __init__(
        self,
        seed: int = 1,
        replay_tokens: int = REPLAY_TOKENS,
        parameters: LanguageParameters | None = None,
        note: str | None = None,
    ) -> None:
        self.seed, self.replay_tokens, self.note = seed, replay_tokens, note
        self.parameters = parameters or PARAMETERS
        self.label = f"synthetic (seed {seed})"
        self.replay_label = f"{self.label}, other documents"

    @cached_property
    def language_sha256(self) -> str:
        """Names the language: what a tokenizer's digest is to real text. Caches and tokens of two languages
        do not go together.
        """
        identity = {"rule": RULE, "seed": self.seed, "parameters": self.parameters.model_dump(by_alias=True)}
        return hashlib.sha256(canonical_json(identity).encode()).hexdigest()

    def with_replay(self, n_tokens: int) -> SyntheticSource:
        """The same language with a shorter text to replay, the beginning of this one's.

        Raises InputError if this one is shorter.
        """
        if n_tokens > self.replay_tokens:
            problem = f"replays {self.replay_tokens} tokens, {n_tokens} were asked for"
            raise InputError(self.label, problem, "lower replay_mb, or raise replay_tokens")
        return SyntheticSource(self.seed, n_tokens, self.parameters, self.note)

    def identity(self, split: Literal["train", "test"]) -> dict[str, Any]:
        """Language and stream of a split."""
        return {"source": self.name, "language": self.language_sha256, "stream": _stream_of(split)}

    def inputs(self, split: Literal["train", "test"]) -> dict[str, str]:
        """The language's digest: nothing is read."""
        del split
        return {"language": self.language_sha256}

    def blocks(self, split: Literal["train", "test"]) -> Iterator[bytes]:
        """Never: there is no text. Use `tokens`."""
        raise InputError(
            self.label, f"has tokens, no text ({split})", "use a text source, or the token file as it is"
        )

    def generator(self, stream: Stream) -> Any:
        """The native generator at the start of a stream (`read(n)` gives the next n tokens as bytes)."""
        with native.errors():
            return native.synthetic().Generator(
                self.parameters.model_dump(by_alias=True), self.seed, _STREAM_SEEDS[stream]
            )

    def tokens(
        self, stream: Stream, n_tokens: int, cache_dir: Path, progress: ProgressCallback | None = None
    ) -> TokenFile:
        """The first `n_tokens` of a stream as a token file in `cache_dir`/tokens, made now or found there."""
        if n_tokens <= 0:
            raise InputError(f"{n_tokens} tokens", "is not a length", "ask for at least one token")
        identity = {"language": self.language_sha256, "stream": stream, "n_tokens": n_tokens}

        def make(target: Path) -> Made:
            digest = hashlib.sha256()
            with target.open("wb") as file:
                for block in self._blocks(stream, n_tokens, progress):
                    file.write(block)
                    digest.update(block)
            facts = {"n_tokens": n_tokens, "text_bytes": text_bytes(n_tokens), "synthetic": True}
            return Made(facts, digest.hexdigest())

        artifact = Artifact(
            kind="tokens",
            folder="tokens",
            suffix=".tok",
            identity=identity,
            make=make,
            # There is no text; its place takes what determines the tokens.
            inputs={
                "text": hashlib.sha256(canonical_json(identity).encode()).hexdigest(),
                "tokenizer": self.language_sha256,
            },
            parameters={
                **identity,
                "tokenizer": TOKENIZER,
                "vocab_size": self.parameters.vocabulary,
                "seed": self.seed,
                "rule": RULE,
                "language_parameters": self.parameters.model_dump(by_alias=True),
            },
        )
        return load_token_file(Store(cache_dir).get(artifact).path)

    def _blocks(self, stream: Stream, n_tokens: int, progress: ProgressCallback | None) -> Iterator[bytes]:
        generator = self.generator(stream)
        started = time.monotonic()
        for done in range(0, n_tokens, BLOCK_TOKENS):
            block: bytes = generator.read(min(BLOCK_TOKENS, n_tokens - done))
            yield block
            if progress:
                so_far = done + len(block) // TOKEN_BYTES
                elapsed = time.monotonic() - started
                total = n_tokens * TOKEN_BYTES
                progress(Progress("synthetic", so_far * TOKEN_BYTES, total, elapsed, so_far))


def _stream_of(split: Literal["train", "test"]) -> Stream:
    return "corpus" if split == "train" else "replay"


def tokens_of(size_bytes: int) -> int:
    """How many synthetic tokens stand for so many bytes of text."""
    return max(1, round(size_bytes / BYTES_PER_TOKEN))


def text_bytes(n_tokens: int) -> int:
    """How many bytes of text so many synthetic tokens stand for."""
    return round(n_tokens * BYTES_PER_TOKEN)
