"""A request experiment from plan to page, with drafters in Python that do what drafters do and should not."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest
from draft_ladder.base.errors import ExitCode, InputError
from draft_ladder.base.variants import Variant, discover
from draft_ladder.bench.metrics import quantile
from draft_ladder.peers.available import why_not
from draft_ladder.peers.charts import dominated, write_charts
from draft_ladder.peers.costs import CostCurve, load_cost_curve, speed_up
from draft_ladder.peers.experiment import RequestExperiment, load_request_experiment
from draft_ladder.peers.metrics import cells
from draft_ladder.peers.page import write_page
from draft_ladder.peers.records import RequestRecord, load_request_records
from draft_ladder.peers.requests import RequestTokens, tokenize_requests
from draft_ladder.peers.runner import RequestJob, check_sweeps, long_requests, plan, run_requests
from peers.test_requests_file import GOOD, Letters, write

REPEAT = "return [self.last] * n"
BODIES = {
    "repeats": REPEAT,
    "agrees": REPEAT,
    "differs": "return [self.last] * (n - 1)",
    "raises": "raise KeyError('lost')",
    "talks": "return [1] * (n + 1)",
    "invents": "return [1 << 30]",
    "hangs": "import time; time.sleep(60)",
    "absent": REPEAT,
}
DRAFTER = """
class Drafter:
    def __init__(self, static, options):
        self.last = 0
    def begin(self, prompt):
        self.last = prompt[-1]
    def draft(self, n):
        {body}
    def accept(self, tokens):
        self.last = tokens[-1]
    def end(self):
        pass
"""
TOML = """
name = "{name}"
label = "{name}"
color = "#123456"
marker = "o"
rule = "{rule}"
ties = "token"
engine = "python"
static_format = "none"
changes = "nothing"
[axes]
knob = ["a", "b"]
"""


class Silent:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.skips = 0
        self.lines: list[str] = []

    def started(self, total: int) -> None: ...
    def skipped(self, job: RequestJob, why: str) -> None:
        self.skips += 1

    def running(self, job: RequestJob) -> None: ...
    def finished(self, job: RequestJob, record: RequestRecord) -> None: ...
    def note(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def variants(tmp_path: Path) -> dict[str, Variant]:
    for name, body in BODIES.items():
        folder = tmp_path / "native" / "variants" / "peers" / name
        folder.mkdir(parents=True)
        rule = "same" if name in ("repeats", "agrees", "differs") else name
        (folder / "variant.toml").write_text(TOML.format(name=name, rule=rule))
        missing = "\ndef requires():\n    return 'it is not there'\n" if name == "absent" else ""
        (folder / "drafter.py").write_text(DRAFTER.format(body=body) + missing)
    return {variant.name: variant for variant in discover(tmp_path / "native")}


@pytest.fixture
def requests(tmp_path: Path) -> RequestTokens:
    lines = [*GOOD, {**GOOD[0], "session": "c", "response": "kkkkkkkk"}]
    return tokenize_requests(write(tmp_path / "r.jsonl", lines), Letters(), tmp_path)  # type: ignore[arg-type]


def experiment(names: Sequence[str], **more: object) -> RequestExperiment:
    content = {"name": "e", "variants": names, "n_draft": [3], "replay": {"kind": "requests", "files": ["x"]}}
    return RequestExperiment.model_validate({**content, "timeout_s": 30, **more})


def run(
    tmp_path: Path, wanted: RequestExperiment, variants: dict[str, Variant], requests: RequestTokens
) -> tuple[ExitCode, dict[str, RequestRecord], Silent]:
    observer = Silent()
    chosen = [variants[name] for name in wanted.variants]
    jobs = plan(wanted, [requests], Letters(), chosen)  # type: ignore[arg-type]
    code = run_requests(wanted, jobs, tmp_path / "results", observer, skipped={"absent": "it"}, overrides={})
    records = load_request_records(tmp_path / "results")
    return code, {record.spec.label(): record for record in records}, observer


def test_figures_by_hand_and_what_was_measured_is_not_measured_again(
    tmp_path: Path, variants: dict[str, Variant], requests: RequestTokens
) -> None:
    wanted = experiment(["repeats", "agrees"], sweeps=[{"variant": "repeats", "axis": "knob"}], n_ctx=8)
    code, records, _ = run(tmp_path, wanted, variants, requests)
    assert code == ExitCode.OK
    assert sorted(records) == ["agrees", "repeats", "repeats[knob=b]"]
    measured = records["repeats"].measured or {}
    # "cd" and "fgh" are drafted wrongly, "j" not at all; of "kkkkkkkk" 3 + 1 and 3 tokens come in two calls.
    assert measured["draft_calls"] == 1 + 2 + 0 + 2
    assert measured["n_response_tokens"] == 1 + 2 + 0 + 7
    assert measured["n_accept"] == 3 + 3
    assert measured["n_drafted"] == 15
    assert measured["n_long_requests"] == 1
    assert measured["call_overhead_ns"]["draft"] > 0
    assert {record.draft_check for record in records.values()} == {"reference", "equal", None}
    assert run(tmp_path, wanted, variants, requests)[2].skips == 3


def test_the_others_go_on_where_one_fails(
    tmp_path: Path, variants: dict[str, Variant], requests: RequestTokens
) -> None:
    wanted = experiment(["raises", "talks", "invents", "repeats"])
    code, records, _ = run(tmp_path, wanted, variants, requests)
    assert code == ExitCode.RUN_FAILED
    assert {name: record.status for name, record in records.items()} == {
        "raises": "failed",
        "talks": "failed",
        "invents": "failed",
        "repeats": "ok",
    }
    for name, words in (("raises", "lost"), ("talks", "4 tokens"), ("invents", "1073741824")):
        failure = records[name].failure
        assert failure is not None
        assert words in failure.detail


def test_one_that_hangs_is_ended(
    tmp_path: Path, variants: dict[str, Variant], requests: RequestTokens
) -> None:
    _, records, _ = run(tmp_path, experiment(["hangs"], timeout_s=2), variants, requests)
    failure = records["hangs"].failure
    assert failure is not None
    assert failure.reason == "time-out"


def test_drafters_of_one_rule_must_agree(
    tmp_path: Path, variants: dict[str, Variant], requests: RequestTokens
) -> None:
    code, records, observer = run(tmp_path, experiment(["repeats", "differs"]), variants, requests)
    assert code == ExitCode.DRAFTS_DIFFER
    assert {records["differs"].draft_check, records["repeats"].draft_check} == {"reference", "differ"}
    assert observer.lines


def test_table_csv_and_charts(tmp_path: Path, variants: dict[str, Variant], requests: RequestTokens) -> None:
    run(
        tmp_path, experiment(["repeats"], sweeps=[{"variant": "repeats", "axis": "knob"}]), variants, requests
    )
    page, table = write_page(tmp_path / "results")
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert [row["axes"] for row in rows] == ["", "knob=b"]
    assert float(rows[0]["tokens_per_call"]) == pytest.approx(10 / 5)
    assert float(rows[0]["drafted_per_call"]) == 3
    assert "Not measured: absent: it." in page.read_text()
    curve = CostCurve(
        name="c", label="c", kind="ideal", source="", model="", machine="", pass_ms=1e6, slope=0.5
    )
    written = write_charts(tmp_path / "results", tmp_path / "plots", [curve])
    assert {path.name for path in written} >= {"frontier_chain_all.svg", "goodput_chain_all_n3.png"}


def test_what_drafting_is_worth() -> None:
    measured = {
        "n_response_tokens": 10,
        "calls_by_drafted": [2, 0, 0, 3],
        "draft_ns_total": 1e6,
        "update_ns_total": 0.5e6,
        "commit_ns_total": 0.5e6,
    }
    base = {"name": "c", "label": "c", "source": "", "model": "", "machine": ""}
    linear = CostCurve(**base, kind="ideal", pass_ms=10, slope=0.5)  # type: ignore[arg-type]
    assert speed_up(linear, measured) == pytest.approx(10 * 10 / (2 * 10 + 3 * 25 + 2))
    step = CostCurve(**base, kind="ideal", pass_ms=10, step_rows=2)  # type: ignore[arg-type]
    assert [step.ms(size) for size in (1, 2, 3, 4, 5)] == [10, 10, 20, 20, 30]
    points = CostCurve(**base, kind="measured", measured_ms={1: 10, 3: 14, 5: 24})  # type: ignore[arg-type]
    assert [points.ms(size) for size in (1, 2, 3, 4, 5, 6)] == [10, 12, 14, 19, 24, 29]
    with pytest.raises(ValueError, match="one of"):
        CostCurve(**base, kind="ideal", pass_ms=1)  # type: ignore[arg-type]


def test_the_cost_curves_of_the_house_can_be_read() -> None:
    files = sorted((Path(__file__).parents[2] / "configs" / "costs").glob("*.toml"))
    assert len(files) >= 6
    for file in files:
        curve = load_cost_curve(file)
        assert curve.ms(8) >= curve.ms(1) > 0


def test_a_drafter_that_lacks_something_says_so(variants: dict[str, Variant]) -> None:
    assert why_not(variants["absent"]) == "it is not there"
    assert why_not(variants["repeats"]) is None


@pytest.mark.parametrize(
    "sweep",
    [
        {"variant": "other", "axis": "knob"},
        {"variant": "repeats", "axis": "none"},
        {"variant": "repeats", "axis": "knob", "values": ["z"]},
    ],
)
def test_a_sweep_of_what_is_not_there_is_refused(
    variants: dict[str, Variant], sweep: dict[str, object]
) -> None:
    with pytest.raises(InputError):
        check_sweeps(experiment(["repeats"], sweeps=[sweep]), {"repeats": variants["repeats"]})


def test_the_configs_of_the_house_can_be_read(tmp_path: Path) -> None:
    configs = Path(__file__).parents[2] / "configs"
    smoke, _ = load_request_experiment(configs / "peers-smoke.toml", ["n_draft=4"])
    assert smoke.n_draft == (4,)
    assert all(file.exists() for file in smoke.files(None, configs))
    whole, _ = load_request_experiment(configs / "peers.toml")
    assert len(whole.files(tmp_path, configs)) == 11
    with pytest.raises(InputError):
        load_request_experiment(configs / "peers-smoke.toml", ["colour=1"])


def test_small_things() -> None:
    assert quantile([(10, 1), (20, 98), (30, 1)], 0.5) == 20
    assert quantile([(10, 1), (20, 98), (30, 1)], 0.995) == 30
    assert dominated((2.0, 1.5), [(2.0, 1.5), (1.0, 1.5)])
    assert not dominated((1.0, 1.5), [(1.0, 1.5), (2.0, 1.6)])
    assert cells([]) == []


def test_long_requests_are_counted(requests: RequestTokens) -> None:
    assert long_requests(requests, None) is None
    assert long_requests(requests, 4) == 2
    assert long_requests(requests, 100) == 0
