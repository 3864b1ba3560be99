"""The command line: a thin shell over the public functions."""

import sys


def main() -> None:
    """Run the ``propreg`` command."""
    try:
        from propreg.cli.app import app
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich"}:
            raise
        sys.exit(f"The propreg command needs {missing.name}: run pip install 'propreg[all]'.")
    app()
