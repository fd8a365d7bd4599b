"""LadderDraft: the drafter handed to users, over every variant that is built."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import draft_ladder
import numpy as np
import pytest
from draft_ladder.base import native
from draft_ladder.base.errors import InputError
from draft_ladder.base.manifests import Manifest, sha256_file, write_manifest
from draft_ladder.base.variants import Variant, discover, find
from draft_ladder.llama import draft_model
from draft_ladder.llama.draft_model import EAGER, LadderDraft, common_prefix
from draft_ladder.llama.generation import draft_room
from draft_ladder.llama.static_cache import check_tokenizer
from draft_ladder.llama.vocabulary import Vocabulary
from refusals import refused
from specification import count_static, write_static

VOCABULARY = 50


def built_variants() -> list[str]:
    try:
        # Of llama.cpp's rule: what a drafter that calibrates itself has learned is not taken back.
        native_ones = [one for one in discover() if one.engine == "native" and one.group != "peers"]
        native_ones = [one for one in native_ones if one.rule == "llama"]
        return [one.name for one in native_ones if "forget" in one.load().info()["capabilities"]]
    except InputError:
        return []


pytestmark = pytest.mark.skipif(
    not built_variants(), reason="no variant is built: install the package or set LADDER_NATIVE"
)
every_variant = pytest.mark.parametrize("name", built_variants())


def text(seed: int, length: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Tokens that repeat themselves: phrases of a few words in random order."""
    source = random.Random(seed)
    phrases = [[source.randrange(VOCABULARY) for _ in range(source.randint(3, 7))] for _ in range(8)]
    tokens: list[int] = []
    while len(tokens) < length:
        tokens += source.choice(phrases)
    return np.array(tokens[:length], dtype=np.int32)


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("static") / "small.bin"
    path.write_bytes(write_static(count_static(text(1, 5000).tolist())))
    return path


def native_drafter(name: str, static: Path | None) -> Any:
    variant: Variant = find(name)
    drafter = native.load_module(variant.module, f"draft_ladder.variants.{name}").Drafter()
    if static is not None:
        drafter.load(str(static))
    return drafter


def fresh_draft(name: str, static: Path | None, ids: Any, n_draft: int, before: Any = ()) -> list[int]:
    drafter = native_drafter(name, static)
    for chunk in before:
        for token in chunk:
            drafter.append(int(token))
        drafter.end_chunk()
    for token in ids:
        drafter.append(int(token))
    return list(drafter.draft(n_draft))


def mapped_kib(path: Path) -> dict[str, int]:
    """Size and Rss of the file's mapping in this process."""
    _, _, rest = Path("/proc/self/smaps").read_text().partition(f" {path}\n")
    fields = [line.split() for line in rest.splitlines()[:8]]
    return {field[0].rstrip(":"): int(field[1]) for field in fields if field[0] in ("Size:", "Rss:")}


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no /proc here to read mappings from")
def test_users_do_not_wait_for_pages_of_a_mapped_cache(tmp_path: Path) -> None:
    tokens = np.random.default_rng(1).integers(0, 3_000, 120_000).tolist()
    llama, mapped = tmp_path / "a.bin", tmp_path / "a.summary"
    llama.write_bytes(write_static(count_static(tokens)))
    native.variant("summary_index").convert_static(str(llama), str(mapped))
    plain = native_drafter("summary_index", mapped)
    lazy = mapped_kib(mapped)
    assert lazy["Rss"] < lazy["Size"] // 2
    del plain
    drafter = LadderDraft(mapped, n_draft=3)
    assert mapped_kib(mapped)["Rss"] == lazy["Size"] > 500
    assert len(drafter(np.array(tokens[:50], dtype=np.int32))) <= 3


@every_variant
def test_a_growing_sequence_drafts_as_the_variant_does(name: str, static: Path) -> None:
    draft = LadderDraft(static, variant=name, n_draft=4)
    plain = native_drafter(name, static)
    ids = text(2, 400)
    for token in ids[:100]:
        plain.append(int(token))
    length = 100
    for step in (0, 1, 1, 2, 5, 1, 60, 1, 1):
        for token in ids[length : length + step]:
            plain.append(int(token))
        length += step
        assert draft(ids[:length]).tolist() == plain.draft(4)


@every_variant
def test_a_short_prompt_after_a_long_one_drafts_as_a_fresh_drafter(name: str, static: Path) -> None:
    draft = LadderDraft(static, variant=name, n_draft=5, keep_dynamic=False)
    long_prompt, short_prompt = text(3, 900), text(4, 60)
    draft(long_prompt)
    for length in range(2, 60):
        assert draft(short_prompt[:length]).tolist() == fresh_draft(name, static, short_prompt[:length], 5)
    assert draft.counters.prompts == 2


@every_variant
def test_the_dynamic_cache_goes_on_across_prompts(name: str, static: Path) -> None:
    draft = LadderDraft(static, variant=name, n_draft=5)
    first, second = text(3, 500), text(5, 200)
    draft(first)
    expected = fresh_draft(name, static, second, 5, before=[first])
    assert draft(second).tolist() == expected


@every_variant
def test_text_that_was_taken_back_leaves_nothing_behind(name: str, static: Path) -> None:
    draft = LadderDraft(static, variant=name, n_draft=5)
    ids = text(6, 300)
    for kept in (299, 250, 180, 160):
        draft(ids[:300])
        branch = np.concatenate([ids[:kept], text(7 + kept, 30)])
        assert draft(branch).tolist() == fresh_draft(name, static, branch, 5)
        assert draft(ids[:kept]).tolist() == fresh_draft(name, static, ids[:kept], 5)
    assert draft.history_tokens == 0
    assert draft.counters.rollbacks >= 8


@every_variant
def test_a_saved_dynamic_cache_gives_the_same_drafts(name: str, static: Path, tmp_path: Path) -> None:
    draft = LadderDraft(static, variant=name, n_draft=6, vocab_size=VOCABULARY)
    chunks = [text(8, 300), text(9, 200), text(10, 250)]
    for chunk in chunks:
        draft(chunk)
    draft.save(tmp_path / "history")
    other = LadderDraft(static, variant=name, n_draft=6, vocab_size=VOCABULARY)
    other.load(tmp_path / "history")
    assert other.history_tokens == 750
    prompt = text(11, 90)
    assert other(prompt).tolist() == fresh_draft(name, static, prompt, 6, before=chunks)
    assert other(prompt).tolist() == draft(prompt).tolist()


@every_variant
def test_forgetting_leaves_only_the_static_cache(name: str, static: Path) -> None:
    draft = LadderDraft(static, variant=name, n_draft=3)
    draft(text(12, 400))
    draft.end_prompt()
    assert draft.history_tokens == 400
    draft.forget()
    prompt = text(13, 50)
    assert draft(prompt).tolist() == fresh_draft(name, static, prompt, 3)


def test_drafts_are_contiguous_int32_and_take_any_integers(static: Path) -> None:
    draft = LadderDraft(static, n_draft=3)
    ids = text(14, 200)
    for given in (ids, ids.astype(np.int64), np.repeat(ids, 2)[::2], np.asfortranarray(ids)):
        drafted = draft(given)
        assert drafted.dtype == np.int32
        assert drafted.flags.c_contiguous
        assert drafted.ndim == 1
        assert -1 not in drafted
    assert draft.counters.rollbacks == 0
    with refused("input_ids", 2):
        draft(ids.reshape(2, 100))


def test_empty_and_one_token_prompts_draft_nothing(static: Path) -> None:
    draft = LadderDraft(static, n_draft=3)
    assert draft(np.array([], dtype=np.int32)).tolist() == []
    assert draft(np.array([7], dtype=np.int32)).tolist() == []
    assert draft.counters.drafted == 0


def test_drafts_are_cut_to_what_is_left() -> None:
    ids = np.array([1, 2, 3] * 60, dtype=np.int32)
    assert len(LadderDraft(n_draft=256, n_ctx=256)(ids)) == 256 - 180
    assert len(LadderDraft(n_draft=256, n_ctx=181)(ids)) == 1
    assert len(LadderDraft(n_draft=256, n_ctx=180)(ids)) == 0
    assert len(LadderDraft(n_draft=256, n_ctx=100)(ids)) == 0
    for left in (0, 1, 2):
        assert LadderDraft(n_draft=3)(ids, n_left=left).tolist() == [1, 2, 3][:left]
    assert len(LadderDraft(n_draft=0)(ids)) == 0


def test_counters_agree_with_a_hand_count() -> None:
    draft = LadderDraft(n_draft=2)
    ids = [1, 2, 3, 1, 2, 3, 1, 2]
    assert draft(np.array(ids, dtype=np.int32)).tolist() == [3, 1]
    assert draft(np.array([*ids, 3, 1, 2], dtype=np.int32)).tolist() == [3, 1]  # both right
    draft(np.array([*ids, 3, 1, 2, 3, 9], dtype=np.int32))  # the first right
    draft(np.array([*ids, 3, 1, 2, 3, 9, 9], dtype=np.int32))
    counters = draft.counters
    assert (counters.calls, counters.accepted) == (4, 3)
    assert counters.prompts == 1


def test_rooms() -> None:
    assert draft_room(3, 10, None, None) == 3
    assert draft_room(256, 180, 256, None) == 76
    assert draft_room(3, 10, 2048, 2) == 2
    assert draft_room(3, 11, 10, None) == 0
    assert draft_room(3, 1, None, -5) == 0


def test_common_prefixes() -> None:
    known = np.array([1, 2, 3, 4], dtype=np.int32)
    assert common_prefix(known, known) == 4
    assert common_prefix(known, np.array([1, 2, 9, 4, 5], dtype=np.int32)) == 2
    assert common_prefix(known, np.array([9], dtype=np.int32)) == 0
    assert common_prefix(known[:0], known) == 0


def test_the_history_is_bounded(static: Path) -> None:
    draft = LadderDraft(static, n_draft=3, max_history_tokens=1000)
    chunks = [text(100 + i, 150) for i in range(12)]
    for chunk in chunks:
        draft(chunk)
        assert draft.history_tokens <= 1000
    draft.end_prompt()
    kept = draft.history_tokens // 150
    prompt = text(200, 40)
    assert draft(prompt).tolist() == fresh_draft(
        "summary_index", static, prompt, 3, before=chunks[len(chunks) - kept :]
    )


@pytest.mark.parametrize(("length", "kept"), [(600, 600), (1500, 1000)])
def test_the_newest_prompt_stays_even_if_it_is_most_of_the_bound(
    static: Path, length: int, kept: int
) -> None:
    draft = LadderDraft(static, n_draft=3, max_history_tokens=1000)
    prompts = [text(100 + i, length) for i in range(2)]
    for prompt in prompts:
        draft(prompt)
    draft.end_prompt()
    assert draft.history_tokens == kept
    after = text(200, 40)
    expected = fresh_draft("summary_index", static, after, 3, before=[prompts[1][-kept:]])
    assert draft(after).tolist() == expected


@every_variant
def test_a_thousand_short_generations_do_not_grow(name: str, static: Path) -> None:
    draft = LadderDraft(static, variant=name, n_draft=3, keep_dynamic=False)
    sizes = []
    for i in range(1000):
        ids = text(i, 40)
        for length in range(30, 40):
            draft(ids[:length])
        sizes.append(draft.memory_bytes())
    assert max(sizes[500:]) <= max(sizes[:500])


@every_variant
def test_a_cache_of_a_larger_vocabulary_is_refused_at_load(name: str, tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    path.write_bytes(write_static(count_static([1, 2, VOCABULARY, 1, 2, VOCABULARY])))
    with refused(path, VOCABULARY):
        LadderDraft(path, variant=name, vocab_size=VOCABULARY)
    LadderDraft(path, variant=name, vocab_size=VOCABULARY + 1)


def described(path: Path, **parameters: Any) -> None:
    manifest = Manifest(
        kind="static",
        inputs={"tokenizer": "aa"},
        parameters=parameters,
        sha256=sha256_file(path),
        bytes=path.stat().st_size,
    )
    write_manifest(path, manifest)


def test_another_tokenizer_is_refused_naming_both(static: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(static.read_bytes())
    described(path, tokenizer="tekken", vocab_size=VOCABULARY)
    check_tokenizer(path, Vocabulary(VOCABULARY, "Mine", "aa"))
    with refused(path, "tekken", VOCABULARY, "Mine", 60):
        check_tokenizer(path, Vocabulary(60, "Mine", "bb"))
    described(path, tokenizer="tekken", vocab_size=131_072)
    with refused(path, 131_072, VOCABULARY):
        LadderDraft(path, vocab_size=VOCABULARY)


@pytest.mark.parametrize("damage", ["cut", "flip", "text", "empty", "newer", "larger"])
def test_a_broken_history_is_one_clear_line(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "history"
    draft = LadderDraft(vocab_size=VOCABULARY)
    draft(text(1, 100))
    draft.save(path)
    raw = path.read_bytes()
    header = json.loads(raw.partition(b"\n")[0])
    body = raw.partition(b"\n")[2]
    if damage == "newer":
        header["schema"] = 99
    if damage == "larger":
        header["vocab_size"] = VOCABULARY + 1
    path.write_bytes(
        {
            "cut": raw[:-3],
            "flip": raw[:-1] + bytes([raw[-1] ^ 1]),
            "text": b"hello",
            "empty": b"",
        }.get(damage, json.dumps(header).encode() + b"\n" + body)
    )
    with refused(path):
        draft.load(path)


def test_a_loaded_history_is_bounded_too(tmp_path: Path) -> None:
    draft = LadderDraft()
    draft(text(1, 100))
    draft.save(tmp_path / "h")
    small = LadderDraft(max_history_tokens=10)
    small.load(tmp_path / "h")
    assert small.history_tokens <= 10


def test_a_model_that_keeps_one_row_of_logits_is_refused() -> None:
    class OneRow:
        _logits_all = False

    with refused("model", "logits_all=True"):
        LadderDraft(model=OneRow())


def test_a_vocabulary_size_that_contradicts_the_model_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "mine.gguf"
    monkeypatch.setattr(draft_model, "read_vocabulary", lambda path: Vocabulary(60, path.stem, "aa"))
    for size in (None, 60):
        assert LadderDraft(model=model, vocab_size=size).vocabulary.size == 60
    with refused("vocab_size", 61, 60, "mine"):
        LadderDraft(model=model, vocab_size=61)


def test_the_package_names_what_users_import_and_nothing_else() -> None:
    assert (draft_ladder.LadderDraft, draft_ladder.EAGER) == (LadderDraft, EAGER)
    assert draft_ladder.InputError is InputError
    assert sorted(draft_ladder.__all__) == ["EAGER", "InputError", "LadderDraft"]
    with pytest.raises(AttributeError):
        _ = draft_ladder.nothing
    loaded = "import draft_ladder, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if name.startswith("draft_ladder")] == ["draft_ladder"]
    assert not {"numpy", "pydantic"} & set(done.stdout.split())


def test_thresholds_replace_the_rules_own() -> None:
    ids = np.array([1, 2, 3, 4, 5, 1, 2, 3, 4], dtype=np.int32)
    assert LadderDraft(n_draft=2)(ids).tolist() == [5, 1]
    usual = LadderDraft(n_draft=2, thresholds={})
    assert usual(ids).tolist() == [5, 1]
    strict = LadderDraft(
        n_draft=2, thresholds={"context": {n: (3, 90) for n in (1, 2, 3, 4)}, "static": {2: (5, 60)}}
    )
    assert strict(ids).tolist() == []
    once = np.array([9, 1, 8, 1], dtype=np.int32)
    assert LadderDraft(n_draft=1)(once).tolist() == []
    assert LadderDraft(n_draft=1, thresholds=EAGER)(once).tolist() == [8]


@pytest.mark.parametrize(
    "thresholds",
    [
        {"context": {5: (1, 1)}},
        {"nowhere": {1: (1, 1)}},
        {"static": {2: (0, 50)}},
        {"static": {2: (1, 101)}},
        {"context": {1: 3}},
        "EAGER",
    ],
)
def test_wrong_thresholds_are_one_clear_line(thresholds: Any) -> None:
    with refused("threshold"):
        LadderDraft(thresholds=thresholds)


def test_tokens_that_cannot_be_are_refused(static: Path) -> None:
    with refused("input_ids", -1):
        LadderDraft(static)(np.array([1, 2, -1], dtype=np.int32))
    with refused("n_draft", -1):
        LadderDraft(n_draft=-1)
    with refused("nobody"):
        LadderDraft(variant="nobody")
    with refused("missing.bin"):
        LadderDraft("missing.bin")
