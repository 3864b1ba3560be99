"""Hypothesis strategies for small graphs of every odd kind, and for logits on them.

Edges are drawn one by one, so that isolated nodes, self-loops, duplicates and one-way edges all appear and a failing
graph shrinks to a small one. Logits come from a drawn seed: NumPy makes them faster than hypothesis does.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

WEIGHTS = (0.0, 1e-6, 0.25, 1.0, 1.0, 3.5, 1e3)
SCALES = (0.0, 0.1, 1.0, 10.0)

# At least 200 examples a property, the same ones on every run and every machine.
thorough = settings(max_examples=200, deadline=None, derandomize=True, database=None)


@dataclass(frozen=True)
class Graph:
    """Edges source → target; the weights are float64, or None for a graph without any."""

    edge_index: Tensor
    num_nodes: int
    edge_weight: Tensor | None = None

    def sparse(self) -> Tensor:
        """A[target, source] as an uncoalesced COO tensor."""
        weight = self.edge_weight
        values = torch.ones(self.edge_index.shape[1], dtype=torch.float64) if weight is None else weight
        size = (self.num_nodes, self.num_nodes)
        return torch.sparse_coo_tensor(self.edge_index.flip(0), values, size, check_invariants=True)


@st.composite
def graphs(
    draw: st.DrawFn,
    min_nodes: int = 1,
    max_nodes: int = 7,
    max_edges: int = 14,
    weighted: bool | None = None,
) -> Graph:
    """Any directed multigraph; ``weighted`` None draws whether it has weights, which may be 0."""
    num_nodes = draw(st.integers(min_nodes, max_nodes))
    node = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=max_edges))
    if draw(st.booleans()):  # as most graphs come: both directions of every edge
        pairs = pairs + [(b, a) for a, b in pairs]
    edge_index = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t().contiguous()
    has_weights = draw(st.booleans()) if weighted is None else weighted
    if not has_weights:
        return Graph(edge_index, num_nodes)
    weight = draw(st.lists(st.sampled_from(WEIGHTS), min_size=len(pairs), max_size=len(pairs)))
    return Graph(edge_index, num_nodes, torch.tensor(weight, dtype=torch.float64))


@st.composite
def logits(draw: st.DrawFn, num_nodes: int, num_classes: int | None = None) -> Tensor:
    """Float64 [N, C], from all zero to very sure; C is 1 to 5 unless it is given."""
    classes = draw(st.integers(1, 5)) if num_classes is None else num_classes
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from(SCALES))
    return torch.from_numpy(scale * rng.standard_normal((num_nodes, classes)))


@st.composite
def masks(draw: st.DrawFn, num_nodes: int) -> Tensor | None:
    """None, a bool mask that selects at least one node, or unique node numbers in any order."""
    nodes = draw(st.none() | st.lists(st.integers(0, num_nodes - 1), min_size=1, unique=True))
    if nodes is None:
        return None
    numbers = torch.tensor(nodes)
    if draw(st.booleans()):
        return numbers
    return torch.zeros(num_nodes, dtype=torch.bool).index_fill(0, numbers, True)


@dataclass(frozen=True)
class Case:
    """A graph, logits on it, and options that ``preg`` and its reference both take."""

    graph: Graph
    z: Tensor
    options: dict[str, Any]


@st.composite
def cases(draw: st.DrawFn, num_classes: int | None = None, max_nodes: int = 7) -> Case:
    """Anything but the phi."""
    graph = draw(graphs(max_nodes=max_nodes))
    z = draw(logits(graph.num_nodes, num_classes))
    reduction = draw(st.sampled_from(("mean", "sum", "none")))
    options: dict[str, Any] = {
        "norm": draw(st.sampled_from(("rw", "sym"))),
        "add_self_loops": draw(st.booleans()),
        "source": draw(st.none() | logits(graph.num_nodes, z.shape[1])),
        "mask": draw(masks(graph.num_nodes)),
        "reduction": reduction,
        "threshold": draw(st.sampled_from((None, 0.0, 0.3, 100.0))) if reduction == "mean" else None,
    }
    return Case(graph, z, options)
