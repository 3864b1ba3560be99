"""Sparse products for a batch of replicas: one matrix, or one matrix per replica, times [R, M, W].

Replicas come first in memory: the slab [M, W] of one replica fits a cache, and a product that gathers its rows runs
several times faster than one over [M, R·W].
"""

import functools
import warnings
from typing import Any

import torch
from torch import Tensor

from propreg.engine import kernels
from propreg.engine.bags import Bags, sums_of_bags

BAG_FROM = 10  # columns from which on sums of embeddings are the faster product on a CPU
BLOCK = 500_000  # bytes of a replica's x that a core's cache holds while its rows are gathered again and again
LEAST_IN_BAG = 256  # entries of a column in a block, below which the bags themselves cost more than the cache saves


class Pattern:
    """Where a sparse matrix [N, M] has entries, by rows and by columns. Values come apart: [nnz] or [R, nnz]."""

    def __init__(self, row: Tensor, col: Tensor, shape: tuple[int, int]) -> None:
        _heard()
        order = (row * shape[1] + col).argsort()
        self.order = order  # from the order of the entries given to that of the rows
        self.shape = shape
        self.row, self.col = row[order], col[order]
        self.across = (self.col * shape[0] + self.row).argsort()  # from the order of the rows to that of the columns
        self.crow, self.ccol = _pointers(self.row, shape[0]), _pointers(self.col[self.across], shape[1])
        self.col32, self.row32 = self.col.int(), self.row[self.across].int()

    @property
    def nnz(self) -> int:
        return len(self.row)

    def multiply(self, values: Tensor, x: Tensor, transposed: bool, onto: Tensor | None = None) -> Tensor:
        """The bare product; ``values`` are [nnz] or [R, nnz] in the order of rows (of columns, if transposed).

        ``onto`` [R, N, W] is what it is added to; it may be overwritten.
        """
        if kernels.usable(values, x):
            from propreg.engine.kernels import spmm

            return spmm.multiply(self, values, x, transposed, addend=onto)
        pointers, inner = (self.ccol, self.row32) if transposed else (self.crow, self.col32)
        if _in_bags(x):
            sums = sums_of_bags(pointers, inner, values, x)
            return sums if onto is None else onto.add_(sums)
        rows, columns = self.shape[::-1] if transposed else self.shape
        out = x.new_empty(x.shape[0], rows, x.shape[2]) if onto is None else onto
        shared = values if values.dim() == 1 else None
        matrix = None
        for r in range(x.shape[0]):
            if matrix is None or shared is None:
                v = values[r] if shared is None else shared
                matrix = torch.sparse_csr_tensor(
                    pointers, inner, v, (rows, columns), device=v.device, check_invariants=False
                )
            out[r].addmm_(
                matrix, x[r], beta=0 if onto is None else 1
            )  # mm with out= would fill a copy and copy it back
        return out


def _in_bags(x: Tensor) -> bool:
    return x.device.type == "cpu" and x.dtype == torch.float32 and x.shape[2] >= BAG_FROM and has_bags() and len(x) > 0


@functools.cache
def has_bags() -> bool:
    """Whether this build of torch has a fast kernel for sums of embeddings."""
    return "fbgemm" in torch.backends.quantized.supported_engines


class Matrix:
    """A sparse matrix with fixed values, shared by all replicas: ``matrix(x)`` multiplies [R, M, W]."""

    def __init__(self, row: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> None:
        self.pattern = Pattern(row, col, shape)
        self.values = values[self.pattern.order].contiguous()
        self.values_across = self.values[self.pattern.across].contiguous()
        self._in_blocks: dict[int, Blocks] = {}
        self._as_bags: dict[bool, Bags] = {}

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = _Product.apply(x, self, False)  # type: ignore[no-untyped-call]
        return product

    def multiply(self, x: Tensor, transposed: bool, onto: Tensor | None = None) -> Tensor:
        """The bare product; added to ``onto`` [R, N, W], which may be overwritten, where that is given."""
        values = self.values_across if transposed else self.values
        if kernels.usable(values, x) or not _in_bags(x):
            return self.pattern.multiply(values, x, transposed, onto)
        sums = self._in_sums(values, x, transposed)
        return sums if onto is None else onto.add_(sums)

    def _in_sums(self, values: Tensor, x: Tensor, transposed: bool) -> Tensor:
        """On a CPU, as sums of embeddings."""
        blocks = self._blocks(x) if transposed else 1
        if blocks > 1:
            if blocks not in self._in_blocks:
                self._in_blocks[blocks] = Blocks(self, blocks)
            return self._in_blocks[blocks].multiply(x)
        if transposed not in self._as_bags:
            known = self.pattern
            pointers, inner = (known.ccol, known.row32) if transposed else (known.crow, known.col32)
            self._as_bags[transposed] = Bags(pointers, inner, values)
        return self._as_bags[transposed].multiply(x)

    def _blocks(self, x: Tensor) -> int:
        """Into how many blocks of rows to cut the transposed product."""
        filled = self.pattern.nnz // (LEAST_IN_BAG * max(self.pattern.shape[1], 1))
        return max(1, min(-(-x[0].numel() * x.element_size() // BLOCK), filled))


class Blocks:
    """The transpose of a matrix, cut into blocks of rows that fit a core's cache: one bag for each block and column.

    Two CPU cores, features of Photo: 7.1 ms instead of 11.2; features with fewer non-zeros a column gain nothing.
    """

    def __init__(self, matrix: Matrix, blocks: int) -> None:
        pattern, self.blocks, self.columns = matrix.pattern, blocks, matrix.pattern.shape[1]
        bag = pattern.row // -(-pattern.shape[0] // blocks) * self.columns + pattern.col
        order = bag.argsort(stable=True)  # rows rise in each bag, as they do in the matrix
        pointers = _pointers(bag[order], blocks * self.columns)
        self.bags = Bags(pointers, pattern.row[order].int(), matrix.values[order].contiguous())

    def multiply(self, x: Tensor) -> Tensor:
        """The transposed product."""
        parts = self.bags.multiply(x)
        return parts.view(len(x), self.blocks, self.columns, x.shape[2]).sum(1)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Matrix, transposed: bool) -> Tensor:
        ctx.matrix, ctx.transposed = matrix, transposed
        return matrix.multiply(x, transposed)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.matrix.multiply(grad.contiguous(), not ctx.transposed), None, None


@functools.cache
def _heard() -> None:
    """Let torch say what it says once per process, that CSR is in beta, where nobody hears it.

    Not around each product: filters belong to the process, and threads that set and restore them at the same time
    leave them changed.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        one = torch.zeros(1, dtype=torch.int32, device="cpu")
        torch.sparse_csr_tensor(
            torch.arange(2, dtype=torch.int32, device="cpu"), one, one.float(), (1, 1), check_invariants=False
        )


def _pointers(ordered: Tensor, count: int) -> Tensor:
    return torch.searchsorted(ordered, torch.arange(count + 1, device=ordered.device)).int()
