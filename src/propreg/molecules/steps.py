"""The mini-batches of a training on molecules: each seed has an order of its own, drawn from its identity."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.engine.models.molecules import MoleculeModel
from propreg.engine.ops.random import generator
from propreg.molecules.tasks import MoleculeTask


@dataclass(frozen=True)
class MoleculeProtocol:
    """How a training goes; the defaults are OGB's example."""

    epochs: int = 100
    batch_size: int = 32
    lr: float = 0.001
    dropout: float = 0.5


class Steps:
    """Which molecules each step trains on, and what its atoms and bonds are padded to."""

    LEVELS = (0.5, 0.9, 1.0)  # quantiles of the steps' sizes that padding goes up to: a recorded program for each

    def __init__(
        self, task: MoleculeTask, model: MoleculeModel, seeds: Sequence[int], protocol: MoleculeProtocol
    ) -> None:
        self.task, self.model, self.seeds, self.protocol = task, model, seeds, protocol
        sizes = np.concatenate([self._sizes(epoch) for epoch in range(1, protocol.epochs + 1)])
        atoms = sizes[:, 0]
        levels = sorted({_rounded(int(np.quantile(atoms, level))) for level in self.LEVELS})
        self.levels = []
        for low, high in zip([0, *levels], levels, strict=False):
            inside = sizes[(atoms > low) & (atoms <= high)]
            if len(inside):
                self.levels.append((high, _rounded(max(int(inside[:, 1].max()), 1))))

    def orders(self, epoch: int) -> list[tuple[Tensor, tuple[int, int]]]:
        """The mini-batches of an epoch: molecules [S, B], −1 where there are fewer, and the padded sizes."""
        found, recorded = [], self.task.device.type == "cuda"
        for molecules, (atoms, bonds) in zip(self._cut(epoch), self._sizes(epoch), strict=True):
            size = (int(atoms), max(int(bonds), 1))
            if recorded:  # a program for each of a few sizes; a CPU would only spend time on the padding
                size = next(level for level in self.levels if atoms <= level[0])
            found.append((torch.from_numpy(molecules).to(self.task.device), size))
        return found

    def _cut(self, epoch: int) -> list[NDArray[np.int64]]:
        train, size = self.task.data.split["train"], self.protocol.batch_size
        streams = [self.task.stream(seed, self.model, f"order{epoch}") for seed in self.seeds]
        order = np.stack([generator(stream).permutation(train) for stream in streams])
        cut = [order[:, i : i + size] for i in range(0, order.shape[1], size)]
        if cut[-1].shape[1] == 1:  # batch norm over one graph means nothing; OGB's example skips it
            cut.pop()
        short = size - cut[-1].shape[1]
        cut[-1] = np.pad(cut[-1], ((0, 0), (0, short)), constant_values=-1)
        return cut

    def _sizes(self, epoch: int) -> NDArray[np.int64]:
        """The most atoms and directed bonds of any seed in each step, [steps, 2]."""
        packed = self.task.packed
        found = []
        for molecules in self._cut(epoch):
            real = molecules >= 0
            counts = [(np.where(real, each[molecules], 0).sum(1).max()) for each in (packed.atoms_of, packed.bonds_of)]
            found.append(counts)
        return np.array(found, np.int64)


def _rounded(size: int) -> int:
    return -(-size // 32) * 32
