"""``propreg predict``: a saved model's predictions for the nodes of a graph, or for molecules, as a CSV file."""

from pathlib import Path
from typing import Annotated

import typer

from propreg.cli.shared import Columns, columns_of

LISTED = 10  # unreadable molecules


def predict(
    model: Annotated[Path, typer.Argument(help="A saved model, or the folder of a run.")],
    graph: Annotated[
        Path | None, typer.Option(help="A folder with edges.csv and nodes.csv (no labels needed), or an .npz file.")
    ] = None,
    molecules: Annotated[
        Path | None, typer.Option(help="A CSV file of molecules with a header line; needs RDKit (propreg[molecules]).")
    ] = None,
    smiles_column: Annotated[str, typer.Option(help="The column of --molecules with SMILES.")] = "smiles",
    output: Annotated[Path, typer.Option("--output", "-o", help="The CSV file to write or replace.")] = Path(
        "predictions.csv"
    ),
    directed: Annotated[bool, typer.Option("--directed", help="Read edges.csv as directed, source → target.")] = False,
    columns: Columns = None,
) -> None:
    """Predict the class of every node of a graph, or the targets of molecules, and write a CSV file."""
    if (graph is None) == (molecules is None):
        raise typer.BadParameter("give either --graph or --molecules: what the model was trained on.")
    from propreg.console import StatusLine
    from propreg.jsonio import atomic_write

    with StatusLine("loading PyTorch …"):
        from propreg.running.folder import MODEL
    file = model / MODEL if model.is_dir() else model
    if molecules is not None:
        text, said = _of_molecules(file, molecules, smiles_column)
    else:
        assert graph is not None
        text, said = _of_nodes(file, graph, directed, columns_of(columns))
    with atomic_write(output) as out:
        out.write(text.encode())
    typer.echo(f"Wrote {output}: {said}.")


def _of_nodes(model: Path, graph: Path, directed: bool, columns: dict[str, str] | None) -> tuple[str, str]:
    """The table, and a summary."""
    from propreg.console import counted
    from propreg.fitting.checkpoint import load_trained
    from propreg.fitting.predictions import predictions_csv, unlabeled_graph

    trained = load_trained(model)
    found = unlabeled_graph(graph, directed=directed, columns=columns)
    unknown = int((found.y < 0).sum())
    said = f"{counted(found.num_nodes, 'node')}, {unknown:,} of them without a label"
    return predictions_csv(found, trained.probabilities(found), trained.class_names), said


def _of_molecules(model: Path, path: Path, smiles_column: str) -> tuple[str, str]:
    """The same; molecules that RDKit cannot read are named, and have a row without predictions."""
    from propreg.console import counted, printable
    from propreg.data.errors import DataError
    from propreg.fitting.graphs.model import load_graph_model
    from propreg.molecules.table import read_table
    from propreg.running.molecules import predictions_csv

    trained = load_graph_model(model)
    table = read_table(path, smiles_column, labeled=False)
    readable, problems = table.readable()
    if not readable.smiles:
        raise DataError(next(iter(problems.values())))
    text = predictions_csv(table, trained, readable.graphs(), readable.lines)
    for sentence in list(problems.values())[:LISTED]:
        typer.echo(printable(sentence), err=True)
    if len(problems) > LISTED:
        typer.echo(f"… and {len(problems) - LISTED:,} more.", err=True)
    left = f", {len(problems):,} of them without predictions" if problems else ""
    return text, f"{counted(len(table.smiles), 'molecule')}{left}"
