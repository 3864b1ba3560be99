"""The record that a command reads: the options that name it, and the line on which of two was read."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from propreg.cli.shared import DEFAULT_STORE, RESULTS, results_folder

if TYPE_CHECKING:
    from propreg.store.progress import Reading
    from propreg.study.spec.experiment import Experiment

RULE = f"default {RESULTS}/ or the record in the package, or the store {DEFAULT_STORE} if that has more of the runs"
ResultsPath = Annotated[
    Path | None, typer.Option("--results", help=f"A store, an export, or a folder of exports; {RULE}.")
]
StoreOrDefault = Annotated[
    Path | None, typer.Option("--store", help="Read only this store; the same as --results STORE.")
]


def read(experiments: "Collection[Experiment]", results: Path | None, store: Path | None = None) -> "Reading":
    """The record for these experiments; if both are there and differ, a line on standard error names the one read.

    Raises:
        StudyError: If there is none, or it cannot be read.
    """
    from propreg.store.progress import need_records, read_recorded

    found = read_recorded(experiments, need_records(named(results, store), results_folder(), DEFAULT_STORE))
    if found.remark:
        typer.echo(found.remark, err=True)
    return found


def named(results: Path | None, store: Path | None) -> Path | None:
    """The path of either option.

    Raises:
        UsageError: If both do.
    """
    from propreg.store.errors import UsageError

    if results is not None and store is not None:
        raise UsageError("--results and --store both name the record to read: leave one of them out.")
    return results or store
