"""How a command ends: exit codes, one sentence per error, tracebacks only with --debug, quiet pipes."""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from propreg.devices import DeviceNameError, out_of_memory
from propreg.store.errors import UsageError

EPILOG = """Start with propreg run: it needs no download and takes less than a minute.

Exit codes: 0 success; 1 failure, or a name was not found; 2 wrong command line;
3 runs are missing (the time was up, or another process trains them);
130 interrupted (Ctrl-C or SIGTERM; finished work is kept); 141 the reader of the output closed the pipe."""
FAILED, WRONG, MISSING, INTERRUPTED, UNREAD = 1, 2, 3, 130, 141


class GuardedGroup(TyperGroup):
    """The top command: an error becomes one sentence and an exit code."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Accept ``--debug`` after the command's name too, where users add it when something has failed."""
        end = args.index("--") if "--" in args else len(args)
        if "--debug" in args[:end]:
            args = ["--debug", *(a for a in args[:end] if a != "--debug"), *args[end:]]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        debug = bool(ctx.params.get("debug"))
        try:
            value = super().invoke(ctx)
            sys.stdout.flush()  # here, where a closed pipe is caught, not at exit
            return value
        except BrokenPipeError:
            _drop_output()
            raise typer.Exit(UNREAD) from None
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if hasattr(error, "exit_code"):  # a wrong command line: typer prints the error
                raise
            if debug:
                traceback.print_exc()
            else:
                typer.echo(sentence(error), err=True)
            raise typer.Exit(WRONG if isinstance(error, UsageError | DeviceNameError) else FAILED) from None


def sentence(error: Exception) -> str:
    """The one sentence of an error, if it is of a class of propreg's own or the system's.

    Anything else, also a ``ValueError``, comes from inside: it is a bug, and the sentence asks for a report.

    Example:
        >>> from propreg.data.errors import DataError
        >>> sentence(DataError("a.npz: is damaged: copy it again."))
        'a.npz: is damaged: copy it again.'
        >>> sentence(FileNotFoundError(2, "No such file or directory", "a.npz"))
        'a.npz: No such file or directory.'
        >>> sentence(KeyError("x"))
        "propreg failed (KeyError: 'x'): run it again with --debug to see where, and please report it."
    """
    message = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if out_of_memory(error):
        return "There is not enough memory: use a smaller graph, fewer --splits and --seeds, or --device cpu."
    if type(error).__module__.partition(".")[0] == "propreg" and message:
        return message
    name = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return f"propreg failed ({name}): run it again with --debug to see where, and please report it."


@contextmanager
def terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM does as Ctrl-C in the block: systems that stop a job send it, and give the job time to write."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # only that one may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _drop_output() -> None:
    """Discard what is still in the buffers, which Python would otherwise report at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
