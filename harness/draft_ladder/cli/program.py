"""The program: its verbs in the order of the pipeline, and what an error in one of them becomes."""

from __future__ import annotations

import errno
import signal
import sys

import typer

from draft_ladder.base.errors import ExitCode, LadderError
from draft_ladder.cli import (
    cache_verbs,
    e2e_verbs,
    evidence_verbs,
    leave,
    machine_verbs,
    new_verb,
    peers_verb,
    replay_verb,
    run_verbs,
    text_verbs,
)
from draft_ladder.cli.display import stderr

app = typer.Typer(
    name="ladder",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Measures how fast prompt-lookup drafting can be, one data structure at a time, from text to chart.",
    epilog="Exit codes: 0 ok, 1 some run failed or memory ended, 2 bad option or file, 3 drafts differ, "
    "130 interrupted.",
)
app.command("doctor")(machine_verbs.doctor)
app.command("list")(machine_verbs.list_variants)
app.command("new")(new_verb.new)
app.add_typer(text_verbs.corpus_app, name="corpus")
app.command("tokens")(text_verbs.tokens)
app.add_typer(cache_verbs.app, name="cache")
app.command("replay")(replay_verb.replay)
app.command("run")(run_verbs.run)
app.command("stats")(run_verbs.stats)
app.command("charts")(run_verbs.charts)
app.command("all")(run_verbs.all_)
for verb in (
    evidence_verbs.ablate,
    evidence_verbs.claims,
    evidence_verbs.compare,
    evidence_verbs.export,
    evidence_verbs.instructions,
    evidence_verbs.rounds,
):
    app.command()(verb)
app.command("peers")(peers_verb.peers)
app.command("audit")(evidence_verbs.audit)
app.command("e2e")(e2e_verbs.e2e)
app.command("ledgers")(e2e_verbs.ledgers)


def run_program() -> None:
    """Run the verb that the command line names; every foreseen error is one line and its exit code."""
    interruptible = signal.getsignal(signal.SIGINT) is leave
    try:
        if interruptible:  # from here on there is something to clean up
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = _run_verb()
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    if code == ExitCode.INTERRUPTED:  # typer may have turned the interrupt into this code itself
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        stderr.print("ladder: interrupted; run again to continue", style="red")
    elif interruptible:
        signal.signal(signal.SIGINT, leave)
    sys.stdout.flush()
    sys.exit(code)


def _run_verb() -> int:
    """The exit code of the verb; what went wrong is said."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        return int(app(standalone_mode=False) or 0)
    except LadderError as error:
        stderr.print(f"ladder: {error}", style="red", markup=False)
        return error.exit_code
    except typer.Abort:
        return ExitCode.INTERRUPTED
    except typer.Exit as exit_:
        return exit_.exit_code
    except MemoryError:
        return _out_of_memory()
    except OSError as error:  # of a place nobody foresaw; what is half written is removed where it was opened
        if error.errno == errno.ENOMEM:
            return _out_of_memory()
        where, reason = error.filename or "the system", error.strerror or type(error).__name__
        stderr.print(
            f"ladder: {where}: {reason}; check free space and permissions", style="red", markup=False
        )
        return ExitCode.USAGE
    except Exception as error:
        return _usage_error(error)


def _out_of_memory() -> int:
    """Say that memory ended; what was half written is gone by now."""
    remedy = "allow more (ulimit -v), use a smaller input, or --memory where the verb has it"
    stderr.print(f"ladder: memory: not enough of it; {remedy}", style="red", markup=False)
    return ExitCode.RUN_FAILED


def _terminate(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _usage_error(error: Exception) -> int:
    """Show a mistake in the command line itself; anything else is a bug and keeps its traceback."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    show(file=sys.stderr)
    return int(getattr(error, "exit_code", ExitCode.USAGE))
