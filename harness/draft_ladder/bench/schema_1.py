"""Records and plans of schema 1, read as schema 2: what they measured is the same, its names are others.

Schema 1 knew one rule, llama.cpp's, and one engine, the native one. Its `tie_class` is now `ties`, its timing
`section` is `call`, and a variant's `kind` is the name of its group's folder.
"""

from __future__ import annotations

from typing import Any

_TIMINGS = {"section": "call"}
_GROUPS = {"rung": "ladder", "ablation": "ablations"}


def upgraded_record(content: dict[str, Any]) -> dict[str, Any]:
    """A record's content; what is not as schema 1 has it stays for the validation to find."""
    return {
        **content,
        "schema": 2,
        "spec": _with_timing(_with_rule(content.get("spec"))),
        "measured": _with_timing(content.get("measured")),
    }


def upgraded_plan(content: dict[str, Any]) -> dict[str, Any]:
    """The content of an experiment.json."""
    variants = content.get("variants")
    if isinstance(variants, dict):
        content = {**content, "variants": {name: upgraded_style(style) for name, style in variants.items()}}
    return {**content, "schema": 2}


def spec_of_schema_1(content: dict[str, Any]) -> dict[str, Any] | None:
    """The way back, for the keys that name the files of schema 1; None for what it could not express."""
    spec = dict(content)
    if (spec.pop("rule"), spec.pop("engine")) != ("llama", "native"):
        return None
    spec["tie_class"] = spec.pop("ties")
    spec["timing"] = "section" if spec["timing"] == "call" else spec["timing"]
    return spec


def _with_rule(spec: Any) -> Any:
    if not isinstance(spec, dict) or "tie_class" not in spec or spec.keys() & {"rule", "ties", "engine"}:
        return spec
    rest = {name: value for name, value in spec.items() if name != "tie_class"}
    return {**rest, "rule": "llama", "ties": spec["tie_class"], "engine": "native"}


def _with_timing(part: Any) -> Any:
    if not isinstance(part, dict) or "timing" not in part:
        return part
    return {**part, "timing": _TIMINGS.get(part["timing"], part["timing"])}


def upgraded_style(style: Any) -> Any:
    """What a plan, or an index of end-to-end runs, says of a variant."""
    style = _with_rule(style)
    if not isinstance(style, dict) or "kind" not in style:
        return style
    rest = {name: value for name, value in style.items() if name != "kind"}
    return {**rest, "group": _GROUPS.get(style["kind"], style["kind"])}
