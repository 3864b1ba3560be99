"""The ``propreg`` command and its subcommands.

Exit codes, the same for all of them: 0 success; 1 failure, or a name was not found; 2 wrong command line; 130
interrupted, with finished work kept; 141 the reader of the output (``| head``) closed the pipe.
"""

from typing import Annotated

import typer

from propreg import __version__
from propreg.cli.data import app as data
from propreg.cli.doctor import doctor
from propreg.cli.figure import figure
from propreg.cli.guard import EPILOG, GuardedGroup
from propreg.cli.methods import methods
from propreg.cli.predict import predict
from propreg.cli.report import report
from propreg.cli.reproduce import reproduce
from propreg.cli.rerun import rerun
from propreg.cli.run import run
from propreg.cli.status import status
from propreg.cli.store import app as store
from propreg.cli.table import table
from propreg.cli.tsne import tsne

app = typer.Typer(
    name="propreg",
    cls=GuardedGroup,
    help="Propagation regularization (P-reg) for graph neural networks.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: importing rich takes longer than everything else
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"propreg {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
    debug: Annotated[  # read by GuardedGroup
        bool, typer.Option("--debug", envvar="PROPREG_DEBUG", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Propagation regularization (P-reg) for graph neural networks."""


app.command(short_help="Compare the plain model with a regularized one on a graph; write a page.")(run)
app.command(short_help="Predict the classes of a graph's nodes with a saved model.")(predict)
app.command(short_help="Check the installation and print the command that fixes each problem.")(doctor)
app.command(short_help="List the models, training methods and regularizers, with their papers.")(methods)
app.command(short_help="Train the runs of experiments that are not in the store yet.")(reproduce)
app.command(short_help="Show how much of an experiment is done and how long the rest will take.")(status)
app.command(short_help="Train a recorded run again and compare.")(rerun)
app.command(short_help="Print a table of the paper from recorded runs.")(table)
app.command(short_help="Draw a figure of the paper from recorded runs.")(figure)
app.command(short_help="Write the study or a run as one HTML page.")(report)
app.command(short_help="Train the runs of fig-tsne again and embed their outputs with t-SNE.")(tsne)
app.add_typer(store, name="store")
app.add_typer(data, name="data")
