"""The vocabulary of a GGUF model file, and its rule, as llama.cpp reads them; the weights are never touched.

Only the key-value part at the front of the file is read, by a reader of our own. Not by the `gguf` package's
(the tests compare with it): a false length of an array of numbers keeps that one busy for ever, a cut string
passes unseen, and one object an array element takes it twenty times as long for a vocabulary of 49,000.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NoReturn, cast

from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import canonical_json, open_regular

MAGIC = b"GGUF"
READABLE_VERSIONS = (2, 3)  # version 1 had 32-bit lengths
LONGEST_KEY_BYTES = 65_535  # the format's own limit
RULE = 1  # raised when the same vocabulary would give other tokens
DAMAGED = "the file is cut or damaged: download or convert the model again"
OTHER_WAY = "name the model's own tokenizer.json instead"

Number = bool | int | float
Value = Number | str | list[Number] | list[str] | None

_NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
_STRING, _ARRAY = 8, 9
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED = 1, 2, 3, 4  # token types

_CONTRACTION_ANY_CASE = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_WORDS = _CONTRACTION_ANY_CASE + (
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_WORDS_AND_MARKS = _CONTRACTION_ANY_CASE + (
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class PreTokenizer:
    """How a text is split before merging: each pattern in turn splits what the ones before it left.

    `whole_words`: a word that is a token as it stands is not merged. `adds_bos`: unless the file says
    otherwise.
    """

    patterns: tuple[str, ...]
    whole_words: bool = False
    adds_bos: bool = False


def _named(rule: PreTokenizer, *names: str) -> dict[str, PreTokenizer]:
    return dict.fromkeys(names, rule)


# By the value of `tokenizer.ggml.pre`. Only rules whose tokens were compared with llama.cpp's are here.
PRE_TOKENIZERS: dict[str, PreTokenizer] = {
    **_named(PreTokenizer((_GPT2,)), "gpt-2", "phi-2", "mellum", "exaone4", "a.x-4.0", "gigachat"),
    **_named(PreTokenizer((_GPT2,)), "mpt", "olmo", "jais", "trillion", "granite-docling"),
    **_named(PreTokenizer((r"\p{N}", _GPT2)), "smollm", "starcoder", "refact", "command-r", "codeshell"),
    **_named(PreTokenizer((r"\p{N}", _GPT2)), "exaone", "minerva-7b", "mellum2"),
    **_named(PreTokenizer((_WORDS % "",)), "qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez"),
    **_named(PreTokenizer((_WORDS % "",)), "stablelm2", "hunyuan", "solar-open", "grok-2"),
    **_named(PreTokenizer((_WORDS_AND_MARKS,)), "qwen35"),
    **_named(PreTokenizer((_WORDS % "{1,3}",)), "dbrx", "smaug-bpe", "chatglm-bpe"),
    **_named(PreTokenizer((_WORDS % "{1,3}",), whole_words=True), "glm4", "glm5"),
    **_named(
        PreTokenizer((_WORDS % "{1,3}",), whole_words=True, adds_bos=True),
        *("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
    ),
    **_named(PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, r"[0-9][0-9][0-9]")), "falcon"),
    **_named(PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", r"[0-9][0-9][0-9]")), "default", ""),
}

# llama.cpp treats tokens of these names as control tokens whatever their type in the file; the last four
# as user-defined ones.
_CONTROL_BY_NAME = frozenset(
    re.split(
        " ",
        "<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> <|endoftext|> "
        "</s> <|eom_id|> <EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <turn|> "
        "<|tool_response> <｜end▁of▁sentence｜> [e~[ "
        "<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|> <|prefix|> "
        "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> <|suffix|> "
        "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> <|middle|> "
        "<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD] "
        "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame> <|file_sep|> "
        "<|channel|> <|message|> <|start|> <|constrain|>",
    )
)
_USER_DEFINED_BY_NAME = frozenset(("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"))


@dataclass(frozen=True)
class GgufVocabulary:
    """A byte-pair vocabulary: `tokens` by id and `merges` by rank, both in the GPT-2 spelling of bytes.

    `control` and `user_defined` are (text, id) of tokens found in a text before anything else; longest
    first. `prefix` and `suffix` are the tokens llama.cpp puts around a text (BOS, EOS) by the file's policy.
    """

    tokens: list[str]
    merges: list[tuple[str, str]]
    pre: str
    rule: PreTokenizer
    control: list[tuple[str, int]]
    user_defined: list[tuple[str, int]]
    prefix: tuple[int, ...]
    suffix: tuple[int, ...]

    def special(self, *, parse_control: bool = True) -> list[tuple[str, int]]:
        """(text, id) of the tokens a text is searched for, in that order."""
        return _longest_first(self.user_defined + self.control) if parse_control else self.user_defined

    @property
    def sha256(self) -> str:
        """Digest of everything that decides tokens: equal for files that differ in their weights alone."""
        digest = hashlib.sha256()
        for text in self.tokens:
            digest.update(text.encode() + b"\n")
        for left, right in self.merges:
            digest.update(f"{left} {right}\n".encode())
        identity = {
            "kind": "gguf",
            "rule": RULE,
            "vocabulary": digest.hexdigest(),
            "n_tokens": len(self.tokens),
            "pre": [list(self.rule.patterns), self.rule.whole_words],
            "special": [self.control, self.user_defined],
            "around": [self.prefix, self.suffix],
        }
        return hashlib.sha256(canonical_json(identity).encode()).hexdigest()


class _Reader:
    """Little-endian values from the front of a file; every error names the byte where a value begins."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self._file = path, file
        self._size_bytes = os.fstat(file.fileno()).st_size
        self.offset = 0

    def fail(self, problem: str, remedy: str = DAMAGED, offset: int | None = None) -> NoReturn:
        where = self.offset if offset is None else offset
        raise InputError(self.path, f"byte {where}: {problem}", remedy)

    def _claim(self, size: int) -> None:
        # The size comes from the file: compared with what is there before anything is allocated.
        if size > self._size_bytes - self.offset:
            self.fail(f"{size} bytes are named here, the file has {self._size_bytes - self.offset} more")
        self.offset += size

    def skip(self, size: int) -> None:
        self._claim(size)
        self._file.seek(size, os.SEEK_CUR)

    def bytes_(self, size: int) -> bytes:
        self._claim(size)
        data = self._file.read(size)
        if len(data) != size:
            self.fail("the file became shorter while it was read", "let nothing write to it")
        return data

    def numbers(self, kind: int, n: int = 1) -> tuple[Number, ...]:
        form = f"<{n}{_NUMBERS[kind]}"
        # Not struct.calcsize of the form: a false length is beyond what that can say.
        return struct.unpack(form, self.bytes_(n * struct.calcsize("<" + _NUMBERS[kind])))

    def count(self, kind: int = 10) -> int:
        return int(self.numbers(kind)[0])

    def text(self) -> str:
        start = self.offset
        try:
            return self.bytes_(self.count()).decode()
        except UnicodeDecodeError as error:
            self.fail(f"a string is not UTF-8 ({error.reason})", offset=start)

    def value(self, kind: int, wanted: bool) -> Value:
        """One value; None for what is not wanted, which is passed over."""
        if kind in _NUMBERS:
            return self.numbers(kind)[0]
        if kind == _STRING:
            return self._texts(1, wanted)[0]
        if kind != _ARRAY:
            self.fail(f"value type {kind} is unknown", "update the program, or " + OTHER_WAY)
        start = self.offset
        kind, length = self.count(4), self.count()
        if kind == _STRING:
            return self._texts(length, wanted)
        if kind not in _NUMBERS:
            self.fail(f"arrays of type {kind} are not read", "update the program, or " + OTHER_WAY, start)
        if wanted:
            return list(self.numbers(kind, length))
        self.skip(length * struct.calcsize("<" + _NUMBERS[kind]))
        return None

    def _texts(self, n: int, wanted: bool) -> list[str]:
        # Not a list of `n`: a false length must meet the file's end, not the memory's.
        if wanted:
            return [self.text() for _ in range(n)]
        for _ in range(n):
            self.skip(self.count())
        return [""]


def _fields(path: Path) -> dict[str, Value]:
    """The file's `tokenizer.ggml.*` keys, checked for being a GGUF at all."""
    with open_regular(path) as file:
        reader = _Reader(path, file)
        if file.read(4) != MAGIC:
            reader.fail("is not a GGUF file", "name a model in the GGUF format, or " + OTHER_WAY)
        reader.offset = 4
        version = reader.count(4)
        if version not in READABLE_VERSIONS:
            big = version and version & 0xFFFF == 0
            problem = "is big-endian" if big else f"has GGUF version {version}; 2 and 3 are read"
            reader.fail(problem, "convert the model again, or " + OTHER_WAY, 4)
        reader.count()  # tensors
        return dict(_key_values(reader, reader.count()))


def _key_values(reader: _Reader, n_pairs: int) -> Iterator[tuple[str, Value]]:
    for _ in range(n_pairs):
        start = reader.offset
        length = reader.count()
        if length > LONGEST_KEY_BYTES:
            reader.fail(f"a key of {length} bytes", offset=start)
        key = reader.bytes_(length).decode(errors="replace")
        kind = reader.count(4)
        wanted = key.startswith("tokenizer.ggml.") and key != "tokenizer.ggml.scores"
        value = reader.value(kind, wanted)
        if wanted:
            yield key.removeprefix("tokenizer.ggml."), value


def read_gguf_vocabulary(path: Path) -> GgufVocabulary:
    """The vocabulary in a GGUF file. Raises InputError naming the byte or the key: a file that is none, is
    cut, has no vocabulary, or asks for a rule that is not known here.
    """
    fields = _fields(path)
    model = fields.get("model")
    if model is None or "tokens" not in fields:
        key = "model" if model is None else "tokens"
        raise InputError(
            path,
            f"tokenizer.ggml.{key}: is missing",
            "name a file with a vocabulary (of a split model the first)",
        )
    if model != "gpt2":
        raise InputError(
            path,
            f"tokenizer.ggml.model: {model!r} is not supported (only 'gpt2', byte-pair merging)",
            OTHER_WAY,
        )
    pre = fields.get("pre", "")
    if not isinstance(pre, str) or pre not in PRE_TOKENIZERS:
        raise InputError(path, f"tokenizer.ggml.pre: pre-tokenizer {pre!r} is not supported", OTHER_WAY)
    tokens = _tokens(path, fields)
    control, user_defined = _special(path, fields, tokens)
    rule = PRE_TOKENIZERS[pre]
    return GgufVocabulary(
        tokens=tokens,
        merges=_merges(path, fields),
        pre=pre,
        rule=rule,
        control=control,
        user_defined=user_defined,
        prefix=_around(path, fields, "bos", rule.adds_bos, len(tokens)),
        suffix=_around(path, fields, "eos", False, len(tokens)),
    )


def _texts(path: Path, fields: dict[str, Value], key: str) -> list[str]:
    value = fields.get(key)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value[:1]):
        raise InputError(path, f"tokenizer.ggml.{key}: is not a list of strings", DAMAGED)
    return cast(list[str], value)


def _tokens(path: Path, fields: dict[str, Value]) -> list[str]:
    tokens = [text or f"[EMPTY_{number}]" for number, text in enumerate(_texts(path, fields, "tokens"))]
    if len(set(tokens)) != len(tokens):
        seen: set[str] = set()
        twice = next(text for text in tokens if text in seen or seen.add(text))  # type: ignore[func-returns-value]
        raise InputError(path, f"tokenizer.ggml.tokens: {twice!r} occurs twice", DAMAGED)
    return tokens


def _merges(path: Path, fields: dict[str, Value]) -> list[tuple[str, str]]:
    """(left, right) by rank; the first of two equal pairs counts."""
    pairs: dict[tuple[str, str], None] = {}
    for line in _texts(path, fields, "merges"):
        blank = line.find(" ", 1)  # a token may itself begin with a blank
        if blank < 0:
            raise InputError(path, f"tokenizer.ggml.merges: {line!r} is not a pair", DAMAGED)
        pairs.setdefault((line[:blank], line[blank + 1 :]))
    return list(pairs)


def _special(
    path: Path, fields: dict[str, Value], tokens: list[str]
) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    types = fields.get("token_type") or [_NORMAL] * len(tokens)
    if not isinstance(types, list) or len(types) < len(tokens):
        raise InputError(path, f"tokenizer.ggml.token_type: is not a list of {len(tokens)} types", DAMAGED)
    control, user_defined = [], []
    for number, (text, kind) in enumerate(zip(tokens, types, strict=False)):
        if text in _USER_DEFINED_BY_NAME or (kind == _USER_DEFINED and text not in _CONTROL_BY_NAME):
            user_defined.append((text, number))
        elif kind in (_UNKNOWN, _CONTROL) or text in _CONTROL_BY_NAME:
            control.append((text, number))
    return _longest_first(control), _longest_first(user_defined)


def _longest_first(special: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(special, key=lambda item: (-len(item[0].encode()), item[1]))


def _around(path: Path, fields: dict[str, Value], name: str, default: bool, n_tokens: int) -> tuple[int, ...]:
    """The token llama.cpp puts at that end of a text, if its policy is to put one."""
    if not fields.get(f"add_{name}_token", default):
        return ()
    number = fields.get(f"{name}_token_id")
    if not isinstance(number, int) or not 0 <= number < n_tokens:
        raise InputError(
            path,
            f"tokenizer.ggml.{name}_token_id: {number} is no token, though add_{name}_token asks for one",
            "correct the file's metadata, or " + OTHER_WAY,
        )
    return (number,)
