"""The command line: a thin shell over the public functions."""

import sys


def main() -> None:
    """Run the ``propreg`` command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a sign gets a ?, not a traceback
            stream.reconfigure(errors="replace")
    try:
        from propreg.cli.app import app
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich"}:
            raise
        sys.exit(f"The propreg command needs {missing.name}: run pip install 'propreg[all]'.")
    except KeyboardInterrupt:
        sys.exit(130)
    app(prog_name="propreg")  # also as python -m propreg: help and completion then name the same command
