"""Fixed graphs, logits and layouts that the tests share."""

import importlib
import os
import shutil
import warnings
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from reference import PHIS as REFERENCE_PHIS
from strategies import Graph

# Forward mode, and importing inductor, still use torch.jit inside torch, which torch itself deprecates.
COMPILER = shutil.which(os.environ.get("CXX", "g++")) or shutil.which("clang++")
# Inductor hands the linker torch's own folder without quotes: it cannot build anything where that has a space in it.
needs_inductor = pytest.mark.skipif(
    COMPILER is None or " " in torch.__file__,
    reason="inductor needs a C++ compiler, and torch installed in a path without spaces",
)
torch_uses_jit = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")

PHIS = tuple(REFERENCE_PHIS)
NORMS = ("rw", "sym")
REDUCTIONS = ("mean", "sum", "none")
BACKENDS: tuple[Literal["auto", "csr", "gather"], ...] = ("auto", "csr", "gather")
LAYOUTS = (
    "edge_index",
    "edge_index, not contiguous",
    "COO",
    "COO, coalesced",
    "CSR",
    "CSC",
    "EdgeIndex",
    "EdgeIndex of unknown size",
)

# An odd graph of six nodes: 0 → 1 comes twice, 1 has a loop, 3 → 2 is one-way, 4 only sends, 5 is alone.
ODD = Graph(
    torch.tensor([[0, 0, 1, 1, 1, 2, 3, 4], [1, 1, 0, 1, 2, 1, 2, 3]]),
    num_nodes=6,
    edge_weight=torch.tensor([1.0, 0.5, 2.0, 0.25, 1.0, 1.5, 3.0, 1.0], dtype=torch.float64),
)
# An undirected path of four nodes: nobody is alone.
PATH = Graph(torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]), num_nodes=4)


def gaussian(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Standard normal numbers from their own generator."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def distance(z: Tensor, propagated: Tensor) -> Tensor:
    """A caller's own phi: the root has no gradient where the two agree."""
    return (z - propagated).square().sum(-1).sqrt()


def compressed(matrix: Tensor, layout: torch.layout) -> Tensor:
    """A matrix in CSR, CSC or BSR layout, without torch's note that the layout is in beta."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse .* tensor support is in beta")
        return matrix.to_sparse(layout=layout, blocksize=(2, 2) if layout == torch.sparse_bsr else None)


def pyg(module: str) -> Any:
    """A module of PyG, without the deprecations that importing it stumbles over."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        return importlib.import_module(module)


def edge_index_of_pyg(edge_index: Tensor, num_nodes: int | None) -> Any:
    """PyG's EdgeIndex, which may not know its number of nodes."""
    return pyg("torch_geometric").EdgeIndex(edge_index.clone(), sparse_size=(num_nodes, num_nodes))


def layouts(graph: Graph) -> dict[str, tuple[Any, Tensor | None]]:
    """Every way the same graph may come, as (edge_index, edge_weight)."""
    size, weight = graph.num_nodes, graph.edge_weight
    coo = graph.sparse()
    came = (
        (graph.edge_index, weight),
        (graph.edge_index.t().contiguous().t(), weight),
        (coo, None),
        (coo.coalesce(), None),
        (compressed(coo, torch.sparse_csr), None),
        (compressed(coo, torch.sparse_csc), None),
        (edge_index_of_pyg(graph.edge_index, size), weight),
        (edge_index_of_pyg(graph.edge_index, None), weight),
    )
    return dict(zip(LAYOUTS, came, strict=True))
