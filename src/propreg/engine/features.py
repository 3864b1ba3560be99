"""The features times a weight per replica: ``X W`` with X sparse or dense, the most expensive step of an epoch."""

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from propreg.data.graph import Graph, SparseFeatures
from propreg.engine import kernels
from propreg.engine.activation import bias_relu, spread_relu
from propreg.engine.dropout import Masks
from propreg.engine.sparse import Matrix, Pattern, has_bags

if TYPE_CHECKING:
    from propreg.engine.kernels.halves import Fixed

# Above these shares of non-zeros a dense product is faster: as torch has it, where torch has fast sums of embeddings,
# and on tensor cores, where filling up to this many elements is worth its memory.
DENSE_FROM, DENSE_FROM_BAGS, DENSE_ON_CORES = 0.2, 0.5, 0.05
MOST_FILLED = 2**27


class Features:
    """X, and with dropout a copy of its non-zeros per replica: ``features(w, masks)`` is [R, N, H]."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix, self.shape = matrix, matrix.pattern.shape
        size, values = self.shape[0] * self.shape[1], matrix.values
        share = matrix.pattern.nnz / max(size, 1)
        cores = values.dtype == torch.float32 and kernels.usable(values)
        bags = values.dtype == torch.float32 and values.device.type == "cpu" and has_bags() and not cores
        self._always = share > (DENSE_FROM_BAGS if bags else DENSE_FROM)
        self._on_cores = cores and (self._always or (share > DENSE_ON_CORES and size <= MOST_FILLED))
        self.dense: Tensor | None = None
        if (self._always or self._on_cores) and not self._repeats():
            self.dense = values.new_zeros(self.shape)
            self.dense[matrix.pattern.row, matrix.pattern.col] = values

    @staticmethod
    def of(graph: Graph, device: torch.device, dtype: torch.dtype) -> "Features":
        """Those of a graph."""
        x = graph.x
        if not isinstance(x, SparseFeatures):
            dense = torch.from_numpy(x)
            row, col = dense.nonzero().unbind(1)
            values, shape = dense[row, col], (x.shape[0], x.shape[1])
        else:
            counts = torch.from_numpy(x.indptr).diff()
            row = torch.repeat_interleave(torch.arange(x.shape[0], device="cpu"), counts)
            col, values, shape = torch.from_numpy(x.indices).long(), torch.from_numpy(x.filled()), x.shape
        return Features(Matrix(row.to(device), col.to(device), values.to(device, dtype), shape))

    def propagated(self, adjacency: Matrix) -> "Features":
        """ÂX in place of X, for dense features: the first propagation is then paid once, not every epoch."""
        other = copy.copy(self)
        for made in ("_halves", "_numbered"):
            other.__dict__.pop(made, None)
        other.dense = None if self.dense is None else adjacency.multiply(self.dense.unsqueeze(0), False)[0]
        return other

    def prefers_dense(self, width: int) -> bool:
        """Whether a product with so many columns is a dense one, where nothing is dropped."""
        return self.dense is not None and (self._always or self._fits(width))

    def __call__(self, weight: Tensor, masks: Masks | None = None) -> Tensor:
        width = weight.shape[2]
        if self._fits(width) and (masks is None or self._always) and kernels.usable(weight):
            from propreg.engine.kernels import halves

            return halves.layer(self._halves if masks is None else self._numbered, weight, masks=masks)
        if masks is not None:
            product = _DroppedProduct.apply(weight, self.matrix, masks)  # type: ignore[no-untyped-call]
        elif self.prefers_dense(width):
            product = _DenseProduct.apply(weight, self.dense)  # type: ignore[no-untyped-call]
        else:
            product = self.matrix(weight)
        result: Tensor = product
        return result

    def rectified(self, weight: Tensor, bias: Tensor) -> Tensor:
        """relu(X W + b), which only ``dropped_linear(…, rectified=True)`` may take, as of :func:`spread_relu`."""
        if self._fits(weight.shape[2]) and kernels.usable(weight, bias):
            from propreg.engine.kernels import halves

            return halves.layer(self._halves, weight, bias)
        if self.prefers_dense(weight.shape[2]):
            return bias_relu(self(weight), bias, gated=True)
        return spread_relu(self.matrix, weight, bias)

    def _fits(self, width: int) -> bool:
        if self.dense is None or not self._on_cores:
            return False
        from propreg.engine.kernels import halves

        return halves.fits(self.shape[1], width)

    def _repeats(self) -> bool:
        """Whether an element is given more than once: each time counts, and dropout drops each for itself."""
        known = self.matrix.pattern
        return bool(((known.row.diff() == 0) & (known.col.diff() == 0)).any())

    @cached_property
    def _halves(self) -> "Fixed":
        from propreg.engine.kernels import halves

        if self.dense is None:
            raise RuntimeError("sparse features have no halves.")
        return halves.fixed(self.dense)

    @cached_property
    def _numbered(self) -> "Fixed":
        from propreg.engine.kernels import halves

        known = self.matrix.pattern
        numbers = torch.zeros(self.shape, dtype=torch.int32, device=self.matrix.values.device)
        numbers[known.row, known.col] = torch.arange(known.nnz, dtype=torch.int32, device=numbers.device)
        return halves.numbered(self._halves, numbers)


class _DenseProduct(torch.autograd.Function):
    """No gradient to X, and none of autograd's copies of it."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, x: Tensor) -> Tensor:
        ctx.x = x
        return torch.matmul(x, weight)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return torch.matmul(ctx.x.t(), grad), None


class _DroppedProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight: Tensor, matrix: Matrix, masks: Masks) -> Tensor:
        pattern: Pattern = matrix.pattern
        ctx.masks = masks if kernels.usable(weight) else None
        if ctx.masks is not None:
            from propreg.engine.kernels import spmm

            ctx.matrix = matrix
            return spmm.multiply(pattern, matrix.values, weight, False, masks=masks)
        values = masks.factors(pattern.nnz, weight.dtype).mul_(matrix.values)
        ctx.matrix = matrix
        ctx.save_for_backward(values)
        return pattern.multiply(values, weight, False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        pattern: Pattern = ctx.matrix.pattern
        if ctx.masks is not None:
            from propreg.engine.kernels import spmm

            return spmm.multiply(pattern, ctx.matrix.values_across, grad, True, masks=ctx.masks), None, None
        (values,) = ctx.saved_tensors
        return pattern.multiply(values[:, pattern.across].contiguous(), grad.contiguous(), True), None, None
