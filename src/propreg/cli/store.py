"""``propreg store``: check, export, import and merge finished runs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from propreg.cli.shared import DEFAULT_STORE, Json, StorePath, one_sentence, print_json

app = typer.Typer(help="The file that holds finished runs.", no_args_is_help=True)
Sources = Annotated[list[Path], typer.Argument(help="Stores or exports.")]


@app.command()
def check(store: StorePath = DEFAULT_STORE, as_json: Json = False) -> None:
    """Check that a store is whole. It is only read."""
    with one_sentence():
        from propreg.study.checking import check_store
        from propreg.study.opening import log_of

        runs, wrong, undigested = check_store(store)
    if as_json:
        print_json({"runs": runs, "wrong": wrong, "without_digest": undigested})
    else:
        for line in wrong:
            typer.echo(line, err=True)
        if runs or not wrong:  # else the one sentence has said it all
            older = f" ({undigested} without a digest, from an earlier propreg: a changed number in those is not seen)"
            end = "whole" if not wrong else f"{len(wrong)} wrong"
            if not store.stat().st_size and not log_of(store).exists():
                end = "the file is empty: nothing was stored in it yet, or it was cut off"
            typer.echo(f"{store}: {runs} runs, {end}{older if undigested else ''}.")
    if wrong:
        raise typer.Exit(1)


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="Where to, for example results/table1.jsonl.gz.")],
    experiment: Annotated[list[str] | None, typer.Option(help="Only the runs of this experiment.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also over an export that has runs which would be lost.")
    ] = False,
    store: StorePath = DEFAULT_STORE,
) -> None:
    """Write the runs as canonical text: sorted, no times, no host. Who made them goes to a file beside it."""
    with one_sentence():
        from propreg.data._atomic import atomic_write
        from propreg.study.checking import need_whole
        from propreg.study.experiment import load_experiment
        from propreg.study.export_target import check_kept, check_target
        from propreg.study.exported import write_export
        from propreg.study.files import sidecar
        from propreg.study.provenance import provenance
        from propreg.study.store import Store

        check_target(file, store)
        lines = [line for name in experiment or [] for line in load_experiment(name).lines]
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
    """Take runs from exports into a store; it is made where it is not there."""
    _take(sources, store, as_json)


@app.command()
def merge(sources: Sources, store: StorePath = DEFAULT_STORE, as_json: Json = False) -> None:
    """Take runs from other stores; equal keys with unequal results are reported and left as they are."""
    _take(sources, store, as_json)


def _take(sources: list[Path], path: Path, as_json: bool) -> None:
    unequal = 0
    with one_sentence():
        from propreg.study.merging import take_into

        for source in sources:
            taken = take_into(path, source)
            unequal += len(taken.unequal)
            if as_json:
                print_json({"from": str(source), **vars(taken)})
                continue
            typer.echo(f"{source}: {taken.added} runs added, {taken.same} known, {len(taken.unequal)} unequal.")
            for key in taken.unequal:
                typer.echo(f"{key}: {source} has another result than {path}, which stays.", err=True)
    if unequal:
        raise typer.Exit(1)
