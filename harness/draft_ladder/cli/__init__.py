"""The command line: `ladder VERB`. Data goes to stdout, progress to stderr."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point. Imports the program only here, so that an interrupt during that ends as any other does."""
    try:
        from draft_ladder.cli.program import run_program
    except KeyboardInterrupt:
        print("ladder: interrupted; run again to continue", file=sys.stderr)
        sys.exit(130)
    run_program()
