"""Runs a request experiment: one process at a time, every record written as soon as it is there."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from draft_ladder.base.errors import ExitCode, InputError
from draft_ladder.base.locks import folder_lock
from draft_ladder.base.variants import Variant
from draft_ladder.bench import environment
from draft_ladder.bench.launch import run_worker
from draft_ladder.bench.places import write_json, write_machine
from draft_ladder.bench.records import Failure, TokenizerLabel, redact_paths
from draft_ladder.bench.runner import remove_leftovers, without_folders
from draft_ladder.data.tokenizers import Tokenizer
from draft_ladder.peers.experiment import RequestExperiment
from draft_ladder.peers.records import (
    SCHEMA,
    PackageLabel,
    RequestRecord,
    RequestSpec,
    load_request_record,
    write_request_record,
)
from draft_ladder.peers.requests import RequestTokens


@dataclass(frozen=True)
class RequestJob:
    """One run: its specification and what it reads."""

    spec: RequestSpec
    variant: Variant
    requests: RequestTokens


class Observer(Protocol):
    """Who watches a run: the command line's progress display, or a test."""

    def started(self, total: int) -> None:
        """`total` jobs are planned."""

    def skipped(self, job: RequestJob, why: str) -> None:
        """A job needs no run."""

    def running(self, job: RequestJob) -> None:
        """A worker is about to start."""

    def finished(self, job: RequestJob, record: RequestRecord) -> None:
        """A record was written."""

    def note(self, line: str) -> None:
        """Anything else worth a line."""


# --- plan --------------------------------------------------------------------------------------------------


def check_sweeps(experiment: RequestExperiment, variants: dict[str, Variant]) -> None:
    """Every sweep names a drafter of the experiment, an axis that it has, and values of that axis."""
    for sweep in experiment.sweeps:
        if sweep.variant not in variants:
            raise InputError(
                "sweeps", f"{sweep.variant} is not among the variants", "add it or leave this out"
            )
        axes = variants[sweep.variant].axes
        if sweep.axis not in axes:
            known = ", ".join(sorted(axes)) or "none"
            raise InputError("sweeps", f"{sweep.variant} has no axis {sweep.axis}", f"its axes are: {known}")
        for value in sweep.values or ():
            if value not in axes[sweep.axis]:
                allowed = ", ".join(axes[sweep.axis])
                raise InputError(
                    "sweeps", f"{sweep.variant} has no {sweep.axis} {value}", f"use one of: {allowed}"
                )


def plan(
    experiment: RequestExperiment,
    workloads: Sequence[RequestTokens],
    tokenizer: Tokenizer,
    variants: Sequence[Variant],
) -> list[RequestJob]:
    """All jobs in the order they run: repeats outermost, shuffled inside with the experiment's seed."""
    jobs: list[RequestJob] = []
    label = TokenizerLabel(name=tokenizer.name, sha256=tokenizer.sha256)
    for repeat in range(experiment.repeats):
        cells = [
            (workload, variant, *settings)
            for workload in workloads
            for variant in variants
            for settings in _settings(experiment, variant)
        ]
        random.Random(f"{experiment.seed}/{repeat}").shuffle(cells)
        for workload, variant, n_draft, history, axes, swept in cells:
            spec = RequestSpec(
                experiment=experiment.name,
                workload=workload.workload,
                variant=variant.name,
                rule=variant.rule,
                ties=variant.ties,
                engine=variant.engine,
                shape=variant.shape,
                axes=axes,
                swept=swept,
                n_draft=n_draft,
                history=history,
                n_ctx=experiment.n_ctx,
                repeat=repeat,
                n_requests=len(workload.requests),
                n_response_tokens=workload.n_response,
                tokens_sha256=workload.sha256,
                tokenizer=label,
                module_sha256=variant.module_sha256,
                package=_package(variant),
                cpu=experiment.cpu,
                memory_limit_mb=experiment.memory_limit_mb,
                seed=experiment.seed,
                order=len(jobs),
            )
            jobs.append(RequestJob(spec, variant, workload))
    return jobs


def _settings(
    experiment: RequestExperiment, variant: Variant
) -> Iterator[tuple[int, str, dict[str, str], str | None]]:
    """(n_draft, history, axes, swept axis) of each of a drafter's cells on a workload."""
    for n_draft in experiment.n_draft:
        for history in experiment.history:
            yield n_draft, history, {}, None
    n_draft = experiment.sweep_n_draft or experiment.n_draft[0]
    for sweep in experiment.sweeps:
        if sweep.variant == variant.name:
            values = variant.axes[sweep.axis]
            for value in sweep.values or values:
                if value != values[0]:  # the default is measured above
                    yield n_draft, experiment.history[0], {sweep.axis: value}, sweep.axis


def _package(variant: Variant) -> PackageLabel | None:
    if variant.package is None:
        return None
    return PackageLabel(name=variant.package, version=variant.version or "", licence=variant.licence or "")


# --- run ---------------------------------------------------------------------------------------------------


def run_requests(
    experiment: RequestExperiment,
    jobs: Sequence[RequestJob],
    folder: Path,
    observer: Observer,
    *,
    skipped: dict[str, str],
    overrides: dict[str, Any],
    force: bool = False,
) -> ExitCode:
    """Measure what is missing; the exit code. `skipped`: drafters that cannot run here, and why."""
    runs = folder / "runs"
    with folder_lock(folder, "runner") as lock:
        runs.mkdir(exist_ok=True)
        remove_leftovers(runs)
        write_json(folder / "experiment.json", _summary(experiment, jobs, skipped, overrides))
        write_machine(folder)
        observer.started(len(jobs))
        records = [_run_or_skip(job, runs, observer, experiment, lock, force) for job in jobs]
        records = _check(records, runs, observer)
    if any(record.draft_check == "differ" for record in records):
        return ExitCode.DRAFTS_DIFFER
    return ExitCode.RUN_FAILED if any(record.status == "failed" for record in records) else ExitCode.OK


def _summary(
    experiment: RequestExperiment,
    jobs: Sequence[RequestJob],
    skipped: dict[str, str],
    overrides: dict[str, Any],
) -> dict[str, Any]:
    """experiment.json: what was asked, which records answer it, and how its drafters are drawn."""
    style = ("label", "color", "marker", "rule", "ties", "engine", "shape", "group", "changes")
    source = ("package", "version", "licence", "source")
    variants = {job.variant.name: job.variant.model_dump(mode="json") for job in jobs}
    return {
        "schema": SCHEMA,
        "kind": "requests",
        "experiment": without_folders(experiment.model_dump(mode="json")),
        "overrides": without_folders(overrides),
        "skipped": skipped,
        "variants": {
            name: {key: variant.get(key) for key in (*style, *source)} for name, variant in variants.items()
        },
        "keys": [job.spec.key for job in jobs],
    }


def _run_or_skip(
    job: RequestJob, runs: Path, observer: Observer, experiment: RequestExperiment, lock: int, force: bool
) -> RequestRecord:
    path = runs / f"{job.spec.key}.json"
    if path.exists() and not force:
        record = load_request_record(path)
        if record.status == "ok":
            observer.skipped(job, "already measured")
            return record
        reason = record.failure.reason if record.failure else "unknown"
        observer.note(f"{job.spec.describe()}: failed before ({reason}), trying again")
    observer.running(job)
    record = measure(job, experiment, lock)
    write_request_record(runs, record)
    observer.finished(job, record)
    return record


def measure(job: RequestJob, experiment: RequestExperiment, lock: int) -> RequestRecord:
    """One worker process, one record."""
    surroundings: dict[str, Any] = environment.per_run()
    environment.set_page_cache(job.requests.tokens, "warm")  # reading the tokens is not measured
    started = environment.utc_now()
    request = {
        "tokens": str(job.requests.tokens),
        "requests": [list(shape) for shape in job.requests.requests],
        "vocab_size": job.requests.vocab_size,
        "n_draft": job.spec.n_draft,
        "history": job.spec.history,
        "options": job.spec.axes,
        "cpu": job.spec.cpu,
        "memory_limit_mb": job.spec.memory_limit_mb,
    }
    result = run_worker(job.variant, "requests", request, timeout_s=experiment.timeout_s, keep_open=(lock,))
    failure = result.failure
    if failure is not None:
        failure = Failure(reason=failure.reason, detail=redact_paths(failure.detail))
    measured = result.answer
    if measured is not None:
        measured["n_long_requests"] = long_requests(job.requests, experiment.n_ctx)
    return RequestRecord(
        key=job.spec.key,
        spec=job.spec,
        status="ok" if failure is None else "failed",
        failure=failure,
        measured=measured,
        environment=surroundings,
        started_utc=started,
        wall_s=result.wall_s,
    )


def long_requests(requests: RequestTokens, n_ctx: int | None) -> int | None:
    """How many requests are longer than n_ctx tokens, context and response; None where there is no limit."""
    if n_ctx is None:
        return None
    count = length = 0
    for shape in requests.requests:
        length = (length if shape.continues else 0) + shape.n_prompt + shape.n_response
        count += length > n_ctx
    return count


# --- equal drafts ------------------------------------------------------------------------------------------


def _check(records: list[RequestRecord], runs: Path, observer: Observer) -> list[RequestRecord]:
    """Drafters of one rule must draft the same at their defaults; the verdict is written into the records."""
    groups: dict[tuple[object, ...], list[RequestRecord]] = {}
    for record in records:
        if _comparable(record):
            spec = record.spec
            group = (spec.rule, spec.ties, spec.workload, spec.n_draft, spec.history, spec.tokens_sha256)
            groups.setdefault(group, []).append(record)
    verdicts: dict[str, tuple[str, RequestRecord]] = {}
    for members in groups.values():
        reference = min(
            members, key=lambda record: (record.spec.engine, record.spec.variant, record.spec.repeat)
        )
        single = len({member.spec.variant for member in members}) == 1
        for member in members:
            equal = _digest(member) == _digest(reference)
            verdict = "equal" if equal else "differ"
            if member is reference and equal:
                verdict = "unchecked" if single else "reference"
            verdicts[member.key] = (verdict, reference)
    return [_judged(record, verdicts, runs, observer) for record in records]


def _comparable(record: RequestRecord) -> bool:
    """A knob that is turned changes the rule."""
    return record.measured is not None and record.spec.swept is None


def _digest(record: RequestRecord) -> object:
    return (record.measured or {}).get("draft_digest")


def _judged(
    record: RequestRecord,
    verdicts: dict[str, tuple[str, RequestRecord]],
    runs: Path,
    observer: Observer,
) -> RequestRecord:
    if record.key not in verdicts or record.draft_check == verdicts[record.key][0]:
        return record
    verdict, reference = verdicts[record.key]
    content = record.model_dump(by_alias=True)
    content["draft_check"] = verdict
    if verdict == "differ":
        detail = f"its drafts are not those of {reference.spec.label()}, which has the same rule"
        content.update(status="failed", failure={"reason": "drafts differ", "detail": detail})
        observer.note(f"{record.spec.describe()}: {detail}")
    elif record.failure is not None and record.failure.reason == "drafts differ":
        content.update(status="ok", failure=None)
    judged = RequestRecord.model_validate(content)
    write_request_record(runs, judged)
    return judged
