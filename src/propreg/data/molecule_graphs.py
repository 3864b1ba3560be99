"""A molecule dataset as a list of PyG graphs, each made when it is asked for."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch
from numpy.typing import NDArray

from propreg.data.molecules import Molecules

if TYPE_CHECKING:
    from torch_geometric.data import Data


class MoleculeDataset(Sequence[Any]):
    """Graphs with OGB's ``x`` (atoms), ``edge_index``, ``edge_attr`` (bonds) and ``y``, in OGB's order.

    ``dataset[5]`` is a PyG ``Data``; ``dataset[dataset.split["train"]]``, a slice, a list of numbers or a boolean mask
    give a dataset of those graphs. PyG's ``DataLoader`` takes it as it is.

    Attributes:
        arrays: The NumPy arrays behind the graphs.
        split: OGB's scaffold split, ``"train"``, ``"valid"`` and ``"test"`` → int64 tensors; empty for a selection.
        task_type: ``"binary classification"`` or ``"regression"``.
        metric: ``"rocauc"`` or ``"rmse"``, as OGB evaluates it.
    """

    def __init__(self, arrays: Molecules, task_type: str, metric: str, chosen: NDArray[np.int64] | None = None) -> None:
        self.arrays, self.task_type, self.metric = arrays, task_type, metric
        self._chosen = np.arange(len(arrays)) if chosen is None else chosen
        self.split = {} if chosen is not None else {part: torch.from_numpy(i) for part, i in arrays.split.items()}

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
    def y(self) -> torch.Tensor:
        """All labels, float32 [graphs, tasks], NaN where one is missing."""
        return torch.from_numpy(self.arrays.y[self._chosen])

    @property
    def smiles(self) -> list[str]:
        """One SMILES text per graph."""
        return [self.arrays.smiles[i] for i in self._chosen]

    def get_idx_split(self) -> dict[str, torch.Tensor]:
        """The split under OGB's name for it."""
        return self.split

    def _graph(self, i: int) -> "Data":
        from torch_geometric.data import Data

        edge_index, bonds = self.arrays.edges(i)
        return Data(
            x=torch.from_numpy(self.arrays.atoms(i)),
            edge_index=torch.from_numpy(edge_index),
            edge_attr=torch.from_numpy(bonds),
            y=torch.from_numpy(self.arrays.y[i : i + 1].copy()),
            num_nodes=int(self.arrays.num_nodes[i]),
        )
