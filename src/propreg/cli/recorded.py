"""The record that a command reads: the options that name one, and the line that says which of two was read."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.shared import DEFAULT_STORE, RESULTS

if TYPE_CHECKING:
    from propreg.study.experiment import Experiment
    from propreg.study.places import Reading

RULE = f"default {RESULTS}/, or the store {DEFAULT_STORE} where that has more of the runs"
ResultsPath = Annotated[
    Path | None, typer.Option("--results", help=f"A store, an export, or a folder of exports; {RULE}.")
]
StoreOrDefault = Annotated[
    Path | None, typer.Option("--store", help="A store to read, and nothing else; the same as --results with it.")
]


def read(experiments: "Collection[Experiment]", results: Path | None, store: Path | None = None) -> "Reading":
    """The record for these experiments; says on standard error which it was, where that may be a surprise.

    Raises:
        StudyError: If there is none, or it cannot be read.
    """
    from propreg.study.places import need_places, read_recorded

    found = read_recorded(experiments, need_places(named(results, store), RESULTS, DEFAULT_STORE))
    if found.remark:
        typer.echo(found.remark, err=True)
    return found


def named(results: Path | None, store: Path | None) -> Path | None:
    """What the two options name.

    Raises:
        UsageError: If both do.
    """
    from propreg.study.errors import UsageError

    if results is not None and store is not None:
        raise UsageError("--results and --store both name the record to read: leave one of them out.")
    return results or store
