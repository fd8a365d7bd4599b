"""Tokens are those of the text in one piece, whatever the number of jobs and wherever blocks end."""

from __future__ import annotations

import json
import os
import random
import time
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import Progress, load_manifest, sha256_file
from draft_ladder.data.tokenizers import HuggingFaceTokenizer, Tokenizer, load_tokenizer, tekken_path
from draft_ladder.data.tokens import load_token_file, open_tokens, split_text, tokenize_file, write_tokens

SHARED = Path(os.environ.get("LADDER_SHARED") or Path(__file__).resolve().parents[3] / "shared")

ODD_TEXTS = {
    "wiki style": " = Title = \n \n A line , with @-@ marks . \n \n \n = = Next = = \n \n It 's 10 .\n" * 40,
    "crlf": "First line\r\nsecond  line\r\n\r\n\r\n  third\r\n/path/to\r\n" * 40,
    "blank lines": "a\n\n\n\nb\n \n\t\n c\n\n\n" * 60,
    "trailing spaces": "word   \nword \n   word\n\t\tword \t \n" * 50,
    "slashes": "x;\n/y\n //z\n\n/\n!\n\n//\n a/\nb" * 50,
    "nul": "a\0b\n\0\0\n \0c d e\0\n" * 60,
    "emoji": "smile 😀 word 👩‍👩‍👧 x\n😀\n 😀 and and\n" * 50,
    "marks": "e\u0301t\u0301e\n\u0301x \u0301y word word\n" * 60,
    "wide spaces": "a\n\u00a0b\n\u3000c\n\u2003d\n \u3000e f g\n\u1680h\n\x85i\n" * 50,
    "chinese": "「这是一个没有空格的句子。」\n「第二句，」\n 第三句。\n\n" * 40,
    "line separators": "a b\u2028c d\u2029\n\u2028e\x0b\x0cf g\n\x1c\x1dh\n" * 50,
    "code": "def f(x):\n    return x  # note\n\n\nclass A:\n\tpass\n" * 40,
    "capitals": "McDonald's HTTPServer iPhone ABCdef\nABC\n Abc\nDEF GHI jkl\n" * 40,
    "one line": "just words and words without any end of line " * 60,
}


@pytest.fixture(scope="session")
def tekken() -> Tokenizer:
    try:
        metadata.distribution("mistral-common")
    except metadata.PackageNotFoundError:
        pytest.skip("mistral-common, whose vocabulary file Tekken reads, is not installed")
    return load_tokenizer("tekken")


@pytest.fixture(scope="session")
def small_json(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer.json of the GPT-2 kind, trained here."""
    tokenizers = pytest.importorskip("tokenizers", reason="the tokenizers package is not installed")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<s>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(ODD_TEXTS.values(), trainer)
    tokenizer.enable_truncation(5)  # must not reach a token file
    path = tmp_path_factory.mktemp("small") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def shared_text(name: str) -> Path:
    path = SHARED / "corpus" / name
    if not path.is_file():
        pytest.skip(f"{name} is not there (set LADDER_SHARED to the folder that holds corpus/)")
    return path


def ignore(line: str) -> None:
    del line


def test_wikitext_test_split_has_the_published_number_of_tokens(tekken: Tokenizer, tmp_path: Path) -> None:
    text = shared_text("wiki.test.raw")
    result = tokenize_file(text, tekken, tmp_path)
    assert result.n_tokens == 304_410
    assert result.vocab_size == tekken.vocab_size == 131_072
    assert result.sha256 == sha256_file(result.path)
    assert result.text_sha256 == sha256_file(text)
    tokens = open_tokens(result.path)
    assert tokens.tolist() == tekken.encode(text.read_bytes().decode()).tolist()
    assert load_manifest(result.path, "tokens").parameters["equals_one_piece"] is True


@pytest.mark.parametrize("seed", range(4))
def test_segments_of_any_size_give_the_tokens_of_the_whole(tekken: Tokenizer, seed: int) -> None:
    data = shared_text("wiki.valid.raw").read_bytes()
    whole = tekken.encode(data.decode())
    random_source = random.Random(seed)
    size = random_source.choice([1, 100, 3_000, 40_000])
    start = random_source.randrange(len(data) // 2) if size < 1_000 else 0
    if start:
        start = data.index(b"\n = ", start) + 1
        data = data[start : start + 60_000]
        data = data[: data.rindex(b"\n") + 1]
        whole = tekken.encode(data.decode())
    segments = list(split_text([data], tekken, size, size + 60_000))
    assert len(segments) > 10
    assert not any(segment.forced for segment in segments)
    assert b"".join(segment.data for segment in segments) == data
    parts = np.concatenate([tekken.encode(segment.data.decode()) for segment in segments])
    assert parts.tolist() == whole.tolist()


@pytest.mark.parametrize("name", ODD_TEXTS)
def test_odd_texts_may_be_cut_at_every_place_that_counts_as_safe(tekken: Tokenizer, name: str) -> None:
    data = ODD_TEXTS[name].encode()
    whole = tekken.encode(data.decode()).tolist()
    cuts = 0
    for match in tekken.cut_pattern.finditer(data):
        left, right = data[: match.end()].decode(), data[match.end() :].decode()
        if match.end() < 400 or cuts % 10 == 0:
            assert tekken.encode(left).tolist() + tekken.encode(right).tolist() == whole, (name, match.end())
        cuts += 1
    assert cuts > 10


def test_random_texts_may_be_cut_at_every_safe_place(tekken: Tokenizer) -> None:
    """Random strings over the characters that the pattern and the cut rule tell apart."""
    characters = "abzAZ09 '’/.,;!\n\r\t\0\x0b\x85\u00a0\u2028\u3000\u0301éßǅʰ中「😀\ufffd@="
    alphabet = [*characters, " ", "\n", "\n ", "a b"]
    random_source = random.Random(7)
    cuts = 0
    for _ in range(3000):
        text = "".join(random_source.choices(alphabet, k=random_source.randrange(2, 40)))
        data = text.encode()
        whole = tekken.encode(text).tolist()
        for match in tekken.cut_pattern.finditer(data):
            left, right = data[: match.end()].decode(), data[match.end() :].decode()
            assert tekken.encode(left).tolist() + tekken.encode(right).tolist() == whole, repr(text)
            cuts += 1
    assert cuts > 1000


def test_broken_utf8_beside_a_cut_is_replaced_the_same(tekken: Tokenizer) -> None:
    random_source = random.Random(11)
    pieces = [
        b"\n",
        b"\n ",
        b" ",
        b"a b",
        b"\xe3\x80",
        b"\x80",
        b"\xf0\x9f",
        b"\xff",
        b"\xc2",
        b"\xed\xa0\x80",
        b"x",
        b"\xc3\xa9",
    ]
    for _ in range(2000):
        data = b"".join(random_source.choices(pieces, k=random_source.randrange(2, 30)))
        whole = tekken.encode(data.decode(errors="replace")).tolist()
        for match in tekken.cut_pattern.finditer(data):
            left, right = data[: match.end()], data[match.end() :]
            parts = [tekken.encode(part.decode(errors="replace")).tolist() for part in (left, right)]
            assert parts[0] + parts[1] == whole, data


def test_where_blocks_end_does_not_matter(tekken: Tokenizer) -> None:
    data = "".join(ODD_TEXTS.values()).encode()
    expected = list(split_text([data], tekken, 500, 505))
    assert any(segment.forced for segment in expected)
    for seed in range(20):
        random_source = random.Random(seed)
        blocks, start = [], 0
        while start < len(data):
            end = start + random_source.choice([1, 7, 300, 5_000])
            blocks.append(data[start:end])
            start = end
        assert list(split_text(blocks, tekken, 500, 505)) == expected


@pytest.mark.parametrize("jobs", [1, 2, 3, 4, 5])
def test_token_file_does_not_depend_on_the_number_of_jobs(
    tekken: Tokenizer, tmp_path: Path, jobs: int
) -> None:
    text = tmp_path / "text"
    text.write_bytes("".join(ODD_TEXTS.values()).encode() * 60)
    result = tokenize_file(text, tekken, tmp_path / str(jobs), jobs=jobs, report=ignore)
    direct = tekken.encode(text.read_bytes().decode()).tolist()
    assert text.stat().st_size > 1 << 20
    assert open_tokens(result.path).tolist() == direct
    assert result.facts["forced_cuts"] == 0


def test_a_prefix_is_copied_from_the_larger_corpus_and_equals_direct_tokenisation(
    tekken: Tokenizer, tmp_path: Path
) -> None:
    data = shared_text("wiki.valid.raw").read_bytes() * 3
    larger, smaller = tmp_path / "larger", tmp_path / "smaller"
    larger.write_bytes(data)
    smaller.write_bytes(data[: data.rindex(b"\n", 0, 2_000_000) + 1])
    first = tokenize_file(larger, tekken, tmp_path / "cache", jobs=1)
    calls = _count_encoded_characters(tekken)
    second = tokenize_file(smaller, calls, tmp_path / "cache", jobs=1)  # type: ignore[arg-type]
    assert calls.characters < 600_000  # only the last segment
    direct = tekken.encode(smaller.read_bytes().decode())
    assert np.array_equal(open_tokens(second.path), direct)
    # The other way round: the larger one takes what the smaller one has.
    third = tokenize_file(larger, tekken, tmp_path / "other", jobs=2)
    assert third.sha256 == first.sha256


def test_a_damaged_token_file_is_not_copied_from(tekken: Tokenizer, tmp_path: Path) -> None:
    data = ("".join(ODD_TEXTS.values()) * 60).encode()
    larger, smaller = tmp_path / "larger", tmp_path / "smaller"
    larger.write_bytes(data)
    smaller.write_bytes(data[: data.rindex(b"\n", 0, 1_200_000) + 1])
    first = tokenize_file(larger, tekken, tmp_path / "cache", report=ignore)
    raw = bytearray(first.path.read_bytes())
    raw[100] ^= 1
    first.path.write_bytes(raw)
    second = tokenize_file(smaller, tekken, tmp_path / "cache", report=ignore)
    assert np.array_equal(open_tokens(second.path), tekken.encode(smaller.read_bytes().decode()))


class _count_encoded_characters:  # noqa: N801
    """The tokenizer, counting what it is really asked for."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.characters = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._tokenizer, name)

    def encode(self, text: str) -> object:
        self.characters += len(text)
        return self._tokenizer.encode(text)


def test_odd_bytes_are_counted_and_reported_once_each(tekken: Tokenizer, tmp_path: Path) -> None:
    text = tmp_path / "latin1.txt"
    text.write_bytes(
        "caf\xe9\r\nna\xefve \0\r\n".encode("latin-1") + "real \ufffd and é".encode() + b" cut \xe2\x82"
    )
    lines: list[str] = []
    result = tokenize_file(text, tekken, tmp_path / "cache", report=lines.append)
    assert result.facts == {
        "n_tokens": result.n_tokens,
        "text_bytes": text.stat().st_size,
        "replaced_sequences": 3,
        "nul_bytes": 1,
        "crlf_lines": 2,
        "final_line_feed": False,
        "forced_cuts": 0,
    }
    assert len(lines) == 4
    assert "3 byte sequences are not UTF-8" in lines[0]
    assert (
        open_tokens(result.path).tolist()
        == tekken.encode(text.read_bytes().decode(errors="replace")).tolist()
    )


@pytest.mark.parametrize("character", [" ", "\0", "a", "\n", "\u3000", "中"])
def test_a_million_equal_characters_are_tokenised(tekken: Tokenizer, tmp_path: Path, character: str) -> None:
    """A pattern matcher may give up on such runs; a token file must come out, and say what was done."""
    text = tmp_path / "run"
    text.write_bytes(character.encode() * 1_000_001 + b"x")
    result = tokenize_file(text, tekken, tmp_path / "cache", report=ignore)
    assert result.facts["forced_cuts"] >= 1
    assert load_manifest(result.path).parameters["equals_one_piece"] is False
    assert result.facts["replaced_sequences"] == 0


def test_empty_missing_and_changing_texts_are_errors(tekken: Tokenizer, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"")
    with pytest.raises(InputError, match="text: "):
        tokenize_file(text, tekken, tmp_path / "cache")
    with pytest.raises(InputError, match="is a directory"):
        tokenize_file(tmp_path, tekken, tmp_path / "cache")
    text.write_bytes(b"words\n")
    with pytest.raises(InputError, match="text: "):
        tokenize_file(text, tekken, tmp_path / "cache", text_sha256="0" * 64)
    assert not list((tmp_path / "cache" / "tokens").iterdir())


def test_a_text_that_grows_while_it_is_tokenised_is_an_error(tekken: Tokenizer, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"some words and more\n" * 100_000)

    def grow(state: Progress) -> None:
        with text.open("ab") as file:
            file.write(b"later\n")

    with pytest.raises(InputError, match="text: "):
        tokenize_file(text, tekken, tmp_path / "cache", jobs=1, progress=grow)
    assert not list((tmp_path / "cache" / "tokens").iterdir())


def test_a_second_run_finds_the_file_and_progress_tells_the_pace(tekken: Tokenizer, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"some words\n" * 100_000)
    seen: list[Progress] = []
    first = tokenize_file(text, tekken, tmp_path, progress=seen.append)
    assert seen[-1].done_bytes == seen[-1].total_bytes == text.stat().st_size
    assert seen[-1].tokens == first.n_tokens
    assert seen[-1].tokens_per_s
    seen.clear()
    assert tokenize_file(text, tekken, tmp_path, progress=seen.append) == first
    assert not seen


def test_hugging_face_tokens_depend_on_the_text_alone(small_json: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(small_json))
    assert isinstance(tokenizer, HuggingFaceTokenizer)
    text = tmp_path / "text"
    text.write_bytes(("".join(ODD_TEXTS.values()) * 24).encode())
    files = [tokenize_file(text, tokenizer, tmp_path / str(n), jobs=n, report=ignore) for n in (1, 3)]
    assert len({file.sha256 for file in files}) == 1
    assert text.stat().st_size > 1 << 19
    # This one splits as GPT-2 does, for which the cuts are safe as well.
    assert np.array_equal(open_tokens(files[0].path), tokenizer.encode(text.read_bytes().decode()))
    assert load_manifest(files[0].path).parameters["equals_one_piece"] is False
    assert tokenizer.vocab_size == 400
    assert load_tokenizer(str(small_json.parent)).sha256 == tokenizer.sha256


def test_wrong_tokenizers_are_named(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="the tokenizers package is not installed")
    bad = tmp_path / "tokenizer.json"
    bad.write_text("{}")
    for name, message in [
        (str(bad), "is not a tokenizer.json"),
        ("nonsense", "is no tokenizer"),
        (str(tmp_path / "none.json"), "no such file"),
    ]:
        with pytest.raises(InputError, match=message):
            load_tokenizer(name)
    tekken_like = tmp_path / "tekken_x.json"
    tekken_like.write_text(json.dumps({"config": {"pattern": "x"}, "vocab": []}))
    with pytest.raises(InputError, match=r"tekken_x\.json: .*130072"):
        load_tokenizer(str(tekken_like))


def test_missing_mistral_common_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(InputError, match="pip install mistral-common"):
        tekken_path()


def test_open_tokens_names_the_offset_of_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "x.tok"
    write_tokens(path, [1, 2, 99])
    assert open_tokens(path, 100).tolist() == [1, 2, 99]
    with pytest.raises(InputError, match=r"byte 8: .*99"):
        open_tokens(path, 99)
    write_tokens(path, [1, -1])
    with pytest.raises(InputError, match=r"byte 4: .*-1"):
        open_tokens(path)
    path.write_bytes(bytes(10))
    with pytest.raises(InputError, match=r"byte 8: .*2 of 4"):
        open_tokens(path)
    path.write_bytes(b"")
    assert open_tokens(path).tolist() == []
    with pytest.raises(InputError, match="is a directory"):
        open_tokens(tmp_path)
    with pytest.raises(InputError, match="2147483647"):
        write_tokens(path, [2**31])


def test_a_token_file_shorter_than_its_manifest_is_refused(tekken: Tokenizer, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"some words\n" * 10)
    file = tokenize_file(text, tekken, tmp_path)
    file.path.write_bytes(file.path.read_bytes()[:-4])
    with pytest.raises(InputError, match=r"\.tok: .*manifest"):
        load_token_file(file.path)
    with pytest.raises(InputError, match=r"\.tok: .*manifest"):
        open_tokens(file.path)
    assert tokenize_file(text, tekken, tmp_path) == file  # made again


def test_the_id_beyond_the_vocabulary_is_found_in_a_large_file_quickly(tmp_path: Path) -> None:
    path = tmp_path / "x.tok"
    tokens = np.zeros(5_000_000, dtype="<i4")
    tokens[4_999_999] = 131_072
    path.write_bytes(tokens.tobytes())
    started = time.monotonic()
    with pytest.raises(InputError, match="byte 19999996"):
        open_tokens(path, 131_072)
    assert time.monotonic() - started < 5
