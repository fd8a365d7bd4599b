"""One step of making a static cache, as a process: `python -m draft_ladder.studies.build_steps REQUEST`.

REQUEST is a JSON object with `step` and the step's arguments; the answer, on stdout, has its time and memory.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from draft_ladder.base.errors import LadderError
from draft_ladder.base.manifests import sha256_file
from draft_ladder.bench.worker import read_memory, rss_from_getrusage
from draft_ladder.data.cache import build_static_cache, freeze_cache
from draft_ladder.data.cache_files import SUMMARY
from draft_ladder.data.corpus import build_corpus
from draft_ladder.data.own_format import convert_here, reader_of
from draft_ladder.data.spill import caches_module
from draft_ladder.data.synthetic import SyntheticConfig, SyntheticSource, text_bytes
from draft_ladder.data.tokenizers import load_tokenizer
from draft_ladder.data.tokens import TOKEN_BYTES, tokenize_file

Request = dict[str, Any]


def _tokenise(request: Request) -> Request:
    tokenizer = load_tokenizer(request["tokenizer"])
    made = tokenize_file(Path(request["text"]), tokenizer, Path(request["folder"]), jobs=request["jobs"])
    return {"path": str(made.path), "n_tokens": made.n_tokens}


def _generate(request: Request) -> Request:
    source = SyntheticSource(SyntheticConfig(source="synthetic").seed)
    made = build_corpus(source, text_bytes(request["n_tokens"]) / 1e6, Path(request["folder"]))
    return {"path": str(made.path), "n_tokens": made.path.stat().st_size // TOKEN_BYTES}


def _count(request: Request) -> Request:
    built = build_static_cache(
        Path(request["tokens"]),
        Path(request["folder"]),
        request["jobs"],
        formats=["llama"],
        memory_bytes=request.get("memory_bytes"),
    )
    return {"path": str(built.paths["llama"]), "facts": built.stats}


def _freeze(request: Request) -> Request:
    freeze_cache(Path(request["static"]), Path(request["target"]))
    return {"path": request["target"]}


def _summarise(request: Request) -> Request:
    convert_here(reader_of(SUMMARY), Path(request["static"]), Path(request["target"]))
    return {"path": request["target"]}


def _sorted_loop(request: Request) -> Request:
    return {"facts": caches_module().count_sorted(request["tokens"], 1)}


def _nested_maps(request: Request) -> Request:
    return {"facts": caches_module().count_nested_maps(request["tokens"])}


STEPS: dict[str, Callable[[Request], Request]] = {
    "tokenise": _tokenise,
    "generate": _generate,
    "count": _count,
    "count_bounded": _count,
    "freeze": _freeze,
    "summarise": _summarise,
    "sorted_loop": _sorted_loop,
    "nested_maps": _nested_maps,
}


def perform(request: Request) -> Request:
    """Do a step; its answer with `wall_s`, `cpu_s` (all threads), `peak_rss_bytes` (where that is None,
    `rss_note` says why), and what it wrote.

    The process must be new: its peak is the step's. Digests are taken after the clock stopped.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    answer = STEPS[request["step"]](request)
    answer |= {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    memory = read_memory()
    # Where /proc is missing only: on Linux a child inherits its parent's ru_maxrss.
    peak = memory.get("VmHWM") if memory else rss_from_getrusage()
    note = None if peak else "the kernel reports no peak, or one of 0"
    answer |= {"peak_rss_bytes": peak, "rss_note": note}
    if "path" in answer:
        path = Path(answer["path"])
        answer |= {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
    return answer


def main() -> int:
    """Answer the request on the command line; a user's error is one line on stderr and its exit code."""
    try:
        answer = perform(json.loads(sys.argv[1]))
    except LadderError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    print(json.dumps(answer, allow_nan=False), flush=True)
    return 0


if __name__ == "__main__":
    code = main()
    os._exit(code)  # not the time to give back gigabytes of small nodes
