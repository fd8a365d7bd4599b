"""Errors a user can act on, and the exit code each one ends the program with."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """Documented exit codes of every `ladder` verb."""

    OK = 0
    RUN_FAILED = 1
    USAGE = 2
    DRAFTS_DIFFER = 3
    INTERRUPTED = 130


class LadderError(Exception):
    """Anything the program stops for: `str(error)` is one line that names place, problem and remedy."""

    exit_code = ExitCode.USAGE


class InputError(LadderError):
    """A file, config or option (`where`) that cannot be used, what is wrong with it, and the remedy."""

    def __init__(self, where: object, problem: str, remedy: str) -> None:
        super().__init__(f"{where}: {problem}; {remedy}")
        self.where, self.problem, self.remedy = str(where), problem, remedy


class RunFailedError(LadderError):
    """At least one measured run did not finish."""

    exit_code = ExitCode.RUN_FAILED


class DraftsDifferError(LadderError):
    """Two variants of one equivalence group drafted differently: nothing they measured may be charted."""

    exit_code = ExitCode.DRAFTS_DIFFER
