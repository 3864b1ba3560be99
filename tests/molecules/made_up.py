"""Molecules made up for tests: a few random trees, one molecule without bonds, one of a single atom."""

import numpy as np

from propreg.data.benchmarks.molecules import Molecules
from propreg.data.graph_list import ATOM_DIMS, BOND_DIMS, GraphList


def molecules(count: int = 24, tasks: int = 1, regression: bool = True, seed: int = 0) -> Molecules:
    """Small molecules with random features and labels, some of them missing."""
    random = np.random.default_rng(seed)
    sizes = [1, 3, *random.integers(2, 9, count - 2)]
    bonds, bond_counts = [], []
    for number, size in enumerate(sizes):
        ends = [(int(random.integers(0, i)), i) for i in range(1, size)] if number != 1 else []
        if size > 3:
            ends.append((0, size - 1)) if (0, size - 1) not in ends else None
        bonds += ends
        bond_counts.append(len(ends))
    atoms, total = int(np.sum(sizes)), len(bonds)
    y = random.standard_normal((count, tasks)) if regression else random.integers(0, 2, (count, tasks)).astype(float)
    y[random.random(y.shape) < 0.2 * (tasks > 1)] = np.nan
    order = random.permutation(count)
    return Molecules(
        "made up",
        tuple("C" for _ in sizes),
        tuple(f"t{i}" for i in range(tasks)),
        y.astype(np.float32),
        np.array(sizes),
        np.array(bond_counts),
        np.stack([random.integers(0, min(dim, 4), atoms) for dim in ATOM_DIMS], 1).astype(np.uint8),
        np.array(bonds, np.uint8).reshape(-1, 2).T,
        np.stack([random.integers(0, dim, total) for dim in BOND_DIMS], 1).astype(np.uint8),
        {"train": order[: count // 2], "valid": order[count // 2 : 3 * count // 4], "test": order[3 * count // 4 :]},
    )


def graphs(count: int = 24, columns: tuple[int, int] = (4, 2), classes: int = 0, seed: int = 0) -> GraphList:
    """Directed graphs with float features, the first of one node, the second without an edge; self-loops, repeats.

    A graph's class, or its number, depends on the mean of its first feature.
    """
    random = np.random.default_rng(seed)
    sizes = np.array([1, 3, *random.integers(2, 9, count - 2)])
    edges_of = np.array([0, 0, *(random.integers(1, 3 * n) for n in sizes[2:])])
    ends = [random.integers(0, n, (2, e)) for n, e in zip(sizes, edges_of, strict=True)]
    x = random.standard_normal((sizes.sum(), columns[0])).astype(np.float32)
    graph = np.repeat(np.arange(count), sizes)
    x[:, 0] += 2 * random.standard_normal(count)[graph]
    mean = np.bincount(graph, x[:, 0]) / sizes
    y = np.digitize(mean, np.quantile(mean, np.arange(1, classes) / classes)) if classes else 50 + 20 * mean
    order, half, most = random.permutation(count), count // 2, 3 * count // 4
    return GraphList(
        x,
        np.concatenate(ends, 1),
        random.standard_normal((edges_of.sum(), columns[1])).astype(np.float32),
        sizes,
        edges_of,
        y.astype(np.float32)[:, None],
        split={"train": order[:half], "valid": order[half:most], "test": order[most:]},
    )
