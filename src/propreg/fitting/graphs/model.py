"""A trained model of whole graphs: its predictions, and its file without pickles.

A file is safetensors: the weights under the engine's names, in float32, and three texts: ``format``
(``propreg-graphs-1``), ``settings`` (JSON: the architecture, the encoders' columns, the kind of task, the number of
outputs, what is done to features and targets, and what it was trained with) and ``sha256`` of everything else.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg import __version__
from propreg.data.errors import DataError
from propreg.data.formats.safetensors import read_safetensors, write_safetensors
from propreg.data.graph_list import KINDS, GraphList, task_titles
from propreg.data.own.graph_list import read_graphs
from propreg.data.scaling import Scaling, from_parts
from propreg.engine.models.molecules import MoleculeModel
from propreg.engine.torch_modes import ordinary_modes
from propreg.fitting.saved_file import content_digest
from propreg.jsonio import from_json, to_json
from propreg.molecules.networks import Encoders, MoleculeNetwork, buffers_of, weights_of
from propreg.molecules.packing import Packed
from propreg.molecules.train import evaluated, outputs_of

FORMAT = "propreg-graphs-1"
_MAX_SIZE = 2**20
TOGETHER = 2048  # graphs whose mini-batches are laid out at a time
_TEXTS = ("format", "settings", "sha256")


@dataclass(frozen=True, eq=False)
class GraphModel:
    """A trained model; :meth:`save` writes it, :func:`propreg.load_graph_model` reads it.

    Attributes:
        architecture: Its settings.
        encoders: How features become vectors.
        kind: What it predicts, see :data:`propreg.data.graph_list.KINDS`.
        outputs: Classes, or tasks.
        nodes, edges: What is done to the features.
        weights: By the engine's names; ``units.mean`` and ``units.deviation`` are the targets' of a regression.
        about: What it was trained with.
    """

    architecture: MoleculeModel
    encoders: Encoders
    kind: str
    outputs: int
    weights: dict[str, Tensor]
    nodes: Scaling = field(default_factory=Scaling)
    edges: Scaling = field(default_factory=Scaling)
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[str, ...]:
        """What each target is called: one of the graphs' class, else one for each output."""
        named = self.about.get("tasks", ())
        known = isinstance(named, list | tuple) and all(isinstance(name, str) for name in named)
        return task_titles(tuple(named) if known else (), 1 if self.kind == "classification" else self.outputs)

    def predict(self, graphs: Any) -> NDArray[Any]:
        """The class of each graph, int64 [graphs]; or 0 and 1, or numbers, [graphs, tasks].

        Args:
            graphs: A list of PyG ``Data`` with the features of the training; they need no ``y``.
        """
        out = self._outputs(graphs)
        if self.kind == "classification":
            return np.asarray(out.argmax(1), np.int64)
        return np.asarray(out > 0, np.int64) if self.kind == "binary classification" else out

    def predict_proba(self, graphs: Any) -> NDArray[np.float32]:
        """The probability of each class [graphs, classes], or of a 1 in each task [graphs, tasks]."""
        if self.kind == "regression":
            raise ValueError("the model predicts numbers, which have no probability: use predict.")
        out = torch.from_numpy(self._outputs(graphs))
        found: NDArray[np.float32] = (out.softmax(1) if self.kind == "classification" else out.sigmoid()).numpy()
        return found

    def _outputs(self, graphs: Any) -> NDArray[np.float32]:
        """Logits, or numbers in the targets' units."""
        data = self._fitting(read_graphs(graphs, labeled=False)).scaled(self.nodes, self.edges)
        device = self.weights["head.bias"].device
        with ordinary_modes(device):
            packed = Packed.of(data, device, torch.float32)
            p = {name: t.unsqueeze(0) for name, t in self.weights.items()}
            network = MoleculeNetwork(self.architecture)
            starts = range(0, len(data), TOGETHER)
            rows = [np.arange(start, min(start + TOGETHER, len(data))) for start in starts]
            out = torch.cat([outputs_of(network, p, p, evaluated(packed, some))[0] for some in rows])
        if "units.mean" in self.weights:
            out = out * self.weights["units.deviation"] + self.weights["units.mean"]
        found: NDArray[np.float32] = out.cpu().numpy()
        return found

    def _fitting(self, data: GraphList) -> GraphList:
        """The graphs if they have the features of the training."""
        if self.encoders.nodes is None and not data.coded:
            raise DataError("the model takes OGB's integer features of atoms and bonds, but the graphs have others.")
        if self.encoders.nodes is None:
            return data
        uncoded = data if not data.coded else _as_numbers(data)
        if not uncoded.edge_attr.size:  # no edges, or no features of them: the check below knows which
            columns = self.encoders.edges if not uncoded.num_edges.sum() else uncoded.edge_attr.shape[1]
            uncoded = replace(uncoded, edge_attr=np.zeros((len(uncoded.edge_attr), columns or 0), np.float32))
        for what, values, wanted in (
            ("x", uncoded.x, self.encoders.nodes),
            ("edge_attr", uncoded.edge_attr, self.encoders.edges),
        ):
            if values.shape[1] != wanted:
                raise DataError(
                    f"{what} has {values.shape[1]} columns, but the model was trained with {wanted}: give each graph "
                    "the features of the training, in its order."
                )
        return uncoded

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, whole or not at all.

        Raises:
            DataError: If the file cannot be written.
        """
        tensors = {name: t.detach().float().cpu().numpy() for name, t in self.weights.items()}
        for part, scaling in (("nodes", self.nodes), ("edges", self.edges)):
            if scaling.mean is not None and scaling.deviation is not None:
                tensors |= {f"{part}.mean": scaling.mean, f"{part}.deviation": scaling.deviation}
        settings = {
            "architecture": self.architecture.identity() | to_json(self.architecture),
            "encoders": vars(self.encoders),
            "kind": self.kind,
            "outputs": self.outputs,
            "scale": [self.nodes.kind, self.edges.kind],
            "about": dict(self.about),
            "versions": {"propreg": __version__, "torch": str(torch.__version__)},
        }
        texts = {"format": FORMAT, "settings": json.dumps(settings, sort_keys=True)}
        write_safetensors(path, tensors, texts | {"sha256": content_digest(texts, tensors)})


def load_graph_model(path: str | os.PathLike[str]) -> GraphModel:
    """Read a model that :meth:`propreg.GraphFitResult.save` or ``propreg run --molecules`` wrote.

    The file holds numbers and text only: reading it never runs code from the file.

    Raises:
        DataError: If the file is missing, damaged, or not a model of graphs.

    Example:
        >>> import tempfile, torch, propreg
        >>> from torch_geometric.data import Data
        >>> ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> graphs = [Data(x=torch.full((3, 1), float(i)), edge_index=ring, y=torch.tensor(i % 2)) for i in range(20)]
        >>> result = propreg.fit_graphs(graphs, mu=0.5, splits=1, seeds=1, hidden=8, max_epochs=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(f"{folder}/model.safetensors")
        ...     model = propreg.load_graph_model(f"{folder}/model.safetensors")
        >>> bool((model.predict(graphs) == result.predict()).all())
        True
    """
    tensors, texts = read_safetensors(path)
    if texts.get("format") != FORMAT or any(name not in texts for name in _TEXTS):
        raise DataError(f"{path}: is not a model of graphs: give a file that GraphFitResult.save wrote.")
    if texts["sha256"] != content_digest({name: texts[name] for name in _TEXTS[:2]}, tensors):
        raise DataError(f"{path}: its content does not match its SHA-256: copy or save it again.")
    try:
        raw = json.loads(texts["settings"])
        model, encoders = from_json(MoleculeModel, raw["architecture"]), Encoders(**raw["encoders"])
        sizes = model.hidden, model.layers, raw["outputs"]
        if model.name not in ("mol-gin", "mol-gcn") or not all(type(n) is int and 0 < n < _MAX_SIZE for n in sizes):
            raise ValueError("its architecture cannot be")
        nodes, edges = (
            from_parts(kind, tensors.get(f"{part}.mean"), tensors.get(f"{part}.deviation"))
            for part, kind in zip(("nodes", "edges"), raw["scale"], strict=True)
        )
        for scaling, columns in ((nodes, encoders.nodes), (edges, encoders.edges)):
            if scaling.mean is not None and len(scaling.mean) != columns:
                raise ValueError(f"it scales {len(scaling.mean)} of {columns} columns")
        if raw["kind"] not in KINDS.values() or model.layers > len(tensors):
            raise ValueError("its kind or layers cannot be")
        parts = weights_of(model, raw["outputs"], encoders=encoders) | buffers_of(model)
        shapes = {name: part.shape for name, part in parts.items()}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: its settings cannot be used ({error}): save the model again.") from error
    if "units.mean" in tensors:
        shapes |= dict.fromkeys(("units.mean", "units.deviation"), (raw["outputs"],))
    for name, shape in shapes.items():
        array = tensors.get(name)
        if array is None or array.shape != shape or array.dtype != np.float32 or not np.isfinite(array).all():
            raise DataError(f"{path}: {name} is missing or not float32 {list(shape)}: save the model again.")
    weights = {name: torch.from_numpy(tensors[name]) for name in shapes}
    return GraphModel(model, encoders, raw["kind"], raw["outputs"], weights, nodes, edges, raw["about"])


def _as_numbers(data: GraphList) -> GraphList:
    """Integers that happen to be codes, as the numbers that other graphs of the training had."""
    return replace(data, x=data.x.astype(np.float32), edge_attr=data.edge_attr.astype(np.float32), coded=False)
