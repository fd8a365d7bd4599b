"""`ladder cache import | export | merge | info | verify`: exchange with llama.cpp, and what is refused."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import Manifest, load_manifest, sha256_file, write_manifest
from draft_ladder.base.variants import Variant
from draft_ladder.cli.cache_verbs import app
from draft_ladder.data import spill
from draft_ladder.data.cache import Vocabulary, build_static_cache, check_vocabulary, vocabulary_of
from draft_ladder.data.cache_files import (
    export_cache,
    import_cache,
    inspect_cache,
    merge_caches,
    verify_cache,
)
from draft_ladder.data.own_format import convert_here, own_format, reader_of
from draft_ladder.data.tokenizers import load_tokenizer
from draft_ladder.data.tokens import tokenize_file, write_tokens
from typer.testing import CliRunner

try:
    spill.caches_module()
except InputError as error:
    pytest.skip(f"native modules are not built: {error}", allow_module_level=True)

A = Vocabulary("tokenizer A", "a" * 64, 1_000)
B = Vocabulary("tokenizer B", "b" * 64, 900)
SMOLLM_SIZE = 49_152

Records = list[tuple[tuple[int, int], list[tuple[int, int]]]]
SMALL: Records = [((3, 1), [(7, 2), (5, 1)]), ((1, 2), [(9, 4)]), ((1, 3), [(2, 1)])]


def packed(records: Records) -> bytes:
    fields = []
    for bigram, successors in records:
        fields += [*bigram, -1, -1, len(successors), *(field for pair in successors for field in pair)]
    return struct.pack(f"<{len(fields)}i", *fields)


def sorted_records(records: Records) -> Records:
    return sorted((bigram, sorted(successors)) for bigram, successors in records)


def written(path: Path, records: Records) -> Path:
    path.write_bytes(packed(records))
    return path


def described(path: Path, vocabulary: Vocabulary) -> Path:
    manifest = Manifest(
        kind="static",
        inputs={"tokenizer": vocabulary.sha256 or ""},
        parameters={"tokenizer": vocabulary.name, "vocab_size": vocabulary.size},
        sha256=sha256_file(path),
        bytes=path.stat().st_size,
    )
    write_manifest(path, manifest)
    return path


def golden_tokens(golden: Path, tmp_path: Path, case: str) -> Path:
    """The tokens without a manifest: llama.cpp's own token file."""
    path = tmp_path / f"{case}.tok"
    path.write_bytes((golden / f"{case}.train.tok").read_bytes())
    return path


@pytest.mark.parametrize("case", ["s", "m"])
@pytest.mark.parametrize("memory", [None, 4 * 10**9])
def test_ours_and_llama_cpps_hold_the_same(
    golden: Path, tmp_path: Path, case: str, memory: int | None
) -> None:
    tokens = golden_tokens(golden, tmp_path, case)
    ours = build_static_cache(tokens, tmp_path, formats=["llama"], memory_bytes=memory).paths["llama"]
    exported = tmp_path / "for-llama.bin"
    export_cache(ours, exported)
    theirs = golden / f"{case}.bin"
    info = verify_cache(exported, tokens=tokens, same_as=theirs)
    assert info.sorted
    original = inspect_cache(theirs)
    assert not original.sorted
    assert (info.content, info.bytes, info.total_count) == (
        original.content,
        original.bytes,
        original.total_count,
    )
    assert info.token_limit <= SMOLLM_SIZE
    spill.sort_file(theirs, tmp_path / "sorted.bin", 4 * 10**9)
    assert (tmp_path / "sorted.bin").read_bytes() == exported.read_bytes()


def test_import_keeps_llama_cpps_bytes_or_sorts_them(golden: Path, tmp_path: Path) -> None:
    vocabulary = Vocabulary("smollm", "c" * 64, SMOLLM_SIZE)
    kept = import_cache(golden / "s.bin", tmp_path, vocabulary, formats=["llama", "frozen"])
    assert kept["llama"].read_bytes() == (golden / "s.bin").read_bytes()
    assert vocabulary_of(kept["llama"]) == vocabulary_of(kept["frozen"]) == vocabulary
    frozen = verify_cache(kept["frozen"])
    assert (frozen.format, frozen.n_bigrams) == ("frozen", inspect_cache(kept["llama"]).n_bigrams)
    ordered = import_cache(golden / "s.bin", tmp_path, vocabulary, sort=True)
    assert ordered["llama"] != kept["llama"]
    assert inspect_cache(ordered["llama"]).sorted
    verify_cache(ordered["llama"], same_as=kept["llama"])
    assert load_manifest(kept["llama"], "static").inputs["imported"] == sha256_file(golden / "s.bin")


def test_merging_adds_counts_in_any_order(tmp_path: Path) -> None:
    first = written(tmp_path / "1.bin", SMALL)
    second = written(tmp_path / "2.bin", [((1, 2), [(9, 1), (8, 6)]), ((0, 0), [(0, 1)])])
    third = tmp_path / "empty.bin"
    third.write_bytes(b"")
    out = tmp_path / "out" / "merged.bin"
    facts = merge_caches([first, second, third], out)
    expected: Records = [
        ((0, 0), [(0, 1)]),
        ((1, 2), [(8, 6), (9, 5)]),
        ((1, 3), [(2, 1)]),
        ((3, 1), [(5, 1), (7, 2)]),
    ]
    assert out.read_bytes() == packed(expected)
    assert (facts["n_bigrams"], facts["n_pairs"]) == (4, 6)
    assert [path.name for path in out.parent.iterdir()] == ["merged.bin"]
    merge_caches([second, first], tmp_path / "other.bin")
    assert inspect_cache(tmp_path / "other.bin").content == inspect_cache(out).content


def test_merging_the_halves_gives_the_whole(golden: Path, tmp_path: Path) -> None:
    tokens = np.fromfile(golden / "m.train.tok", dtype="<i4")
    halves = []
    for name, part in (("a", tokens[:200_002]), ("b", tokens[200_000:])):
        write_tokens(tmp_path / f"{name}.tok", part.tolist())
        halves.append(
            build_static_cache(tmp_path / f"{name}.tok", tmp_path, formats=["llama"]).paths["llama"]
        )
    merge_caches(halves, tmp_path / "merged.bin")
    verify_cache(tmp_path / "merged.bin", same_as=golden / "m.bin")


def test_a_sum_beyond_int32_names_the_ngram(tmp_path: Path) -> None:
    most = 2**31 - 1
    first = written(tmp_path / "1.bin", [((1, 2), [(3, most), (4, 1)])])
    second = written(tmp_path / "2.bin", [((1, 2), [(3, 1)])])
    with pytest.raises(InputError, match=r"\(1, 2\): .* 3 2147483648 .*2147483647"):
        merge_caches([first, second], tmp_path / "out.bin")
    assert not (tmp_path / "out.bin").exists()
    second.write_bytes(packed([((1, 2), [(4, most - 1)])]))
    merge_caches([first, second], tmp_path / "out.bin")
    assert inspect_cache(tmp_path / "out.bin").largest_count == most


def test_caches_of_different_tokenizers_are_not_merged(tmp_path: Path) -> None:
    first = described(written(tmp_path / "1.bin", SMALL), A)
    second = described(written(tmp_path / "2.bin", SMALL), B)
    with pytest.raises(
        InputError,
        match=r"2\.bin: .*'tokenizer B' \(900 tokens\).*'tokenizer A' \(1000 tokens\)",
    ):
        merge_caches([first, second], tmp_path / "out.bin")
    third = written(tmp_path / "3.bin", SMALL)
    merge_caches([first, first], tmp_path / "same.bin")
    assert vocabulary_of(tmp_path / "same.bin") == A
    described(written(tmp_path / "unknown.bin", SMALL), B)  # what was there before
    merge_caches([first, third], tmp_path / "unknown.bin")
    assert vocabulary_of(tmp_path / "unknown.bin") is None


def test_a_mismatch_names_both_tokenizers_or_both_sizes(tmp_path: Path) -> None:
    path = described(written(tmp_path / "1.bin", SMALL), A)
    with pytest.raises(
        InputError, match=r"1\.bin: .*'tokenizer A' \(1000 tokens\).*'tokenizer B' \(900 tokens\)"
    ):
        export_cache(path, tmp_path / "out.bin", B)
    plain = written(tmp_path / "2.bin", [((1, 2), [(950, 1)])])
    with pytest.raises(InputError, match=r"951 tokens .*'tokenizer B' has 900"):
        import_cache(plain, tmp_path, B)
    sized = Vocabulary("sized", None, 1_000)
    with pytest.raises(InputError, match=r"1000 tokens .* 'x' has 999"):
        check_vocabulary(plain, sized, Vocabulary("x", None, 999), inspect_cache(plain).token_limit)
    export_cache(path, tmp_path / "out.bin", A)
    assert vocabulary_of(tmp_path / "out.bin") == A
    assert not (tmp_path / "static").exists()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (packed(SMALL)[:-1], r"byte \d+: "),
        (packed(SMALL) + packed(SMALL[:1]), r"byte \d+: .*\(3, 1\)"),
        (packed([SMALL[1], SMALL[1]]), r"byte 28: .*\(1, 2\)"),
        (packed([((1, 2), [(3, 0)])]), r"byte 24: .*\(1, 2\)"),
        (packed([((1, -1), [(3, 1)])]), r"byte \d+: "),
        (b"not a cache at all, just text...", r"byte \d+: "),
    ],
)
def test_damaged_caches_are_refused_by_every_verb(tmp_path: Path, raw: bytes, message: str) -> None:
    path = tmp_path / "bad.bin"
    path.write_bytes(raw)
    good = written(tmp_path / "good.bin", SMALL)
    out = tmp_path / "out.bin"
    for refuse in (
        lambda: inspect_cache(path),
        lambda: verify_cache(path),
        lambda: export_cache(path, out),
        lambda: import_cache(path, tmp_path / "cache", A),
        lambda: merge_caches([good, path], out),
    ):
        with pytest.raises(InputError, match=message) as caught:
            refuse()
        assert "bad.bin" in str(caught.value)
    assert not out.exists()


def test_verify_finds_what_does_not_belong(tmp_path: Path) -> None:
    tokens = tmp_path / "t.tok"
    write_tokens(tokens, [1, 2, 3, 1, 2, 3, 1, 2, 4])
    path = build_static_cache(tokens, tmp_path, formats=["llama"]).paths["llama"]
    verify_cache(path, tokens=tokens)
    write_tokens(tokens, [1, 2, 3, 1, 2, 3, 1, 2])
    with pytest.raises(InputError, match=r"\.bin: .*7.* t\.tok .*6"):
        verify_cache(path, tokens=tokens)
    with pytest.raises(InputError, match=r"\.bin: .*o\.bin"):
        verify_cache(path, same_as=written(tmp_path / "o.bin", SMALL))
    path.write_bytes(packed(SMALL))
    with pytest.raises(InputError, match=r"\.bin: .*manifest"):
        verify_cache(path)


@pytest.mark.parametrize("kind", ["frozen", "paired"])
def test_a_frozen_cache_is_checked_but_cannot_be_exported(tmp_path: Path, kind: str) -> None:
    tokens = tmp_path / "t.tok"
    write_tokens(tokens, range(100))
    frozen = build_static_cache(tokens, tmp_path, formats=[kind]).paths[kind]
    info = verify_cache(frozen, tokens=tokens)
    assert (info.format, info.n_bigrams, info.token_limit, info.content) == (kind, 98, 100, None)
    with pytest.raises(InputError, match=rf"frozen: .*{kind}.*\.bin"):
        export_cache(frozen, tmp_path / "out.bin")
    with pytest.raises(InputError, match=kind):
        verify_cache(frozen, same_as=frozen)
    with pytest.raises(InputError, match=r"^merge: 1 "):
        merge_caches([frozen], tmp_path / "out.bin")


def test_the_source_is_never_overwritten(tmp_path: Path) -> None:
    path = written(tmp_path / "1.bin", SMALL)
    with pytest.raises(InputError, match=r"1\.bin: "):
        export_cache(path, path)
    merge_caches([path, path], path)  # the result appears whole, after the inputs were read
    assert inspect_cache(path).total_count == 16


def test_a_build_does_not_overwrite_its_tokens_and_merge_no_folder(tmp_path: Path) -> None:
    tokens = tmp_path / "t.tok"
    tokens.write_bytes(np.arange(50, dtype="<i4").tobytes())
    before = tokens.read_bytes()
    call = ["build", str(tokens), "--cache-dir", str(tmp_path / "cache")]
    with pytest.raises(InputError, match=r"t\.tok: "):
        CliRunner().invoke(app, [*call, "--out", str(tokens)], catch_exceptions=False)
    assert tokens.read_bytes() == before
    path = written(tmp_path / "1.bin", SMALL)
    with pytest.raises(InputError, match=f"^{tmp_path}: "):
        merge_caches([path, path], tmp_path)


def test_a_damaged_file_of_the_cache_is_not_handed_out(tmp_path: Path) -> None:
    tokens = tmp_path / "t.tok"
    tokens.write_bytes(np.arange(500, dtype="<i4").tobytes())
    built = build_static_cache(tokens, tmp_path / "cache", formats=["llama"]).paths["llama"]
    raw = bytearray(built.read_bytes())
    raw[9] ^= 1
    built.write_bytes(raw)
    call = ["build", str(tokens), "--cache-dir", str(tmp_path / "cache"), "--out", str(tmp_path / "out.bin")]
    with pytest.raises(InputError, match=rf"{built.name}: .*manifest"):
        CliRunner().invoke(app, call, catch_exceptions=False)
    assert not (tmp_path / "out.bin").exists()
    built.write_bytes(b"")  # an empty file alone would be a cache without n-grams
    with pytest.raises(InputError, match=r"\.bin: .*manifest"):
        inspect_cache(built)


def test_verify_counts_the_tokens_again(tmp_path: Path) -> None:
    tokens, other = tmp_path / "t.tok", tmp_path / "o.tok"
    ids = np.random.default_rng(1).integers(0, 20, 400, dtype="<i4")
    tokens.write_bytes(ids.tobytes())
    other.write_bytes(ids[::-1].tobytes())
    built = build_static_cache(tokens, tmp_path / "cache", formats=["llama", "frozen"])
    summary = tmp_path / "t.summary"
    native.variant("summary_index").convert_static(str(built.paths["llama"]), str(summary))
    for path in (*built.paths.values(), summary):
        verify_cache(path, tokens=tokens)
        with pytest.raises(InputError, match=r"o\.tok"):
            verify_cache(path, tokens=other)
        with pytest.raises(InputError, match="is a directory"):
            verify_cache(path, tokens=tmp_path)


def test_a_file_of_another_converter_is_made_anew_and_told_from_other_tokens(tmp_path: Path) -> None:
    tokens = tmp_path / "t.tok"
    tokens.write_bytes(np.random.default_rng(1).integers(0, 20, 400, dtype="<i4").tobytes())
    llama = build_static_cache(tokens, tmp_path / "cache", formats=["llama"]).paths["llama"]
    reader = reader_of("summary")

    def convert_as_before(variant: Variant, source: Path, target: Path) -> int:
        """A converter that gave the file other bytes: here of a cache with one n-gram less."""
        shorter = tmp_path / "shorter.bin"
        data = source.read_bytes()
        n_pairs = struct.unpack_from("<i", data, 16)[0]
        shorter.write_bytes(data[20 + 8 * n_pairs :])
        return convert_here(reader, shorter, target)

    before = tmp_path / "before.so"
    before.write_bytes(b"an earlier build")
    earlier = reader.model_copy(update={"module": before})
    digest = sha256_file(llama)
    old = own_format(llama, digest, earlier, tmp_path / "cache", convert=convert_as_before)
    new = own_format(llama, digest, reader, tmp_path / "cache")
    assert old.path != new.path
    assert own_format(llama, digest, reader, tmp_path / "cache", convert=convert_as_before) == new
    verify_cache(new.path, tokens=tokens)
    with pytest.raises(InputError, match=rf"{old.path.name}: .*summary_index"):
        verify_cache(old.path, tokens=tokens)


def test_a_bound_is_judged_before_the_work_even_if_there_is_none(tmp_path: Path) -> None:
    tokens = tmp_path / "t.tok"
    tokens.write_bytes(np.arange(50, dtype="<i4").tobytes())
    call = ["build", str(tokens), "--cache-dir", str(tmp_path / "cache")]
    assert CliRunner().invoke(app, call, catch_exceptions=False).exit_code == 0
    with pytest.raises(InputError, match=r"^--memory: 10 "):
        CliRunner().invoke(app, [*call, "--memory", "10"], catch_exceptions=False)


def test_a_summary_file_is_not_passed_on_as_llama_cpps(tmp_path: Path) -> None:
    tokens = tmp_path / "t.tok"
    write_tokens(tokens, range(100))
    built = build_static_cache(tokens, tmp_path / "cache", formats=["llama"])
    summary, target = tmp_path / "t.summary", tmp_path / "out.bin"
    native.variant("summary_index").convert_static(str(built.paths["llama"]), str(summary))
    refusal = r"t\.summary: .*summary.*\.bin"
    with pytest.raises(InputError, match=refusal):
        export_cache(summary, target)
    with pytest.raises(InputError, match=refusal):
        import_cache(summary, tmp_path / "other", A)
    with pytest.raises(InputError, match=refusal):
        merge_caches([built.paths["llama"], summary], target)
    assert not target.exists()


def test_the_verb_makes_summary_files_that_know_their_tokenizer(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("the cat sat on the mat and the dog sat on the log\n" * 200)
    token_file = tokenize_file(text, load_tokenizer("tekken"), tmp_path)
    call = ["build", str(token_file.path), "--format", "summary", "--cache-dir", str(tmp_path / "cache")]
    result = CliRunner().invoke(
        app, [*call, "--out", str(tmp_path / "a.summary"), "--json"], catch_exceptions=False
    )
    assert json.loads(result.stdout)["format"] == "summary"
    info = verify_cache(tmp_path / "a.summary", tokens=token_file.path)
    assert info.format == "summary"
    assert info.vocabulary is not None
    assert info.vocabulary.sha256 == token_file.tokenizer_sha256


def test_a_misspelt_verb_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^bulid: .*'build'"):
        CliRunner().invoke(app, ["bulid", "t.tok"], catch_exceptions=False)


def test_the_verbs(tmp_path: Path, golden: Path) -> None:
    def call(*arguments: str) -> dict[str, Any]:
        result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)  # type: ignore[no-any-return]

    tokens = golden_tokens(golden, tmp_path, "s")
    cache = ["--cache-dir", str(tmp_path / "cache")]
    built = call("build", str(tokens), "--memory", "2GB", *cache)
    info = call("info", str(golden / "s.bin"))
    assert call("verify", built["path"], "--same-as", str(golden / "s.bin"))["content"] == info["content"]
    call("export", built["path"], str(tmp_path / "out.bin"))
    merged = call(
        "merge", str(tmp_path / "out.bin"), str(golden / "s.bin"), "--out", str(tmp_path / "two.bin")
    )
    assert merged["n_pairs"] == info["n_pairs"]
    assert call("info", str(tmp_path / "two.bin"))["total_count"] == 2 * info["total_count"]


def test_merging_stays_within_its_bound(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    paths = []
    for number in range(3):
        tokens = tmp_path / f"{number}.tok"
        tokens.write_bytes(generator.integers(0, 3_000, 3_000_000, dtype="<i4").tobytes())
        paths.append(build_static_cache(tokens, tmp_path, formats=["llama"]).paths["llama"])
    code = """
import sys
from pathlib import Path
from draft_ladder.data.cache_files import merge_caches
merge_caches([Path(path) for path in sys.argv[2:]], Path(sys.argv[1]), memory_bytes=150_000_000)
status = Path("/proc/self/status").read_text() if Path("/proc/self/status").exists() else ""
print(next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), -1))
"""
    arguments = [sys.executable, "-c", code, str(tmp_path / "out.bin"), *map(str, paths)]
    result = subprocess.run(arguments, capture_output=True, text=True, check=True)
    peak, total = int(result.stdout), sum(path.stat().st_size for path in paths)
    print(f"peak RSS {peak / 1e6:.1f} MB of 150 allowed, merging {total / 1e6:.1f} MB")
    assert total > 150e6
    assert peak <= 150e6


def test_a_summary_file_is_verified_to_the_last_byte(tmp_path: Path) -> None:
    source, target = tmp_path / "a.bin", tmp_path / "a.summary"
    successors = b"".join(struct.pack("<2i", token, 1 + token) for token in range(5))
    source.write_bytes(struct.pack("<5i", 7, 8, -1, -1, 5) + successors)
    native.variant("summary_index").convert_static(str(source), str(target))
    info = verify_cache(target)
    assert (info.format, info.n_bigrams, info.n_pairs, info.token_limit) == ("summary", 1, 5, 9)
    damaged = bytearray(target.read_bytes())
    damaged[-10] ^= 1
    target.write_bytes(damaged)
    with pytest.raises(InputError, match=r"a\.summary: "):
        verify_cache(target)


def test_a_cache_without_the_final_newline_is_named_and_can_be_allowed(tmp_path: Path) -> None:
    """llama.cpp's tools drop it from the text before they tokenise."""
    whole, shorter = tmp_path / "whole.tok", tmp_path / "shorter.tok"
    whole.write_bytes(struct.pack("<9i", 1, 2, 3, 1, 2, 3, 4, 5, 6))
    shorter.write_bytes(whole.read_bytes()[:-4])
    theirs = build_static_cache(shorter, tmp_path / "cache", formats=["llama"]).paths["llama"]
    with pytest.raises(InputError, match="--ignore-final-newline"):
        verify_cache(theirs, tokens=whole)
    verify_cache(theirs, tokens=whole, ignore_last=True)
    with pytest.raises(InputError) as caught:  # any other difference is none of a newline's
        verify_cache(theirs, tokens=shorter, ignore_last=True)
    assert "newline" not in str(caught.value)
    other = tmp_path / "other.tok"
    other.write_bytes(struct.pack("<9i", 1, 2, 3, 1, 2, 3, 4, 4, 6))
    with pytest.raises(InputError) as caught:
        verify_cache(theirs, tokens=other)
    assert "newline" not in str(caught.value)


def test_a_cache_that_was_there_tells_no_time_or_memory_of_its_making(tmp_path: Path) -> None:
    tokens = tmp_path / "my.tok"
    tokens.write_bytes(struct.pack("<9i", 1, 2, 3, 1, 2, 3, 4, 5, 6))
    cache = ["--cache-dir", str(tmp_path / "cache"), "--json"]
    code = "from draft_ladder.cli import main; main()"
    command = [sys.executable, "-c", code, "cache", "build", str(tokens), *cache]

    def built(*options: str) -> dict[str, Any]:
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    first, again, bounded = built("--memory", "500MB"), built(), built("--format", "frozen")
    assert (first["made"], again["made"], bounded["made"]) == (True, False, True)
    assert first["total_ns"] > 0
    assert first["memory_bytes"] == 500_000_000
    for later in (again, bounded):  # the frozen file is new, what it was made from is not
        assert later["n_bigrams"] == first["n_bigrams"]
        assert not [name for name in later if name.endswith("_ns") or name == "memory_bytes"]
