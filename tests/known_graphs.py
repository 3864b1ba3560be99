"""Undirected graphs with a known shape, and the matrices the paper's statements speak of, in float64 NumPy."""

import numpy as np
import numpy.typing as npt
import torch
from hypothesis import strategies as st
from torch import Tensor

import reference
from reference import Array
from strategies import Graph

Pairs = list[tuple[int, int]]


def undirected(num_nodes: int, pairs: Pairs) -> Graph:
    """Both directions of every pair; a pair of a node with itself is one loop."""
    both = pairs + [(b, a) for a, b in pairs if a != b]
    return Graph(torch.tensor(both, dtype=torch.int64).reshape(-1, 2).t().contiguous(), num_nodes)


def path(num_nodes: int) -> Graph:
    return undirected(num_nodes, [(i, i + 1) for i in range(num_nodes - 1)])


def ring(num_nodes: int) -> Graph:
    return undirected(num_nodes, [(i, (i + 1) % num_nodes) for i in range(num_nodes)])


def star(leaves: int) -> Graph:
    """Node 0 in the middle."""
    return undirected(leaves + 1, [(0, i + 1) for i in range(leaves)])


def two_cliques(size: int) -> Graph:
    """Nodes 0 to size−1 and size to 2·size−1, all joined within, and one edge between the two: the bridge."""
    clique = [(i, j) for i in range(size) for j in range(i)]
    return undirected(2 * size, [*clique, *((i + size, j + size) for i, j in clique), (size - 1, size)])


def in_three_pieces() -> Graph:
    """A triangle with a tail (0 to 3), a pair (4, 5) and a node on its own (6)."""
    return undirected(7, [(0, 1), (1, 2), (0, 2), (2, 3), (4, 5)])


@st.composite
def undirected_graphs(draw: st.DrawFn, max_nodes: int = 7) -> Graph:
    """Simple undirected graphs, connected or not, isolated nodes included."""
    num_nodes = draw(st.integers(1, max_nodes))
    possible = [(i, j) for i in range(num_nodes) for j in range(i)]
    kept = draw(st.lists(st.booleans(), min_size=len(possible), max_size=len(possible)))
    return undirected(num_nodes, [pair for pair, keep in zip(possible, kept, strict=True) if keep])


@st.composite
def connected_graphs(draw: st.DrawFn, max_nodes: int = 7) -> Graph:
    """Simple connected undirected graphs of two nodes and more: a random tree, and any further edges."""
    num_nodes = draw(st.integers(2, max_nodes))
    tree = [(i, draw(st.integers(0, i - 1))) for i in range(1, num_nodes)]
    other = [(i, j) for i in range(num_nodes) for j in range(i) if (i, j) not in tree]
    kept = draw(st.lists(st.booleans(), min_size=len(other), max_size=len(other)))
    return undirected(num_nodes, tree + [pair for pair, keep in zip(other, kept, strict=True) if keep])


def adjacency(graph: Graph, *, add_self_loops: bool = False) -> Array:
    """A, or A + I."""
    return reference.adjacency(graph.edge_index, graph.num_nodes, add_self_loops=add_self_loops)


def propagation(graph: Graph, norm: str = "rw", *, add_self_loops: bool = False) -> Array:
    """Â."""
    return reference.normalized(adjacency(graph, add_self_loops=add_self_loops), norm)


def normalized_laplacian(graph: Graph, norm: str = "rw", *, add_self_loops: bool = False) -> Array:
    """Δ̃ = I − Â, with a row of zeros for a node without neighbors: there is nothing it should agree with."""
    degree = adjacency(graph, add_self_loops=add_self_loops).sum(axis=1)
    return np.diag((degree > 0).astype(np.float64)) - propagation(graph, norm, add_self_loops=add_self_loops)


def components(graph: Graph) -> npt.NDArray[np.int64]:
    """The number of the component each node belongs to."""
    reachable = np.linalg.matrix_power(adjacency(graph, add_self_loops=True), graph.num_nodes) > 0
    _, number = np.unique(reachable.argmax(axis=1), return_inverse=True)  # a component is named by its first node
    return number.astype(np.int64)


def component_means(graph: Graph) -> Array:
    """The matrix that replaces every row by the plain mean of its component's rows."""
    number = components(graph)
    same: Array = (number[:, None] == number[None, :]).astype(np.float64)
    means: Array = same / same.sum(axis=1, keepdims=True)
    return means


def normal(seed: int, *shape: int) -> Array:
    """Standard normal numbers of a seed."""
    return np.random.default_rng(seed).standard_normal(shape)


def tensor(values: Array, *, requires_grad: bool = False) -> Tensor:
    """A float64 tensor of its own."""
    return torch.from_numpy(np.array(values, dtype=np.float64)).requires_grad_(requires_grad)


seeds = st.integers(0, 2**32 - 1)
