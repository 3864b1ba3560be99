"""The accepted forms of a graph (edge index, sparse tensor, PyG's EdgeIndex), converted to one."""

import operator
from typing import Any

import torch
from torch import Tensor

from propreg import _errors

Size = tuple[int, int]


def unpack(
    edge_index: Tensor, num_nodes: int | None, edge_weight: Tensor | None, size: Size | None = None
) -> tuple[Tensor, Tensor | None, Size]:
    """Convert any accepted graph to (edge_index [2, E] int64, weights [E] or None, numbers of sources and targets)."""
    size = None if size is None else _pair(size, num_nodes)
    if not isinstance(edge_index, Tensor):
        raise TypeError(
            "edge_index must be an int64 tensor [2, E], a sparse tensor [N, N] or a propreg.Propagation, "
            f"got a {type(edge_index).__name__}."
        )
    if edge_index.layout != torch.strided:
        return _from_sparse(edge_index, num_nodes, edge_weight, size)
    if callable(getattr(edge_index, "sparse_size", None)):
        edge_index, num_nodes = _from_pyg(edge_index, num_nodes, size)
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        fix = ": pass edge_index.t()" if edge_index.dim() == 2 and edge_index.shape[1] == 2 else ""
        if edge_index.dim() == 2 and edge_index.shape[0] == edge_index.shape[1]:
            fix = ": a dense adjacency is passed as adjacency.to_sparse()"
        raise ValueError(
            f"edge_index must have shape [2, E], sources above targets, got {tuple(edge_index.shape)}{fix}."
        )
    if edge_index.dtype == torch.int32:
        edge_index = edge_index.long()
    if edge_index.dtype != torch.int64:
        raise TypeError(
            f"edge_index must be int64 or int32, but its dtype is {edge_index.dtype}: use edge_index.long(); "
            "a dense adjacency matrix is adj.to_sparse()."
        )
    if num_nodes is None and size is None:
        raise ValueError(
            "num_nodes is missing: an edge index alone does not determine the number of nodes (the last ones may "
            "have no edge); pass num_nodes=z.shape[0]."
        )
    if edge_weight is not None:
        edge_weight = _weights("edge_weight", edge_weight, edge_index)
    return edge_index, edge_weight, size or (_count(num_nodes),) * 2


def check_values(edge_index: Tensor, edge_weight: Tensor | None, size: Size, validate: bool | None) -> None:
    """Check values: node numbers once per graph, weights only where a check costs no synchronization."""
    if validate is not None and not isinstance(validate, bool):
        raise TypeError(f"validate must be None, True or False, got {validate!r}.")
    if validate is False or not _errors.plain() or not _errors.have_values(edge_index):
        return
    if edge_index.shape[1]:
        for ends, nodes in ((edge_index, size[0]),) if size[0] == size[1] else zip(edge_index, size, strict=True):
            low, high = (int(v) for v in torch.aminmax(ends))
            if low < 0 or high >= nodes:
                node = low if low < 0 else high
                raise ValueError(
                    f"edge_index refers to node {node} but z has {nodes} rows: pass logits of the whole graph, "
                    "or relabel the subgraph."
                )
    if edge_weight is not None and _errors.values_are_checked(validate, edge_weight):
        bad = (~(edge_weight.detach() >= 0) | edge_weight.detach().isinf()).nonzero().flatten()
        if len(bad):
            first = int(bad[0])
            raise ValueError(
                f"edge_weight must be finite and not negative, but edge {first} has {edge_weight[first].item()}: "
                "drop that edge or repair its weight."
            )


def _from_pyg(edge_index: Any, num_nodes: int | None, size: Size | None) -> tuple[Tensor, int | None]:
    """The edges of PyG's EdgeIndex, and the number of nodes that it knows."""
    known = [] if size is not None else [n for n in edge_index.sparse_size() if n is not None]
    if len(set(known)) > 1:
        raise ValueError(
            f"the EdgeIndex has the sizes {tuple(known)}, edges between two kinds of nodes, but the term compares "
            "the nodes of one graph: pass an EdgeIndex with one sparse_size, or Propagation(edge_index, size=…) and "
            "source=, the logits of the sources."
        )
    if known and num_nodes is not None and max(known) != num_nodes:
        raise ValueError(
            f"the EdgeIndex has {max(known)} nodes but z has {num_nodes} rows: pass logits of its "
            "whole graph, or set its sparse_size."
        )
    return edge_index.as_tensor(), max(known) if known else num_nodes


def _from_sparse(
    adjacency: Tensor, num_nodes: int | None, edge_weight: Tensor | None, size: Size | None
) -> tuple[Tensor, Tensor | None, Size]:
    if edge_weight is not None:
        raise ValueError("edge_weight goes with an edge index; a sparse tensor carries its weights as its values.")
    if size is not None and tuple(adjacency.shape) != size[::-1]:
        raise ValueError(
            f"a sparse adjacency is [targets, sources], but its shape is {tuple(adjacency.shape)} for size={size}."
        )
    if adjacency.dim() != 2 or (size is None and adjacency.shape[0] != adjacency.shape[1]):
        raise ValueError(
            f"a sparse adjacency must be square, [targets, sources], but its shape is {tuple(adjacency.shape)}."
        )
    size = size or (int(adjacency.shape[1]), int(adjacency.shape[0]))
    if num_nodes is not None and num_nodes != size[0]:
        raise ValueError(
            f"the sparse adjacency has {size[0]} nodes but z has {num_nodes} rows: pass logits of its whole graph, "
            "or the adjacency of the subgraph."
        )
    if adjacency.layout == torch.sparse_coo:
        adjacency = adjacency.coalesce()
        row, col = adjacency.indices()
    elif adjacency.layout == torch.sparse_csr:
        row, col = _expand(adjacency.crow_indices(), adjacency._nnz()), adjacency.col_indices()
    elif adjacency.layout == torch.sparse_csc:
        row, col = adjacency.row_indices(), _expand(adjacency.ccol_indices(), adjacency._nnz())
    else:
        raise TypeError(
            f"a sparse adjacency must be COO, CSR or CSC, but its layout is {adjacency.layout}: use A.to_sparse_csr()."
        )
    edge_index = torch.stack([col.long(), row.long()])
    return edge_index, _weights("the sparse adjacency", adjacency.values(), edge_index), size


def _pair(size: Size, num_nodes: int | None) -> Size:
    if num_nodes is not None or not isinstance(size, tuple) or len(size) != 2:
        raise ValueError(f"size is (sources, targets) and replaces num_nodes, got {size!r} and {num_nodes!r}.")
    return _count(size[0]), _count(size[1])


def _expand(pointers: Tensor, total: int) -> Tensor:
    counts = pointers.diff()
    rows = torch.arange(len(counts), device=pointers.device)
    return torch.repeat_interleave(rows, counts, output_size=total)  # a size that is known needs no values


def _weights(name: str, weight: object, edge_index: Tensor) -> Tensor:
    if not isinstance(weight, Tensor):
        raise TypeError(f"{name} must be a tensor with one weight per edge, got a {type(weight).__name__}.")
    if weight.shape != (edge_index.shape[1],):
        raise ValueError(
            f"{name} must hold one number per edge, shape ({edge_index.shape[1]},), "
            f"but its shape is {tuple(weight.shape)}: use a single column, squeezed."
        )
    if weight.is_complex():
        raise TypeError(f"{name} must be real, but its dtype is {weight.dtype}.")
    _errors.same_device("edge_index", edge_index, name, weight)
    return weight if weight.is_floating_point() else weight.to(torch.get_default_dtype())


def _count(num_nodes: object) -> int:
    count = num_nodes
    if not isinstance(count, (int, torch.SymInt)):  # a symbolic size of torch.compile stays what it is
        count = operator.index(count) if hasattr(count, "__index__") and not isinstance(count, Tensor) else None
    if count is None or isinstance(count, bool):
        raise TypeError(f"num_nodes must be a whole number, got {num_nodes!r}.")
    if count < 0:
        raise ValueError(f"num_nodes must not be negative, got {count}.")
    return count  # type: ignore[return-value]
