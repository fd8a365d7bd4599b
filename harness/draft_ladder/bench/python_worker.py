"""The measured process of a Python engine: the replay in a Python loop, over the class in a drafter.py.

Run as `python -I python_worker.py`: unlike the native worker it may import site-packages, and what it imports
is part of its baseline. It answers the same requests with the same fields, as it puts an engine in the place
where `worker.py` expects an extension module. The two engines are never one series.

    class Drafter:
        def __init__(self, static: Path | None, options: dict[str, str]): ...
        def begin(self, prompt: list[int]): ...      a new sequence begins with these tokens
        def draft(self, n: int) -> list[int]: ...    at most n tokens that may come next
        def accept(self, tokens: list[int]): ...     these came next
        def end(self): ...                           the sequence ends
        def memory_bytes(self) -> int: ...           optional: of what it holds
        def resume(self, prompt: list[int]): ...     optional, for generation: as begin, but counts nothing

    def requires() -> str | None: ...                optional: what is missing here, and where to get it
"""

from __future__ import annotations

import sys
import time
from array import array
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from draft_ladder.bench import python_requests, worker
else:  # by its file: whatever the package imports would be part of the baseline
    _spec = spec_from_file_location("worker", Path(__file__).with_name("worker.py"))
    worker = module_from_spec(_spec)
    _spec.loader.exec_module(worker)
    _spec = spec_from_file_location("python_requests", Path(__file__).with_name("python_requests.py"))
    python_requests = module_from_spec(_spec)
    sys.modules["python_requests"] = python_requests  # its dataclasses look for it there
    _spec.loader.exec_module(python_requests)

TOKEN_LIMIT = 2**31
OVERHEAD_CALLS = 20_000  # draft calls of the empty drafter


def load_engine(name: str, path: str) -> Engine:
    """The engine over drafter.py at `path`. Raises ValueError with what it says it lacks."""
    module = worker.load_extension(f"ladder_drafter_{name}", path)  # it may import a package called `name`
    problem = module.requires() if hasattr(module, "requires") else None
    if problem is not None:
        raise worker.StopError(2, "not available", f"{name}: cannot run here: {problem}")
    return Engine(name, path, module.Drafter)


class Engine:
    """In the place of a native module: makes sessions, and says what it is."""

    def __init__(self, name: str, path: str, make: Any) -> None:
        self.name, self.path, self.make = name, Path(path), make

    def Drafter(self, options: dict[str, str] | None = None) -> Session:  # noqa: N802
        """One replay's drafter."""
        return Session(self.make, options or {})

    def die_with_parent(self) -> bool:
        """Not by itself: the worker watches its standard input."""
        return False

    def info(self) -> dict[str, object]:
        """What a native module says of its build, as far as it makes sense here."""
        import platform
        import tomllib
        from importlib import metadata

        said = tomllib.loads(self.path.with_name("variant.toml").read_text(encoding="utf-8"))
        package = said.get("package")
        return {
            **{key: said[key] for key in ("name", "rule", "ties", "engine", "static_format")},
            "axes": said.get("axes", {}),
            "capabilities": ["resume"] if hasattr(self.make, "resume") else [],
            "python": platform.python_version(),
            "package": package,
            "package_version": said.get("version") or (metadata.version(package) if package else None),
        }


class Session:
    """A drafter and its one replay."""

    def __init__(self, make: Any, options: dict[str, str]) -> None:
        self.make, self.options = make, options
        self.drafter: Any = None
        self.log = array("i")
        self.requests = b""
        self.given: tuple[list[int], int, int, str] = ([], 2, 0, "call")

    def load(self, path: str) -> None:
        """Make the drafter over a static cache in llama.cpp's format."""
        self.drafter = self.make(Path(path), self.options)

    def prefault_static(self) -> None:
        """Nothing is known to be mapped."""

    def verify_static(self) -> None:
        """llama.cpp's format has no checksum."""

    def static_bytes(self) -> None:
        """A Python drafter need not know what of its memory is the static cache's."""

    def memory_bytes(self) -> int | None:
        """Of all that the drafter holds, where it says so."""
        return int(self.drafter.memory_bytes()) if hasattr(self.drafter, "memory_bytes") else None

    def replay(self, tokens: bytes, n_ctx: int, n_draft: int, timing: str) -> dict[str, Any]:
        """As the native driver's, with what the loop itself costs a draft call beside it."""
        if n_ctx < 2 or n_draft < 0:
            raise ValueError(f"n_ctx {n_ctx}, n_draft {n_draft}: too small; use 2 or more and 0 or more")
        if self.drafter is None:
            self.drafter = self.make(None, self.options)
        ids = array("i", tokens).tolist()
        self.given = (ids, n_ctx, n_draft, timing)
        watch, counts = Stopwatch(timing), Counts(n_draft)
        self.log = replay_chunks(self.drafter, ids, n_ctx, n_draft, watch, counts)
        return {
            "n_tokens": len(ids),
            "n_chunks": chunk_count(len(ids), n_ctx),
            **counts.report(),
            **watch.report(),
        }

    def replay_requests(
        self, tokens: bytes, requests: list[Any], n_draft: int, history: str, vocab_size: int = 0
    ) -> dict[str, Any]:
        """As the native driver's."""
        measured, self.requests = python_requests.replay_requests(
            lambda: self.make(None, self.options), requests, tokens, n_draft, history, vocab_size
        )
        return dict(measured)

    def requests_dump(self) -> bytes:
        """One line a draft call of the requests."""
        return self.requests

    def call_overhead_ns(self, n_draft: int) -> dict[str, float]:
        """What a call that does nothing costs in the replay of requests."""
        return dict(python_requests.call_overhead_ns(n_draft))

    def overhead_ns_per_call(self) -> float | None:
        """What the loop charges to draft and update for each draft call of a drafter that does nothing."""
        ids, n_ctx, n_draft, timing = self.given
        watch, counts = Stopwatch(timing), Counts(n_draft)
        replay_chunks(Empty(), ids[: max(OVERHEAD_CALLS, n_ctx + 1)], n_ctx, n_draft, watch, counts)
        return watch.report()["draft_update_ns_total"] / counts.calls if counts.calls else None

    def replay_dump(self) -> bytes:
        """One line a draft call, as the native driver writes it: `position: token token ...`."""
        lines, at = [], 0
        while at < len(self.log):
            position, length = self.log[at : at + 2]
            at += 2 + length
            lines.append(f"{position}:{''.join(f' {token}' for token in self.log[at - length : at])}\n")
        return "".join(lines).encode()


class Empty:
    """Drafts nothing: what a replay over it costs, the loop costs."""

    def begin(self, prompt: list[int]) -> None:
        """Nothing to do."""

    def draft(self, n: int) -> list[int]:
        """Nothing to draft."""
        return []

    def accept(self, tokens: list[int]) -> None:
        """Nothing to count."""

    def end(self) -> None:
        """Nothing to merge."""


def chunk_count(n_tokens: int, n_ctx: int) -> int:
    """Number of whole chunks that are replayed; an exact last chunk is dropped, as upstream does."""
    return max(0, n_tokens - 1) // n_ctx


def replay_chunks(
    drafter: Any, ids: list[int], n_ctx: int, n_draft: int, watch: Stopwatch, counts: Counts
) -> array[int]:
    """The replay of drafting.md. Of every draft call the next token's position, the length, the tokens."""
    log = array("i")
    for start in range(0, chunk_count(len(ids), n_ctx) * n_ctx, n_ctx):
        end, position = start + n_ctx, start + 1
        watch.start_chunk()
        watch.update(drafter.begin, ids[start:position])
        while position < end:
            draft = watch.draft(drafter.draft, n_draft)
            check_draft(draft, n_draft, position)
            log.extend((position, len(draft), *draft))
            accepted = 0
            while accepted < len(draft) and position < end - accepted:
                if draft[accepted] != ids[position + accepted]:
                    break
                accepted += 1
            counts.add(len(draft), accepted)
            after = min(end, position + accepted + 1)
            watch.update(drafter.accept, ids[position:after])
            position = after
        watch.end_chunk()
        watch.merge(drafter.end)
    return log


def check_draft(draft: Any, n_draft: int, position: int) -> None:
    """Fail the run where a draft is not what was asked for."""
    problem = None
    if type(draft) is not list:
        problem = f"is of type {type(draft).__name__}, not a list"
    elif len(draft) > n_draft:
        problem = f"has {len(draft)} tokens of {n_draft} at most"
    elif not all(type(token) is int and 0 <= token < TOKEN_LIMIT for token in draft):
        odd = next(token for token in draft if type(token) is not int or not 0 <= token < TOKEN_LIMIT)
        problem = f"holds {odd!r}, not an int from 0 to {TOKEN_LIMIT - 1}"
    if problem is not None:
        raise worker.StopError(1, "bad draft", f"the draft of the token at {position} {problem}")


class Counts:
    """What was drafted and what of it came true."""

    def __init__(self, n_draft: int) -> None:
        self.n_draft, self.calls, self.hits, self.steps = n_draft, 0, 0, 0
        self.drafted_at, self.accepted_at = [0] * n_draft, [0] * n_draft

    def add(self, drafted: int, accepted: int) -> None:
        """One draft call."""
        self.calls += 1
        self.hits += drafted > 0
        self.steps += drafted + (drafted < self.n_draft)
        for place in range(drafted):
            self.drafted_at[place] += 1
            self.accepted_at[place] += place < accepted

    def report(self) -> dict[str, Any]:
        """The record's fields."""
        return {
            "n_drafted": sum(self.drafted_at),
            "n_accept": sum(self.accepted_at),
            "draft_calls": self.calls,
            "hit_calls": self.hits,
            "draft_steps": self.steps,
            "drafted_at": self.drafted_at,
            "accepted_at": self.accepted_at,
        }


class Stopwatch:
    """Where the replay's time goes. Each call has its own pair of readings: the checks between are nobody's.

    With timing "chunk" one pair of readings stands around a chunk, checks and counts included.
    """

    def __init__(self, timing: str) -> None:
        if timing not in ("call", "chunk", "histogram"):
            raise ValueError(f"timing: {timing!r} is unknown; use call, chunk or histogram")
        self.by_chunk = timing == "chunk"
        self.buckets: dict[int, int] | None = {} if timing == "histogram" else None
        self.draft_ns = self.update_ns = self.chunk_ns = self.merge_ns = self.started = self.readings = 0

    def draft(self, call: Any, n: int) -> Any:
        """Call it and charge its time to drafting."""
        if self.by_chunk:
            return call(n)
        begin = time.perf_counter_ns()
        draft = call(n)
        elapsed = time.perf_counter_ns() - begin
        self.draft_ns += elapsed
        self.readings += 1
        if self.buckets is not None:
            upper = bucket_end(elapsed)
            self.buckets[upper] = self.buckets.get(upper, 0) + 1
        return draft

    def update(self, call: Any, tokens: list[int]) -> None:
        """Call it and charge its time to updates."""
        if self.by_chunk:
            call(tokens)
            return
        begin = time.perf_counter_ns()
        call(tokens)
        self.update_ns += time.perf_counter_ns() - begin
        self.readings += 1

    def start_chunk(self) -> None:
        """A chunk's drafts and updates begin."""
        self.started = time.perf_counter_ns()

    def end_chunk(self) -> None:
        """They end; the merge is not theirs."""
        self.chunk_ns += time.perf_counter_ns() - self.started
        self.readings += self.by_chunk

    def merge(self, call: Any) -> None:
        """Call it and charge its time to the merge."""
        begin = time.perf_counter_ns()
        call()
        self.merge_ns += time.perf_counter_ns() - begin

    def report(self) -> dict[str, Any]:
        """The record's fields; `readings` counts pairs, each of which is charged about one reading's cost."""
        apart = not self.by_chunk
        return {
            "draft_ns_total": float(self.draft_ns) if apart else None,
            "update_ns_total": float(self.update_ns) if apart else None,
            "draft_update_ns_total": float(self.draft_ns + self.update_ns if apart else self.chunk_ns),
            "merge_ns_total": float(self.merge_ns),
            "clock": {
                "name": "perf_counter_ns",
                "ns_per_reading": ns_per_reading(),
                "readings": self.readings,
            },
            "histogram": None if self.buckets is None else sorted(map(list, self.buckets.items())),
        }


def bucket_end(ns: int) -> int:
    """Upper bound of the histogram's bucket: eight to an octave, as the native driver's."""
    octave = max(0, ns.bit_length() - 4)
    return ((ns >> octave) + 1) << octave


def ns_per_reading() -> int:
    """What a pair of readings charges to what lies between them: the least of many, as noise only adds."""
    pairs = ((time.perf_counter_ns(), time.perf_counter_ns()) for _ in range(10_000))
    return min(after - before for before, after in pairs)


if __name__ == "__main__":
    worker.leave(worker.main(load_engine))
