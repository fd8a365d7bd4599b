"""End to end: a real model answers prompts without drafting and with each variant as drafter.

Records are one JSON file each in results/<machine>/<experiment>/runs, named by a key over everything that
decides what they measure; what is there already is not made again. Five kinds:

    generation  one answer: phases, tokens, acceptance; a difference from the text without drafting
    replay      the drafting rule over the workload's reference text, in a process of its own: the replayed
                acceptance and latency, and loading time and memory of the cache
    drafters    the users' drafter beside llama-cpp-python's own, along the answers
    cost        time of one decode against its number of tokens
    static      how the static cache was made: times and sizes
"""

from __future__ import annotations

import hashlib
import platform
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from draft_ladder.base import host
from draft_ladder.base.interfaces import Drafter
from draft_ladder.base.locks import folder_lock
from draft_ladder.base.manifests import package_version
from draft_ladder.base.variants import Variant
from draft_ladder.bench import environment, places
from draft_ladder.bench.launch import demand
from draft_ladder.e2e.cost import BATCHES, measure_costs
from draft_ladder.e2e.drafter_comparison import compare_drafters
from draft_ladder.e2e.inputs import Inputs, Note, Work
from draft_ladder.e2e.records import INDEX_NAME, NO_DRAFTING, SCHEMA, E2eConfig, Store, write_json
from draft_ladder.e2e.session import Options, default_variant, opened
from draft_ladder.llama.generation import Generation, generate, logits_without_drafting
from draft_ladder.llama.library import TokenArray
from draft_ladder.llama.model import Model
from draft_ladder.llama.static_cache import load_static


class Experiment:
    """Runs one experiment; resumes where it was left."""

    def __init__(
        self, config: E2eConfig, inputs: Inputs, model: Model, folder: Path, *, force: bool, note: Note
    ) -> None:
        self.config, self.inputs, self.model, self.note = config, inputs, model, note
        self.folder, self.store = folder, Store(folder, force=force)
        self._drafters: dict[str, _Remembering] = {}
        self._answers: dict[tuple[str, int], list[int]] = {}
        # What is measured elsewhere, or with another llama.cpp, is not the same measurement.
        self.place = {
            "machine": host.cpu_model(),
            "kernel": platform.release(),
            "llama_cpp_python": package_version("llama-cpp-python"),
        }

    def run(self) -> None:
        """Measure everything that is not there yet, and write the index last."""
        self._static()
        self._cost()
        for work in self.inputs.works:
            self._replays(work)
        for repeat in range(self.config.repeats):
            for work in self.inputs.works:
                self._generations(work, repeat)
        for work in self.inputs.works:
            self._drafters_compared(work)
        write_json(self.folder / INDEX_NAME, self._index())
        if self.store.made_total or not (self.folder / places.NAME).exists():
            places.write_machine(self.folder, self.config.cpu)

    def _settings(self) -> dict[str, Any]:
        config = self.config
        return {
            "experiment": config.name,
            "model_sha256": self.inputs.model_sha256,
            "n_ctx": config.n_ctx,
            "n_batch": config.n_batch,
            "threads": config.threads,
            "cpu": config.cpu,
            **self.place,
        }

    def _static(self) -> None:
        files = self.inputs.static
        spec = {"experiment": self.config.name, "static_sha256": files["llama"].sha256}
        sizes = {name: file.path.stat().st_size for name, file in files.items()}
        conversions = {name: file.convert_ns for name, file in files.items()}
        self.store.measure(
            "static",
            {**spec, "formats": {name: file.sha256 for name, file in sorted(files.items())}},
            lambda: {"corpus": self.inputs.corpus, "file_bytes": sizes, "convert_ns": conversions},
        )

    def _cost(self) -> None:
        config = self.config
        batches = [size for size in BATCHES if size <= config.n_batch]
        spec = {
            **self._settings(),
            "batches": batches,
            "repeats": config.cost_repeats,
            "prompt_tokens": config.cost_prompt_tokens,
        }

        def measure() -> dict[str, Any]:
            self.note("cost of a decode against its number of tokens")
            points = measure_costs(self.model, self._filler(), batches, config.cost_repeats)
            return {"points": [asdict(point) for point in points]}

        self.store.measure("cost", spec, measure)

    def _filler(self) -> TokenArray:
        tokens = np.concatenate([prompt for work in self.inputs.works for prompt in work.prompts])
        wanted = self.config.cost_prompt_tokens
        return np.resize(tokens, wanted).astype(np.int32)

    def _replays(self, work: Work) -> None:
        config = self.config
        for variant in self.inputs.variants:
            static = self.inputs.static[variant.static_format]
            spec = {
                "experiment": config.name,
                "workload": work.workload.name,
                "variant": variant.name,
                "tokens_sha256": work.replay_sha256,
                "static_sha256": static.sha256,
                "module_sha256": variant.module_sha256,
                "n_ctx": config.n_ctx,
                "n_draft": config.n_draft,
                "cpu": config.cpu,
                **self.place,
            }
            request = {
                "tokens": str(work.replay),
                "static": str(static.path),
                "n_ctx": config.n_ctx,
                "n_draft": config.n_draft,
                "timing": "call",
                "prefault": True,
                "options": {},
                "cpu": config.cpu,
            }

            def measure(variant: Variant = variant, request: dict[str, Any] = request) -> dict[str, Any]:
                self.note(f"{work.workload.name}: replay, {variant.name}")
                environment.set_page_cache(Path(request["static"]), "warm")
                return demand(variant, "replay", request)

            self.store.measure("replay", spec, measure)

    def _generations(self, work: Work, repeat: int) -> None:
        """Every prompt without drafting first, then with each variant in a shuffled order."""
        for drafter in self._drafters.values():
            drafter.forget()
        order = np.random.default_rng([self.config.seed, repeat])
        history = hashlib.sha256()
        pending: dict[str, list[TokenArray]] = {variant.name: [] for variant in self.inputs.variants}
        for i, prompt in enumerate(work.prompts):
            expected: list[int] | None = None
            places = order.permutation(len(self.inputs.variants))
            for variant in [None, *(self.inputs.variants[place] for place in places)]:
                spec = self._generation_spec(work, repeat, i, variant, history.hexdigest())
                before = pending[variant.name] if variant else []
                record = self.store.measure(
                    "generation",
                    spec,
                    partial(self._answer, work, i, variant, list(before), expected),
                )
                answer = record.measured["tokens"]
                if variant is None:
                    expected = answer
                    self._answers[work.workload.name, i] = answer
                else:
                    before.append(np.array([*prompt.tolist(), *answer], dtype=np.int32))
            history.update(prompt.tobytes())

    def _drafters_compared(self, work: Work) -> None:
        """The users' drafter beside llama-cpp-python's, along the answers without drafting."""
        name = default_variant(self.config)
        variant = next(variant for variant in self.inputs.variants if variant.name == name)
        static = self.inputs.static[variant.static_format]
        eager = self.inputs.static.get("frozen", self.inputs.static["llama"])
        answers = [(prompt, self._answers[work.workload.name, i]) for i, prompt in enumerate(work.prompts)]
        text = hashlib.sha256()
        for prompt, answer in answers:
            text.update(np.array([*prompt.tolist(), -1, *answer, -1], dtype="<i4").tobytes())
        spec = {
            "experiment": self.config.name,
            "workload": work.workload.name,
            "answers_sha256": text.hexdigest(),
            "variant": name,
            "module_sha256": variant.module_sha256,
            "static_sha256": static.sha256,
            "eager_static_sha256": eager.sha256,
            "n_draft": self.config.n_draft,
            "cpu": self.config.cpu,
        }

        def measure() -> dict[str, Any]:
            self.note(f"{work.workload.name}: LadderDraft beside LlamaPromptLookupDecoding")
            found = compare_drafters(name, static.path, eager.path, self.config.n_draft, answers)
            return {key: asdict(figures) for key, figures in found.items()}

        self.store.measure("drafters", spec, measure)

    def _generation_spec(
        self, work: Work, repeat: int, i: int, variant: Variant | None, history: str
    ) -> dict[str, Any]:
        spec = {
            **self._settings(),
            "workload": work.workload.name,
            "prompt": i,
            "prompt_sha256": hashlib.sha256(work.prompts[i].tobytes()).hexdigest(),
            "n_new": work.workload.n_new,
            "repeat": repeat,
            "variant": variant.name if variant else NO_DRAFTING,
        }
        if variant:
            spec |= {
                "n_draft": self.config.n_draft,
                "static_sha256": self.inputs.static[variant.static_format].sha256,
                "module_sha256": variant.module_sha256,
                # The dynamic cache holds the prompts before this one, so they are part of what is measured.
                "earlier_prompts_sha256": history,
            }
        return spec

    def _answer(
        self,
        work: Work,
        i: int,
        variant: Variant | None,
        before: list[TokenArray],
        expected: list[int] | None,
    ) -> dict[str, Any]:
        prompt = work.prompts[i]
        drafter = self._drafter(variant, before) if variant else None
        begin = time.perf_counter_ns()
        result = generate(
            self.model,
            prompt,
            work.workload.n_new,
            drafter=drafter,
            n_draft=self.config.n_draft,
            expected=expected,
        )
        measured = {**result.report(), "outer_wall_ns": time.perf_counter_ns() - begin}
        measured["divergence"] = self._explain(prompt, result) if variant else None
        measured["memory_bytes"] = drafter.memory_bytes() if drafter is not None else 0
        name = variant.name if variant else "no drafting"
        rate = len(result.tokens) * 1e9 / result.wall_ns
        self.note(f"{work.workload.name} {i + 1}: {name}: {rate:.1f} tokens/s")
        return measured

    def _drafter(self, variant: Variant, before: list[TokenArray]) -> _Remembering:
        """The variant's drafter: its static cache, the workload's earlier prompts in its dynamic one."""
        if variant.name not in self._drafters:
            drafter: Drafter = variant.load().Drafter()
            load_static(drafter, self.inputs.static[variant.static_format].path, self.inputs.vocabulary)
            self._drafters[variant.name] = _Remembering(drafter)
        remembering = self._drafters[variant.name]
        remembering.remember(before)
        return remembering

    def _explain(self, prompt: TokenArray, result: Generation) -> dict[str, Any] | None:
        """The first difference with both tokens' logits, in the batch and decoded one by one."""
        found = result.divergence
        if found is None:
            return None
        answer = result.tokens[: found.index]
        alone = logits_without_drafting(self.model, prompt, answer, [found.token, found.expected])
        return {
            "index": found.index,
            "token": found.token,
            "expected": found.expected,
            "logits_in_batch": [found.logit, found.logit_of_expected],
            "logits_one_by_one": alone,
        }

    def _index(self) -> dict[str, Any]:
        config, inputs = self.config, self.inputs
        content = config.model_dump(mode="json", exclude={"corpus", "static", "model", "workload"})
        works = [
            {
                **work.workload.model_dump(mode="json", exclude={"file"}),
                "file": Path(work.workload.file).name,
                "prompt_tokens": [len(prompt) for prompt in work.prompts],
                "prompts_cut": work.cut_total,
                "replay_sha256": work.replay_sha256,
            }
            for work in inputs.works
        ]
        return {
            "schema": SCHEMA,
            "kind": "e2e",
            "config": content,
            "model": {
                "name": self.model.name,
                "file": inputs.model.name,
                "sha256": inputs.model_sha256,
                "bytes": inputs.model.stat().st_size,
                "vocabulary": inputs.vocabulary._asdict(),
            },
            "variants": {
                variant.name: variant.model_dump(mode="json", exclude={"module"})
                for variant in inputs.variants
            },
            "workloads": works,
            "keys": self.store.keys,
        }


class _Remembering:
    """A native drafter that knows how many earlier sequences its dynamic cache holds."""

    def __init__(self, drafter: Drafter) -> None:
        self._drafter = drafter
        self._held = 0
        self.append, self.draft, self.extend = drafter.append, drafter.draft, drafter.extend
        self.memory_bytes = drafter.memory_bytes

    def end_chunk(self) -> None:
        self._drafter.end_chunk()
        self._held += 1

    def forget(self) -> None:
        self._drafter.forget()
        self._held = 0

    def remember(self, sequences: list[TokenArray]) -> None:
        """Bring the dynamic cache to these sequences (after a resumed run it lacks some)."""
        if self._held > len(sequences):
            self.forget()
        for sequence in sequences[self._held :]:
            self._drafter.extend(sequence.tobytes())
            self.end_chunk()


def run_e2e(config: E2eConfig, options: Options, note: Note) -> Path:
    """Run or resume an experiment; its results folder. Raises LadderError."""
    folder = options.results / environment.machine_folder(options.machine) / config.name
    places.refuse_elsewhere(folder, config.cpu)
    with (
        opened(config, options, config.variants, note) as (inputs, model),
        folder_lock(folder, "runner"),
    ):
        experiment = Experiment(config, inputs, model, folder, force=options.force, note=note)
        experiment.run()
        store = experiment.store
        note(f"{store.made_total} records made, {store.skipped_total} were there already")
    return folder
