"""A PyG ``Data`` as a checked graph in NumPy arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data._features import csr_features, dense_features
from propreg.data.errors import DataError
from propreg.data.graph import Graph, SparseFeatures
from propreg.data.own_check import MASKS, checked_graph

_WHERE = "Data"


def graph_from_data(data: Any) -> Graph:
    """The graph in a PyG ``Data``, its edges as they are listed.

    Args:
        data: An object with ``edge_index``, ``x`` (dense, or sparse CSR or COO) and ``y``; ``edge_weight`` and the
            masks if it has them, and ``name``, ``class_names`` and ``node_ids`` as :func:`propreg.load_graph` sets
            them. Other attributes are not looked at.

    Returns:
        The graph; its arrays share the tensors' memory where the types allow.

    Raises:
        DataError: If a part is missing or the parts do not fit together.

    Example:
        >>> import torch
        >>> from propreg.data.pyg import data_class
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
