"""A graph as a PyG ``Data``."""

import warnings
from typing import TYPE_CHECKING, Literal

import torch

from propreg.data.graph import Graph, SparseFeatures
from propreg.data.sparse import from_dense

if TYPE_CHECKING:
    from torch_geometric.data import Data


def to_data(graph: Graph, *, features: Literal["dense", "sparse"] = "dense") -> "Data":
    """The graph as PyG has it: tensors under PyG's names, those left out that the graph has not.

    Args:
        graph: The graph.
        features: ``"dense"`` for an ordinary ``x``, ``"sparse"`` for a CSR one.

    Returns:
        ``Data`` with ``x``, ``edge_index``, ``y``, and perhaps ``edge_weight``, the masks, ``class_names``,
        ``node_ids`` and ``name``.

    Example:
        >>> import numpy as np
        >>> graph = Graph("pair", np.array([[0, 1], [1, 0]]), np.eye(2, dtype=np.float32), np.array([0, 1]))
        >>> to_data(graph)
        Data(x=[2, 2], edge_index=[2, 2], y=[2], name='pair')
        >>> to_data(graph, features="sparse").x.layout
        torch.sparse_csr
    """
    if features == "sparse":
        x = sparse_tensor(graph.x if isinstance(graph.x, SparseFeatures) else from_dense(graph.x))
    else:
        x = torch.from_numpy(graph.x.to_dense() if isinstance(graph.x, SparseFeatures) else graph.x)
    data = data_class()(x=x, edge_index=torch.from_numpy(graph.edge_index), y=torch.from_numpy(graph.y))
    if graph.edge_weight is not None:
        data.edge_weight = torch.from_numpy(graph.edge_weight)
    if graph.split is not None:
        for part in ("train", "val", "test"):
            data[f"{part}_mask"] = torch.from_numpy(getattr(graph.split, part))
    if graph.class_names:
        data.class_names = list(graph.class_names)
    if graph.node_ids:
        data.node_ids = list(graph.node_ids)
    if graph.name:
        data.name = graph.name
    return data


def data_class() -> "type[Data]":
    """PyG's ``Data``, imported without the deprecation warnings that importing PyG gives under a new torch."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from torch_geometric.data import Data
    except ModuleNotFoundError as missing:
        if missing.name != "torch_geometric":
            raise
        raise ModuleNotFoundError(
            "a graph as PyG Data needs torch_geometric: run pip install 'propreg[all]'.", name=missing.name
        ) from missing
    return Data  # type: ignore[no-any-return]


def sparse_tensor(x: SparseFeatures) -> torch.Tensor:
    """A CSR tensor of checked features."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.from_numpy(x.indptr),
            torch.from_numpy(x.indices).long(),
            torch.from_numpy(x.filled()),
            x.shape,
            check_invariants=False,
        )
