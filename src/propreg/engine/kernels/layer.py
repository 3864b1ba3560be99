"""Propagation, bias and ReLU as one function: the twin of ``bias_relu(matrix(x), bias)``."""

from typing import Any

import torch
from torch import Tensor

from propreg.engine.kernels.column_sums import column_sums
from propreg.engine.kernels.spmm import multiply
from propreg.engine.sparse import Matrix


def propagate(matrix: Matrix, x: Tensor, bias: Tensor, *, relu: bool = True, gated: bool = False) -> Tensor:
    """relu(A x + bias) for x [R, M, W] and bias [R, W].

    Args:
        matrix: A.
        x: What is propagated.
        bias: Added to every row.
        relu: Whether the ReLU is applied.
        gated: The gradient that comes is already 0 where the output is (:func:`dropped_linear` with ``rectified``).
    """
    out: Tensor = _Propagate.apply(x, bias, matrix, relu, gated)  # type: ignore[no-untyped-call]
    return out


class _Propagate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, matrix: Matrix, relu: bool, gated: bool) -> Tensor:
        ctx.matrix, ctx.open = matrix, not relu or gated
        out = multiply(matrix.pattern, matrix.values, x, False, bias=bias, relu=relu)
        ctx.save_for_backward(None if ctx.open else out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, None, None, None]:
        (out,) = ctx.saved_tensors
        passed = grad.contiguous() if ctx.open else torch.ops.aten.threshold_backward(grad, out, 0)
        to_x = None
        if ctx.needs_input_grad[0]:
            to_x = multiply(ctx.matrix.pattern, ctx.matrix.values_across, passed, True)
        return to_x, column_sums(passed), None, None, None
