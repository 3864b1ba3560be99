"""The command line: a thin shell over the public functions."""

import os
import sys
from typing import TextIO


def main() -> None:
    """Run the ``propreg`` command."""
    _prepare_output()
    try:
        from propreg.cli.app import app
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich"}:
            raise
        sys.exit(f"The propreg command needs {missing.name}: run pip install 'propreg[cli,report]'.")
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="propreg")  # also as python -m propreg: help and completion then name the same command


def _prepare_output() -> None:
    """Output goes somewhere, in an encoding that can be relied on."""
    # A stream that the caller has closed is None, and the next file to be opened would get its number.
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a sign gets a ?, not a traceback
            stream.reconfigure(errors="replace")
    is_chosen = bool(os.environ.get("PYTHONIOENCODING"))
    if hasattr(sys.stdout, "reconfigure") and not sys.stdout.isatty() and not is_chosen:
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")  # a file has the same bytes on any machine


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")
