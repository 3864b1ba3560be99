"""Several graphs as one block-diagonal graph: no edge leads from one to another."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from propreg.data.errors import DataError
from propreg.data.features import from_dense
from propreg.data.graph import PARTS, Graph, SparseFeatures, Split


def are_several(data: object) -> bool:
    """Whether these are graphs in a list, or lists of graphs by the part of the split that they are for."""
    return isinstance(data, list | tuple) or (isinstance(data, Mapping) and {*data} <= {*PARTS} and bool(data))


def by_part(data: Any) -> list[tuple[str, Any]]:
    """The graphs, each with its part; without parts, with an empty one.

    Example:
        >>> by_part({"train": ["a", "b"], "test": "c"})
        [('train', 'a'), ('train', 'b'), ('test', 'c')]
    """
    if not isinstance(data, Mapping):
        return [("", each) for each in data]
    return [
        (part, each) for part, some in data.items() for each in (some if isinstance(some, list | tuple) else [some])
    ]


def joined(graphs: Sequence[Graph], parts: Sequence[str]) -> Graph:
    """One graph of several, whose nodes keep their order.

    Args:
        graphs: At least one, with the same features and classes.
        parts: What the labeled nodes of each graph are for; empty texts keep the graphs' own splits, if all have one.

    Example:
        >>> one = Graph("one", np.array([[0, 1], [1, 0]]), np.eye(2, dtype=np.float32), np.array([0, 1]))
        >>> both = joined([one, one], ["train", "val"])
        >>> both.edge_index.tolist(), both.split.val.tolist()
        ([[0, 1, 2, 3], [1, 0, 3, 2]], [False, False, True, True])
    """
    if not graphs:
        raise DataError("data is an empty list: give at least one graph.")
    first = graphs[0]
    for number, graph in enumerate(graphs):
        for what in ("num_features", "class_names", "feature_names"):
            mine, theirs = getattr(graph, what), getattr(first, what)
            if mine != theirs:
                raise DataError(
                    f"graph {number} has {what} {mine!r:.80}, but graph 0 has {theirs!r:.80}: make them alike."
                )
        if (graph.edge_weight is None) != (first.edge_weight is None):
            raise DataError(f"graph {number} and graph 0 differ in having edge weights: give them to all or to none.")
    sizes = [graph.num_nodes for graph in graphs]
    starts = np.cumsum([0, *sizes[:-1]])
    edges = [graph.edge_index + start for graph, start in zip(graphs, starts, strict=True)]
    weights = [graph.edge_weight for graph in graphs if graph.edge_weight is not None]
    targets = [graph.targets for graph in graphs if graph.targets is not None]
    ids = [f"{number}/{name}" for number, graph in enumerate(graphs) for name in graph.node_ids]
    return replace(
        first,
        edge_index=np.concatenate(edges, axis=1),
        x=_features([graph.x for graph in graphs]),
        y=np.concatenate([graph.y for graph in graphs]),
        edge_weight=np.concatenate(weights) if weights else None,
        targets=np.concatenate(targets) if targets else None,
        split=_split(graphs, parts),
        node_ids=tuple(ids) if len(ids) == sum(sizes) else (),
        digests={},
        extra=_extra(graphs),
    )


def _split(graphs: Sequence[Graph], parts: Sequence[str]) -> Split | None:
    if any(parts):
        nodes = np.repeat(parts, [graph.num_nodes for graph in graphs])
        labeled = np.concatenate([graph.y for graph in graphs]) >= 0
        return Split(*((nodes == part) & labeled for part in PARTS))
    splits = [graph.split for graph in graphs if graph.split is not None]
    if len(splits) < len(graphs):
        return None
    return Split(*(np.concatenate([getattr(split, part) for split in splits]) for part in PARTS))


def _features(xs: "Sequence[Any]") -> Any:
    if not any(isinstance(x, SparseFeatures) for x in xs):
        return np.concatenate(xs)
    sparse = [x if isinstance(x, SparseFeatures) else from_dense(x) for x in xs]
    ends = np.cumsum([0, *(len(x.indices) for x in sparse)])
    indptr = np.concatenate([[0], *(x.indptr[1:] + end for x, end in zip(sparse, ends[:-1], strict=True))])
    values = None if all(x.values is None for x in sparse) else np.concatenate([x.filled() for x in sparse])
    shape = (sum(x.shape[0] for x in sparse), sparse[0].shape[1])
    return SparseFeatures(indptr, np.concatenate([x.indices for x in sparse]), values, shape)


def _extra(graphs: Sequence[Graph]) -> dict[str, Any]:
    """The further tensors that all graphs have for each node or each edge, one after another."""
    found = {}
    for name in graphs[0].extra:
        tensors = [t for graph in graphs if isinstance(t := graph.extra.get(name), Tensor) and t.dim()]
        for counts in ([g.num_nodes for g in graphs], [g.edge_index.shape[1] for g in graphs]):
            if [len(t) for t in tensors] == counts:
                found[name] = torch.cat(tensors)
                break
    return found
