"""Molecules made up for tests: a few random trees, one molecule without bonds, one of a single atom."""

import numpy as np

from propreg.data.benchmarks.molecules import Molecules
from propreg.molecules.packing import ATOM_DIMS, BOND_DIMS


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
