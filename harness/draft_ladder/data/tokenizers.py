"""Tokenizers: text to token ids, without a network.

`tekken` reads the vocabulary file that the `mistral-common` package ships (the package itself is never
imported); any Hugging Face `tokenizer.json` can be named by its path, and `gguf:PATH` takes the vocabulary
out of a model file, so that the tokens are those that llama.cpp gives that model.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import at_home, canonical_json, open_regular, package_version
from draft_ladder.data.gguf_vocabulary import GgufVocabulary, read_gguf_vocabulary

TEKKEN_FILE = "tekken_240911.json"
TEKKEN_RANKS = 130_072
TEKKEN_FIRST_ID = 1000

# Between a letter and a space before another letter. A pattern's match that holds the left letter ends with
# it, and the space belongs to the word on its right: true of Tekken's pattern, of GPT-2's and of splitting
# at blanks.
BETWEEN_WORDS = rb"[A-Za-z](?= [A-Za-z])"

# After a letter (ASCII, or Han from U+5000 to U+8FFF) and before a blank or a line feed: in every rule of
# PRE_TOKENIZERS no match holds white space after a letter, and none looks back.
AFTER_LETTER = rb"(?:[A-Za-z]|[\xe5-\xe8][\x80-\xbf]{2})(?=[ \n])"

# After a line feed and before a character (or one space and a character) that is not white space. In
# Tekken's pattern every match that can hold the line feed (`[\r\n/]*` after punctuation, `\s*[\r\n]+`) is
# greedy over line feeds, white space up to the last line feed, or slashes, so it ends exactly there, with
# or without the text that follows. White space outside ASCII begins with the bytes C2, E1, E2 or E3 80 80:
# these are left out.
AFTER_LINE_FEED = rb"\n(?= ?(?:[!-.0-~\x80-\xc1\xc3-\xe0\xe4-\xff]|\xe3[^\x80]|\xe3\x80[^\x80]))"


class Tokenizer(Protocol):
    """What `tokens` needs of a tokenizer.

    `sha256` names vocabulary and rule; ids lie in [0, vocab_size). `cut_pattern` matches bytes of a UTF-8
    text after which it may be cut; `cut_is_proven` says that cutting there cannot change the tokens. `prefix`
    and `suffix` are the tokens that stand around a whole text, such as BOS.
    """

    name: str
    sha256: str
    vocab_size: int
    cut_pattern: re.Pattern[bytes]
    cut_is_proven: bool
    versions: dict[str, str]
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]

    def encode(self, text: str) -> npt.NDArray[np.int32]:
        """Token ids of `text`, no special tokens added. May be called from several threads at once."""
        ...


class TekkenTokenizer:
    """Mistral's Tekken: the first 130,072 ranks of the vocabulary file, its own pattern, id = rank + 1000."""

    cut_pattern = re.compile(AFTER_LINE_FEED + b"|" + BETWEEN_WORDS, re.DOTALL)
    cut_is_proven = True
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()

    def __init__(self, path: Path) -> None:
        import tiktoken

        with open_regular(path) as file:
            raw = file.read()
        try:
            fields = json.loads(raw)
            pattern = fields["config"]["pattern"]
            ranks = _ranks_of(fields["vocab"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                path,
                f"is not a Tekken vocabulary ({type(error).__name__}: {error})",
                f"name the {TEKKEN_FILE} of mistral-common",
            ) from error
        self.name = "tekken"
        self.vocab_size = TEKKEN_RANKS + TEKKEN_FIRST_ID
        self.versions = {
            "tiktoken": package_version("tiktoken"),
            "mistral-common": package_version("mistral-common"),
        }
        identity = {
            "file": hashlib.sha256(raw).hexdigest(),
            "pattern": pattern,
            "ranks": TEKKEN_RANKS,
            "first_id": TEKKEN_FIRST_ID,
        }
        self.sha256 = hashlib.sha256(canonical_json(identity).encode()).hexdigest()
        self._encoding = tiktoken.Encoding(
            name=path.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens={}
        )

    def encode(self, text: str) -> npt.NDArray[np.int32]:
        """Ids of `text`; the text is never searched for special tokens. Raises ValueError on a run it
        cannot match.
        """
        try:
            ranks = np.array(self._encoding.encode_ordinary(text), dtype=np.int32)
        except BaseException as error:
            # A panic of the compiled pattern matcher (a very long run of white space) is no Exception.
            if type(error).__name__ == "PanicException":
                raise ValueError("the tokenizer's pattern matcher gave up") from error
            raise
        return ranks + np.int32(TEKKEN_FIRST_ID)


def _ranks_of(vocabulary: list[dict[str, Any]]) -> dict[bytes, int]:
    """The first TEKKEN_RANKS entries as bytes -> rank; the file lists them by rank."""
    ranks: dict[bytes, int] = {}
    for rank, entry in enumerate(vocabulary[:TEKKEN_RANKS]):
        if entry["rank"] != rank:
            raise ValueError(f"vocab[{rank}] has rank {entry['rank']}")
        ranks[base64.b64decode(entry["token_bytes"], validate=True)] = rank
    if len(ranks) != TEKKEN_RANKS:
        raise ValueError(f"{len(ranks)} different tokens where {TEKKEN_RANKS} are needed")
    return ranks


class HuggingFaceTokenizer:
    """Any `tokenizer.json`, through the `tokenizers` package.

    Nothing can be proven about an arbitrary tokenizer, so its token file is *defined* as the encodings of
    the text's segments one after the other (see tokens.py); segments depend on the text alone, never on the
    number of jobs.
    """

    cut_pattern = re.compile(BETWEEN_WORDS)
    cut_is_proven = False
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()

    def __init__(self, path: Path) -> None:
        tokenizers = _tokenizers_package(path)
        with open_regular(path) as file:
            raw = file.read()
        try:
            self._tokenizer = tokenizers.Tokenizer.from_str(raw.decode())
        except Exception as error:  # the package raises bare Exception
            raise InputError(
                path, f"is not a tokenizer.json ({error})", "name a Hugging Face tokenizer.json"
            ) from error
        # A tokenizer.json may ask for padding or for cutting long inputs: either would spoil a token file.
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.name = path.parent.name if path.name == "tokenizer.json" and path.parent.name else path.stem
        self.vocab_size = 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1)
        self.versions = {"tokenizers": package_version("tokenizers")}
        self.sha256 = hashlib.sha256(raw).hexdigest()

    def encode(self, text: str) -> npt.NDArray[np.int32]:
        """Ids of `text`, no special tokens added. Raises ValueError for what it has no token for."""
        # A batch of one: only batches are encoded without holding the GIL.
        try:
            encoded = self._tokenizer.encode_batch([text], add_special_tokens=False)[0]
        except Exception as error:  # the package raises bare Exception, for a missing unknown token say
            raise ValueError(f"the tokenizer gave up ({error})") from error
        return np.array(encoded.ids, dtype=np.int32)


class GgufTokenizer:
    """The vocabulary of a GGUF model file, tokenised as llama.cpp's lookup tools do.

    The whole text is searched for special tokens, longest first; what lies between is split and merged.
    BOS and EOS are `prefix` and `suffix`, by the file's own policy. With `parse_special` False control
    tokens in the text are plain text, as for llama.cpp. Raises InputError for a vocabulary or rule that is
    not known.
    """

    cut_pattern = re.compile(AFTER_LETTER)

    def __init__(self, path: Path, *, parse_special: bool = True) -> None:
        vocabulary = read_gguf_vocabulary(path)
        self.name = path.stem
        self.vocab_size = len(vocabulary.tokens)
        self.versions = {"tokenizers": package_version("tokenizers")}
        self.sha256 = vocabulary.sha256
        self.prefix, self.suffix = vocabulary.prefix, vocabulary.suffix
        self._special = vocabulary.special(parse_control=parse_special)
        self.cut_is_proven = not any(self.cut_pattern.search(text.encode()) for text, _ in self._special)
        self._tokenizer = _byte_pair_tokenizer(path, vocabulary)

    def encode(self, text: str) -> npt.NDArray[np.int32]:
        """Ids of `text`, special tokens in it included, none added."""
        parts: list[str | int] = [text]
        for special, number in self._special:
            if special in text:
                parts = _split_at(parts, special, number)
        texts = [part for part in parts if isinstance(part, str)]
        # Batches are encoded without holding the GIL.
        encoded = iter(self._tokenizer.encode_batch_fast(texts, add_special_tokens=False))
        ids = [next(encoded).ids if isinstance(part, str) else [part] for part in parts]
        joined = np.concatenate([np.empty(0, np.int32), *(np.array(part, dtype=np.int32) for part in ids)])
        # Without what stands for a byte that is no token.
        kept: npt.NDArray[np.int32] = joined[joined < self.vocab_size]
        return kept

    def encode_text(self, text: str) -> npt.NDArray[np.int32]:
        """Ids of a whole text, BOS and EOS included where the file asks for them."""
        return np.concatenate(
            [np.array(part, dtype=np.int32) for part in (self.prefix, self.encode(text), self.suffix)]
        )


def _split_at(parts: list[str | int], special: str, number: int) -> list[str | int]:
    """`parts` with every `special` inside a text replaced by `number`; no empty texts."""
    result: list[str | int] = []
    for part in parts:
        if isinstance(part, int):
            result.append(part)
            continue
        first, *others = part.split(special)
        result += [first] if first else []
        for other in others:
            result += [number, other] if other else [number]
    return result


def _byte_pair_tokenizer(path: Path, vocabulary: GgufVocabulary) -> Any:
    package = _tokenizers_package(path)
    ids = {text: number for number, text in enumerate(vocabulary.tokens)}
    # A byte that is no token vanishes, but only after merging: its neighbours must not become one.
    vanishing = "a byte that is no token"
    ids[vanishing] = len(ids)
    try:
        model = package.models.BPE(
            vocab=ids,
            merges=vocabulary.merges,
            ignore_merges=vocabulary.rule.whole_words,
            unk_token=vanishing,
        )
    except Exception as error:  # the package raises bare Exception
        raise InputError(
            path,
            f"tokenizer.ggml.merges: do not fit the vocabulary ({error})",
            "name the model's tokenizer.json",
        ) from error
    split = package.pre_tokenizers
    patterns = [split.Split(package.Regex(text), "isolated") for text in vocabulary.rule.patterns]
    tokenizer = package.Tokenizer(model)
    tokenizer.pre_tokenizer = split.Sequence(
        [*patterns, split.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return tokenizer


def _tokenizers_package(path: Path) -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise InputError(
            path,
            "needs the `tokenizers` package, which is not installed",
            "pip install 'draft-ladder[huggingface]'",
        ) from error
    return tokenizers


def tekken_path() -> Path:
    """The vocabulary file inside the installed mistral-common. Raises InputError saying what to install."""
    remedy = "pip install mistral-common (or --no-deps: only its data file is read), or name a tokenizer.json"
    try:
        files = metadata.distribution("mistral-common").files or []
    except metadata.PackageNotFoundError as error:
        raise InputError("tokenizer tekken", "the package mistral-common is not installed", remedy) from error
    for file in files:
        if file.name == TEKKEN_FILE:
            path = Path(str(file.locate()))
            if path.is_file():
                return path
    raise InputError("tokenizer tekken", f"the installed mistral-common has no {TEKKEN_FILE}", remedy)


def load_tokenizer(name: str = "tekken") -> Tokenizer:
    """`tekken`, `gguf:PATH`, or the path of a tokenizer.json, of a tekken_*.json or of a .gguf. Raises
    InputError.
    """
    if name == "tekken":
        return TekkenTokenizer(tekken_path())
    if name in ("", "gguf:"):
        raise InputError(
            f"tokenizer {name!r}", "names no file", "say 'tekken', gguf:PATH or a tokenizer.json"
        )
    if name.startswith("gguf:") or name.endswith(".gguf"):
        return GgufTokenizer(at_home(Path(name.removeprefix("gguf:"))))
    path = at_home(Path(name))
    if path.is_dir() and (path / "tokenizer.json").is_file():
        path = path / "tokenizer.json"
    if path.name.startswith("tekken"):
        return TekkenTokenizer(path)
    if path.suffix != ".json":
        raise InputError(name, "is no tokenizer", "say 'tekken', or name a tokenizer.json or a .gguf")
    return HuggingFaceTokenizer(path)
