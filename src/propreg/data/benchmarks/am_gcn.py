"""The splits of blogcatalog, flickr and acm: published training and test nodes, drawn validation nodes.

From zhumeiqiBUPT/AM-GCN at 1ce29649, loops dropped and both directions of an edge merged: 20 training nodes per class
and 1,000 test nodes. That work selects on the test nodes. Here split i selects on the 500 nodes of lowest rank of seed
i among all others (see :mod:`propreg.data.splits`), as many as the public splits of Planetoid have; like theirs, they
have the classes' natural frequencies. So the ten splits share training and test nodes: what differs between them does
not measure the choice of these, and splits of :func:`propreg.random_split` do.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from propreg.data.benchmarks.cache import node_mask
from propreg.data.benchmarks.catalog import NUM_SPLITS
from propreg.data.errors import DataError
from propreg.data.formats.npz import read_npz
from propreg.data.graph import Split
from propreg.data.splits import ranks

_TRAIN, _TEST = "train20_idx", "test20_idx"
VALIDATION = 500


def read_splits(path: Path, file: str, num_nodes: int) -> list[Split]:
    """Read the published nodes of the dataset named ``file``, and draw ten validation sets."""
    arrays = read_npz(path, only={_TRAIN, _TEST}, max_bytes=64 << 20)
    train, test = (node_mask(arrays, member, num_nodes, str(path)) for member in (_TRAIN, _TEST))
    rest = np.flatnonzero(~(train | test))
    if (train & test).any() or len(rest) < VALIDATION:
        raise DataError(
            f"{path}: training and test nodes of {file} overlap, or leave fewer than {VALIDATION} for validation: the "
            "file is damaged."
        )
    return [Split(train, _drawn(rest, num_nodes, seed), test) for seed in range(NUM_SPLITS)]


def _drawn(rest: NDArray[np.int64], num_nodes: int, seed: int) -> NDArray[np.bool_]:
    mask = np.zeros(num_nodes, bool)
    mask[rest[np.argsort(ranks(num_nodes, seed)[rest], kind="stable")[:VALIDATION]]] = True
    return mask
