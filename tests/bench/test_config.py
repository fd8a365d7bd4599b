"""Experiments: every key is used or refused, every error names file and key in one line."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import InputError
from draft_ladder.base.variants import discover
from draft_ladder.bench import environment
from draft_ladder.bench.config import Experiment, fill_in, load_experiment, parse_override
from draft_ladder.data.sources import FilesConfig
from draft_ladder.e2e.records import load_config
from draft_ladder.report.claims import load_claims

CONFIGS = Path(__file__).parents[2] / "configs"
GOOD = 'name = "x"\nsizes_mb = [1, 0]\nvariants = ["frozen"]\n[corpus]\nsource = "stdlib"\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "x.toml"
    path.write_text(text)
    return path


OTHERS = ("[[workload]]", "[replay]")  # of end-to-end runs and of requests
REPLAYS = [
    path for path in sorted(CONFIGS.glob("*.toml")) if not any(word in path.read_text() for word in OTHERS)
]


@pytest.mark.parametrize("path", REPLAYS, ids=lambda path: path.stem)
def test_the_shipped_configs_are_valid(path: Path) -> None:
    experiment, overrides = load_experiment(path)
    assert experiment.name == path.stem
    assert overrides == {}


@pytest.mark.parametrize(
    "override", ["", "corpus.label=mine", "corpus=wikitext-files"], ids=["as it is", "its key", "by name"]
)
def test_a_named_corpus_is_its_table(tmp_path: Path, override: str) -> None:
    (tmp_path / "corpora").mkdir()
    table = 'source = "files"\ntrain = ["a"]\nreplay = ["b"]\n'
    (tmp_path / "corpora" / "wikitext-files.toml").write_text(table)
    named = GOOD.replace('[corpus]\nsource = "stdlib"\n', 'corpus = "wikitext-files"\n')
    spelt_out = GOOD.replace('source = "stdlib"\n', table)
    overrides = [override] if override else []
    from_name = load_experiment(write(tmp_path, named), overrides)
    assert from_name == load_experiment(write(tmp_path, spelt_out), overrides)
    assert isinstance(from_name[0].corpus, FilesConfig)
    with pytest.raises(InputError, match=r"x\.toml: corpus: .*wikitext-files"):
        load_experiment(write(tmp_path, GOOD.replace('[corpus]\nsource = "stdlib"', 'corpus = "moon"')))


def test_sizes_are_sorted_and_defaults_are_the_articles(tmp_path: Path) -> None:
    experiment, _ = load_experiment(write(tmp_path, GOOD))
    assert experiment.sizes_mb == (0, 1)
    assert (experiment.n_ctx, experiment.n_draft, experiment.repeats) == ((4096,), (3,), 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = \n", r"x\.toml: not readable as TOML \(.*line 1.*\); correct it"),
        (GOOD.replace("sizes_mb", "size_mb"), r"x\.toml: sizes_mb: missing; add it"),
        ("n_drafts = 3\n" + GOOD, r"x\.toml: n_drafts: unknown key; remove it or use one of: .*n_draft"),
        (GOOD + "clip = true\n", r"x\.toml: corpus\.clip: unknown key; remove it"),
        ("n_ctx = 1\n" + GOOD, r"x\.toml: n_ctx: is 1 but has to be 2 or more; correct it$"),
        ("n_ctx = 1.5\n" + GOOD, r"n_ctx: is 1\.5 but has to be a whole number; correct it$"),
        ("clip = 3\n" + GOOD, r"x\.toml: clip: is 3 but has to be true or false; correct it$"),
        ("axes = 3\n" + GOOD, r"x\.toml: axes: is 3 but has to be a table; correct it$"),
        ("timeout_s = 0\n" + GOOD, r"timeout_s: is 0 but has to be more than 0; correct it$"),
        (
            "page_cache = 'hot'\n" + GOOD,
            r"page_cache: is \"hot\" but has to be 'warm' or 'cold'; correct it$",
        ),
        (GOOD.replace("[1, 0]", "[]"), r"x\.toml: sizes_mb: has 0 values; give at least 1$"),
        (GOOD.replace('"stdlib"', '"moon"'), r"corpus\.source: is \"moon\" but has to be 'wikitext-103', "),
        (GOOD.replace('source = "stdlib"', "clip = 1"), r"x\.toml: corpus\.source: missing; add it$"),
        (GOOD.replace('"stdlib"', '"files"'), r"x\.toml: corpus\.train: missing; add it$"),
        (GOOD.replace('"x"', '"X"'), r"name: is \"X\" but has to be made of small letters, digits, - and _"),
        ("n_draft = -1\n" + GOOD, r"x\.toml: n_draft: "),
        ("timeout_s = nan\n" + GOOD, r"x\.toml: timeout_s: "),
        (GOOD.replace("[1, 0]", "[1, 1]"), r"x\.toml: sizes_mb: .*a size is named twice"),
        (GOOD.replace("[1, 0]", "[-1]"), r"x\.toml: sizes_mb: .*0 or more"),
        (GOOD.replace('["frozen"]', '["a", "a"]'), r"x\.toml: variants: .*named twice"),
        (GOOD.replace('"stdlib"', '"moon"'), r"x\.toml: corpus"),
        (GOOD.replace('"x"', '"../x"'), r"x\.toml: name: "),
    ],
)
def test_a_mistake_is_named_by_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_experiment(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: "):
        load_experiment(tmp_path / "none.toml")
    with pytest.raises(InputError, match=f"^{tmp_path}: "):
        load_experiment(tmp_path)


def test_overrides_reach_keys_and_tables_and_are_returned(tmp_path: Path) -> None:
    changes = [
        "n_draft=16",
        "sizes_mb=[0, 2.5]",
        'axes.hash=["a", true]',
        "tokenizer=tekken",
        "corpus.source=default",
    ]
    experiment, overrides = load_experiment(write(tmp_path, GOOD), changes)
    assert experiment.n_draft == (16,)
    assert experiment.sizes_mb == (0, 2.5)
    assert experiment.axes == {"hash": ["a", "true"]}
    assert experiment.corpus.source == "default"
    assert overrides["n_draft"] == 16
    assert set(overrides) == {"n_draft", "sizes_mb", "axes.hash", "tokenizer", "corpus.source"}


@pytest.mark.parametrize("text", ["n_draft", "=3"])
def test_a_malformed_override_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^--set .*key=value"):
        parse_override(text)


def test_a_bad_override_is_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--set n_draft: "):
        load_experiment(write(tmp_path, GOOD), ["n_draft=-1"])


def test_variables_are_filled_in_but_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment, _ = load_experiment(CONFIGS / "reference.toml")
    monkeypatch.delenv("LADDER_TEXT", raising=False)
    with pytest.raises(InputError, match=r"^corpus: \$\{LADDER_TEXT\} .*--text"):
        fill_in(experiment.corpus)
    filled = fill_in(experiment.corpus, Path("/texts"))
    assert isinstance(filled, FilesConfig)
    assert filled.replay == ["/texts/wiki.test.raw"]
    monkeypatch.setenv("LADDER_TEXT", "/elsewhere")
    assert fill_in(experiment.corpus).model_dump()["replay"] == ["/elsewhere/wiki.test.raw"]
    assert "/texts" not in experiment.model_dump_json()


def test_every_key_of_an_experiment_is_read_outside_of_its_own_module() -> None:
    """A config key that is parsed and ignored is a lie."""
    sources = [
        path.read_text() for path in (CONFIGS.parent / "harness").rglob("*.py") if path.name != "config.py"
    ]
    text = "\n".join(sources)
    unused: list[Any] = [key for key in Experiment.model_fields if f"experiment.{key}" not in text]
    assert unused == []


@pytest.mark.parametrize("change", ["timeout_s=1e10", "n_draft=1000000000", "n_ctx=3000000000"])
def test_values_that_no_worker_takes_are_refused_at_once(change: str) -> None:
    with pytest.raises(InputError, match=change.partition("=")[0]):
        load_experiment(CONFIGS / "smoke.toml", [change])


def test_a_machine_is_a_name_and_a_core_is_there() -> None:
    assert environment.machine_folder("mine") == "mine"
    for name in ("", "..", "../x", "/tmp"):
        with pytest.raises(InputError, match="--machine: "):
            environment.machine_folder(name)
    environment.check_core(None)
    if environment.affinity() is not None:
        with pytest.raises(InputError, match=r"^cpu: .*99999"):
            environment.check_core(99_999)


def test_other_files_mistakes_are_said_in_the_same_words(tmp_path: Path) -> None:
    shutil.copytree(CONFIGS / "corpora", tmp_path / "corpora")
    e2e = write(
        tmp_path, (CONFIGS / "e2e.toml").read_text().replace("[[workload]]", "[[workload]]\nn = 1", 1)
    )
    with pytest.raises(InputError, match=r"x\.toml: workload\.\w+\.n: "):
        load_config(e2e)
    with pytest.raises(InputError, match=r"e2e\.toml: n_draft: .*0.*1"):
        load_config(CONFIGS / "e2e.toml", ["n_draft=0"])
    claims = (CONFIGS / "claims" / "article.toml").read_text()
    with pytest.raises(InputError, match=r"x\.toml: claim\.reference-draft\.metric: "):
        load_claims(write(tmp_path, claims.replace("metric =", "metrik =", 1)))
    variant = tmp_path / "variants" / "ablations" / "odd" / "variant.toml"
    variant.parent.mkdir(parents=True)
    (variant.parent / "odd.py").touch()
    known = (
        (CONFIGS.parent / "variants" / "ablations" / "frozen" / "variant.toml")
        .read_text()
        .replace('"frozen"', '"odd"', 1)
    )
    variant.write_text(known.replace('color = "#', 'color = "'))
    with pytest.raises(InputError, match=r"odd/variant\.toml: color: .*#1f77b4"):
        discover(tmp_path)
    variant.write_text(known.replace("[axes]", "axes = 3\n[rest]"))
    with pytest.raises(InputError, match=r"odd/variant\.toml: does not know rest; "):
        discover(tmp_path)
    variant.write_text(known.replace("[axes]", "[axes]\nhash = 3"))
    with pytest.raises(InputError, match=r"odd/variant\.toml: axes\.hash: "):
        discover(tmp_path)
