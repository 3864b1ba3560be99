"""The end of a layer: propagation, bias and ReLU, with as little memory and traffic as possible."""

from typing import Any

import torch
from torch import Tensor

from propreg.engine import kernels
from propreg.engine.ops.sparse import Matrix


def propagate_relu(matrix: Matrix | None, h: Tensor, bias: Tensor) -> Tensor:
    """relu(A h + bias), without A if it is None.

    Only ``dropped_linear(…, rectified=True)`` may consume the output: it includes this ReLU's backward pass.
    """
    if matrix is not None and kernels.usable(h, bias):
        from propreg.engine.kernels.spmm import product

        return product.propagate(matrix, h, bias, gated=True)
    return bias_relu(h if matrix is None else matrix(h), bias, gated=True)


def propagate(matrix: Matrix | None, h: Tensor, bias: Tensor) -> Tensor:
    """A h + bias, without A if it is None."""
    if matrix is not None and kernels.usable(h, bias):
        from propreg.engine.kernels.spmm import product

        return product.propagate(matrix, h, bias, relu=False)
    return (h if matrix is None else matrix(h)) + bias.unsqueeze(1)


def bias_relu(h: Tensor, bias: Tensor, *, gated: bool = False) -> Tensor:
    """relu(h + bias) for h [R, N, H], which is overwritten, and bias [R, H].

    ``gated``: the incoming gradient is already 0 where the output is.
    """
    out: Tensor = _BiasRelu.apply(h, bias, gated)  # type: ignore[no-untyped-call]
    return out


class _BiasRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, bias: Tensor, gated: bool) -> Tensor:
        out = h.add_(bias.unsqueeze(1)).relu_()
        ctx.mark_dirty(h)
        ctx.save_for_backward(None if gated else out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (out,) = ctx.saved_tensors
        passed = grad if out is None else torch.ops.aten.threshold_backward(grad, out, 0)
        return passed, passed.sum(1), None
