"""Draft Ladder: measures prompt-lookup drafting, one data structure at a time.

What a program may import: `LadderDraft`, the drafter for llama-cpp-python; `EAGER`, its thresholds that draft
whatever is known; `InputError`, raised for a file or a setting that cannot be used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # every verb and every test imports this module: it must cost nothing
    from draft_ladder.base.errors import InputError
    from draft_ladder.llama.draft_model import EAGER, LadderDraft

__all__ = ["EAGER", "InputError", "LadderDraft"]


def __getattr__(name: str) -> object:
    """Import the public names where they are first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from draft_ladder.llama import draft_model

    return getattr(draft_model, name)
