"""Every variant against the drafts of real llama.cpp on real text: counts, and every single draft."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from draft_ladder.studies.audit import audit
from golden_data import golden_cases
from native_modules import ABSENT, Variant, variants

pytestmark = pytest.mark.skipif(not variants(), reason=ABSENT)
by_variant = pytest.mark.parametrize("variant", variants(), ids=str)


def skip_unless_libstdcxx(variant: Variant) -> None:
    library = variant.module.info()["standard_library"]
    if variant.ties == "iteration" and library != "libstdc++":
        pytest.skip(f"the iteration class is defined for libstdc++; this module was built with {library}")


def loaded(variant: Variant, golden: Path, case: dict[str, Any], folder: Path) -> Any:
    drafter = variant.drafter()
    if case["static"]:
        source = golden / f"{case['case']}.bin"
        if variant.static_format != "llama":
            variant.module.convert_static(str(source), str(folder / "own"))
            source = folder / "own"
        drafter.load(str(source))
    return drafter


@by_variant
@pytest.mark.parametrize("case", golden_cases(slow=()))
def test_drafts_of_real_text(variant: Variant, golden: Path, case: dict[str, Any], tmp_path: Path) -> None:
    skip_unless_libstdcxx(variant)
    tokens = (golden / f"{case['case']}.test.tok").read_bytes()
    drafter = loaded(variant, golden, case, tmp_path)
    got = drafter.replay(tokens, case["n_ctx"], case["n_draft"])
    want = case[variant.ties]
    assert {name: got[name] for name in ("n_drafted", "n_accept", "draft_calls")} == {
        name: want[name] for name in ("n_drafted", "n_accept", "draft_calls")
    }
    assert hashlib.sha256(drafter.replay_dump()).hexdigest() == want["drafts_sha256"]


@by_variant
def test_every_line(variant: Variant, golden: Path, tmp_path: Path) -> None:
    skip_unless_libstdcxx(variant)
    drafter = loaded(variant, golden, {"case": "s", "static": True}, tmp_path)
    drafter.replay((golden / "s.test.tok").read_bytes(), 4096, 3)
    assert drafter.replay_dump().decode() == (golden / f"s.{variant.ties}.n3.txt").read_text()


def one_of(ties: str) -> Variant:
    found = next((variant for variant in variants() if variant.ties == ties), None)
    if found is None:
        pytest.skip(f"no variant with ties {ties} is built")
    return found


@pytest.mark.parametrize(("n_ctx", "n_draft"), [(4096, 1), (4096, 16), (512, 3)])
@pytest.mark.parametrize("with_static", [True, False])
@pytest.mark.parametrize("text", ["s", "m"])
def test_ties_explain_every_difference(
    golden: Path, text: str, with_static: bool, n_ctx: int, n_draft: int
) -> None:
    static = golden / f"{text}.bin" if with_static else None
    report = audit(
        one_of("token").module,
        one_of("iteration").module,
        golden / f"{text}.test.tok",
        static,
        n_ctx,
        n_draft,
    )
    assert report.wrong == 0, report.samples["wrong"]
    assert report.tie > 0
    assert report.positions > 10_000
