"""Everything a run reads, made or found in the cache: text, tokens, static caches in every format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from draft_ladder.base.manifests import ProgressCallback
from draft_ladder.base.variants import Variant
from draft_ladder.bench.config import Experiment, fill_in
from draft_ladder.bench.launch import convert_apart
from draft_ladder.bench.records import CorpusLabel, TextLabel, TokenizerLabel
from draft_ladder.bench.runner import Inputs, Replayed, SizeInputs, StaticFile
from draft_ladder.data.cache import LLAMA, SUFFIXES, build_static_cache
from draft_ladder.data.corpus import (
    MB,
    CorpusFile,
    build_corpus,
    corpus_or_synthetic,
    first_part,
    replay_text,
)
from draft_ladder.data.own_format import own_format
from draft_ladder.data.resolve import DefaultConfig, resolve_source
from draft_ladder.data.sources import Source
from draft_ladder.data.synthetic import SyntheticSource, tokens_of
from draft_ladder.data.tokenizers import Tokenizer, load_tokenizer
from draft_ladder.data.tokens import TokenFile, load_token_file, tokenize_file

# Of what the builder counted, what says something about the corpus.
COUNTED = ("n_tokens", "n_bigrams", "n_pairs", "single_share", "at_most_100_share", "largest")

Note = Callable[[str], None]


class Preparation:
    """Makes an experiment's inputs; the cache directory remembers what was made before."""

    def __init__(
        self,
        experiment: Experiment,
        cache: Path,
        *,
        text_dir: Path | None = None,
        note: Note = lambda line: None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.experiment, self.cache, self.note, self.progress = experiment, cache, note, progress
        self.source: Source = resolve_source(fill_in(experiment.corpus, text_dir))
        if self.source.note:
            note(self.source.note)
        self.tokenizer: Tokenizer = load_tokenizer(experiment.tokenizer)

    def corpora(self) -> list[tuple[float, CorpusFile, Source]]:
        """(size in MB, corpus, its source) for each size above 0; sizes clipped to the same text appear once.

        What the default source lacks is filled in with synthetic tokens.
        """
        found: dict[str, tuple[float, CorpusFile, Source]] = {}
        for asked in self.experiment.sizes_mb:
            if asked == 0:
                continue
            source, corpus = self._corpus(asked)
            size = round(corpus.size_mb, 1) if corpus.clipped else asked
            if corpus.sha256 in found:
                self.note(f"{asked:g} MB is the same text as {found[corpus.sha256][0]:g} MB and runs once")
            elif corpus.clipped:
                self.note(f"{asked:g} MB is clipped to the {corpus.size_mb:.1f} MB that {corpus.label} has")
            found.setdefault(corpus.sha256, (size, corpus, source))
        return list(found.values())

    def _corpus(self, size_mb: float) -> tuple[Source, CorpusFile]:
        if not isinstance(self.experiment.corpus, DefaultConfig):
            clip = self.experiment.clip
            return self.source, build_corpus(self.source, size_mb, self.cache, self.progress, clip=clip)
        source, corpus = corpus_or_synthetic(self.source, size_mb, self.cache, self.progress)
        if source is not self.source and source.note:
            self.note(source.note)
        return source, corpus

    def replayed(self, source: Source) -> Replayed:
        """The text of a source to replay, cut to `replay_mb` where the experiment says so, and its tokens."""
        size_mb = self.experiment.replay_mb
        if size_mb is not None and isinstance(source, SyntheticSource):
            source = source.with_replay(tokens_of(round(size_mb * MB)))
            size_mb = None
        text = replay_text(source, self.cache, self.progress)
        if size_mb is not None:
            text = first_part(text, size_mb, self.cache)
        tokens = self.tokens(text.path, text.sha256, text.label)
        n_ctx = max(self.experiment.n_ctx)
        if tokens.n_tokens <= n_ctx:
            self.note(
                f"{text.label}: {tokens.n_tokens} tokens are not more than one chunk of "
                f"{n_ctx}: nothing will be replayed and latencies will be null; "
                "replay a longer text or lower n_ctx"
            )
        return Replayed(
            tokens=tokens.path,
            tokens_sha256=tokens.sha256,
            n_tokens=tokens.n_tokens,
            replay_text=TextLabel(label=text.label, sha256=text.sha256),
            tokenizer=TokenizerLabel(name=tokens.tokenizer, sha256=tokens.tokenizer_sha256),
        )

    def tokens(self, text: Path, text_sha256: str, label: str) -> TokenFile:
        """Token file of a text, which users know by its label; a synthetic corpus is one already."""
        if text.suffix == ".tok":
            return load_token_file(text)
        return tokenize_file(
            text,
            self.tokenizer,
            self.cache,
            text_sha256=text_sha256,
            progress=self.progress,
            report=self.note,
            label=label,
        )

    def inputs(self, variants: Sequence[Variant]) -> Inputs:
        """Everything, for these variants' formats."""
        replayed = self.replayed(self.source)
        sizes = []
        if 0 in self.experiment.sizes_mb:
            sizes.append(
                SizeInputs(0, CorpusLabel(label="none", kind="none", source="none", sha256=None), {})
            )
        for size, corpus, source in self.corpora():
            label = CorpusLabel(
                label=corpus.label, kind=corpus.kind, source=corpus.source, sha256=corpus.sha256
            )
            corpus_tokens = self.tokens(corpus.path, corpus.sha256, corpus.label)
            own = None if source is self.source else self.replayed(source)
            sizes.append(SizeInputs(size, label, self.statics(corpus_tokens, variants), own))
        return Inputs(**vars(replayed), sizes=sizes)

    def statics(self, tokens: TokenFile, variants: Sequence[Variant]) -> dict[str, StaticFile]:
        """The static cache of a corpus in llama.cpp's format and in each variant's own."""
        wanted = {LLAMA, *(variant.static_format for variant in variants)}
        built = build_static_cache(
            tokens.path, self.cache, progress=self.progress, formats=sorted(wanted & set(SUFFIXES))
        )
        counted = {name: built.stats[name] for name in COUNTED if name in built.stats}
        files = {
            name: StaticFile(path, built.sha256s[name], name, None, counted)
            for name, path in built.paths.items()
        }
        for variant in variants:
            if variant.static_format not in files:
                files[variant.static_format] = converted(files[LLAMA], variant, self.cache, self.note)
        return files


def converted(llama: StaticFile, variant: Variant, cache: Path, note: Note) -> StaticFile:
    """The variant's own format of a llama.cpp static file, made once, in a process of its own."""
    made = own_format(llama.path, llama.sha256, variant, cache, convert=convert_apart, note=note)
    return StaticFile(*made)
