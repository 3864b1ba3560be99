"""The ``propreg`` command and its subcommands."""

from typing import Annotated

import typer

from propreg import __version__
from propreg.cli.data import app as data
from propreg.cli.run import run
from propreg.cli.store import app as store
from propreg.cli.study import reproduce, rerun, status
from propreg.cli.table import table

app = typer.Typer(
    name="propreg",
    help="Propagation regularisation (P-reg) for graph neural networks.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"propreg {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Propagation regularisation (P-reg) for graph neural networks."""


app.command()(run)
app.command()(reproduce)
app.command()(status)
app.command()(rerun)
app.command()(table)
app.add_typer(store, name="store")
app.add_typer(data, name="data")
