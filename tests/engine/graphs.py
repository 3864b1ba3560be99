"""Small graphs of every kind the engine meets, with splits of unequal sizes."""

from dataclasses import replace
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray

from propreg.data.features import from_dense
from propreg.data.graph import Graph, Split
from propreg.engine import Problem

CLASSES = 4
KINDS = ("plain", "dense", "odd")


@cache
def sample(kind: str) -> Graph:
    """A graph by kind.

    ``plain``: undirected, sparse features. ``dense``: the same with dense features. ``odd``: directed and weighted,
    with isolated nodes, nodes that only send, and loops.
    """
    rng = np.random.default_rng(KINDS.index(kind) + 7)
    nodes = {"plain": 60, "dense": 48, "odd": 42}[kind]
    y = rng.permutation(nodes) % CLASSES
    edges = _directed(rng, nodes) if kind == "odd" else _undirected(rng, y)
    weight = rng.uniform(0.2, 3.0, (edges.shape[1],)).astype(np.float32) if kind == "odd" else None
    columns = 12 if kind == "dense" else 40
    x = rng.standard_normal((nodes, columns)) + (y[:, None] == np.arange(columns) % CLASSES)
    if kind == "dense":
        return Graph(kind, edges, x.astype(np.float32), y, weight)
    stored = rng.random(x.shape) < 0.12
    stored[:3] = False  # nodes without any feature
    return Graph(kind, edges, from_dense((x * stored).astype(np.float32)), y, weight)


@cache
def splits(kind: str) -> dict[str, Split]:
    """Two splits that share no size, so that rows of a batch are filled up; some nodes are in no part."""
    nodes = sample(kind).num_nodes
    return {name: _split(nodes, *sizes, seed) for seed, (name, sizes) in enumerate(_SIZES.items())}


_SIZES = {"a": (12, 15), "b": (7, 11)}


def problem(kind: str = "plain", dtype: torch.dtype = torch.float64) -> Problem:
    """The graph on the CPU."""
    return Problem(sample(kind), splits(kind), torch.device("cpu"), dtype)


def unweighted(kind: str) -> Graph:
    """The graph with its weights taken away."""
    return replace(sample(kind), edge_weight=None)


def _split(nodes: int, train: int, val: int, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(nodes - 2)
    masks = np.zeros((3, nodes), np.bool_)
    for mask, chosen in zip(masks, np.split(order, [train, train + val]), strict=True):
        mask[chosen] = True
    return Split(*masks)


def _undirected(rng: np.random.Generator, y: NDArray[np.int64]) -> NDArray[np.int64]:
    likely = np.where(y[:, None] == y, 0.15, 0.03)
    above = np.triu(rng.random(likely.shape) < likely, 1)
    above[np.arange(len(y) - 1), np.arange(1, len(y))] = True  # a path through all: nobody is alone
    return np.stack(np.nonzero(above | above.T)).astype(np.int64)


def _directed(rng: np.random.Generator, nodes: int) -> NDArray[np.int64]:
    likely = rng.random((nodes, nodes)) < 0.08
    likely[[0, 1, 2]] = False
    likely[:, [0, 1, 2, 3, 4]] = False  # 0 to 2 are alone, 3 and 4 only send
    likely[[3, 4], [5, 6]] = True
    likely[[5, 6, 7], [5, 6, 7]] = True  # loops
    likely[2, 2] = True  # and one at a node that is alone but for it
    return np.stack(np.nonzero(likely)).astype(np.int64)
