"""Runs an experiment: repeats outermost, variants shuffled inside, one process at a time, one writer."""

from __future__ import annotations

import itertools
import os
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from draft_ladder.base.errors import ExitCode, InputError, RunFailedError
from draft_ladder.base.likeness import conditions, digest
from draft_ladder.base.locks import folder_lock
from draft_ladder.base.validation import load_json
from draft_ladder.base.variants import Variant
from draft_ladder.bench import environment
from draft_ladder.bench.config import Experiment
from draft_ladder.bench.launch import run_worker
from draft_ladder.bench.places import refuse_elsewhere, write_json, write_machine
from draft_ladder.bench.records import (
    SCHEMA,
    CorpusLabel,
    Failure,
    RunRecord,
    RunSpec,
    TextLabel,
    Timing,
    TokenizerLabel,
    check_drafts,
    draft_group,
    load_record,
    redact_paths,
    write_record,
)

# As write_atomic() names its temporary files beside a record.
_LEFTOVER = re.compile(r"\..+\.json\.[0-9a-f]{8}-\d+-\d+\.\d+-\d+\.tmp")


@dataclass(frozen=True)
class StaticFile:
    """A static cache file; `convert_ns`: the time a variant took to make it from llama.cpp's, if one did.

    `statistics`: what its builder counted (n_bigrams, n_pairs, single_share, at_most_100_share, largest).
    """

    path: Path
    sha256: str
    format: str
    convert_ns: int | None
    statistics: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Replayed:
    """The tokens that are replayed, and the labels of text and tokenizer."""

    tokens: Path
    tokens_sha256: str
    n_tokens: int
    replay_text: TextLabel
    tokenizer: TokenizerLabel


@dataclass(frozen=True)
class SizeInputs:
    """One corpus size: its label and its static cache in each format (none at 0 MB).

    `replay` is there where the corpus is not of the experiment's own source: a language replays its own text.
    """

    size_mb: float
    corpus: CorpusLabel
    static: dict[str, StaticFile]
    replay: Replayed | None = None


@dataclass(frozen=True)
class Inputs(Replayed):
    """All that an experiment's runs read."""

    sizes: list[SizeInputs]


@dataclass(frozen=True)
class Job:
    """One run: its specification and the files it reads."""

    spec: RunSpec
    variant: Variant
    tokens: Path
    static: StaticFile | None


class Observer(Protocol):
    """Who watches a run: the command line's progress display, or a test."""

    def started(self, total: int) -> None:
        """`total` jobs are planned."""

    def skipped(self, job: Job, why: str) -> None:
        """A job needs no run."""

    def running(self, job: Job) -> None:
        """A worker is about to start."""

    def finished(self, job: Job, record: RunRecord) -> None:
        """A record was written."""

    def note(self, line: str) -> None:
        """Anything else worth a line."""


# --- plan --------------------------------------------------------------------------------------------------


def plan(experiment: Experiment, inputs: Inputs, variants: Sequence[Variant]) -> list[Job]:
    """All jobs in the order they run. Every round visits each cell once, in an order drawn from the seed."""
    jobs: list[Job] = []
    for warmup, round_index, timings in _rounds(experiment):
        cells = [
            (variant, size, timing, settings)
            for variant in variants
            for size in inputs.sizes
            for timing in timings
            for settings in settings_of(experiment, variant, size)
        ]
        # A string seed: the same order on every machine and Python.
        random.Random(f"{experiment.seed}/{'warm-up' if warmup else 'repeat'}/{round_index}").shuffle(cells)
        for variant, size, timing, settings in cells:
            static = size.static.get(variant.static_format)
            replayed = size.replay or inputs
            spec = RunSpec(
                experiment=experiment.name,
                variant=variant.name,
                rule=variant.rule,
                ties=variant.ties,
                engine=variant.engine,
                size_mb=size.size_mb,
                repeat=round_index,
                warmup=warmup,
                timing=timing,
                **settings,
                corpus=size.corpus,
                replay_text=replayed.replay_text,
                tokenizer=replayed.tokenizer,
                tokens_sha256=replayed.tokens_sha256,
                static_sha256=static.sha256 if static else None,
                static_format=variant.static_format,
                module_sha256=variant.module_sha256,
                cpu=experiment.cpu,
                memory_limit_mb=experiment.memory_limit_mb,
                seed=experiment.seed,
                order=len(jobs),
            )
            jobs.append(Job(spec, variant, replayed.tokens, static))
    return jobs


def _rounds(experiment: Experiment) -> Iterator[tuple[bool, int, list[Timing]]]:
    """(warm-up?, index, timings) of each round; extra passes ride along with the first repeats."""
    for index in range(experiment.warmup):
        yield True, index, ["call"]
    wanted: list[tuple[Timing, int]] = [
        ("call", experiment.repeats),
        ("chunk", experiment.chunk_repeats),
        ("histogram", experiment.histogram_repeats),
    ]
    for index in range(max(count for _, count in wanted)):
        yield False, index, [timing for timing, count in wanted if index < count]


def settings_of(experiment: Experiment, variant: Variant, size: SizeInputs) -> Iterator[dict[str, Any]]:
    """Every combination of the experiment's n_ctx, n_draft, page cache and the variant's own axes."""
    # Without a static cache there is no file whose pages could be cold.
    page_caches = experiment.page_cache if size.static else experiment.page_cache[:1]
    axes = axis_values(experiment.axes, variant)
    for n_ctx, n_draft, page_cache, own in itertools.product(
        experiment.n_ctx, experiment.n_draft, page_caches, axes
    ):
        yield {"n_ctx": n_ctx, "n_draft": n_draft, "page_cache": page_cache, "axes": own}


def axis_values(axes: dict[str, list[str]], variant: Variant) -> list[dict[str, str]]:
    """The combinations of the experiment's axes, which `check_axes` has found this variant to have."""
    own = [axis for axis in sorted(axes) if axis in variant.axes]
    return [
        dict(zip(own, values, strict=True)) for values in itertools.product(*(axes[axis] for axis in own))
    ]


def check_axes(axes: dict[str, list[str]], variants: Sequence[Variant]) -> None:
    """Every variant must have every axis and allow every value: nothing asked for is left out silently."""
    for axis, values in axes.items():
        for variant in variants:
            if axis not in variant.axes:
                known = ", ".join(sorted(variant.axes)) or "none"
                owners = [other.name for other in variants if axis in other.axes]
                remedy = f"measure it with {', '.join(owners)} alone" if owners else f"its axes are: {known}"
                raise InputError(f"axes.{axis}", f"{variant.name} has no such axis", remedy)
            for value in values:
                if value not in variant.axes[axis]:
                    allowed = ", ".join(variant.axes[axis])
                    raise InputError(
                        f"axes.{axis}", f"{variant.name} has no value {value!r}", f"use one of: {allowed}"
                    )


# --- run ---------------------------------------------------------------------------------------------------


def run_experiment(
    experiment: Experiment,
    jobs: Sequence[Job],
    folder: Path,
    observer: Observer,
    *,
    overrides: dict[str, Any] | None = None,
    force: bool = False,
) -> ExitCode:
    """Measure what is missing and check the drafts; the exit code for the command line.

    Records appear in `folder`/runs one by one; an interrupted experiment loses at most the run in progress.
    """
    runs = folder / "runs"
    with folder_lock(folder, "runner") as lock:
        try:
            runs.mkdir(exist_ok=True)
            if others := remove_leftovers(runs):
                names = ", ".join(path.name for path in others)
                observer.note(f"{runs}: {names}: no record of ours, left alone")
            _refuse_newer(folder / "experiment.json")
            kept = [] if force else _finished(jobs, runs)
            refuse_elsewhere(folder, experiment.cpu, (record.conditions for record in kept))
            write_json(folder / "experiment.json", experiment_summary(experiment, jobs, overrides or {}))
            write_machine(folder, experiment.cpu)
            records = [
                _run_or_skip(job, runs, observer, experiment, lock, force)
                for job in _announce(jobs, observer)
            ]
            records = _check(records, jobs, runs, observer)
        except OSError as error:
            where = os.path.basename(str(error.filename)) if error.filename else folder
            remedy = "see to the disk and run again: finished runs are kept"
            raise RunFailedError(f"{where}: {error.strerror}; {remedy}") from error
    if any(record.draft_check == "differ" for record in records):
        return ExitCode.DRAFTS_DIFFER
    return ExitCode.RUN_FAILED if any(record.status == "failed" for record in records) else ExitCode.OK


def _finished(jobs: Sequence[Job], runs: Path) -> list[RunRecord]:
    """The records that this experiment would keep."""
    paths = (runs / f"{job.spec.key}.json" for job in jobs)
    return [record for path in paths if path.exists() and (record := load_record(path)).status == "ok"]


def _refuse_newer(path: Path) -> None:
    """What a newer Draft Ladder wrote is not for this one to replace."""
    if path.exists():
        schema = load_json(path).get("schema")
        if isinstance(schema, int) and schema > SCHEMA:
            raise InputError(f"{path}: schema", f"{schema} is newer than {SCHEMA}", "update Draft Ladder")


def _announce(jobs: Sequence[Job], observer: Observer) -> Sequence[Job]:
    observer.started(len(jobs))
    return jobs


def _run_or_skip(
    job: Job, runs: Path, observer: Observer, experiment: Experiment, lock: int, force: bool
) -> RunRecord:
    path = runs / f"{job.spec.key}.json"
    if path.exists() and not force:
        record = load_record(path)
        if record.status == "ok":
            observer.skipped(job, "already measured")
            return record
        assert record.failure is not None
        observer.note(f"{job.spec.describe()}: failed before ({record.failure.reason}), trying again")
    observer.running(job)
    record = measure(job, experiment, lock)
    write_record(runs, record)
    observer.finished(job, record)
    return record


def measure(job: Job, experiment: Experiment, lock: int) -> RunRecord:
    """One worker process, one record."""
    surroundings: dict[str, Any] = environment.per_run()
    wanted = job.spec.page_cache
    reached = environment.set_page_cache(job.static.path, wanted) if job.static else None
    environment.set_page_cache(job.tokens, "warm")  # reading the tokens is not measured
    surroundings["page_cache_reached"] = reached
    surroundings["warmup_rounds_total"] = experiment.warmup
    surroundings["convert_ns"] = job.static.convert_ns if job.static else None
    started = environment.utc_now()
    request = replay_request(job.spec, job.tokens, job.static.path if job.static else None)
    result = run_worker(job.variant, "replay", request, timeout_s=experiment.timeout_s, keep_open=(lock,))
    failure = result.failure
    if failure is not None:
        failure = Failure(reason=failure.reason, detail=redact_paths(failure.detail))
    known = conditions(surroundings, (result.answer or {}).get("build"), job.spec.cpu)
    surroundings["likeness"] = digest(known)
    return RunRecord(
        key=job.spec.key,
        spec=job.spec,
        status="ok" if failure is None else "failed",
        failure=failure,
        measured=result.answer,
        environment=surroundings,
        started_utc=started,
        wall_s=result.wall_s,
    )


def replay_request(spec: RunSpec, tokens: Path, static: Path | None) -> dict[str, Any]:
    """What the worker is asked for."""
    return {
        "tokens": str(tokens),
        "static": str(static) if static else None,
        "n_ctx": spec.n_ctx,
        "n_draft": spec.n_draft,
        "timing": spec.timing,
        "options": spec.axes,
        "cpu": spec.cpu,
        "memory_limit_mb": spec.memory_limit_mb,
    }


def _check(records: list[RunRecord], jobs: Sequence[Job], runs: Path, observer: Observer) -> list[RunRecord]:
    """Write the verdict on the drafts into every record it concerns."""
    verdicts = check_drafts(records, {job.variant.name: job.variant.rung for job in jobs})
    references = {
        draft_group(record.spec): record
        for record in records
        if verdicts.get(record.key) in ("reference", "unchecked")
    }
    checked = []
    for record in records:
        verdict = verdicts.get(record.key)
        if verdict is not None and verdict != record.draft_check:
            reference = references[draft_group(record.spec)]
            record = _with_verdict(record, verdict, reference)
            write_record(runs, record)
        if record.draft_check == "differ" and record.failure is not None:
            observer.note(f"{record.spec.describe()}: {record.failure.reason}: {record.failure.detail}")
        checked.append(record)
    return checked


def _with_verdict(record: RunRecord, verdict: str, reference: RunRecord) -> RunRecord:
    content = record.model_dump(by_alias=True)
    content["draft_check"] = verdict
    if verdict == "differ":
        mine, theirs = (record.draft_digest or "")[:12], (reference.draft_digest or "")[:12]
        detail = f"digest {mine} is not {theirs} of {reference.spec.variant_label}; see `ladder audit`"
        content.update(status="failed", failure={"reason": "drafts differ", "detail": detail})
    elif record.failure is not None and record.failure.reason == "drafts differ":
        content.update(status="ok", failure=None)
    return RunRecord.model_validate(content)


# --- files beside the records ------------------------------------------------------------------------------


def experiment_summary(
    experiment: Experiment, jobs: Sequence[Job], overrides: dict[str, Any]
) -> dict[str, Any]:
    """The content of experiment.json: what was asked, which records answer, how to draw the variants."""
    variants = {job.variant.name: job.variant for job in jobs}
    style = {"label", "rung", "group", "color", "marker", "rule", "ties", "engine", "static_format"}
    style |= {"changes", "versus", "package", "version", "licence", "source"}
    return {
        "schema": SCHEMA,
        "experiment": without_folders(experiment.model_dump(mode="json")),
        "overrides": without_folders(overrides),
        "variants": {
            name: variants[name].model_dump(mode="json", include=style)
            for name in sorted(
                variants, key=lambda name: (variants[name].rung is None, variants[name].rung, name)
            )
        },
        "corpus_statistics": {
            f"{job.spec.size_mb:g}": job.static.statistics
            for job in sorted(jobs, key=lambda job: job.spec.size_mb)
            if job.static is not None and job.static.statistics
        },
        "keys": [job.spec.key for job in jobs],
    }


def without_folders(content: Any) -> Any:
    """JSON content with absolute paths cut to base names: results are published."""
    if isinstance(content, dict):
        return {key: without_folders(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [without_folders(value) for value in content]
    return redact_paths(content) if isinstance(content, str) else content


def remove_leftovers(runs: Path) -> list[Path]:
    """Remove what a runner that was killed while writing left; the lock says that nobody writes now.

    Returns what else lies there and is no record: somebody's own files, which stay.
    """
    others = []
    for path in sorted(runs.iterdir()):
        if _LEFTOVER.fullmatch(path.name) and path.is_file():
            path.unlink()
        elif path.suffix != ".json" or not path.is_file():
            others.append(path)
    return others
