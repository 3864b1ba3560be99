"""What the file of an experiment of your own may define: graphs, and models with settings of your own.

.. code-block:: toml

    [graphs]
    papers = "papers.npz"        # from the folder of the file; or { path = "folder", directed = true }

    [models.wide-gcn]            # an architecture of propreg methods with other settings
    name = "gcn"
    hidden = 256
    dropout = 0.6

    [[parts]]
    datasets = ["papers", "cora"]
    models = ["gcn", "wide-gcn"]
    methods = ["plain", "preg-paper"]
    strengths = [0.1, 0.5]
    splits = 6
    seeds = 3
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from propreg.data.benchmarks.catalog import MOLECULE_SETS, NODE_SETS, MoleculeSet, NodeSet
from propreg.data.benchmarks.catalog import find as find_dataset
from propreg.data.errors import DataError
from propreg.data.graph import SparseFeatures
from propreg.data.own.load import read_graph
from propreg.engine.models import MODELS
from propreg.engine.spec import Model, Sizes
from propreg.store.batch import GraphFile
from propreg.store.errors import StudyError, unknown
from propreg.store.run import decimal
from propreg.study.spec.presets import model_names, named_model

Entry = NodeSet | MoleculeSet | GraphFile


@dataclass(frozen=True)
class Names:
    """The datasets of an experiment beside the benchmarks, and its models, with their dropout, beside the presets."""

    graphs: Mapping[str, GraphFile] = field(default_factory=dict)
    models: Mapping[str, tuple[Model, float]] = field(default_factory=dict)

    def dataset(self, name: str) -> Entry:
        """The dataset of this name.

        Raises:
            StudyError: If there is none; the message lists the known ones.
        """
        if name in self.graphs:
            return self.graphs[name]
        try:
            return find_dataset(name)
        except DataError:
            raise unknown("dataset", name, [*self.graphs, *NODE_SETS, *MOLECULE_SETS]) from None

    def model(self, name: str) -> tuple[Model, float]:
        """The architecture of this name, and its dropout rate."""
        return self.models[name] if name in self.models else named_model(name, self.models)


def read_names(found: Mapping[str, Any], name: str, folder: Path) -> Names:
    """The names that an experiment's file defines; its graphs are read, for their digests.

    Args:
        found: The parsed file.
        name: What errors call it.
        folder: Where relative paths begin.

    Raises:
        StudyError: If a name is taken, or a graph or a model cannot be used.
    """
    for table, taken in (("graphs", (*NODE_SETS, *MOLECULE_SETS)), ("models", model_names())):
        mine = found.get(table, {})
        if not isinstance(mine, dict):
            raise StudyError(f"{table} of experiment {name} must be a table: begin it with [{table}].")
        for each in mine:
            if each in taken:
                raise StudyError(f"{table} of experiment {name} redefines {each!r} of propreg: choose another name.")
    return Names(
        {each: _graph(each, entry, folder) for each, entry in found.get("graphs", {}).items()},
        {each: _model(each, entry) for each, entry in found.get("models", {}).items()},
    )


def _model(name: str, entry: object) -> tuple[Model, float]:
    """A registered architecture with other settings than its own."""
    if not isinstance(entry, dict) or "name" not in entry:
        raise StudyError(f'model {name} must be a table with a name, like {{ name = "gcn", hidden = 256 }}.')
    if entry["name"] not in MODELS:
        raise unknown(f"architecture of model {name}", entry["name"], MODELS)
    base = MODELS[entry["name"]]
    settings = {**base.defaults, **entry}
    rate = decimal("dropout", settings.pop("dropout", base.dropout))
    try:
        return Model.of(**settings), rate
    except TypeError:
        known = [each.name for each in fields(base.kind)]
        wrong = next(key for key in settings if key not in known)
        raise unknown(f"setting of model {name}", wrong, [*known, "dropout"]) from None


def _graph(name: str, entry: object, folder: Path) -> GraphFile:
    """A graph's place, content and sizes."""
    given = {"path": entry} if isinstance(entry, str) else entry
    if not isinstance(given, dict) or not isinstance(given.get("path"), str) or given.keys() - {"path", "directed"}:
        raise StudyError(f"graph {name} must be a path, or {{ path = …, directed = true }}, got {entry!r}.")
    path = (folder / given["path"]).absolute()
    directed = bool(given.get("directed", False))
    try:
        graph = read_graph(path, directed=directed)
    except DataError as error:
        raise StudyError(str(error)) from error
    if graph.targets is not None:
        raise StudyError(f"{path}: experiments are of nodes with one class each, and this graph has other labels.")
    if graph.num_classes < 2:
        raise StudyError(f"{path}: has one class, so there is nothing to learn: label nodes of at least two.")
    nonzeros = graph.x.indices.size if isinstance(graph.x, SparseFeatures) else graph.x.size
    sizes = Sizes(graph.num_nodes, graph.edge_index.shape[1], graph.num_features, graph.num_classes, nonzeros)
    return GraphFile(str(path), tuple(sorted(graph.digests.items())), sizes, directed)
