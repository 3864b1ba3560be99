"""``propreg predict``: the classes of a graph's nodes, by a model that ``propreg run`` saved."""

from pathlib import Path
from typing import Annotated

import typer


def predict(
    model: Annotated[Path, typer.Argument(help="A saved model, or the folder of a run.")],
    graph: Annotated[
        Path, typer.Option(help="A folder with edges.csv and nodes.csv (no labels needed), or an .npz file.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The CSV file to write or replace.")] = Path(
        "predictions.csv"
    ),
    directed: Annotated[bool, typer.Option("--directed", help="Read edges.csv as directed, source → target.")] = False,
) -> None:
    """Predict the class of every node of a graph with a saved model, and write a CSV file."""
    from propreg.console import StatusLine, counted
    from propreg.data.errors import DataError
    from propreg.jsonio import atomic_write

    with StatusLine("loading PyTorch …"):
        from propreg.fitting.checkpoint import load_trained
        from propreg.fitting.predictions import predictions_csv, unlabeled_graph
        from propreg.running.folder import MODEL

    trained = load_trained(model / MODEL if model.is_dir() else model)
    found = unlabeled_graph(graph, directed=directed)
    text = predictions_csv(found, trained.probabilities(found), trained.class_names)
    try:
        with atomic_write(output) as file:
            file.write(text.encode())
    except OSError as error:
        raise DataError(f"{output}: cannot be written: {error.strerror or error}; choose another with -o.") from error
    unknown = int((found.y < 0).sum())
    typer.echo(f"Wrote {output}: {counted(found.num_nodes, 'node')}, {unknown:,} of them without a label.")
