"""``propreg rerun``: train a recorded run again and compare."""

from pathlib import Path
from typing import Annotated

import typer

from propreg.cli.recorded import StoreOrDefault, named
from propreg.cli.retraining import Retraining
from propreg.cli.shared import (
    DEFAULT_STORE,
    RESULTS,
    Device,
    Json,
    make_trainer,
    print_json,
    results_folder,
)


def rerun(
    key: Annotated[str, typer.Argument(help="A run's key, or its beginning.")],
    device: Device = "auto",
    alone: Annotated[bool, typer.Option(help="Train the run by itself, not in its recorded batch: quicker.")] = False,
    store: StoreOrDefault = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help=f"A store, an export, or a folder of exports; default {RESULTS}/, or the store {DEFAULT_STORE} if "
            "only that has the run."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Train a recorded run again, in its batch if that is known, and compare. The record is not changed.

    If the batch, device, versions and engine are the recorded ones, the result must have the same bits. Otherwise
    the test score must be within three standard deviations, computed over the other seeds of the same split.
    """
    from propreg.devices import check_device
    from propreg.store.progress import need_records
    from propreg.store.results import open_recorded
    from propreg.study.execute.rerun import rerun as again

    check_device(device)
    paths = need_records(named(results, store), results_folder(), DEFAULT_STORE)
    with open_recorded(key, paths) as opened, Retraining(alone) as tell:
        if len(paths) > 1:
            typer.echo(f"The run is recorded in {opened.path}.", err=True)
        found = again(opened, key, lambda: make_trainer(device), alone=alone, tell=tell)
    if as_json:
        print_json(found.as_json())
    else:
        typer.echo(found.sentence())
    if not found.passed:
        raise typer.Exit(1)
