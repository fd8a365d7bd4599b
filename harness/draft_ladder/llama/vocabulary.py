"""A model's vocabulary: who it is, and its tokenizer, our own or llama.cpp's."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, NamedTuple

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import canonical_json, package_version
from draft_ladder.data.gguf_vocabulary import read_gguf_vocabulary
from draft_ladder.data.tokenizers import Tokenizer, load_tokenizer
from draft_ladder.llama.library import Library, TokenArray, encode, is_available, load_model, meta_value


class Vocabulary(NamedTuple):
    """What is known about a model's tokenizer; None where nothing is."""

    size: int | None = None
    name: str | None = None
    sha256: str | None = None


def read_vocabulary(path: Path) -> Vocabulary:
    """The identity of a GGUF file's tokenizer, as `model_tokenizer` has it. InputError for no GGUF file."""
    try:
        vocabulary = read_gguf_vocabulary(path)
    except InputError:
        if not is_available():
            raise
        tokenizer = VocabularyTokenizer(path)
        tokenizer.close()
        return Vocabulary(tokenizer.vocab_size, tokenizer.name, tokenizer.sha256)
    return Vocabulary(len(vocabulary.tokens), path.stem, vocabulary.sha256)


def model_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a GGUF file: our own where we know its rule, else llama.cpp's. Raises InputError."""
    try:
        read_gguf_vocabulary(path)
    except InputError:
        return VocabularyTokenizer(path)
    return load_tokenizer(f"gguf:{path}")


class VocabularyTokenizer:
    """The tokenizer of a GGUF file by llama.cpp itself, without the model's weights: for rules of which we
    have no implementation of our own.

    As with any tokenizer whose pattern is not known here, a token file is defined as the encodings of the
    text's segments one after the other.
    """

    cut_pattern = re.compile(rb"[A-Za-z](?= [A-Za-z])")
    cut_is_proven = False
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()

    def __init__(self, path: Path) -> None:
        library = Library.get()
        self._model = load_model(path, vocab_only=True)
        self._vocabulary = library.llama_model_get_vocab(self._model)
        self.name = path.stem
        self.vocab_size = int(library.llama_vocab_n_tokens(self._vocabulary))
        self.sha256 = _vocabulary_digest(self._model, self._vocabulary, self.vocab_size)
        self.versions = {"llama-cpp-python": package_version("llama-cpp-python")}

    def encode(self, text: str) -> TokenArray:
        """Ids of `text`, nothing added and no special token looked for. Safe in several threads at once."""
        return encode(self._vocabulary, text, add_special=False, parse_special=False)

    def encode_text(self, text: str) -> TokenArray:
        """Ids of a whole text, with what the model puts around it."""
        return encode(self._vocabulary, text, add_special=True, parse_special=False)

    def close(self) -> None:
        """Give the vocabulary back."""
        if self._model:
            Library.get().llama_model_free(self._model)
            self._model = None


def _vocabulary_digest(model: Any, vocabulary: Any, size: int) -> str:
    """SHA-256 over everything that decides about tokens: kind, pre-tokenizer and every token's text."""
    library = Library.get()
    digest = hashlib.sha256()
    for token in range(size):
        text = library.llama_vocab_get_text(vocabulary, token) or b""
        digest.update(len(text).to_bytes(4, "little") + text)
    identity = {
        "kind": meta_value(model, "tokenizer.ggml.model"),
        "pre": meta_value(model, "tokenizer.ggml.pre"),
        "tokens": digest.hexdigest(),
    }
    return hashlib.sha256(canonical_json(identity).encode()).hexdigest()
