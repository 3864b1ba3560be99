"""Products with what several replicas have in common: those of one random stream see the same augmented features."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Sharing:
    """Which replicas have equal random streams, as index tensors on a device.

    Attributes:
        first: A replica of each stream, [U].
        member: The stream of each replica, [R].
    """

    def __init__(self, streams: NDArray[np.uint64], device: torch.device) -> None:
        _, first, member, counts = np.unique(streams, return_index=True, return_inverse=True, return_counts=True)
        order = first.argsort()  # streams in the order of their first replicas
        first, member = first[order], order.argsort()[member]
        table = np.repeat(first[:, None], counts.max(), 1)  # the replicas of each stream, filled up with the first one
        slot = np.zeros(len(streams), np.int64)
        taken = np.zeros(len(first), np.int64)
        for replica, stream in enumerate(member):
            table[stream, taken[stream]] = replica
            slot[replica] = stream * table.shape[1] + taken[stream]
            taken[stream] += 1
        self.first, self.member, self._table, self._slot = (
            torch.from_numpy(np.ascontiguousarray(each)).to(device) for each in (first, member, table, slot)
        )
        self._in_order = len(first) == len(streams) and bool((first == np.arange(len(streams))).all())

    def product(self, x: Tensor, w: Tensor) -> Tensor:
        """x [U, N, F] of the streams times w [R, F, H] of the replicas, [R, N, H]: one product for each stream."""
        if self._in_order:
            return torch.bmm(x, w)
        streams, most = self._table.shape
        nodes, (inner, width) = x.shape[1], w.shape[1:]
        beside = w[self._table.flatten()].view(streams, most, inner, width).transpose(1, 2).reshape(streams, inner, -1)
        product = torch.bmm(x, beside).view(streams, nodes, most, width).transpose(1, 2)
        return product.reshape(-1, nodes, width)[self._slot]
