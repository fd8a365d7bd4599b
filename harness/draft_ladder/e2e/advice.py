"""`ladder e2e --advise`: whether drafting pays with this model on this machine, for each workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from draft_ladder.base.interfaces import Drafter
from draft_ladder.e2e.cost import Advice, CostCurve, CostPoint, advise, measure_costs
from draft_ladder.e2e.inputs import Note
from draft_ladder.e2e.records import E2eConfig
from draft_ladder.e2e.session import Options, default_variant, opened
from draft_ladder.llama.generation import Generation, generate
from draft_ladder.llama.static_cache import load_static


@dataclass(frozen=True)
class WorkloadAdvice:
    """Advice for one workload, with what was measured to give it."""

    workload: str
    advice: Advice
    n_drafted: int
    n_accept: int


def run_advice(config: E2eConfig, options: Options, note: Note) -> list[WorkloadAdvice]:
    """Which n_draft to use for this model, machine and each workload, or none."""
    longest = max(config.advise_n_drafts)
    name = default_variant(config)
    results = []
    with opened(config, options, [name], note) as (inputs, model):
        variant = inputs.variants[0]
        filler = np.resize(np.concatenate(inputs.works[0].prompts), config.cost_prompt_tokens)
        note("cost of a decode against its number of tokens")
        points = measure_costs(model, filler.astype(np.int32), range(1, longest + 2), config.cost_repeats)
        drafter: Drafter = variant.load().Drafter()
        load_static(drafter, inputs.static[variant.static_format].path, inputs.vocabulary)
        for work in inputs.works:
            drafter.forget()
            note(f"{work.workload.name}: answers with drafts of up to {longest} tokens")
            runs = [
                generate(model, prompt, work.workload.n_new, drafter=drafter, n_draft=longest)
                for prompt in work.prompts
            ]
            results.append(_advice_of(work.workload.name, points, runs, config.advise_n_drafts))
    return results


def _advice_of(
    workload: str, points: Sequence[CostPoint], runs: Sequence[Generation], n_drafts: Sequence[int]
) -> WorkloadAdvice:
    # The last calls of an answer are cut to what is left: they say nothing about longer drafts.
    calls = [call for run in runs for call in run.calls]
    n_new = sum(len(run.tokens) for run in runs)
    drafting = sum(run.phases_ns["draft"] + run.phases_ns["update"] for run in runs)
    sample = sum(run.phases_ns["sample"] for run in runs)
    advice = advise(CostCurve(points), calls, drafting / max(1, len(calls)), n_drafts, sample / max(1, n_new))
    return WorkloadAdvice(
        workload, advice, sum(drafted for drafted, _ in calls), sum(accepted for _, accepted in calls)
    )
