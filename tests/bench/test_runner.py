"""The runner with real workers: plan, resume, failures of every kind, the lock, and death at any moment."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from draft_ladder.base.errors import ExitCode, InputError, RunFailedError
from draft_ladder.base.locks import LOCK_NAME, folder_lock
from draft_ladder.base.variants import discover, find
from draft_ladder.bench import environment, runner, worker
from draft_ladder.bench.config import Experiment
from draft_ladder.bench.launch import run_worker
from draft_ladder.bench.records import load_record, load_records
from draft_ladder.bench.runner import Inputs, Job, check_axes, run_experiment
from runner_kit import (
    Watcher,
    real_variants,
    small_experiment,
    small_inputs,
    small_plan,
    variant_root,
    write_llama_cache,
    write_tokens,
)

SCRIPT = Path(__file__).parents[1] / "run_small_experiment.py"
KILLS_TOTAL = int(os.environ.get("LADDER_KILLS", "100"))


@pytest.fixture(scope="module", autouse=True)
def _modules() -> None:
    real_variants()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    return small_inputs(tmp_path_factory.mktemp("inputs"))


def run(folder: Path, inputs: Inputs, root: Path | None = None, **changes: Any) -> tuple[ExitCode, Watcher]:
    experiment, watcher = small_experiment(**changes), Watcher()
    code = run_experiment(experiment, small_plan(experiment, inputs, root), folder, watcher)
    return code, watcher


def request(inputs: Inputs, **changes: Any) -> dict[str, Any]:
    fields = {
        "tokens": str(inputs.tokens),
        "static": None,
        "n_ctx": 64,
        "n_draft": 3,
        "timing": "call",
        "options": {},
    }
    return {**fields, **changes}


# --- plan --------------------------------------------------------------------------------------------------


def test_repeats_are_outermost_and_the_order_comes_from_the_seed(inputs: Inputs) -> None:
    jobs = small_plan(small_experiment(repeats=3), inputs)
    assert [job.spec.repeat for job in jobs] == [0] * 4 + [1] * 4 + [2] * 4
    assert [job.spec.order for job in jobs] == list(range(12))
    assert len({job.spec.key for job in jobs}) == 12
    again = small_plan(small_experiment(repeats=3), inputs)
    assert [job.spec for job in again] == [job.spec for job in jobs]
    other = small_plan(small_experiment(repeats=3, seed=2), inputs)
    cells = [(job.spec.variant, job.spec.size_mb) for job in jobs]
    assert [(job.spec.variant, job.spec.size_mb) for job in other] != cells
    assert sorted((job.spec.variant, job.spec.size_mb) for job in other) == sorted(cells)


def test_further_passes_and_warm_ups_are_runs_of_their_own(inputs: Inputs) -> None:
    experiment = small_experiment(repeats=2, chunk_repeats=1, histogram_repeats=3, warmup=1, sizes_mb=[0])
    jobs = [job for job in small_plan(experiment, inputs) if job.spec.size_mb == 0]
    kinds = sorted(
        (job.spec.timing, job.spec.warmup, job.spec.repeat)
        for job in jobs
        if job.spec.variant == "sorted_vectors"
    )
    assert kinds == [
        ("call", False, 0),
        ("call", False, 1),
        ("call", True, 0),
        ("chunk", False, 0),
        ("histogram", False, 0),
        ("histogram", False, 1),
        ("histogram", False, 2),
    ]


def test_an_axis_nobody_has_is_refused() -> None:
    with pytest.raises(InputError, match=r"axes\.colour: copying_map has no such axis; its axes are: hash"):
        check_axes({"colour": ["red"]}, discover())


def test_every_key_of_the_spec_but_labels_and_order_changes_the_key(inputs: Inputs) -> None:
    spec = small_plan(small_experiment(), inputs)[0].spec
    same = {"order": 99, "corpus": spec.corpus.model_copy(update={"label": "renamed"})}
    for name, value in same.items():
        assert spec.model_copy(update={name: value}).key == spec.key
    changes = {
        "n_draft": 4,
        "seed": 5,
        "repeat": 7,
        "module_sha256": "0" * 64,
        "cpu": 1,
        "axes": {"hash": "x"},
    }
    for name, value in changes.items():
        assert spec.model_copy(update={name: value}).key != spec.key, name


# --- one worker --------------------------------------------------------------------------------------------


def test_a_native_worker_imports_the_standard_library_and_its_module_only() -> None:
    for variant in (one for one in real_variants() if one.engine == "native"):
        answer = run_worker(variant, "info", {}).answer
        assert answer is not None
        assert variant.name in answer["modules"]
        assert not {"numpy", "pydantic", "psutil", "draft_ladder", "site", "typing"} & set(answer["modules"])
        assert not [path for path in answer["path"] if "site-packages" in path]


def test_memory_figures_are_the_workers_own(inputs: Inputs) -> None:
    hoard = bytearray(b"x") * 1_000_000_000  # what the parent holds must not show in the child
    answer = run_worker(find("sorted_vectors"), "replay", request(inputs)).answer
    del hoard
    assert answer is not None
    assert answer["rss_source"] == "VmHWM" or sys.platform != "linux"
    assert (
        0
        < answer["baseline_rss_bytes"]
        <= answer["loaded_rss_bytes"]
        <= answer["peak_rss_bytes"]
        < 120_000_000
    )
    assert answer["page_faults"]["minor"] > 0


@pytest.mark.parametrize(
    ("status", "reset", "peak", "source", "note"),
    [
        ({"VmHWM": 7, "VmRSS": 5}, True, 7, "VmHWM", None),
        ({"VmHWM": 7, "VmRSS": 5}, False, 7, "VmHWM", "cannot be reset"),
        ({"RssAnon": 0}, False, None, None, "no peak"),
        ({}, False, 9, "getrusage", "cannot be reset"),  # no /proc
    ],
)
def test_the_parents_peak_is_taken_only_without_proc(
    monkeypatch: pytest.MonkeyPatch,
    status: dict[str, int],
    reset: bool,
    peak: int | None,
    source: str | None,
    note: str | None,
) -> None:
    monkeypatch.setattr(worker, "reset_peak", lambda: reset)
    monkeypatch.setattr(worker, "read_memory", lambda: status)
    monkeypatch.setattr(worker, "rss_from_getrusage", lambda: 9)
    memory = worker.Memory()
    memory.mark("final")
    report = memory.report()
    assert (report["peak_rss_bytes"], report["rss_source"]) == (peak, source)
    assert (report["rss_note"] is None) if note is None else (note in report["rss_note"])


def test_memory_touched_and_freed_at_once_is_seen(tmp_path: Path, inputs: Inputs) -> None:
    touchy = find("touchy", variant_root(tmp_path, "touchy"))
    answer = run_worker(touchy, "replay", request(inputs)).answer
    assert answer is not None
    assert answer["peak_rss_bytes"] > 500_000_000
    assert answer["final_rss_bytes"] < 200_000_000


def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, inputs: Inputs) -> None:
    odd = tmp_path / "odd.tok"
    odd.write_bytes(b"12345")
    result = run_worker(find("sorted_vectors"), "replay", request(inputs, tokens=str(odd)))
    assert result.exit_code == ExitCode.USAGE
    assert result.failure is not None
    assert "odd.tok: byte 4" in result.failure.detail
    assert "\n" not in result.failure.detail


def test_the_digest_is_that_of_the_dump(tmp_path: Path, inputs: Inputs) -> None:
    import hashlib

    dump = tmp_path / "drafts.txt"
    answer = run_worker(find("sorted_vectors"), "replay", request(inputs, dump=str(dump))).answer
    assert answer is not None
    assert hashlib.sha256(dump.read_bytes()).hexdigest() == answer["draft_digest"]
    assert dump.read_text().count("\n") == answer["draft_calls"]


# --- experiment --------------------------------------------------------------------------------------------


def test_run_twice_measures_once(tmp_path: Path, inputs: Inputs) -> None:
    code, first = run(tmp_path, inputs)
    assert code == ExitCode.OK
    assert len(first.ran) == 8
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*.json")}
    code, second = run(tmp_path, inputs)
    assert code == ExitCode.OK
    assert second.ran == []
    assert {why for _, why in second.skipped_jobs} == {"already measured"}
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*.json")} == before
    assert all(record.draft_check in ("reference", "unchecked") for record in load_records(tmp_path / "runs"))


def test_a_changed_value_runs_what_it_changes(tmp_path: Path, inputs: Inputs) -> None:
    run(tmp_path, inputs)
    _, watcher = run(tmp_path, inputs, repeats=3)
    assert len(watcher.ran) == 4
    _, watcher = run(tmp_path, inputs, n_draft=5)
    assert len(watcher.ran) == 8


def test_no_folder_and_no_host_name_is_recorded(tmp_path: Path, inputs: Inputs) -> None:
    run(tmp_path, inputs)
    text = "".join(path.read_text() for path in tmp_path.rglob("*.json"))
    assert str(tmp_path) not in text
    assert str(inputs.tokens.parent) not in text
    assert os.uname().nodename not in text or len(os.uname().nodename) < 4
    assert os.path.expanduser("~") + "/" not in text


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("killed", {}, "killed by signal"),
        ("crashed", {}, "killed by signal"),
        ("chatty", {}, "no answer"),
        ("sleepy", {"timeout_s": 1.5}, "time-out"),
        ("hungry", {"memory_limit_mb": 2000}, "out of memory"),
    ],
)
def test_a_failed_run_is_recorded_and_the_others_go_on(
    tmp_path: Path, inputs: Inputs, name: str, changes: dict[str, Any], reason: str
) -> None:
    root = variant_root(tmp_path / "native", name)
    names = ["reference_access", name, "sorted_vectors"]
    code, watcher = run(
        tmp_path / "results", inputs, root, variants=names, repeats=1, sizes_mb=[0], **changes
    )
    assert code == ExitCode.RUN_FAILED
    records = load_records(tmp_path / "results" / "runs")
    assert len(records) == len(watcher.ran) == 6
    failed = [record for record in records if record.status == "failed"]
    assert {record.spec.variant for record in failed} == {name}
    assert {record.failure.reason for record in failed if record.failure} == {reason}
    # A failed run is tried again, a finished one is not.
    code, watcher = run(
        tmp_path / "results", inputs, root, variants=names, repeats=1, sizes_mb=[0], **changes
    )
    assert {job.spec.variant for job in watcher.ran} == {name}
    assert code == ExitCode.RUN_FAILED


def test_different_drafts_fail_the_run_with_code_3(tmp_path: Path, inputs: Inputs) -> None:
    root = variant_root(tmp_path / "native", "broken")
    names = ["broken", "copying_map", "reference_access"]
    code, _ = run(tmp_path / "results", inputs, root, variants=names, repeats=1)
    assert code == ExitCode.DRAFTS_DIFFER
    records = load_records(tmp_path / "results" / "runs")
    verdicts = {record.spec.variant: (record.status, record.draft_check) for record in records}
    assert verdicts == {
        "broken": ("failed", "differ"),
        "copying_map": ("ok", "reference"),
        "reference_access": ("ok", "equal"),
    }
    failure = next(record.failure for record in records if record.spec.variant == "broken")
    assert failure is not None
    assert failure.reason == "drafts differ"
    assert "copying_map" in failure.detail


def test_a_class_of_one_is_unchecked(tmp_path: Path, inputs: Inputs) -> None:
    run(tmp_path, inputs, variants=["sorted_vectors"], repeats=1)
    assert {record.draft_check for record in load_records(tmp_path / "runs")} == {"unchecked"}


def test_a_full_disk_is_one_line_and_keeps_what_is_there(
    tmp_path: Path, inputs: Inputs, monkeypatch: Any
) -> None:
    run(tmp_path, inputs, repeats=1)
    kept = {path.name for path in (tmp_path / "runs").iterdir()}

    def full(source: Any, target: Any) -> None:
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises((RunFailedError, InputError), match="no space left on device"):
        run(tmp_path, inputs, repeats=2)
    monkeypatch.undo()
    assert {path.name for path in (tmp_path / "runs").iterdir()} == kept
    assert run(tmp_path, inputs, repeats=2)[0] == ExitCode.OK


def test_a_record_of_a_newer_version_is_refused(tmp_path: Path, inputs: Inputs) -> None:
    run(tmp_path, inputs, repeats=1)
    path = next((tmp_path / "runs").iterdir())
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 3}))
    with pytest.raises(InputError, match="schema: schema 3 is newer than the one this version reads"):
        run(tmp_path, inputs, repeats=1)


# --- lock --------------------------------------------------------------------------------------------------


def test_a_second_runner_is_refused_by_lock_and_pid(tmp_path: Path) -> None:
    code = "import sys, time; from pathlib import Path; from draft_ladder.base.locks import folder_lock\n"
    code += "with folder_lock(Path(sys.argv[1]), 'runner'): print('held', flush=True); time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(InputError, match=rf"\.lock: another runner \(pid {holder.pid}\)"),
            folder_lock(tmp_path, "runner"),
        ):
            pass
        holder.kill()
        holder.wait()
        with folder_lock(tmp_path, "runner"):  # a dead holder's lock is free
            assert (tmp_path / LOCK_NAME).read_text() == f"{os.getpid()}\n"


def test_a_stale_lock_file_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / LOCK_NAME).write_text("4194304\n")
    with folder_lock(tmp_path, "runner"):
        pass


# --- death -------------------------------------------------------------------------------------------------


def start(folder: Path, names: str, root: Path | None = None, **variables: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, str(SCRIPT), str(folder), names, *([str(root)] if root else [])]
    variables = {**os.environ, **variables}
    return subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables
    )


def wait_for_worker(runner: subprocess.Popen[str]) -> psutil.Process:
    """The runner's worker, once it has had the time to load its module and begin."""
    deadline = time.monotonic() + 30
    first_seen: dict[int, float] = {}  # monotonic: the clock of start times may be set
    while time.monotonic() < deadline:
        # Not Process.children(): it compares start times, which a clock that is being set can turn around.
        for child in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if child.ppid() != runner.pid:
                    continue
                seen = first_seen.setdefault(child.pid, time.monotonic())
                if "worker.py" in " ".join(child.cmdline()) and seen < time.monotonic() - 0.7:
                    return child
        time.sleep(0.02)
    runner.kill()
    raise AssertionError(f"no worker was started: {runner.communicate()}")


def ended_after_s(process: psutil.Process) -> float:
    """How long a process went on. A zombie has ended: only its new parent has not looked yet."""
    begin = time.monotonic()
    with contextlib.suppress(psutil.NoSuchProcess):
        while time.monotonic() - begin < 5 and process.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.005)
    return time.monotonic() - begin


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_worker_dies_within_a_second_of_its_runner(tmp_path: Path, number: int) -> None:
    root = variant_root(tmp_path / "native", "sleepy")
    runner = start(tmp_path, "sleepy", root)
    worker = wait_for_worker(runner)
    runner.send_signal(number)
    runner.wait()
    assert ended_after_s(worker) < 1.0
    runner.communicate()


def test_interrupt_kills_the_worker_and_keeps_what_is_done(tmp_path: Path) -> None:
    root = variant_root(tmp_path / "native", "sleepy")
    runner = start(tmp_path, "sleepy", root)
    worker = wait_for_worker(runner)
    runner.send_signal(signal.SIGINT)
    runner.communicate(timeout=10)
    assert ended_after_s(worker) < 1.0
    assert list((tmp_path / "results" / "runs").iterdir()) == []


def run_in_fork(experiment: Experiment, jobs: list[Job], folder: Path) -> int:
    """A runner in a child of this process: the kills hit its work, not Python's start."""
    pid = os.fork()
    if pid == 0:
        with contextlib.suppress(BaseException):
            os._exit(int(run_experiment(experiment, jobs, folder, Watcher())))
        os._exit(99)
    return pid


def test_killed_at_random_moments_the_runner_resumes_to_the_same_records(
    tmp_path: Path, inputs: Inputs
) -> None:
    names = ["reference_access", "copying_map", "sorted_vectors"]
    experiment = small_experiment(variants=names, repeats=max(4, KILLS_TOTAL // 6))
    jobs = small_plan(experiment, inputs)
    assert os.waitpid(run_in_fork(experiment, jobs, tmp_path / "straight"), 0)[1] == 0
    generator = random.Random(1)
    kills, finished = 0, False
    while kills < KILLS_TOTAL and not finished:
        pid = run_in_fork(experiment, jobs, tmp_path / "killed")
        time.sleep(generator.uniform(0.0, 0.12))
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        finished = not os.WIFSIGNALED(status)
        assert not finished or status == 0
        kills += not finished
        for path in (tmp_path / "killed" / "runs").glob("[!.]*.json"):
            load_record(path)
    assert os.waitpid(run_in_fork(experiment, jobs, tmp_path / "killed"), 0)[1] == 0
    assert kills >= min(KILLS_TOTAL, len(jobs)) // 2

    def outcome(folder: Path) -> dict[str, Any]:
        records = load_records(folder / "runs")
        return {record.key: (record.status, record.draft_check, record.draft_digest) for record in records}

    assert outcome(tmp_path / "killed") == outcome(tmp_path / "straight")
    assert sorted(path.name for path in (tmp_path / "killed" / "runs").iterdir()) == sorted(
        f"{job.spec.key}.json" for job in jobs
    )
    print(f"{kills} kills, {len(jobs)} records")


def test_warm_page_cache_is_reported(tmp_path: Path) -> None:
    path = write_tokens(tmp_path / "x.tok", 1000)
    assert environment.set_page_cache(path, "warm") == "warm"
    assert environment.set_page_cache(path, "cold") in ("cold", "unknown")


def test_a_damaged_static_cache_fails_the_run_by_file_and_offset(tmp_path: Path, inputs: Inputs) -> None:
    static = write_llama_cache(tmp_path / "cut.bin", inputs.tokens)
    static.write_bytes(static.read_bytes()[:-3])
    result = run_worker(find("sorted_vectors"), "replay", request(inputs, static=str(static)))
    assert result.exit_code == ExitCode.USAGE
    assert result.failure is not None
    assert "cut.bin" in result.failure.detail
    assert "byte" in result.failure.detail


def test_the_process_ends_when_its_parent_was_gone_before_the_guard(inputs: Inputs) -> None:
    variant = find("sorted_vectors")
    worker = Path(sys.modules["draft_ladder.bench.launch"].__file__ or "").with_name("worker.py")
    line = json.dumps(
        {
            **request(inputs),
            "action": "replay",
            "name": variant.name,
            "module": str(variant.module),
            "parent_pid": 1,
        }
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(worker)],
        input=line + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""


def test_an_experiment_of_a_newer_version_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "experiment.json"
    runner._refuse_newer(path)
    path.write_text('{"schema": 1}')
    runner._refuse_newer(path)
    path.write_text('{"schema": 9}')
    with pytest.raises(InputError, match=r"experiment\.json: schema: 9 is newer than 2; update Draft Ladder"):
        runner._refuse_newer(path)
