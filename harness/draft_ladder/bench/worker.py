"""The measured process: one variant, one replay, the standard library and one extension module.

Run as `python -I -S worker.py`, never imported by a process that measures. The request is one line of JSON
on stdin; the answer is one line of JSON on stdout. Whatever is imported here is part of every figure's
baseline, so nothing is imported that is not needed before the peak is read (hashlib comes after).

Exit codes: 0, or 1 (failed) and 2 (bad input) with {"error": one line, "reason": ..., "exit_code": ...}.
"""

from __future__ import annotations

import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would be part of the baseline
    from typing import Any

    Request = dict[str, Any]
    Answer = dict[str, Any]

KIB = 1024


class StopError(Exception):
    """Ends the process: exit code, reason, one line."""


def main(load: Any = None) -> int:
    """Answer the request on stdin; the exit code. `load(name, path)` makes the module to ask."""
    request = json.loads(sys.stdin.buffer.readline())
    try:
        limit_process(request)
        module = (load or load_extension)(request["name"], request["module"])
        guard_against_orphanhood(module, request["parent_pid"])
        actions = {"replay": replay, "requests": requests, "convert": convert, "info": info}
        answer = actions[request["action"]](module, request)
    except MemoryError:
        return fail(1, "out of memory", "an allocation was refused")
    except StopError as stop:
        return fail(*stop.args)
    except (ValueError, OSError) as error:  # the modules' InputError arrives as ValueError
        return fail(2, "bad input", str(error).replace("<tokens>", request.get("tokens", "<tokens>"), 1))
    except Exception as error:
        return fail(1, "internal error", f"{type(error).__name__}: {error}")
    print(json.dumps(answer, allow_nan=False))
    return 0


def fail(exit_code: int, reason: str, problem: str) -> int:
    """Report one line and hand the exit code on."""
    line = " ".join(problem.split())
    print(json.dumps({"error": line, "reason": reason, "exit_code": exit_code}))
    return exit_code


def limit_process(request: Request) -> None:
    """Pin to the core and bound the address space, where the request asks for it."""
    if request.get("cpu") is not None:
        os.sched_setaffinity(0, {request["cpu"]})
    if request.get("memory_limit_mb") is not None:
        import resource

        limit = request["memory_limit_mb"] * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def load_extension(name: str, path: str) -> Any:
    """Import the one module of this process by its file."""
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path}: not an extension module; build the variants again")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def guard_against_orphanhood(module: Any, parent_pid: int) -> None:
    """End with the runner: a worker that outlives it would run beside the resumed runner's next one."""
    if not module.die_with_parent():
        import _thread

        _thread.start_new_thread(exit_at_end_of_input, ())
    if os.getppid() != parent_pid:  # it died before the guard stood
        os._exit(1)


def exit_at_end_of_input() -> None:
    """The runner holds the other end of stdin open as long as it lives."""
    while os.read(0, 1):
        pass
    os._exit(1)


def read_tokens(path: str) -> bytes:
    """The token file's bytes (int32 little-endian)."""
    with open(path, "rb") as file:
        data = file.read()
    whole = len(data) - len(data) % 4
    if whole != len(data):
        remedy = "give an int32 token file (`ladder tokens` writes one)"
        raise ValueError(
            f"{path}: byte {whole}: {len(data) - whole} bytes are left over after the last token; {remedy}"
        )
    return data


# --- memory ------------------------------------------------------------------------------------------------


def reset_peak() -> bool:
    """Forget the peak so far (the interpreter's start, the token file's buffer); False where Linux is not."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    return True


def read_memory() -> dict[str, int]:
    """Resident bytes now and at most, anonymous and file-backed apart; missing or 0 is None."""
    fields: dict[str, int] = {}
    try:
        with open("/proc/self/status") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name in ("VmHWM", "VmRSS", "RssAnon", "RssFile"):
                    # A file-backed or anonymous share of 0 is a figure; a whole process of 0 bytes is not.
                    fields[name] = int(value.split()[0]) * KIB
    except OSError:
        return {}
    return {name: value for name, value in fields.items() if value or name.startswith("Rss")}


def rss_from_getrusage() -> int | None:
    """The peak resident size so far in bytes where /proc is missing (macOS counts bytes, others KiB)."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return (peak if sys.platform == "darwin" else peak * KIB) or None


def page_faults() -> tuple[int, int]:
    """Page faults of this process so far."""
    try:
        with open("/proc/self/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[7]), int(fields[9])
    except (OSError, IndexError):
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_minflt, usage.ru_majflt


class Memory:
    """Resident sizes at three moments of the run: before the load, after it, after the replay."""

    def __init__(self) -> None:
        self.reset = reset_peak()
        self.at: dict[str, dict[str, int]] = {}
        self.peak_otherwise: int | None = None

    def mark(self, moment: str) -> None:
        """Read the figures now."""
        self.at[moment] = read_memory()
        if not self.at[moment]:
            self.peak_otherwise = rss_from_getrusage()

    def report(self) -> Answer:
        """The record's fields; a figure that cannot be had is None, with the reason beside it."""
        peak, source, note = self.at["final"].get("VmHWM"), "VmHWM", None
        if not self.at["final"]:  # no /proc at all; elsewhere never: Linux hands ru_maxrss down to children
            peak, source = self.peak_otherwise, "getrusage"
        if peak is None:
            note = "the kernel reports no peak, or one of 0"
        elif not self.reset:
            note = "the peak cannot be reset here: it includes the interpreter's start and the token file"
        fields: Answer = {
            "peak_rss_bytes": peak,
            "rss_source": source if peak is not None else None,
            "rss_note": note,
        }
        for moment, figures in self.at.items():
            fields[f"{moment}_rss_bytes"] = figures.get("VmRSS")
            fields[f"{moment}_rss_anon_bytes"] = figures.get("RssAnon")
            fields[f"{moment}_rss_file_bytes"] = figures.get("RssFile")
        return fields


# --- actions -----------------------------------------------------------------------------------------------


def replay(module: Any, request: Request) -> Answer:
    """Load, replay once, measure; the run record's measured part."""
    tokens = read_tokens(request["tokens"])
    options = request["options"]
    drafter = module.Drafter(options) if options else module.Drafter()
    memory = Memory()
    memory.mark("baseline")
    faults_before = page_faults()
    load = load_static(drafter, request["static"], prefault=request.get("prefault", False))
    memory.mark("loaded")
    faults_loaded = page_faults()
    measured: Answer = dict(drafter.replay(tokens, request["n_ctx"], request["n_draft"], request["timing"]))
    memory.mark("final")
    faults_after = page_faults()
    measured.update(load)
    measured.update(memory.report())
    measured["page_faults"] = {
        "minor": faults_after[0] - faults_before[0],
        "major": faults_after[1] - faults_before[1],
        "load_minor": faults_loaded[0] - faults_before[0],
        "load_major": faults_loaded[1] - faults_before[1],
    }
    measured["static_bytes"] = drafter.static_bytes()
    measured["memory_bytes"] = drafter.memory_bytes()
    # Verifying touches the whole cache, so it waits until the memory is read. If it fails, so does the run.
    measured["load_verify_ns"] = drafter.verify_static() if request["static"] is not None else None
    measured["draft_digest"] = digest_of_drafts(drafter, request.get("dump"))
    measured["memory_floor"] = memory_floor(module, measured["static_file_bytes"])
    if hasattr(drafter, "overhead_ns_per_call"):  # of a loop in Python
        measured["engine_overhead_ns_per_call"] = drafter.overhead_ns_per_call()
    for name in ("n_ctx", "n_draft", "timing"):
        measured[name] = request[name]
    measured["variant"] = request["name"]
    measured["build"] = dict(module.info())
    return measured


def requests(module: Any, request: Request) -> Answer:
    """Replay requests once; the record's measured part."""
    tokens = read_tokens(request["tokens"])
    drafter = module.Drafter(request["options"]) if request["options"] else module.Drafter()
    memory = Memory()
    memory.mark("baseline")
    measured: Answer = dict(
        drafter.replay_requests(
            tokens,
            [tuple(shape) for shape in request["requests"]],
            request["n_draft"],
            request["history"],
            request["vocab_size"],
        )
    )
    memory.mark("final")
    measured.update(memory.report())
    measured.setdefault("memory_bytes", drafter.memory_bytes())
    import hashlib

    measured["draft_digest"] = hashlib.sha256(drafter.requests_dump()).hexdigest()
    if hasattr(drafter, "call_overhead_ns"):  # of a loop in Python
        measured["call_overhead_ns"] = drafter.call_overhead_ns(request["n_draft"])
    measured["variant"] = request["name"]
    measured["build"] = dict(module.info())
    return measured


def load_static(drafter: Any, path: str | None, *, prefault: bool) -> Answer:
    """Load the static cache and time it: from opening the file to ready for the first draft.

    With `prefault` a mapped file's pages come in here, as they do for users; without, drafts pay for them.
    """
    if path is None:
        return {"load_ns": None, "load_note": "no static cache", "static_file_bytes": 0}
    begin = time.perf_counter_ns()
    drafter.load(path)
    if prefault:
        drafter.prefault_static()
    load_ns = time.perf_counter_ns() - begin
    return {"load_ns": load_ns, "load_note": None, "static_file_bytes": os.stat(path).st_size}


def memory_floor(module: Any, table_bytes: int) -> Answer | None:
    """Random reads from a table of the static cache file's size, after all other figures.

    None without a static cache, without the memory, or where a variant in Python has no such measurement.
    """
    reads = 200_000
    if table_bytes == 0 or not hasattr(module, "memory_floor"):
        return None
    try:
        dependent_ns, independent_ns = module.memory_floor(table_bytes, reads)
    except MemoryError:
        return None
    return {"reads": reads, "dependent_ns": dependent_ns, "independent_ns": independent_ns}


def digest_of_drafts(drafter: Any, dump: str | None) -> str:
    """SHA-256 of every draft's text; only called once the peak has been read."""
    import hashlib

    text = drafter.replay_dump()
    if dump is not None:
        write_dump(dump, text)
    return hashlib.sha256(text).hexdigest()


def write_dump(path: str, text: bytes) -> None:
    """Write the new file that the caller puts in place. Raises ValueError with one line."""
    try:
        with open(path, "xb") as file:
            file.write(text)
    except OSError as error:
        raise ValueError(
            f"{path}: cannot be written: {error.strerror}; check free space and permissions"
        ) from error


def convert(module: Any, request: Request) -> Answer:
    """llama.cpp's static file -> the variant's own format; a drafter's process never does this."""
    begin = time.perf_counter_ns()
    parts = module.convert_static(request["source"], request["target"])
    return {
        "convert_ns": time.perf_counter_ns() - begin,
        "parts": dict(parts or {}),
        "build": dict(module.info()),
    }


def info(module: Any, request: Request) -> Answer:
    """What the module says about its build, and what this process had to import for it."""
    answer: Answer = {"build": dict(module.info()), "modules": sorted(sys.modules), "path": list(sys.path)}
    if request.get("static") is not None:
        answer["static_format"] = module.static_format_of(request["static"])
    return answer


def leave(code: int) -> None:
    """End at once: the allocator's tidy-up of gigabytes of small nodes is nobody's figure."""
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main())
