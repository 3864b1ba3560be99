"""Graphs of communities: quick to train on, and with as much or as little homophily as a test wants."""

import numpy as np

from propreg.data.graph import Graph


def communities(nodes: int = 120, classes: int = 3, same: float = 0.9, degree: int = 4, seed: int = 0) -> Graph:
    """Every node draws ``degree`` neighbors, of its own class with probability ``same``; features say little."""
    rng = np.random.default_rng(seed)
    y = np.arange(nodes) % classes
    source = np.repeat(np.arange(nodes), degree)
    own = rng.random(len(source)) < same
    shift = rng.integers(1, classes, len(source)) * ~own
    group = (y[source] + shift) % classes
    target = group + classes * rng.integers(0, nodes // classes, len(source))
    pairs = np.unique(np.concatenate([np.stack([source, target]), np.stack([target, source])], axis=1), axis=1)
    x = rng.standard_normal((nodes, 8)).astype(np.float32)
    x[np.arange(nodes), y] += 1.0
    return Graph("communities", pairs[:, pairs[0] != pairs[1]], x, y)
