"""The command line: `ladder VERB`. Data goes to stdout, progress to stderr."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Entry point. Until the program is imported there is nothing to clean up: an interrupt ends it at once.

    An exception could not: raised inside an import it is printed and lost as often as it arrives.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell's background job ignores it
        signal.signal(signal.SIGINT, leave)
    from draft_ladder.cli.program import run_program

    run_program()


def leave(number: int, frame: object) -> None:
    """End this process on an interrupt, without a word from Python."""
    os.write(2, b"ladder: interrupted; run again to continue\n")
    os._exit(130)
