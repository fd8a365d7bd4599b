"""Starts the worker: one fresh process, one request, one answer, and never a worker without its runner."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from draft_ladder.base.errors import ExitCode, InputError, RunFailedError
from draft_ladder.base.variants import Variant
from draft_ladder.bench import environment
from draft_ladder.bench.records import Failure, redact_paths

# A native drafter's process knows no site-packages; a Python engine needs them.
WORKERS = {"native": ["-I", "-S", "worker.py"], "python": ["-I", "python_worker.py"]}


@dataclass(frozen=True)
class WorkerResult:
    """The worker's answer, or why there is none. `wall_s` is the life of the process."""

    answer: dict[str, Any] | None
    failure: Failure | None
    exit_code: int
    wall_s: float


def run_worker(
    variant: Variant,
    action: str,
    request: dict[str, Any],
    *,
    timeout_s: float | None = None,
    keep_open: tuple[int, ...] = (),
) -> WorkerResult:
    """Run one request in a process of its own. `keep_open` are file descriptors (the lock) it shares.

    Must be called from the main thread: the worker dies with the thread that started it.
    """
    line = json.dumps(
        {
            **request,
            "action": action,
            "name": variant.name,
            "module": str(variant.module),
            "parent_pid": os.getpid(),
        }
    )
    *flags, script = WORKERS[variant.engine]
    kills_before = environment.oom_kills_total()
    begin = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *flags, str(Path(__file__).with_name(script))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=keep_open,
        process_group=0,  # the terminal's Ctrl-C reaches the runner alone, which then ends the worker
    )
    try:
        out, err = _talk(process, line, timeout_s)
        failure = None
    except subprocess.TimeoutExpired:
        failure = Failure(reason="time-out", detail=f"no answer after {timeout_s:g} s; raise timeout_s")
        out, err = b"", b""
    finally:
        _end(process)
    wall_s = time.monotonic() - begin
    answer, failure = _judge(process.returncode, out, err, failure, kills_before)
    code = process.returncode if process.returncode in (0, int(ExitCode.USAGE)) else int(ExitCode.RUN_FAILED)
    return WorkerResult(
        answer, failure, int(ExitCode.RUN_FAILED) if failure and not code else code, round(wall_s, 6)
    )


def demand(variant: Variant, action: str, request: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Like `run_worker`, but raises what went wrong: InputError's kind for bad input, else RunFailedError."""
    result = run_worker(variant, action, request, **options)
    if result.failure is None and result.answer is not None:
        return result.answer
    assert result.failure is not None
    if result.exit_code == ExitCode.USAGE:
        raise WorkerInputError(result.failure.detail)
    raise RunFailedError(f"{variant.name}: {result.failure.reason}: {result.failure.detail}")


def convert_apart(variant: Variant, source: Path, target: Path) -> int:
    """Make the variant's own static format in a process of its own; the nanoseconds it took."""
    return int(demand(variant, "convert", {"source": str(source), "target": str(target)})["convert_ns"])


class WorkerInputError(InputError):
    """Bad input that the module found: its line already names file, byte offset and remedy."""

    def __init__(self, line: str) -> None:
        Exception.__init__(self, line)


def _talk(process: subprocess.Popen[bytes], line: str, timeout_s: float | None) -> tuple[bytes, bytes]:
    """Hand over the request and wait. stdin stays open until then: its end tells that we are gone."""
    assert process.stdin is not None
    stdin, process.stdin = process.stdin, None  # communicate() would close it at once
    try:
        stdin.write(line.encode() + b"\n")
        stdin.flush()
        return process.communicate(timeout=timeout_s)
    except BrokenPipeError:
        return process.communicate(timeout=timeout_s)
    finally:
        process.stdin = stdin


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None and not stream.closed:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def _judge(
    code: int, out: bytes, err: bytes, failure: Failure | None, kills_before: int | None
) -> tuple[dict[str, Any] | None, Failure | None]:
    """Turn an exit status and two outputs into an answer or the reason for its absence."""
    if failure is not None:
        return None, failure
    if code < 0:
        return None, _killed(-code, kills_before, err)
    try:
        answer = json.loads(out, parse_constant=_refuse_constant)
    except ValueError:
        lines = redact_paths(err.decode(errors="replace")).strip().splitlines()
        detail = lines[-1] if lines else "nothing was printed"
        return None, Failure(reason="no answer", detail=f"the worker ended with code {code}: {detail}")
    if code != 0 or "error" in answer:
        reason = str(answer.get("reason", "failed"))
        return None, Failure(reason=reason, detail=str(answer.get("error", f"exit code {code}")))
    return answer, None


def _killed(number: int, kills_before: int | None, err: bytes) -> Failure:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    kills = environment.oom_kills_total()
    if number == signal.SIGKILL and kills is not None and kills_before is not None and kills > kills_before:
        return Failure(
            reason="out of memory",
            detail=f"the kernel ended the worker ({name}); free memory or use a smaller size",
        )
    if number == signal.SIGBUS and err.strip():  # said by who maps the file that was cut
        return Failure(reason="file changed", detail=err.decode(errors="replace").strip().splitlines()[-1])
    return Failure(reason="killed by signal", detail=f"the worker was ended by {name}")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
