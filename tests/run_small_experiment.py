"""A runner in a process of its own, for tests that kill it: arguments FOLDER NAME,NAME [ROOT]."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from draft_ladder.bench.records import RunRecord
from draft_ladder.bench.runner import Job, run_experiment
from runner_kit import Watcher, small_experiment, small_inputs, small_plan


class Announcer(Watcher):
    def running(self, job: Job) -> None:
        print("running", job.spec.key, flush=True)

    def finished(self, job: Job, record: RunRecord) -> None:
        print("finished", job.spec.key, flush=True)


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[2].split(",")
    root = Path(sys.argv[3]) if len(sys.argv) > 3 else None
    experiment = small_experiment(variants=names, repeats=int(os.environ.get("REPEATS", "2")))
    jobs = small_plan(experiment, small_inputs(folder / "inputs"), root)
    sys.exit(int(run_experiment(experiment, jobs, folder / "results", Announcer())))


if __name__ == "__main__":
    main()
