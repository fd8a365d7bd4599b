"""The words below every chart: where its figures come from, and what it cannot show."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from draft_ladder.bench.records import RunSpec
from draft_ladder.bench.settings import Settings, label, telling
from draft_ladder.bench.stats import Results
from draft_ladder.report.alike import mixed
from draft_ladder.report.style import CAPTION_CHARACTERS, clipped


def caption(results: Results) -> list[str]:
    """Machine, build, commit, corpus and settings, in lines as wide as a picture."""
    machine, experiment = results.machine, results.experiment
    specs = [record.spec for record in results.records]
    replayed = ", ".join(dict.fromkeys(spec.replay_text.label for spec in _by_size(specs)))
    builds = [
        record.measured["build"]
        for record in results.records
        if record.measured and "build" in record.measured
    ]
    build = f"{builds[0].get('compiler')} {builds[0].get('cxx_flags')}" if builds else "build unknown"
    commits = sorted(
        {str(record.environment.get("git_commit") or "unknown")[:10] for record in results.records}
    )
    dirty = " (changed)" if any(record.environment.get("git_dirty") for record in results.records) else ""
    ram = machine.get("ram_bytes")
    memory = f", {ram / 1e9:.0f} GB" if isinstance(ram, int) else ""
    tokenizers = ", ".join(dict.fromkeys(spec.tokenizer.name for spec in _by_size(specs)))
    lines = [
        f"{machine.get('cpu_model')}, {machine.get('cpu_logical_total')} cores{memory}, "
        f"{machine.get('system')} {machine.get('kernel')}  ·  {build}  ·  commit {', '.join(commits)}{dirty}",
        f"corpus: {clipped(corpora(specs), 100)}  ·  replayed: {clipped(replayed, 120)}  ·  {tokenizers}"
        f"  ·  {_settings(specs)}  ·  experiment {experiment.get('name')}",
    ]
    return [part for line in lines for part in wrap(line, CAPTION_CHARACTERS)]


def corpora(specs: Sequence[RunSpec]) -> str:
    """Every corpus with its kind; with its sizes, where there are several."""
    sizes: dict[str, list[str]] = {}
    for spec in _by_size(specs):
        if spec.corpus.kind != "none":
            found = sizes.setdefault(f"{spec.corpus.label} ({spec.corpus.kind})", [])
            if f"{spec.size_mb:g}" not in found:
                found.append(f"{spec.size_mb:g}")
    if len(sizes) > 1:
        return "; ".join(f"{label}: {', '.join(found)} MB" for label, found in sizes.items())
    return next(iter(sizes), "none")


def _by_size(specs: Sequence[RunSpec]) -> list[RunSpec]:
    return sorted(specs, key=lambda spec: spec.size_mb)


def _settings(specs: Sequence[RunSpec]) -> str:
    values = {name: sorted({getattr(spec, name) for spec in specs}) for name in ("n_ctx", "n_draft")}
    return ", ".join(f"{name} {'/'.join(map(str, found))}" for name, found in values.items())


def absences(results: Results) -> list[str]:
    """What charts and tables cannot show, and why: one line per reason."""
    failed: dict[str, dict[str, None]] = {}
    names = telling_of(results)
    for record in sorted(results.records, key=lambda record: _order(record.spec)):
        if record.failure is not None:
            spec = record.spec
            cell = f"{label(spec.variant, Settings.of(spec), names)} at {spec.size_mb:g} MB"
            failed.setdefault(record.failure.reason, {})[cell] = None
    lines = [
        clipped(f"failed and not shown ({reason}): {', '.join(cells)}", 170)
        for reason, cells in sorted(failed.items())
    ]
    lines += [clipped(line, 170) for line in mixed(results)]
    if results.missing_total:
        lines.append(f"unfinished: {results.missing_total} runs are still to be made")
    finished = {record.spec.variant for record in results.records if record.status == "ok"}
    absent = [name for name in results.variants if name not in finished]
    if absent:
        lines.append(f"without a finished run: {', '.join(absent)}")
    return lines


def _order(spec: RunSpec) -> tuple[Any, ...]:
    return spec.variant, Settings.of(spec).order, spec.size_mb


def notes_on(folders: Sequence[Results]) -> list[str]:
    """The absences of several results folders, each named."""
    return [f"{results.folder.name}: {line}" for results in folders for line in absences(results)]


def telling_of(results: Results) -> tuple[str, ...]:
    """The settings that labels of these results must name."""
    return telling(Settings.of(record.spec) for record in results.records)
