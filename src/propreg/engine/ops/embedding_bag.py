"""Sparse products on a CPU with ``embedding_bag``: a row is a bag of indices into x, weighted by its values.

Torch's kernel for bags keeps a row's sum in registers and prefetches: 1.7 to 9 times as fast as its CSR product
(``benchmarks/products.py``).
"""

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

MOST_REPEATED = 2**25  # entries that may be stored once per replica, 8 bytes each


def bag_product(pointers: Tensor, inner: Tensor, values: Tensor, x: Tensor) -> Tensor:
    """The product with x [R, M, W], one replica after another; ``values`` are [nnz] or [R, nnz]."""
    bags = [_sums(pointers, inner, values if values.dim() == 1 else values[r], x[r]) for r in range(len(x))]
    return torch.stack(bags) if len(bags) > 1 else _shaped(bags[0], 1)


class BagMatrix:
    """A matrix with fixed values. One call serves all replicas, its indices repeated and shifted for each.

    The results then need no stacking: on two cores an epoch of a GCN on Cora takes a tenth less.
    """

    def __init__(self, pointers: Tensor, inner: Tensor, values: Tensor) -> None:
        self._one = (pointers, inner, values)
        self._repeated: dict[tuple[int, int], tuple[Tensor, Tensor, Tensor]] = {}

    def multiply(self, x: Tensor) -> Tensor:
        """The product with x [R, M, W], bit-identical to that of each replica alone."""
        replicas, rows, width = x.shape
        if replicas == 1 or replicas * len(self._one[1]) > MOST_REPEATED:
            return bag_product(*self._one, x)
        if (replicas, rows) not in self._repeated:
            self._repeated[replicas, rows] = self._repeat(replicas, rows)
        return _shaped(_sums(*self._repeated[replicas, rows], x.reshape(-1, width)), replicas)

    def _repeat(self, replicas: int, rows: int) -> tuple[Tensor, Tensor, Tensor]:
        pointers, inner, values = self._one
        replica = torch.arange(replicas, dtype=inner.dtype, device=inner.device)[:, None]
        starts = (pointers[:-1] + replica * len(inner)).flatten()
        end = pointers.new_full((1,), replicas * len(inner))
        return torch.cat([starts, end]), (inner + replica * rows).flatten(), values.repeat(replicas)


def _sums(pointers: Tensor, inner: Tensor, values: Tensor, x: Tensor) -> Tensor:
    return embedding_bag(inner, x, pointers, mode="sum", per_sample_weights=values, include_last_offset=True)


def _shaped(sums: Tensor, replicas: int) -> Tensor:
    """Not as a view: the caller may overwrite the product, and autograd would copy a view first."""
    found: Tensor = torch.ops.aten._unsafe_view(sums, [replicas, len(sums) // replicas, sums.shape[1]])
    return found
