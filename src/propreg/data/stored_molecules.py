"""Molecule datasets as npz files in the package's own form."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data._npz import read_npz, write_npz
from propreg.data.errors import DataError
from propreg.data.molecules import PARTS, Molecules, check_molecules, small

_INTEGERS = {
    "num_nodes": 1, "num_bonds": 1, "node_feat": 2, "bonds": 2, "bond_feat": 2, "smiles_ascii": 1,
    "task_names_ascii": 1, **{f"{part}_idx": 1 for part in PARTS},
}  # fmt: skip
_MAX_BYTES = 256 << 20


def read_molecules(path: Path, name: str) -> Molecules:
    """Read a molecule dataset; everything but the digests is checked here.

    Raises:
        DataError: If the file cannot be read or its arrays do not fit together.
    """
    arrays = read_npz(path, only={*_INTEGERS, "y"}, max_bytes=_MAX_BYTES)
    where = str(path)
    for member, dimensions in _INTEGERS.items():
        if member not in arrays:
            raise DataError(f"{where}: has no array {member!r}: it is not a molecule file of propreg, or damaged.")
        array = arrays[member]
        if array.dtype.kind not in "iu" or array.ndim != dimensions:
            raise DataError(
                f"{where}: {member} must be integers in {dimensions} dimensions, but has type {array.dtype} "
                f"and shape {array.shape}: it is damaged."
            )
    if "y" not in arrays or arrays["y"].dtype != np.float32:
        raise DataError(f"{where}: y must be float32 labels: it is damaged.")
    data = Molecules(
        name,
        _lines(arrays["smiles_ascii"], where),
        _lines(arrays["task_names_ascii"], where),
        arrays["y"],
        arrays["num_nodes"].astype(np.int64),
        arrays["num_bonds"].astype(np.int64),
        small(arrays["node_feat"].T),
        small(arrays["bonds"]),
        small(arrays["bond_feat"].T),
        {part: arrays[f"{part}_idx"].astype(np.int64) for part in PARTS},
    )
    return check_molecules(data, where)


def write_molecules(path: Path, data: Molecules) -> None:
    """Write a molecule dataset for :func:`read_molecules`, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {
        "smiles_ascii": _text(data.smiles),
        "task_names_ascii": _text(data.task_names),
        "y": data.y,
        "num_nodes": small(data.num_nodes),
        "num_bonds": small(data.num_bonds),
        "node_feat": small(data.atom_features.T),
        "bonds": small(data.bonds),
        "bond_feat": small(data.bond_features.T),
        **{f"{part}_idx": data.split[part].astype(np.int32) for part in PARTS},
    }
    write_npz(path, arrays)


def _lines(text: NDArray[Any], where: str) -> tuple[str, ...]:
    if text.dtype != np.uint8 or int(text.max(initial=0)) > 126:
        raise DataError(f"{where}: a text is not plain ASCII: it is damaged.")
    return tuple(text.tobytes().decode("ascii").split("\n"))


def _text(lines: tuple[str, ...]) -> NDArray[np.uint8]:
    return np.frombuffer("\n".join(lines).encode("ascii"), np.uint8)
