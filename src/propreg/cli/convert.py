"""``propreg data convert``: a graph of your own as one npz file, or as a folder that is memory-mapped."""

import json
from pathlib import Path
from typing import Annotated

import typer

from propreg.data.errors import DataError


def convert(
    source: Annotated[Path, typer.Argument(help="A folder with edges.csv and nodes.csv, or an .npz file.")],
    target: Annotated[Path, typer.Argument(help="The .npz file to create or replace, or a folder to create.")],
    directed: Annotated[
        bool, typer.Option("--directed", help="Take each line of edges.csv as source → target only.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a description as JSON.")] = False,
) -> None:
    """Write your own graph as one .npz file, or as a folder of .npy files that are mapped into memory.

    Both load faster than text and are checked. A folder is for graphs that fill the memory: batches are cut from it
    without reading the rest.
    """
    # Lazy: propreg --help need not load NumPy.
    from propreg.data.graph import SparseFeatures
    from propreg.data.own.load import read_graph
    from propreg.data.own.npz import write_graph
    from propreg.data.own.stored import write_stored

    if target.suffix not in (".npz", ""):
        raise DataError(f"{target}: does not end in .npz: choose a name like graph.npz, or graph for a folder.")
    if not target.suffix and target.exists():  # before the graph is read
        raise DataError(f"{target}: already exists: choose another name, or remove it first.")
    graph = read_graph(source, directed=directed)
    (write_graph if target.suffix else write_stored)(target, graph)
    split = {part: int(mask.sum()) for part, mask in vars(graph.split).items()} if graph.split else None
    facts = {
        "target": str(target),
        "name": graph.name,
        "nodes": graph.num_nodes,
        "directed_edges": graph.edge_index.shape[1],
        "weighted": graph.edge_weight is not None,
        "features": graph.num_features,
        "sparse": isinstance(graph.x, SparseFeatures),
        "classes": graph.num_classes,
        "unlabeled": int((graph.y < 0).sum()),
        "split": split,
        "digests": graph.digests,
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    parts = "no split" if split is None else ", ".join(f"{count} {part}" for part, count in split.items())
    typer.echo(
        f"Wrote {target}: {graph.num_nodes} nodes, {facts['directed_edges']} directed edges, "
        f"{graph.num_features} features, {graph.num_classes} classes; {parts}."
    )
