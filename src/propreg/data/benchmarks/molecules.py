"""Molecule datasets: many small graphs as a few long NumPy arrays, and as a list of PyG graphs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from propreg.data.digests import digest_arrays, digest_labels
from propreg.data.errors import DataError

if TYPE_CHECKING:
    import torch
    from torch_geometric.data import Data

PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class Molecules:
    """A molecule dataset in OGB's order; atoms and bonds of all molecules are concatenated.

    Attributes:
        name: The dataset.
        smiles: One SMILES text per molecule.
        task_names: One name per column of ``y``.
        y: Labels, float32 [molecules, tasks], NaN for a missing label.
        num_nodes: Atoms of each molecule.
        num_bonds: Bonds of each molecule.
        atom_features: [all atoms, 9], small integers.
        bonds: [2, all bonds], atom numbers within the molecule, each bond once.
        bond_features: [all bonds, 3], small integers.
        split: OGB's scaffold split: "train", "valid" and "test" → molecule numbers.
        digests: Part → content digest.

    Example:
        >>> water = Molecules(
        ...     "water", ("O",), ("t",), np.zeros((1, 1), np.float32), np.array([1]), np.array([0]),
        ...     np.zeros((1, 9), np.uint8), np.zeros((2, 0), np.uint8), np.zeros((0, 3), np.uint8), {},
        ... )
        >>> len(water), water.edges(0)[0].shape
        (1, (2, 0))
    """

    name: str
    smiles: tuple[str, ...]
    task_names: tuple[str, ...]
    y: NDArray[np.float32]
    num_nodes: NDArray[np.int64]
    num_bonds: NDArray[np.int64]
    atom_features: NDArray[Any]
    bonds: NDArray[Any]
    bond_features: NDArray[Any]
    split: dict[str, NDArray[np.int64]]
    digests: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.num_nodes)

    @cached_property
    def _starts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return tuple(np.concatenate([[0], np.cumsum(n)]) for n in (self.num_nodes, self.num_bonds))  # type: ignore[return-value]

    def atoms(self, i: int) -> NDArray[np.int64]:
        """Atom features of molecule ``i``, int64 [atoms, 9]."""
        start, end = self._starts[0][i : i + 2]
        return self.atom_features[start:end].astype(np.int64)

    def edges(self, i: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Edges of molecule ``i`` and their features: each bond followed by its inverse, as in OGB's loader."""
        start, end = self._starts[1][i : i + 2]
        bonds = self.bonds[:, start:end].astype(np.int64)
        edge_index = np.empty((2, 2 * bonds.shape[1]), np.int64)
        edge_index[:, ::2], edge_index[:, 1::2] = bonds, bonds[::-1]
        return edge_index, np.repeat(self.bond_features[start:end].astype(np.int64), 2, axis=0)

    def all_edges(self) -> NDArray[np.int64]:
        """Both directions of all bonds, with atom numbers over the whole dataset."""
        bonds = self.bonds.astype(np.int64) + np.repeat(self._starts[0][:-1], self.num_bonds)
        return np.concatenate([bonds, bonds[::-1]], axis=1)


def small(array: NDArray[Any]) -> NDArray[Any]:
    """Integers of any type as bytes if they fit, else as int64.

    Example:
        >>> small(np.array([3, 255])).dtype, small(np.array([3, 256], np.uint16)).dtype
        (dtype('uint8'), dtype('int64'))
    """
    fits = array.size == 0 or 0 <= int(array.min()) <= int(array.max()) < 256
    return np.ascontiguousarray(array, np.uint8 if fits else np.int64)


def digest_molecules(data: Molecules) -> dict[str, str]:
    """Content digest of each part."""
    counts = {"nodes": ("<i8", data.num_nodes), "bonds": ("<i8", data.num_bonds)}
    text = np.frombuffer("\n".join(data.smiles).encode(), np.uint8)
    return {
        "smiles": digest_arrays("smiles", {"text": ("|u1", text)}),
        "labels": digest_labels(data.y),
        "splits": digest_arrays("molecule splits", {part: ("<i8", data.split[part]) for part in PARTS}),
        "bonds": digest_arrays("bonds", {**counts, "ends": ("<i8", data.bonds)}),
        "atom_features": digest_arrays("atom features", {"x": ("<i8", data.atom_features)}),
        "bond_features": digest_arrays("bond features", {"x": ("<i8", data.bond_features)}),
    }


def check_molecules(data: Molecules, where: str) -> Molecules:
    """Raise unless the arrays fit together."""
    graphs = len(data)
    fits = (
        len(data.smiles) == len(data.y) == len(data.num_bonds) == graphs
        and data.y.ndim == 2
        and data.y.shape[1] == len(data.task_names)
        and data.atom_features.ndim == data.bond_features.ndim == data.bonds.ndim == 2
        and data.atom_features.shape[1:] == (9,)
        and data.bond_features.shape[1:] == (3,)
        and len(data.bonds) == 2
        and data.bonds.shape[1] == len(data.bond_features)
    )
    if not fits:
        raise DataError(f"{where}: the numbers of molecules, labels and features do not fit: it is damaged.")
    for what, numbers, total in (
        ("atoms", data.num_nodes, len(data.atom_features)),
        ("bonds", data.num_bonds, len(data.bond_features)),
    ):
        if int(numbers.min(initial=0)) < 0 or int(numbers.sum()) != total:
            raise DataError(
                f"{where}: the molecules have {numbers.sum()} {what}, but {total} are listed: it is damaged."
            )
    if bool((data.bonds < 0).any()) or bool((data.bonds >= np.repeat(data.num_nodes, data.num_bonds)).any()):
        raise DataError(f"{where}: a bond leads to an atom that its molecule does not have: it is damaged.")
    if bool(np.isinf(data.y).any()):
        raise DataError(f"{where}: a label is infinite: it is damaged.")
    picked = np.concatenate([data.split[part] for part in PARTS])
    if len(picked) != graphs or not bool((np.sort(picked) == np.arange(graphs)).all()):
        raise DataError(f"{where}: the split does not hold each molecule exactly once: it is damaged.")
    return data


class MoleculeDataset(Sequence[Any]):
    """Graphs with OGB's ``x`` (atoms), ``edge_index``, ``edge_attr`` (bonds) and ``y``, in OGB's order.

    ``dataset[5]`` is a PyG ``Data``; ``dataset[dataset.split["train"]]``, a slice, a list of numbers or a boolean mask
    give a dataset of those graphs. PyG's ``DataLoader`` accepts it.

    Attributes:
        arrays: The NumPy arrays behind the graphs.
        split: OGB's scaffold split, ``"train"``, ``"valid"`` and ``"test"`` → int64 tensors; empty for a selection.
        task_type: ``"binary classification"`` or ``"regression"``.
        metric: ``"rocauc"`` or ``"rmse"``, as OGB evaluates it.
    """

    def __init__(self, arrays: Molecules, task_type: str, metric: str, chosen: NDArray[np.int64] | None = None) -> None:
        self.arrays, self.task_type, self.metric = arrays, task_type, metric
        self._chosen = np.arange(len(arrays)) if chosen is None else chosen
        self.split = {} if chosen is not None else {part: _tensor(i) for part, i in arrays.split.items()}

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, index: int) -> "Data": ...

    @overload
    def __getitem__(self, index: Any) -> "MoleculeDataset": ...

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            chosen = self._chosen[index]
        elif np.ndim(index) == 0:
            return self._graph(int(self._chosen[int(index)]))
        else:
            chosen = self._chosen[np.asarray(index) if np.size(index) else np.zeros(0, np.int64)]
        return MoleculeDataset(self.arrays, self.task_type, self.metric, chosen)

    def __iter__(self) -> "Iterator[Data]":
        return (self._graph(int(i)) for i in self._chosen)

    def __repr__(self) -> str:
        return f"MoleculeDataset({self.arrays.name!r}, {len(self)} graphs, {self.num_tasks} tasks)"

    @property
    def num_tasks(self) -> int:
        return int(self.arrays.y.shape[1])

    @property
    def y(self) -> "torch.Tensor":
        """All labels, float32 [graphs, tasks], NaN for a missing label."""
        return _tensor(self.arrays.y[self._chosen])

    @property
    def smiles(self) -> list[str]:
        """One SMILES text per graph."""
        return [self.arrays.smiles[i] for i in self._chosen]

    def get_idx_split(self) -> dict[str, "torch.Tensor"]:
        """The split under OGB's name for it."""
        return self.split

    def _graph(self, i: int) -> "Data":
        from torch_geometric.data import Data

        edge_index, bonds = self.arrays.edges(i)
        return Data(
            x=_tensor(self.arrays.atoms(i)),
            edge_index=_tensor(edge_index),
            edge_attr=_tensor(bonds),
            y=_tensor(self.arrays.y[i : i + 1].copy()),
            num_nodes=int(self.arrays.num_nodes[i]),
        )


def _tensor(array: NDArray[Any]) -> "torch.Tensor":
    import torch  # lazy: the arrays are read without it

    return torch.from_numpy(array)
