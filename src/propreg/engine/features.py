"""The features times a weight per replica: ``X W`` with X sparse or dense, the most expensive step of an epoch."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from propreg.data.graph import Graph, SparseFeatures
from propreg.engine import kernels
from propreg.engine.activation import bias_relu
from propreg.engine.dropout import Masks
from propreg.engine.sparse import Matrix, Pattern, has_bags

if TYPE_CHECKING:
    from propreg.engine.kernels.halves import Fixed

DENSE_FROM, DENSE_FROM_BAGS = 0.2, 0.5  # above this share of non-zeros a dense product is faster


class Features:
    """X, and with dropout a copy of its non-zeros per replica: ``features(w, masks)`` is [R, N, H]."""

    def __init__(self, graph: Graph, device: torch.device, dtype: torch.dtype) -> None:
        x = graph.x
        if not isinstance(x, SparseFeatures):
            dense = torch.from_numpy(x)
            row, col = dense.nonzero().unbind(1)
            values, shape = dense[row, col], (x.shape[0], x.shape[1])
        else:
            counts = torch.from_numpy(x.indptr).diff()
            row = torch.repeat_interleave(torch.arange(x.shape[0]), counts)
            col, values, shape = torch.from_numpy(x.indices).long(), torch.from_numpy(x.filled()), x.shape
        self.matrix = Matrix(row.to(device), col.to(device), values.to(device, dtype), shape)
        self.shape = shape
        self.dense: Tensor | None = None
        least = DENSE_FROM_BAGS if device.type == "cpu" and has_bags() and dtype == torch.float32 else DENSE_FROM
        if len(row) > least * shape[0] * shape[1]:
            self.dense = torch.zeros(shape, dtype=dtype, device=device)
            self.dense[row.to(device), col.to(device)] = values.to(device, dtype)

    def propagated(self, adjacency: Matrix) -> "Features":
        """ÂX in place of X, for dense features: the first propagation is then paid once, not every epoch."""
        other = object.__new__(Features)
        other.shape, other.matrix = self.shape, self.matrix
        other.dense = None if self.dense is None else adjacency.multiply(self.dense.unsqueeze(0), False)[0]
        return other

    def __call__(self, weight: Tensor, masks: Masks | None = None) -> Tensor:
        if masks is not None:
            product = _DroppedProduct.apply(weight, self.matrix, masks)  # type: ignore[no-untyped-call]
        elif self.dense is not None:
            product = self._on_tensor_cores(weight, None)
            if product is None:
                product = _DenseProduct.apply(weight, self.dense)  # type: ignore[no-untyped-call]
        else:
            product = self.matrix(weight)
        result: Tensor = product
        return result

    def rectified(self, weight: Tensor, bias: Tensor) -> Tensor:
        """relu(X W + b), which only ``dropped_linear(…, rectified=True)`` may take, as of :func:`spread_relu`."""
        fast = self._on_tensor_cores(weight, bias)
        return bias_relu(self(weight), bias) if fast is None else fast

    def _on_tensor_cores(self, weight: Tensor, bias: Tensor | None) -> Tensor | None:
        """The product of dense features, with a bias its ReLU too, where there are kernels for it; else None."""
        if self.dense is None or not kernels.usable(weight, bias):
            return None
        from propreg.engine.kernels import halves

        return halves.layer(self._halves, weight, bias) if halves.fits(weight) else None

    @cached_property
    def _halves(self) -> "Fixed":
        from propreg.engine.kernels import halves

        if self.dense is None:
            raise RuntimeError("sparse features have no halves.")
        return halves.fixed(self.dense)


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
