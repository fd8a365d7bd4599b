"""What the runner's tests share: variants that misbehave on purpose, and a small experiment."""

from __future__ import annotations

import random
import struct
import textwrap
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.base.errors import LadderError
from draft_ladder.base.manifests import sha256_file
from draft_ladder.base.variants import Variant, discover, find
from draft_ladder.bench.config import Experiment
from draft_ladder.bench.records import CorpusLabel, RunRecord, TextLabel, TokenizerLabel
from draft_ladder.bench.runner import Inputs, Job, SizeInputs, StaticFile, plan

# A Python file may be a variant too; these wrap a real one and go wrong in one place.
WRAPPER = """
import importlib.util, os, signal, sys, time
spec = importlib.util.spec_from_file_location({base!r}, {module!r})
real = importlib.util.module_from_spec(spec)
spec.loader.exec_module(real)
info, die_with_parent, static_format_of = real.info, real.die_with_parent, real.static_format_of

def convert_static(source, target):
    return real.convert_static(source, target)

class Drafter:
    def __init__(self, options=None):
        self.inner = real.Drafter()
    def __getattr__(self, name):
        return getattr(self.inner, name)
    def replay(self, *arguments):
{before}
        return self.inner.replay(*arguments)
    def replay_dump(self):
        text = self.inner.replay_dump()
{after}
        return text
"""
MISBEHAVIOUR = {
    "broken": ("", "text = text[:-1] + b' 7\\n'"),
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", ""),
    "crashed": ("os.kill(os.getpid(), signal.SIGSEGV)", ""),
    "sleepy": ("time.sleep(60)", ""),
    "chatty": ("print('not JSON'); sys.stdout.flush(); os._exit(0)", ""),
    "hungry": ("self.hoard = bytearray(1 << 33)", ""),
    "touchy": (
        "import mmap; hoard = mmap.mmap(-1, 500_000_000); hoard.write(b'x' * 500_000_000); hoard.close()",
        "",
    ),
}


def real_variants() -> list[Variant]:
    """The built variants; skips where nothing is built."""
    try:
        return discover()
    except LadderError as error:
        pytest.skip(f"no native modules: {error}")


def variant_root(folder: Path, *misbehaving: str, base: str = "reference_access") -> Path:
    """A folder of modules: all real ones, and wrappers of `base` that misbehave."""
    for variant in real_variants():
        group = folder / "variants" / variant.module.parent.parent.name
        group.mkdir(parents=True, exist_ok=True)
        (group / variant.name).symlink_to(variant.module.parent)
    for name in misbehaving:
        add_wrapper(folder, name, find(base))
    return folder


def add_wrapper(root: Path, name: str, base: Variant) -> None:
    before, after = MISBEHAVIOUR[name]
    own = root / "variants" / "ablations" / name
    own.mkdir(parents=True)
    code = WRAPPER.format(
        base=base.name,
        module=str(base.module.resolve()),
        before=textwrap.indent(before or "pass", " " * 8),
        after=textwrap.indent(after or "pass", " " * 8),
    )
    (own / f"{name}.py").write_text(code)
    (own / "variant.toml").write_text(
        f'name = "{name}"\nlabel = "{name}"\ncolor = "#777777"\nmarker = "x"\n'
        f'rule = "{base.rule}"\nties = "{base.ties}"\nstatic_format = "{base.static_format}"\n'
        'changes = "goes wrong"\n'
    )


def add_peer(root: Path, name: str, code: str, /, **said: str) -> Path:
    """A variant in Python: `code` is its drafter.py, `said` what its variant.toml says otherwise."""
    own = root / "variants" / "peers" / name
    own.mkdir(parents=True)
    (own / "drafter.py").write_text(textwrap.dedent(code))
    style = {"name": name, "label": name, "color": "#777777", "marker": "x", "changes": "another's drafter"}
    how = {"rule": name, "ties": "token", "engine": "python", "static_format": "llama"}
    table = {**style, **how, **said}
    (own / "variant.toml").write_text("".join(f"{key} = {value!r}\n" for key, value in table.items()))
    return own


def write_tokens(path: Path, count: int, seed: int = 1, vocabulary: int = 50) -> Path:
    generator = random.Random(seed)
    path.write_bytes(struct.pack(f"<{count}i", *(generator.randrange(vocabulary) for _ in range(count))))
    return path


def write_llama_cache(path: Path, tokens: Path) -> Path:
    """A static cache in llama.cpp's format, counted from a token file the slow way."""
    data = tokens.read_bytes()
    ids = struct.unpack(f"<{len(data) // 4}i", data)
    counts: dict[tuple[int, int], dict[int, int]] = {}
    for a, b, c in zip(ids, ids[1:], ids[2:], strict=False):
        successors = counts.setdefault((a, b), {})
        successors[c] = successors.get(c, 0) + 1
    with path.open("wb") as file:
        for (a, b), successors in sorted(counts.items()):
            file.write(struct.pack("<5i", a, b, -1, -1, len(successors)))
            for pair in sorted(successors.items()):
                file.write(struct.pack("<2i", *pair))
    return path


def small_experiment(**changes: Any) -> Experiment:
    content: dict[str, Any] = {
        "name": "small",
        "corpus": {"source": "stdlib"},
        "sizes_mb": [0, 1],
        "n_ctx": 64,
        "repeats": 2,
        "chunk_repeats": 0,
        "variants": ["reference_access", "sorted_vectors"],
        "timeout_s": 30,
    }
    return Experiment.model_validate({**content, **changes})


def small_inputs(folder: Path) -> Inputs:
    """One real static cache and tokens to replay, made without the pipeline."""
    folder.mkdir(parents=True, exist_ok=True)
    tokens = write_tokens(folder / "replay.tok", 2000, seed=2)
    static = write_llama_cache(folder / "static.bin", write_tokens(folder / "corpus.tok", 20_000))
    none = CorpusLabel(label="none", kind="none", source="none", sha256=None)
    some = CorpusLabel(label="random tokens", kind="synthetic", source="test", sha256="1" * 64)
    return Inputs(
        tokens=tokens,
        tokens_sha256=sha256_file(tokens),
        n_tokens=2000,
        replay_text=TextLabel(label="random tokens", sha256="2" * 64),
        tokenizer=TokenizerLabel(name="none", sha256=None),
        sizes=[
            SizeInputs(0, none, {}),
            SizeInputs(1, some, {"llama": StaticFile(static, sha256_file(static), "llama", None)}),
        ],
    )


def small_plan(experiment: Experiment, inputs: Inputs, root: Path | None = None) -> list[Job]:
    return plan(experiment, inputs, [find(name, root) for name in experiment.variants])


class Watcher:
    """Remembers what the runner did."""

    def __init__(self) -> None:
        self.ran: list[Job] = []
        self.skipped_jobs: list[tuple[Job, str]] = []
        self.records: list[RunRecord] = []
        self.notes: list[str] = []

    def started(self, total: int) -> None:
        self.total = total

    def skipped(self, job: Job, why: str) -> None:
        self.skipped_jobs.append((job, why))

    def running(self, job: Job) -> None:
        self.ran.append(job)

    def finished(self, job: Job, record: RunRecord) -> None:
        self.records.append(record)

    def note(self, line: str) -> None:
        self.notes.append(line)
