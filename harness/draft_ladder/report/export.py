"""Records as pyperf's JSON, for `python -m pyperf stats`, `hist` and `compare_to --table`.

A benchmark is a metric of a variant at a corpus size and settings; a pyperf run is one of our worker
processes, with one value. Written without pyperf: the format is small and versioned.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from draft_ladder.bench.metrics import metric_values, shown_in
from draft_ladder.bench.records import RunRecord
from draft_ladder.bench.settings import Settings, label, numeric_order
from draft_ladder.bench.stats import Results
from draft_ladder.report.caption import telling_of

PYPERF_VERSION = "1.0"
# Metric -> pyperf's unit and what makes ours it.
UNITS: dict[str, tuple[str, float]] = {"us": ("second", 1e-6), "s": ("second", 1.0), "MB": ("byte", 1e6)}


def pyperf_suite(results: Results, metrics: Collection[str] = ()) -> dict[str, Any]:
    """A pyperf benchmark suite of these metrics (none named: all that export takes).

    Benchmarks without a value are left out: pyperf has no empty ones.
    """
    wanted, names = metrics or shown_in("export"), telling_of(results)
    runs: dict[str, list[dict[str, Any]]] = {}
    units: dict[str, str] = {}
    for record in results.records:
        if record.status != "ok" or record.spec.warmup:
            continue
        variant = label(record.spec.variant, Settings.of(record.spec), names)
        for metric, value in metric_values(record.measured or {}, record.spec.timing):
            own = metric.name in wanted and record.spec.timing == metric.own_timing
            if own and value is not None and value > 0:
                name = f"{variant}/{record.spec.size_mb:g}MB/{metric.stem}"  # the unit is pyperf's
                unit, factor = UNITS[metric.unit]
                runs.setdefault(name, []).append(_run(record, value * factor, unit))
                units[name] = unit
    return {
        "version": PYPERF_VERSION,
        "metadata": _metadata(results),
        "benchmarks": [
            {"metadata": {"name": name, "unit": units[name]}, "runs": found}
            for name, found in sorted(runs.items(), key=lambda one: numeric_order(one[0]))
        ],
    }


def _run(record: RunRecord, value: float, unit: str) -> dict[str, Any]:
    # pyperf counts bytes in whole numbers.
    return {
        "metadata": {
            "date": record.started_utc.replace("T", " ").replace("Z", ""),
            "duration": record.wall_s,
            "loops": 1,
        },
        "values": [round(value) if unit == "byte" else value],
    }


def _metadata(results: Results) -> dict[str, Any]:
    machine = results.machine
    commits = {record.environment.get("git_commit") for record in results.records} - {None}
    fields = {
        "cpu_model_name": machine.get("cpu_model"),
        "cpu_count": machine.get("cpu_logical_total"),
        "platform": f"{machine.get('system')} {machine.get('kernel')}",
        "python_version": machine.get("python"),
        "experiment": results.experiment.get("name"),
        "commit_id": ", ".join(sorted(map(str, commits))) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def to_json(suite: dict[str, Any]) -> str:
    """The suite as strict JSON."""
    return json.dumps(suite, allow_nan=False, indent=1) + "\n"
