"""The claim `fixed-iterations`: what compilers make of the search, and how many rounds it takes when run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from draft_ladder.studies.rounds import compilers, examine, shape_of
from native_modules import variants

FLAGS = variants()[0].module.info()["cxx_flags"] if variants() else "-O3 -DNDEBUG"
pytestmark = pytest.mark.skipif(
    not compilers() or shutil.which("objdump") is None, reason="needs a C++ compiler and objdump"
)


@pytest.mark.parametrize("compiler", compilers())
def test_the_search_has_one_loop_and_no_branch_on_what_it_reads(compiler: str) -> None:
    found = examine(compiler, FLAGS)
    assert found.backward_branches == 1
    assert found.conditional_branches <= 2  # is there anything to search; is there another round
    if "clang" not in found.compiler:
        assert found.conditional_moves == 1
    assert found.rounds_of_eight == 3
    assert found.varying_lengths == []
    assert found.fixed


def test_a_branch_on_what_was_read_is_seen() -> None:
    lines = """
  0:\tcmp    $0x1,%rsi
  4:\tjbe    18 <f+0x18>
  8:\tcmp    %edx,(%rax)
  a:\tjg     10 <f+0x10>
  c:\tlea    (%rax,%rcx,8),%rax
 10:\tcmovle %r8,%rax
 14:\tja     8 <f+0x8>
 18:\tret
""".splitlines()
    shape = shape_of(lines)
    assert (shape.backward_branches, shape.conditional_branches, shape.conditional_moves) == (1, 3, 1)


def test_a_search_that_branches_is_not_fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same header with the library's search in place of ours must fail the claim."""
    source = Path(__file__).parents[2] / "native"
    for room in ("base", "containers"):
        (tmp_path / room).mkdir()
    text = (source / "containers/sorted_search.hpp").read_text()
    begin, end = text.index("struct FixedRoundSearch"), text.index("// The library's search")
    changed = text[:begin] + text[end:]
    changed = changed.replace("struct LowerBoundSearch", "struct FixedRoundSearch")
    changed += "\nnamespace ladder { using LowerBoundSearch = FixedRoundSearch; }\n"
    (tmp_path / "containers/sorted_search.hpp").write_text(changed)
    for name in ("base/types.hpp", "base/check.hpp"):
        shutil.copy(source / name, tmp_path / name)
    monkeypatch.setattr("draft_ladder.studies.rounds.SOURCES", tmp_path)
    found = examine(compilers()[0], FLAGS)
    assert not found.fixed
    assert found.varying_lengths != []
