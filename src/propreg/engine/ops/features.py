"""The features times a weight per replica: ``X W`` with X sparse or dense, the most expensive step of an epoch."""

import copy
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from propreg.data.graph import Graph, SparseFeatures
from propreg.engine import kernels
from propreg.engine.ops.activation import bias_relu, propagate_relu
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.sparse import Matrix, Pattern, has_embedding_bag

if TYPE_CHECKING:
    from propreg.engine.kernels.linear.dense_fp16x2 import FixedMatrix

# Above these shares of non-zeros a dense product is faster: than torch's CSR product, than its embedding_bag, and on
# tensor cores, where a dense form of up to this many elements is worth its memory.
DENSE_FROM, DENSE_FROM_BAGS, DENSE_ON_CORES = 0.2, 0.5, 0.05
MOST_FILLED = 2**27


class Features:
    """X, and with dropout a copy of its non-zeros per replica: ``features(w, masks)`` is [R, N, H].

    Args:
        x: Sparse, or dense [N, F]. A dense X stays as it is, and its sparse form is built when dropout or a sparse
            product first asks for it: it takes more than ten times the memory.
    """

    def __init__(self, x: Matrix | Tensor) -> None:
        values = x if isinstance(x, Tensor) else x.values
        self.shape: tuple[int, int] = (x.shape[0], x.shape[1]) if isinstance(x, Tensor) else x.pattern.shape
        self.nnz = int(torch.count_nonzero(x)) if isinstance(x, Tensor) else x.pattern.nnz
        size = self.shape[0] * self.shape[1]
        share = self.nnz / max(size, 1)
        cores = values.dtype == torch.float32 and kernels.usable(values)
        bags = values.dtype == torch.float32 and values.device.type == "cpu" and has_embedding_bag() and not cores
        self._always = share > (DENSE_FROM_BAGS if bags else DENSE_FROM)
        self._on_cores = cores and (self._always or (share > DENSE_ON_CORES and size <= MOST_FILLED))
        self.dense: Tensor | None = None
        if self._always or self._on_cores:
            self.dense = x if isinstance(x, Tensor) else _written_out(x)
        self._sparse = _sparse(x) if isinstance(x, Tensor) and self.dense is None else x
        self._lock = threading.RLock()  # workers on several cores share the features
        self._propagated: WeakKeyDictionary[Matrix, Features] = WeakKeyDictionary()

    @staticmethod
    def of(graph: Graph, device: torch.device, dtype: torch.dtype) -> "Features":
        """The features of a graph."""
        x = graph.x
        if not isinstance(x, SparseFeatures):
            return Features(torch.from_numpy(x).to(device, dtype).contiguous())
        counts = torch.from_numpy(x.indptr).to(device).diff()
        row = torch.repeat_interleave(torch.arange(x.shape[0], device=device), counts)
        col, values = torch.from_numpy(x.indices).to(device).long(), torch.from_numpy(x.filled())
        return Features(Matrix(row, col, values.to(device, dtype), x.shape))

    @property
    def matrix(self) -> Matrix:
        """X in sparse form."""
        with self._lock:
            if isinstance(self._sparse, Tensor):
                self._sparse = _sparse(self._sparse)
            return self._sparse

    def propagated(self, adjacency: Matrix) -> "Features":
        """ÂX in place of X, for dense features: the first propagation is computed once, not in every epoch."""
        if self.dense is None:
            raise RuntimeError("only dense features are propagated beforehand.")
        with self._lock:
            if adjacency not in self._propagated:
                other = copy.copy(self)
                for cached in ("_fp16x2", "_numbered"):
                    other.__dict__.pop(cached, None)
                other.dense = other._sparse = adjacency.multiply(self.dense.unsqueeze(0), False)[0]
                other._propagated = WeakKeyDictionary()
                self._propagated[adjacency] = other
            return self._propagated[adjacency]

    def prefers_dense(self, width: int) -> bool:
        """Whether a product with this many columns is computed densely, without dropout."""
        return self.dense is not None and (self._always or self._fits(width))

    def __call__(self, weight: Tensor, masks: Masks | None = None) -> Tensor:
        width = weight.shape[2]
        if self._fits(width) and (masks is None or self._always) and kernels.usable(weight):
            from propreg.engine.kernels.linear import dense_fp16x2

            return dense_fp16x2.linear(self._fp16x2 if masks is None else self._numbered, weight, masks=masks)
        if masks is not None:
            product = _DroppedProduct.apply(weight, self.matrix, masks)  # type: ignore[no-untyped-call]
        elif self.prefers_dense(width):
            product = _DenseProduct.apply(weight, self.dense)  # type: ignore[no-untyped-call]
        else:
            product = self.matrix(weight)
        result: Tensor = product
        return result

    def rectified(self, weight: Tensor, bias: Tensor) -> Tensor:
        """relu(X W + b), for ``dropped_linear(…, rectified=True)`` only, like :func:`propagate_relu`."""
        if self._fits(weight.shape[2]) and kernels.usable(weight, bias):
            from propreg.engine.kernels.linear import dense_fp16x2

            return dense_fp16x2.linear(self._fp16x2, weight, bias)
        if self.prefers_dense(weight.shape[2]):
            return bias_relu(self(weight), bias, gated=True)
        return propagate_relu(self.matrix, weight, bias)

    def _fits(self, width: int) -> bool:
        if self.dense is None or not self._on_cores:
            return False
        from propreg.engine.kernels.linear import dense_fp16x2

        return dense_fp16x2.supports(self.shape[1], width)

    @cached_property
    def _fp16x2(self) -> "FixedMatrix":
        from propreg.engine.kernels.linear import dense_fp16x2

        if self.dense is None:
            raise RuntimeError("sparse features have no dense form to split.")
        return dense_fp16x2.fixed_matrix(self.dense)

    @cached_property
    def _numbered(self) -> "FixedMatrix":
        from propreg.engine.kernels.linear import dense_fp16x2

        if isinstance(self._sparse, Tensor):  # the numbers that the entries of its sparse form would have
            numbers = ((self._sparse != 0).flatten().cumsum(0) - 1).int().view(self.shape)
        else:
            known = self._sparse.pattern
            numbers = torch.zeros(self.shape, dtype=torch.int32, device=known.col32.device)
            numbers[known.row, known.col] = torch.arange(known.nnz, dtype=torch.int32, device=numbers.device)
        return dense_fp16x2.with_numbers(self._fp16x2, numbers)


def _sparse(x: Tensor) -> Matrix:
    """The non-zeros of a dense matrix."""
    row, col = x.nonzero().unbind(1)
    return Matrix(row, col, x[row, col], (x.shape[0], x.shape[1]))


def _written_out(matrix: Matrix) -> Tensor | None:
    """The matrix in dense form; None if a place is given more than once: dropout drops its values one by one."""
    row, col = matrix.pattern.row, matrix.pattern.col
    if bool(((row.diff() == 0) & (col.diff() == 0)).any()):
        return None
    dense = matrix.values.new_zeros(matrix.pattern.shape)
    dense[row, col] = matrix.values
    return dense


class _DenseProduct(torch.autograd.Function):
    """No gradient to X, and no copy of it saved by autograd."""

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
            from propreg.engine.kernels.spmm import product

            ctx.matrix = matrix
            return product.multiply(pattern, matrix.values, weight, False, masks=masks)
        values = masks.factors(pattern.nnz, weight.dtype).mul_(matrix.values)
        ctx.matrix = matrix
        ctx.save_for_backward(values)
        return pattern.multiply(values, weight, False)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        pattern: Pattern = ctx.matrix.pattern
        if ctx.masks is not None:
            from propreg.engine.kernels.spmm import product

            return product.multiply(pattern, ctx.matrix.column_values, grad, True, masks=ctx.masks), None, None
        (values,) = ctx.saved_tensors
        return pattern.multiply(pattern.by_columns(values), grad.contiguous(), True), None, None
