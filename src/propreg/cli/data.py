"""``propreg data``: list, describe, fetch and verify the benchmark datasets; convert your own graph."""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from propreg._lazy import MissingPackageError
from propreg.cli.complete import datasets
from propreg.cli.convert import convert
from propreg.cli.shared import Json
from propreg.console import printable

app = typer.Typer(help="The benchmark datasets, and your own graph.", no_args_is_help=True)
app.command()(convert)

Names = Annotated[
    list[str] | None, typer.Argument(help="Datasets; all of them if none is named.", autocompletion=datasets)
]
Name = Annotated[str, typer.Argument(help="A dataset.", autocompletion=datasets)]
Root = Annotated[
    Path | None,
    typer.Option(help="The folder to search first, before PROPREG_DATA and the cache, and to download to."),
]
_COUNTS = ("graphs", "nodes", "edges", "features", "classes", "tasks")


@app.command("list")
def list_(root: Root = None, as_json: Json = False) -> None:
    """List the datasets, their sizes, and which are on disk."""
    from propreg.data.benchmarks.catalog import names
    from propreg.data.benchmarks.facts import catalog_facts

    with _plain_warnings():
        rows = [catalog_facts(name, root) for name in names()]
    for row in rows:  # molecules: bonds are their edges, and OGB gives every atom nine features
        row.setdefault("edges", row.get("bonds"))
        row.setdefault("features", 9)
    if as_json:
        keys = ("name", "kind", *_COUNTS, "about", "on_disk")
        _print_json([{key: row.get(key) for key in keys} for row in rows])
        return
    table = [
        [row["name"], *(_cell(row.get(key)) for key in _COUNTS), _where(row["on_disk"]), row["about"]] for row in rows
    ]
    _print_table(["name", *_COUNTS, "on disk", "about"], table)


@app.command()
def info(name: Name, root: Root = None, as_json: Json = False) -> None:
    """Show a dataset's counts, sources, license and content digests."""
    from propreg.data.benchmarks.facts import catalog_facts

    with _plain_warnings():
        facts = catalog_facts(name, root)
    if as_json:
        _print_json(facts)
        return
    parts, raw, raw_splits, known_files = (facts.pop(key) for key in ("parts", "raw", "raw_splits", "raw_sha256"))
    for key, value in facts.items():
        typer.echo(f"{key:<14} {printable(_cell(value))}")
    for title, urls in (("source", raw), ("splits from", raw_splits)):
        for url in urls:
            typer.echo(f"{title:<14} {url}, SHA-256 {known_files[url] or 'not known: its content is compared'}")
    for part, known in parts.items():
        for digest in known["accepted"]:
            typer.echo(f"{part:<18} {'published' if known['published'] else 'copy':<9} {digest}")


@app.command()
def fetch(names: Names = None, root: Root = None, as_json: Json = False) -> None:
    """Download datasets that are not on disk, with the official splits, and print their paths."""
    from propreg.data.benchmarks import catalog
    from propreg.data.benchmarks.download import ensure_molecules, ensure_nodes, ensure_splits

    rows = []
    with _plain_warnings():
        for name in names or catalog.fetchable():
            entry = catalog.find(name)
            if isinstance(entry, catalog.MoleculeSet):
                files = [ensure_molecules(entry, root)]
            else:
                both = [ensure_nodes(entry, root), ensure_splits(entry, root)] if entry.file else []
                files = list(dict.fromkeys(both))
            rows.append({"name": entry.name, "files": [str(file) for file in files]})
            if not as_json:
                typer.echo(f"{entry.name:<16} {printable(', '.join(map(str, files))) or 'comes with scikit-learn'}")
    if as_json:
        _print_json(rows)


@app.command()
def verify(names: Names = None, root: Root = None, as_json: Json = False) -> None:
    """Read the datasets on disk, compare their content with the known digests, and describe them."""
    from propreg.data.benchmarks import catalog
    from propreg.data.benchmarks.facts import verified_facts
    from propreg.data.errors import DataError

    rows: list[dict[str, Any]] = []
    failed = False
    chosen = [catalog.find(name).name for name in names or catalog.names()]
    for name in chosen:
        try:
            with _plain_warnings():
                facts = verified_facts(name, root)
            rows.append(facts or {"name": name, "error": "not on disk"})
            if facts is None and names:
                failed = True
                typer.echo(f"{name} is not on disk: run propreg data fetch {name}.", err=True)
        except (DataError, MissingPackageError) as error:
            failed = True
            rows.append({"name": name, "error": str(error)})
            typer.echo(str(error), err=True)
    if as_json:
        _print_json(rows)
    else:
        _print_verified(rows)
    if failed:
        raise typer.Exit(1)


def _print_verified(rows: list[dict[str, Any]]) -> None:
    keys = (*_COUNTS, "homophily", "isolated", "components")
    table = []
    for row in rows:
        verdict = "ok" if "error" not in row else "not on disk" if row["error"] == "not on disk" else "refused"
        table.append([row["name"], *(_cell(row.get(key)) for key in keys), verdict])
    _print_table(["name", *keys, "verdict"], table)
    if not any("digests" in row for row in rows):
        return
    typer.echo("\ncontent digests (SHA-256; any other is an error)")
    for row in rows:
        for part, digest in row.get("digests", {}).items():
            typer.echo(f"{row['name']:<16} {part:<16} {row['status'][part]:<9} {digest}")


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings as sentences, without their place in the source."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        typer.echo(printable(str(message)), err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


def _where(on_disk: str | None) -> str:
    return "no" if on_disk is None else "yes"


def _cell(value: object) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _print_json(value: object) -> None:
    json.dump(value, sys.stdout, indent=2, allow_nan=False)
    typer.echo()


def _print_table(header: list[str], rows: list[list[str]]) -> None:
    """Columns as wide as their content: a script or a pager may cut lines, this table should not."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        cells = [
            cell.ljust(width) if i in (0, len(row) - 1) or not _is_count(header[i]) else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        typer.echo("  ".join(cells).rstrip())


def _is_count(title: str) -> bool:
    return title in (*_COUNTS, "homophily", "isolated", "components")
