"""``propreg store``: check, export, import, merge and repair finished runs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from propreg.cli.shared import DEFAULT_STORE, Json, StorePath, print_json, with_rungs

app = typer.Typer(help="The file that holds finished runs.", no_args_is_help=True)
Sources = Annotated[list[Path], typer.Argument(help="Stores or exports.")]


@app.command()
def check(store: StorePath = DEFAULT_STORE, as_json: Json = False) -> None:
    """Check that a store is whole. It is only read."""
    from propreg.store.integrity import check_store
    from propreg.store.sqlite import log_of

    runs, wrong = check_store(store)
    if as_json:
        print_json({"runs": runs, "wrong": wrong})
    else:
        for line in wrong:
            typer.echo(line, err=True)
        if runs or not wrong:  # else the sentence above says it all
            end = "whole" if not wrong else f"{len(wrong)} wrong"
            if not store.stat().st_size and not log_of(store).exists():
                end = "the file is empty: nothing was stored in it yet, or it was cut off"
            typer.echo(f"{store}: {runs} runs, {end}.")
    if wrong:
        raise typer.Exit(1)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The file to write, for example results/table1.jsonl.gz.")],
    experiment: Annotated[list[str] | None, typer.Option(help="Only the runs of this experiment.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the export even if runs in it would be lost.")
    ] = False,
    store: StorePath = DEFAULT_STORE,
) -> None:
    """Export the runs as canonical text: sorted, no times, no host. Their provenance goes to a file beside it."""
    from propreg.jsonio import atomic_write
    from propreg.store.export import check_kept, check_target, sidecar, write_export
    from propreg.store.integrity import need_whole
    from propreg.store.provenance import provenance
    from propreg.store.store import Store
    from propreg.study.spec.experiment import load_experiment

    check_target(file, store)
    parts = with_rungs([load_experiment(name) for name in experiment or []], store)
    lines = [line for part in parts for line in part.lines]
    wanted = {(cell.text, split, seed) for line in lines for cell in line.cells
              for split in line.splits for seed in line.seeds}  # fmt: skip
    with Store(store, "read") as opened, opened.snapshot():
        need_whole(opened)
        rows = [row for row in opened.rows() if not experiment or row[:3] in wanted]
        made_by = provenance(opened, wanted if experiment else None)
    if not replace:
        check_kept(file, {row[:3] for row in rows})
    write_export(file, rows)
    beside = sidecar(file)
    with atomic_write(beside) as out:
        out.write((json.dumps(made_by, indent=1, sort_keys=True) + "\n").encode())
    typer.echo(f"{len(rows)} runs written to {file}, their provenance to {beside}.")


@app.command("import")
def import_(sources: Sources, store: StorePath = DEFAULT_STORE, as_json: Json = False) -> None:
    """Import runs from exports into a store, which is created if missing."""
    _take(sources, store, as_json)


@app.command()
def merge(sources: Sources, store: StorePath = DEFAULT_STORE, as_json: Json = False) -> None:
    """Import runs from other stores; equal keys with unequal results are reported and left as they are."""
    _take(sources, store, as_json)


@app.command()
def salvage(
    source: Annotated[Path, typer.Argument(help="A damaged store or export.")],
    store: Annotated[Path, typer.Option("--store", help="The new store.")],
    as_json: Json = False,
) -> None:
    """Take the runs that match their digests from a damaged store or export into a new store."""
    from propreg.store.salvage import salvage as save

    found = save(source, store)
    if as_json:
        print_json(vars(found))
        return
    typer.echo(f"{source}: {found.kept} runs are whole and now in {store}.")
    for why, runs in found.left_out.items():
        typer.echo(f"Left out: {runs} runs {why}.")


@app.command()
def remove(
    key: Annotated[str, typer.Argument(help="A run's key, or its beginning.")], store: StorePath = DEFAULT_STORE
) -> None:
    """Remove a run from a store, for example one that store check names."""
    from propreg.store.store import Store

    with Store(store, "update") as opened:
        typer.echo(f"{store}: run {opened.remove(key)} was removed.")


@app.command()
def leases(
    store: StorePath = DEFAULT_STORE,
    clear: Annotated[
        bool, typer.Option("--clear", help="Remove the leases of processes that do not run on this machine.")
    ] = False,
) -> None:
    """Show which processes train which batches, including processes that were killed."""
    import time

    from propreg.store.leases import clear as end
    from propreg.store.leases import leases as held
    from propreg.store.locks import clear_writer
    from propreg.store.store import Store

    if clear:
        writer = clear_writer(store)
        with Store(store, "update") as opened:
            gone, left = end(opened)
        also = f" The lease of the writer, process {writer.pid} on {writer.host}, was removed too." if writer else ""
        typer.echo(f"{store}: {gone} leases were removed; {left} of processes that run here stay.{also}")
        return
    with Store(store, "read") as opened:
        found = held(opened)
    for lease in found:
        state = "runs" if lease.worker.is_here() else "is gone" if lease.worker.is_gone() else "may run"
        ends = f"for {lease.expires - time.time():.0f} s more" if lease.expires > time.time() else "expired"
        typer.echo(f"batch {lease.batch}: process {lease.worker.pid} on {lease.worker.host}, which {state}; {ends}")
    typer.echo(f"{store}: {len(found)} leases.")


def _take(sources: list[Path], path: Path, as_json: bool) -> None:
    unequal = 0
    from propreg.store.merge import take_into

    for source in sources:
        taken = take_into(path, source)
        unequal += len(taken.unequal)
        if as_json:
            print_json({"from": str(source), **vars(taken)})
            continue
        counts = f"{taken.added} runs added, {taken.same} known, {len(taken.unequal)} unequal"
        typer.echo(f"{source}: {counts}.")
        for key in taken.unequal:
            typer.echo(f"{key}: {source} has a different result than {path}, which keeps its own.", err=True)
    if unequal:
        raise typer.Exit(1)
