"""The keys of dropout masks on their device: a block of epochs per transfer, the current epoch at a fixed address."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.engine.streams import mask_keys

BLOCK = 64


class MaskKeys:
    """The keys of all replicas at every site that was asked for, int32 [R, 2], for the epoch that was set last."""

    def __init__(self, streams: NDArray[np.uint64], device: torch.device, epoch: int = 1) -> None:
        self.streams, self.device, self.epoch = streams, device, epoch
        self._current: dict[int, Tensor] = {}  # written in place, so that a captured graph sees each epoch's keys
        self._blocks: dict[int, tuple[int, Tensor]] = {}

    def advance(self, epoch: int) -> None:
        """Move all sites to this epoch."""
        self.epoch = epoch
        for site, keys in self._current.items():
            keys.copy_(self._lookup(site))

    def __call__(self, site: int) -> Tensor:
        if site not in self._current:
            self._current[site] = self._lookup(site).clone()
        return self._current[site]

    def keep(self, kept: NDArray[np.int64]) -> "MaskKeys":
        """Compact to these replicas."""
        return MaskKeys(self.streams[kept], self.device, self.epoch)

    def _lookup(self, site: int) -> Tensor:
        number, offset = divmod(self.epoch, BLOCK)
        if site not in self._blocks or self._blocks[site][0] != number:
            keys = np.stack([mask_keys(self.streams, number * BLOCK + i, site) for i in range(BLOCK)])
            self._blocks[site] = (number, torch.from_numpy(keys).to(self.device))
        return self._blocks[site][1][offset]
