"""Sparse products for a batch of replicas: one matrix, or one matrix per replica, times [R, M, W].

Replicas come first in memory: the slab [M, W] of one replica fits a cache, and a product that gathers its rows runs
several times faster than one over [M, R·W].
"""

import copy
import functools
import warnings
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from propreg.engine import kernels
from propreg.engine.ops.embedding_bag import BagMatrix, bag_product

MIN_BAG_WIDTH = 10  # columns; for wider products embedding_bag is the faster one on a CPU
CACHE_BYTES = 500_000  # of a replica's x that stay in a core's cache while its rows are gathered repeatedly
MIN_ENTRIES_PER_BAG = (
    256  # entries of a column in a block, below which the bags themselves cost more than the cache saves
)


class Pattern:
    """The places of a sparse matrix's entries [N, M], by rows and by columns; values are separate, [nnz] or [R, nnz].

    A place may be given more than once: its values add up.

    Args:
        row, col: The places, in any order; sorting them is skipped where they already rise.
        shape: N and M.

    Attributes:
        crow, col32: The CSR form, int32.
        ccol, row32: The CSC form, int32.
        column_order: For each entry in the order of columns its number in the order of rows.
    """

    def __init__(self, row: Tensor, col: Tensor, shape: tuple[int, int]) -> None:
        _silence_csr_warning()
        self.shape = shape
        key = row * shape[1] + col
        self._order = None
        if not bool((key[1:] >= key[:-1]).all()):
            key, self._order = key.sort(stable=True)
            row = key.div(max(shape[1], 1), rounding_mode="floor")
            col = key - row * shape[1]
        self.crow, self.col32 = _pointers(row, shape[0]), col.int()
        # Stable: within a column rows rise, as they do in the list that is sorted.
        by_column, self.column_order = self.col32.sort(stable=True)
        self.ccol, self.row32 = _pointers(by_column, shape[1]), row.int().index_select(0, self.column_order)

    @property
    def order(self) -> Tensor:
        """For each entry in the order of rows its number among the entries given."""
        return torch.arange(self.nnz, device=self.col32.device) if self._order is None else self._order

    @cached_property
    def row(self) -> Tensor:
        """The row of each entry, in the order of rows."""
        rows = torch.arange(self.shape[0], device=self.crow.device)
        return torch.repeat_interleave(rows, self.crow.diff().long(), output_size=self.nnz)

    @cached_property
    def col(self) -> Tensor:
        """The column of each entry, in the order of rows."""
        return self.col32.long()

    def by_rows(self, values: Tensor) -> Tensor:
        """Values [nnz] of the entries given, in the order of rows."""
        return values.contiguous() if self._order is None else values.index_select(0, self._order)

    def by_columns(self, values: Tensor) -> Tensor:
        """Values [nnz] or [R, nnz] in the order of rows, in the order of columns."""
        return values.index_select(-1, self.column_order)

    @property
    def nnz(self) -> int:
        return len(self.col32)

    def multiply(self, values: Tensor, x: Tensor, transposed: bool, onto: Tensor | None = None) -> Tensor:
        """The bare product; ``values`` are [nnz] or [R, nnz] in the order of rows (of columns, if transposed).

        With ``onto`` [R, N, W] the product is added to it; it may be overwritten.
        """
        if kernels.usable(values, x):
            from propreg.engine.kernels.spmm import product

            return product.multiply(self, values, x, transposed, addend=onto)
        pointers, inner = (self.ccol, self.row32) if transposed else (self.crow, self.col32)
        if _uses_bags(x):
            sums = bag_product(pointers, inner, values, x)
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


def _uses_bags(x: Tensor) -> bool:
    return (
        x.device.type == "cpu"
        and x.dtype == torch.float32
        and x.shape[2] >= MIN_BAG_WIDTH
        and has_embedding_bag()
        and len(x) > 0
    )


@functools.cache
def has_embedding_bag() -> bool:
    """Whether this build of torch has a fast kernel for ``embedding_bag``."""
    return "fbgemm" in torch.backends.quantized.supported_engines


class Matrix:
    """A sparse matrix with fixed values, shared by all replicas: ``matrix(x)`` multiplies [R, M, W]."""

    def __init__(self, row: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> None:
        self.pattern = Pattern(row, col, shape)
        self.values = self.pattern.by_rows(values)
        self.column_values = self.pattern.by_columns(self.values)
        self._in_blocks: dict[int, Blocks] = {}
        self._as_bags: dict[bool, BagMatrix] = {}

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = _Product.apply(x, self, False)  # type: ignore[no-untyped-call]
        return product

    def plus(self, x: Tensor, addend: Tensor) -> Tensor:
        """A x + addend, for x [R, M, W] and addend [R, N, W]: one pass over both."""
        result: Tensor = _ProductPlus.apply(x, addend, self)  # type: ignore[no-untyped-call]
        return result

    def scaled(self, factor: float) -> "Matrix":
        """The matrix with its values times a factor."""
        other = copy.copy(self)
        other.values, other.column_values = self.values * factor, self.column_values * factor
        other._in_blocks, other._as_bags = {}, {}
        return other

    def to_dense(self) -> Tensor:
        """The matrix in dense form."""
        dense = self.values.new_zeros(self.pattern.shape)
        return dense.index_put_((self.pattern.row, self.pattern.col), self.values, accumulate=True)

    def multiply(self, x: Tensor, transposed: bool, onto: Tensor | None = None) -> Tensor:
        """The bare product, added to ``onto`` [R, N, W] if given, which may be overwritten."""
        values = self.column_values if transposed else self.values
        if kernels.usable(values, x) or not _uses_bags(x):
            return self.pattern.multiply(values, x, transposed, onto)
        sums = self._in_sums(values, x, transposed)
        return sums if onto is None else onto.add_(sums)

    def _in_sums(self, values: Tensor, x: Tensor, transposed: bool) -> Tensor:
        """On a CPU, with ``embedding_bag``."""
        blocks = self._blocks(x) if transposed else 1
        if blocks > 1:
            if blocks not in self._in_blocks:
                self._in_blocks[blocks] = Blocks(self, blocks)
            return self._in_blocks[blocks].multiply(x)
        if transposed not in self._as_bags:
            known = self.pattern
            pointers, inner = (known.ccol, known.row32) if transposed else (known.crow, known.col32)
            self._as_bags[transposed] = BagMatrix(pointers, inner, values)
        return self._as_bags[transposed].multiply(x)

    def _blocks(self, x: Tensor) -> int:
        """The number of blocks of rows for the transposed product."""
        filled = self.pattern.nnz // (MIN_ENTRIES_PER_BAG * max(self.pattern.shape[1], 1))
        return max(1, min(-(-x[0].numel() * x.element_size() // CACHE_BYTES), filled))


class ReplicaMatrix:
    """A sparse matrix with values of each replica's own [R, nnz], in the order of rows, which need no gradient."""

    def __init__(self, pattern: Pattern, values: Tensor) -> None:
        self.pattern, self.values, self.column_values = pattern, values, pattern.by_columns(values)

    def __call__(self, x: Tensor) -> Tensor:
        product: Tensor = _Product.apply(x, self, False)  # type: ignore[no-untyped-call]
        return product

    def multiply(self, x: Tensor, transposed: bool) -> Tensor:
        """The bare product."""
        return self.pattern.multiply(self.column_values if transposed else self.values, x, transposed)


class Blocks:
    """The transpose of a matrix, cut into blocks of rows that fit a core's cache: one bag per block and column.

    Two CPU cores, features of Photo: 7.1 ms instead of 11.2; features with fewer non-zeros per column gain nothing.
    """

    def __init__(self, matrix: Matrix, blocks: int) -> None:
        pattern, self.blocks, self.columns = matrix.pattern, blocks, matrix.pattern.shape[1]
        bag = pattern.row // -(-pattern.shape[0] // blocks) * self.columns + pattern.col
        order = bag.argsort(stable=True)  # rows rise in each bag, as they do in the matrix
        pointers = _pointers(bag[order], blocks * self.columns)
        self.bags = BagMatrix(pointers, pattern.row[order].int(), matrix.values[order].contiguous())

    def multiply(self, x: Tensor) -> Tensor:
        """The transposed product."""
        parts = self.bags.multiply(x)
        return parts.view(len(x), self.blocks, self.columns, x.shape[2]).sum(1)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, matrix: Matrix | ReplicaMatrix, transposed: bool) -> Tensor:
        ctx.matrix, ctx.transposed = matrix, transposed
        return matrix.multiply(x, transposed)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.matrix.multiply(grad.contiguous(), not ctx.transposed), None, None


class _ProductPlus(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, addend: Tensor, matrix: Matrix) -> Tensor:
        ctx.matrix = matrix
        if not kernels.usable(matrix.values, x):  # plain torch adds in place
            addend = addend.clone()
        return matrix.multiply(x, False, addend)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        return ctx.matrix.multiply(grad.contiguous(), True), grad, None


@functools.cache
def _silence_csr_warning() -> None:
    """Trigger torch's once-per-process "CSR is in beta" warning here, under a filter.

    Not around each product: filters are process-wide, and worker threads that save and restore them would race.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        one = torch.zeros(1, dtype=torch.int32, device="cpu")
        torch.sparse_csr_tensor(
            torch.arange(2, dtype=torch.int32, device="cpu"), one, one.float(), (1, 1), check_invariants=False
        )


def _pointers(ordered: Tensor, count: int) -> Tensor:
    return torch.searchsorted(ordered, torch.arange(count + 1, device=ordered.device, dtype=ordered.dtype)).int()
