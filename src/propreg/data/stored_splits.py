"""The official random splits as packed bits in an npz file: one file for several datasets, or one for each."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data._npz import read_npz, write_npz
from propreg.data.errors import DataError
from propreg.data.graph import Split

_SETS = ("train", "val", "test")


def read_splits(path: Path, file: str, num_nodes: int) -> list[Split]:
    """Read the splits of the dataset whose file is called ``file``.

    Raises:
        DataError: If they are not there or do not fit a graph of ``num_nodes`` nodes.
    """
    members = [f"{file}__{which}" for which in _SETS]
    arrays = read_npz(path, only={*members, f"{file}__num_nodes"}, max_bytes=64 << 20)
    count = arrays.get(f"{file}__num_nodes")
    if count is None or count.shape != () or count.dtype.kind not in "iu" or int(count) != num_nodes:
        raise DataError(f"{path}: has no splits of {file} for {num_nodes} nodes: it is damaged or another file.")
    masks: list[NDArray[np.bool_]] = []
    for member in members:
        packed = arrays.get(member)
        if packed is None or packed.dtype != np.uint8 or packed.ndim != 2 or packed.shape[1] != (num_nodes + 7) // 8:
            raise DataError(f"{path}: {member} does not hold packed masks of {num_nodes} nodes: it is damaged.")
        masks.append(np.unpackbits(packed, axis=1, count=num_nodes).astype(bool))
    if not len(masks[0]) == len(masks[1]) == len(masks[2]):
        raise DataError(f"{path}: the three kinds of masks of {file} differ in number: it is damaged.")
    return [Split(*three) for three in zip(*masks, strict=True)]


def write_splits(path: Path, file: str, splits: list[Split]) -> None:
    """Write splits for :func:`read_splits`, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {
        f"{file}__{which}": np.packbits([getattr(split, which) for split in splits], axis=1) for which in _SETS
    }
    arrays[f"{file}__num_nodes"] = np.asarray(len(splits[0].train), np.int32)
    write_npz(path, arrays)
