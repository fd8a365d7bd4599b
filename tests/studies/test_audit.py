"""The auditor on drafters that are right, and on drafters made wrong on purpose in a rare case."""

from __future__ import annotations

import itertools
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from draft_ladder.cli import evidence_verbs
from draft_ladder.studies import audit as auditor
from draft_ladder.studies.audit import audit
from native_modules import variants
from refusals import refused
from specification import ORDERS, Specification, Step, draft_everywhere, read_static, write_static
from typer.testing import CliRunner

Break = Callable[[Specification, list[Step], int], list[Step]]


class Module:
    """The specification with the face of a native module, and with a fault if one is given."""

    def __init__(self, ties: str, fault: Break | None = None) -> None:
        self.ties = ties
        self.fault = fault

    def info(self) -> dict[str, str]:
        return {"name": f"specified_{self.ties}", "ties": self.ties, "static_format": "llama"}

    def Drafter(self) -> ModuleDrafter:  # noqa: N802 (the native modules' name)
        return ModuleDrafter(self)


class ModuleDrafter:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.static: Any = None

    def load(self, path: str) -> None:
        self.static = read_static(Path(path).read_bytes(), ORDERS[self.module.ties])

    def draft_everywhere(self, tokens: bytes, n_ctx: int, n_draft: int) -> list[tuple[int, list[int]]]:
        fault = self.module.fault

        class Faulty(Specification):
            def draft(self, n_draft: int) -> list[Step]:
                steps = super().draft(n_draft)
                return fault(self, steps, n_draft) if fault else steps

        drafter = Faulty(ORDERS[self.module.ties], self.static)
        everywhere = draft_everywhere(drafter, struct.unpack(f"<{len(tokens) // 4}i", tokens), n_ctx, n_draft)
        return [(position, [step.token for step in draft]) for position, draft in everywhere]


class Files:
    def __init__(self, folder: Path, tokens: list[int], static: bytes | None) -> None:
        self.tokens = folder / "text.tok"
        self.tokens.write_bytes(struct.pack(f"<{len(tokens)}i", *tokens))
        self.static = None if static is None else folder / "static.bin"
        if self.static is not None and static is not None:
            self.static.write_bytes(static)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A text full of ties, with a cache that ties as well."""
    rng = random.Random(3)
    tokens = [min(int(rng.expovariate(0.4)), 12) * 1000 for _ in range(1500)]
    pairs = sorted(set(itertools.pairwise(tokens)))
    static = {pair: {t * 1000: rng.choice([1, 1, 2]) for t in rng.sample(range(13), 4)} for pair in pairs}
    return Files(tmp_path, tokens, write_static(static))


@pytest.mark.parametrize("n_ctx", [40, 300])
def test_ties_explain_the_difference_of_the_classes(files: Files, n_ctx: int) -> None:
    report = audit(Module("token"), Module("iteration"), files.tokens, files.static, n_ctx, 4)
    assert report.wrong == 0, report.samples["wrong"]
    assert report.tie > 20
    assert report.threshold_after_tie > 0
    assert report.follows > 0


def test_one_class_with_itself_differs_nowhere(files: Files) -> None:
    report = audit(Module("token"), Module("token"), files.tokens, files.static, 100, 4)
    assert (report.tie, report.threshold_after_tie, report.follows, report.wrong) == (0, 0, 0, 0)
    assert report.drafted == report.drafted_a == report.drafted_b > 0


def wrong_token(drafter: Specification, steps: list[Step], n_draft: int) -> list[Step]:
    return [*steps[:-1], steps[-1]._replace(token=steps[-1].token + 1)]


def cut_short(drafter: Specification, steps: list[Step], n_draft: int) -> list[Step]:
    return steps[:-1]


def one_too_many(drafter: Specification, steps: list[Step], n_draft: int) -> list[Step]:
    return [*steps, steps[-1]]


def largest_of_equals(drafter: Specification, steps: list[Step], n_draft: int) -> list[Step]:
    tail = (drafter.sequence + [step.token for step in steps[:-1]])[-steps[-1].n :]
    cache = {"context": drafter.context, "dynamic": drafter.dynamic, "static": drafter.static}[
        steps[-1].source
    ]
    return [*steps[:-1], steps[-1]._replace(token=max(t for t, _ in cache[tuple(tail)].items()))]


@pytest.mark.parametrize("broken_class", ["token", "iteration"])
@pytest.mark.parametrize("fault", [wrong_token, cut_short, one_too_many])
def test_a_rare_fault_is_caught_after_a_tie_in_the_same_chunk(
    files: Files, broken_class: str, fault: Break
) -> None:
    other = {"token": "iteration", "iteration": "token"}[broken_class]
    sound = audit(Module(broken_class), Module(other), files.tokens, files.static, 500, 3)
    tie = sound.samples["tie"][0]
    at = tie.position + 40
    assert tie.position // 500 == at // 500

    def once(drafter: Specification, steps: list[Step], n_draft: int) -> list[Step]:
        nonlocal at
        position = len(drafter.sequence)
        if at > 0 and position >= at and steps and not any(s.tied for s in steps) and len(steps) < 3:
            at = 0
            return fault(drafter, steps, n_draft)
        return steps

    report = audit(Module(broken_class, once), Module(other), files.tokens, files.static, 500, 3)
    assert report.wrong == 1
    (sample,) = report.samples["wrong"]
    assert report.samples["tie"][0].position < sample.position < 500
    assert f"wrong at {sample.position}" in auditor.describe(sample)


def test_the_token_class_may_not_pick_the_larger_of_equals(files: Files) -> None:
    def fault(drafter: Specification, steps: list[Step], n_draft: int) -> list[Step]:
        tied = steps and steps[-1].tied and steps[-1].source != "static"
        return largest_of_equals(drafter, steps, n_draft) if tied else steps

    report = audit(Module("token", fault), Module("iteration"), files.tokens, None, 500, 1)
    assert report.wrong > 0


def test_difference_inside_one_class_is_wrong(files: Files) -> None:
    def fault(drafter: Specification, steps: list[Step], n_draft: int) -> list[Step]:
        return steps[:-1] if len(drafter.sequence) == 77 else steps

    assert (
        audit(Module("iteration", fault), Module("iteration"), files.tokens, files.static, 500, 3).wrong == 1
    )


@pytest.mark.skipif(not variants(), reason="no native variants to compare")
def test_native_variants(files: Files) -> None:
    for variant in variants():
        for ties in ("token", "iteration"):
            report = audit(variant.module, Module(ties), files.tokens, files.static, 64, 5)
            assert report.wrong == 0, report.samples["wrong"]
            assert (report.tie > 0) == (ties != variant.ties)


def test_command(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {"good": Module("token"), "reference": Module("iteration"), "bad": Module("token", cut)}
    monkeypatch.setattr(auditor, "load_module", modules.__getitem__)
    app = typer.Typer()
    app.command()(evidence_verbs.audit)
    options = ["--tokens", str(files.tokens), "--static", str(files.static), "--n-ctx", "100", "--json"]
    good = CliRunner().invoke(app, ["good", "reference", *options])
    assert good.exit_code == 0
    counts = json.loads(good.stdout)
    assert counts["wrong"] == 0 < counts["tie"]
    bad = CliRunner().invoke(app, ["bad", "reference", *options])
    assert bad.exit_code == 3
    assert json.loads(bad.stdout)["wrong"] > 0
    assert "wrong" in CliRunner().invoke(app, ["bad", "reference", *options[:-1]]).stdout
    for option in ("--n-ctx", "--n-draft"):  # as for `ladder replay`
        assert CliRunner().invoke(app, ["good", "reference", *options, option, str(2**31)]).exit_code == 2


def test_the_command_names_files_and_refuses_mixed_tokenizers(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Refusing(Module):
        def info(self) -> dict[str, str]:
            raise ValueError("<tokens>: byte 8: token -5 is negative; give token ids of 0 and more")

    modules = {"good": Module("token"), "other": Module("token"), "refusing": Refusing("token")}
    monkeypatch.setattr(auditor, "load_module", modules.__getitem__)
    with refused(files.tokens, -5):
        evidence_verbs.audit("refusing", "good", files.tokens)
    short = tmp_path / "short.tok"
    short.write_bytes(files.tokens.read_bytes()[:4])
    evidence_verbs.audit("good", "other", short)
    assert "short.tok" in capsys.readouterr().err
    monkeypatch.setattr("draft_ladder.data.cache.check_same_tokenizer", lambda static, tokens: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        evidence_verbs.audit("good", "other", files.tokens, files.static)


def cut(drafter: Specification, steps: list[Step], n_draft: int) -> list[Step]:
    return steps[:-1] if len(drafter.sequence) == 50 else steps


def test_files_that_cannot_be_used(tmp_path: Path, files: Files) -> None:
    (tmp_path / "odd.tok").write_bytes(b"12345")
    (tmp_path / "text.bin").write_bytes(b"not a cache at all, but words of four")
    for tokens, static in [
        (tmp_path / "odd.tok", None),
        (tmp_path / "absent.tok", None),
        (files.tokens, tmp_path / "text.bin"),
        (files.tokens, tmp_path / "absent.bin"),
    ]:
        with refused((static if tokens == files.tokens else tokens) or ""):
            audit(Module("token"), Module("token"), tokens, static)
