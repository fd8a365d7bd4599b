"""Axes: every config key reaches the record, every alternative drafts alike, a missing axis is an error."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import ExitCode, InputError
from draft_ladder.base.variants import find
from draft_ladder.bench.config import Experiment, load_experiment
from draft_ladder.bench.runner import Inputs, check_axes, experiment_summary, plan, run_experiment
from draft_ladder.bench.stats import load_results, run_rows
from golden_data import golden_cases
from native_modules import ABSENT, Variant, variants
from runner_kit import Watcher, small_experiment, small_inputs, small_plan

pytestmark = pytest.mark.skipif(not variants(), reason=ABSENT)

# For every key of a config a value that differs from the small experiment's.
CHANGES: dict[str, Any] = {
    "name": "other",
    "corpus": {"source": "default"},
    "clip": True,
    "replay_mb": 0.5,
    "tokenizer": "other.json",
    "sizes_mb": [0],
    "n_ctx": 32,
    "n_draft": [3, 5],
    "repeats": 1,
    "chunk_repeats": 1,
    "histogram_repeats": 1,
    "warmup": 1,
    "variants": ["sorted_vectors"],
    "seed": 9,
    "timeout_s": 31,
    "memory_limit_mb": 4000,
    "cpu": 0,
    "page_cache": "cold",
    "axes": {"hash": ["xor"]},
}
# These decide what text a run reads; its digests are in the spec, here they are in experiment.json alone.
INPUT_KEYS = {"corpus", "clip", "replay_mb", "tokenizer"}
# How long to wait for a run is not what it measures; it is in experiment.json.
OUTSIDE_THE_SPEC = {*INPUT_KEYS, "timeout_s"}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return small_inputs(tmp_path_factory.mktemp("inputs"))


def specs(experiment: Experiment, inputs: Inputs) -> list[str]:
    chosen = type(inputs)(
        **{**vars(inputs), "sizes": [size for size in inputs.sizes if size.size_mb in experiment.sizes_mb]}
    )
    return [job.spec.key for job in small_plan(experiment, chosen)]


def test_the_walk_knows_every_key() -> None:
    assert set(CHANGES) == set(Experiment.model_fields)


@pytest.mark.parametrize("key", CHANGES)
def test_changing_a_key_changes_what_is_recorded(key: str, inputs: Inputs) -> None:
    base = small_experiment(variants=["segmented_map", "sorted_vectors"])
    changed = small_experiment(**{"variants": ["segmented_map", "sorted_vectors"], key: CHANGES[key]})
    before, after = (experiment_summary(one, small_plan(one, inputs), {}) for one in (base, changed))
    assert before["experiment"] != after["experiment"]
    if key not in OUTSIDE_THE_SPEC:
        assert specs(base, inputs) != specs(changed, inputs)


def test_the_command_line_reaches_every_axis(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('name = "x"\nsizes_mb = [1]\nvariants = ["frozen"]\n[corpus]\nsource = "stdlib"\n')
    changes = ["n_draft=[1, 2, 3, 8, 16]", "n_ctx=[512, 4096]", 'page_cache=["warm", "cold"]']
    changes += ['axes.huge_pages=["off", "on"]', "axes.hash=xor", "axes.segment_bytes=[1024, 4096]"]
    experiment, _ = load_experiment(path, changes)
    assert experiment.n_draft == (1, 2, 3, 8, 16)
    assert experiment.n_ctx == (512, 4096)
    assert experiment.page_cache == ("warm", "cold")
    assert experiment.axes == {
        "huge_pages": ["off", "on"],
        "hash": ["xor"],
        "segment_bytes": ["1024", "4096"],
    }
    with pytest.raises(InputError, match=r"--set n_draft: .*named twice"):
        load_experiment(path, ["n_draft=[3, 3]"])


def test_an_axis_that_one_of_the_variants_lacks_is_an_error() -> None:
    pair = [find("segmented_map"), find("frozen")]
    with pytest.raises(
        InputError, match=r"axes\.hash: frozen has no such axis; measure it with segmented_map alone"
    ):
        check_axes({"hash": ["xor"]}, pair)
    with pytest.raises(InputError, match=r"axes\.hash: segmented_map has no value 'md5'; use one of: "):
        check_axes({"hash": ["md5"]}, pair[:1])


def test_every_combination_is_measured_recorded_and_told_apart(tmp_path: Path, inputs: Inputs) -> None:
    experiment = small_experiment(
        variants=["segmented_map"],
        repeats=1,
        n_draft=[1, 3],
        n_ctx=[32, 64],
        page_cache=["warm", "cold"],
        axes={"hash": ["avalanching", "xor"]},
    )
    jobs = plan(experiment, inputs, [find("segmented_map")])
    assert len(jobs) == 2 * 2 * 2 * (1 + 2)  # no static file at 0 MB: nothing to be cold
    assert run_experiment(experiment, jobs, tmp_path / "r", Watcher()) is ExitCode.OK
    records = load_results(tmp_path / "r").records
    found = {
        (r.spec.n_draft, r.spec.n_ctx, r.spec.page_cache, r.spec.axes["hash"], r.spec.size_mb)
        for r in records
    }
    assert len(found) == len(jobs)
    for record in records:
        assert record.measured is not None
        assert (record.measured["n_draft"], record.measured["n_ctx"]) == (
            record.spec.n_draft,
            record.spec.n_ctx,
        )
    rows = run_rows(records)
    settings = {"axes.hash": "xor", "n_ctx": 32, "n_draft": 1, "page_cache": "cold", "engine": "native"}
    assert settings in [row.settings for row in rows]
    assert len({(row.settings, row.size_mb) for row in rows}) == len(jobs)
    # Another hash drafts alike, another draft length does not.
    digests = {(r.spec.n_draft, r.spec.n_ctx, r.spec.size_mb): set() for r in records}
    for r in records:
        digests[r.spec.n_draft, r.spec.n_ctx, r.spec.size_mb].add(r.draft_digest)
    assert {len(found) for found in digests.values()} == {1}
    assert all(r.draft_check in ("reference", "equal") for r in records)


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_variant_toml_and_module_name_the_same_axes(variant: Variant) -> None:
    stated = {axis: list(map(str, values)) for axis, values in variant.toml.get("axes", {}).items()}
    assert stated == {axis: list(values) for axis, values in variant.module.info()["axes"].items()}


def alternatives(variant: Variant) -> list[dict[str, str]]:
    axes = variant.module.info()["axes"]
    made = []
    for values in itertools.product(*axes.values()):
        options = dict(zip(axes, values, strict=True))
        try:
            variant.module.Drafter(options)
        except ValueError as error:
            if "cannot be combined" not in str(error):
                raise
        else:
            made.append(options)
    return made


CASES = [
    pytest.param(variant, options, id=f"{variant}-{'-'.join(options.values()) or 'plain'}")
    for variant in variants()
    for options in alternatives(variant)
]


@pytest.mark.parametrize("case", golden_cases(slow=())[:2])
@pytest.mark.parametrize(("variant", "options"), CASES)
def test_every_alternative_drafts_as_llama_cpp(
    variant: Variant, options: dict[str, str], golden: Path, case: dict[str, Any], tmp_path: Path
) -> None:
    import hashlib

    if variant.ties == "iteration" and variant.module.info()["standard_library"] != "libstdc++":
        pytest.skip("the iteration class is defined for libstdc++")
    drafter = variant.drafter(None, options)
    if case["static"]:
        source = golden / f"{case['case']}.bin"
        if variant.static_format != "llama":
            variant.module.convert_static(str(source), str(tmp_path / "own"))
            source = tmp_path / "own"
        drafter.load(str(source))
    drafter.replay((golden / f"{case['case']}.test.tok").read_bytes(), case["n_ctx"], case["n_draft"])
    assert hashlib.sha256(drafter.replay_dump()).hexdigest() == case[variant.ties]["drafts_sha256"]


@pytest.mark.parametrize("variant", variants(), ids=str)
def test_an_unknown_axis_or_value_is_named(variant: Variant) -> None:
    with pytest.raises(ValueError, match="axis 'colour': this variant has no such axis"):
        variant.module.Drafter({"colour": "red"})
    for axis in variant.module.info()["axes"]:
        with pytest.raises(ValueError, match=f"axis '{axis}': has no value 'none'"):
            variant.module.Drafter({axis: "none"})


def test_a_record_names_its_axes(tmp_path: Path, inputs: Inputs) -> None:
    experiment = small_experiment(
        variants=["frozen"], repeats=1, sizes_mb=[0], axes={"huge_pages": ["on"]}, n_draft=16
    )
    only = type(inputs)(**{**vars(inputs), "sizes": inputs.sizes[:1]})
    jobs = small_plan(experiment, only)
    assert run_experiment(experiment, jobs, tmp_path / "r", Watcher()) is ExitCode.OK
    (path,) = (tmp_path / "r" / "runs").glob("*.json")
    spec = json.loads(path.read_text())["spec"]
    assert (spec["axes"], spec["n_draft"], spec["page_cache"]) == ({"huge_pages": "on"}, 16, "warm")
