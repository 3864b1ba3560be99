"""Graphs to and from PyG's ``Data``."""

import warnings
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from propreg._choices import one_of
from propreg._lazy import MissingPackageError
from propreg.data.errors import DataError
from propreg.data.features import csr_features, dense_features, from_dense
from propreg.data.graph import MASKS, Graph, SparseFeatures
from propreg.data.own.validate import checked_graph

if TYPE_CHECKING:
    from torch_geometric.data import Data


def to_data(graph: Graph, *, features: Literal["dense", "sparse"] = "dense") -> "Data":
    """The graph as PyG has it: its parts as tensors under PyG's names.

    Args:
        graph: The graph.
        features: ``"dense"`` for an ordinary ``x``, ``"sparse"`` for a CSR one.

    Returns:
        ``Data`` with ``x``, ``edge_index``, ``y``, and, if the graph has them, ``edge_weight``, masks, ``class_names``,
        ``node_ids``, ``feature_names`` and ``name``.

    Example:
        >>> import numpy as np
        >>> graph = Graph("pair", np.array([[0, 1], [1, 0]]), np.eye(2, dtype=np.float32), np.array([0, 1]))
        >>> to_data(graph)
        Data(x=[2, 2], edge_index=[2, 2], y=[2], name='pair')
        >>> to_data(graph, features="sparse").x.layout
        torch.sparse_csr
    """
    one_of("features", features, ("dense", "sparse"))
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
    if graph.feature_names:
        data.feature_names = list(graph.feature_names)
    if graph.name:
        data.name = graph.name
    return data


def data_class() -> "type[Data]":
    """PyG's ``Data``, imported without its deprecation warnings under a new torch."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from torch_geometric.data import Data
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] != "torch_geometric":
            raise
        raise MissingPackageError(
            "a PyG Data needs torch_geometric: run pip install torch_geometric, or use "
            "propreg.data.benchmarks.load_node_graph or propreg.data.own.read_graph, which do without.",
            name=missing.name,
        ) from missing
    return Data  # type: ignore[no-any-return]


def sparse_tensor(x: SparseFeatures) -> torch.Tensor:
    """A CSR tensor of checked features."""
    with warnings.catch_warnings():
        for message in ("Sparse CSR tensor support is in beta", "Sparse invariant checks are implicitly disabled"):
            warnings.filterwarnings("ignore", message=message)
        return torch.sparse_csr_tensor(
            torch.from_numpy(x.indptr),
            torch.from_numpy(x.indices).long(),
            torch.from_numpy(x.filled()),
            x.shape,
            check_invariants=False,
        )


_WHERE = "Data"


def graph_from_data(data: Any, *, labeled: bool = True) -> Graph:
    """The graph in a PyG ``Data``, with its edges as listed.

    Args:
        data: An object with ``edge_index``, ``x`` (dense, or sparse CSR or COO) and ``y``; perhaps ``edge_weight``,
            masks, and ``name``, ``class_names``, ``node_ids`` and ``feature_names`` as :func:`propreg.load_graph` sets
            them. Other attributes are ignored.
        labeled: Refuse one without ``y``; else its nodes have no label.

    Returns:
        The graph; its arrays share the tensors' memory if the types allow.

    Example:
        >>> import torch
        >>> from propreg.data.own.pyg import data_class
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> data = data_class()(x=torch.eye(2), edge_index=edges, y=torch.tensor([0, 1]))
        >>> graph_from_data(data).num_classes
        2
    """
    arrays = {}
    for part in ("edge_index", "y", "edge_weight", *MASKS):
        if (value := getattr(data, part, None)) is not None:
            arrays[part] = _array(value, part)
    if "y" in arrays and arrays["y"].ndim == 2 and arrays["y"].shape[1] == 1:
        arrays["y"] = arrays["y"][:, 0]  # OGB's node sets
    if getattr(data, "x", None) is None:
        raise DataError(f"{_WHERE}: has no x: a graph needs edge_index, y and features.")
    name = getattr(data, "name", None)
    return checked_graph(
        name if isinstance(name, str) else "",
        _features(data.x),
        arrays,
        _WHERE,
        class_names=_names(data, "class_names"),
        node_ids=_names(data, "node_ids"),
        feature_names=_names(data, "feature_names"),
        labeled=labeled,
    )


def _features(x: Any) -> NDArray[np.float32] | SparseFeatures:
    import torch

    if not isinstance(x, torch.Tensor) or x.layout == torch.strided:
        return dense_features(_array(x, "x"), f"{_WHERE}, x")
    if x.layout == torch.sparse_coo and x.dim() == 2:
        x = x.coalesce()
        row, column = x.indices()
        indptr = torch.zeros(x.shape[0] + 1, dtype=torch.int64, device=x.device)
        indptr[1:] = torch.bincount(row, minlength=x.shape[0]).cumsum(0)
        parts = indptr, column, x.values()
    elif x.layout == torch.sparse_csr and x.dim() == 2:
        parts = x.crow_indices(), x.col_indices(), x.values()
    else:
        raise DataError(f"{_WHERE}: x has layout {x.layout}: use a dense, CSR or COO matrix.")
    arrays = {f"x_{name}": _array(part, "x") for name, part in zip(("indptr", "indices", "values"), parts, strict=True)}
    return csr_features(arrays | {"x_shape": np.array(tuple(x.shape))}, f"{_WHERE}, x")


def _array(value: Any, name: str) -> NDArray[Any]:
    """A tensor, or whatever NumPy takes, as an array."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            raise DataError(f"{_WHERE}: {name} has layout {value.layout}: give a dense tensor.")
        value = value.detach().cpu().resolve_conj().resolve_neg()
        return np.asarray((value.float() if value.dtype == torch.bfloat16 else value).numpy())
    try:
        return np.asarray(value)
    except ValueError as error:  # rows of unequal length
        raise DataError(f"{_WHERE}: {name} is not an array: give a tensor.") from error


def _names(data: Any, name: str) -> list[str]:
    value = getattr(data, name, None)
    if value is None:
        return []
    if not isinstance(value, list | tuple):
        raise DataError(f"{_WHERE}: {name} must be a list of texts, not {type(value).__name__}.")
    return list(value)
