"""Sparse-dense matrix products whose backward pass is as fast as the forward pass.

Two backends:

* ``csr``: torch's CSR product (MKL, cuSPARSE). The transpose is stored beside the matrix, so the backward pass is
  the same product again. 30 times faster than the other on a CPU, and it allocates no [E, C] messages. Under
  ``torch.compile`` it is one operator, ``propreg::csr_product``, with its own backward pass.
* ``gather``: gather, scale and ``index_add``. Slow and memory-hungry, but plain differentiable torch: it can be traced
  by ``torch.compile``, runs on every device, and carries gradients to the edge weights.
"""

import warnings
from typing import Any

import torch
from torch import Tensor

from propreg import _errors

MKL: bool = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]


class Csr:
    """A sparse matrix and its transpose in CSR form; values are set later, one set per dtype."""

    def __init__(self, row: Tensor, col: Tensor, size: tuple[int, int]) -> None:
        self._order = row.argsort(stable=True)
        row, col = row[self._order], col[self._order]
        # Sorting the sorted list by column leaves rows ascending within a column.
        self._transposed_order = col.argsort(stable=True)
        narrow = torch.int32 if max(*size, len(row)) < 2**31 - 1 else torch.int64
        self._crow, self._col = _pointers(row, size[0], narrow), col.to(narrow)
        self._crow_t = _pointers(col[self._transposed_order], size[1], narrow)
        self._col_t = row[self._transposed_order].to(narrow)
        if torch.equal(self._crow, self._crow_t) and torch.equal(self._col, self._col_t):
            self._crow_t, self._col_t = self._crow, self._col  # an undirected graph needs its indices only once
        self._values: dict[torch.dtype, tuple[Tensor, Tensor]] = {}
        self._matrices: dict[torch.dtype, tuple[Tensor, Tensor]] = {}

    def has(self, dtype: torch.dtype) -> bool:
        """Whether values of this dtype were set."""
        return dtype in self._values

    def set_values(self, values: Tensor) -> None:
        """Set the values, given in the order of the constructor's edges."""
        ordered = values.detach()[self._order]
        both = ordered, ordered[self._transposed_order]
        with warnings.catch_warnings():
            # CSR is in beta, invariants are unchecked: torch warns once per process, and users cannot act on it.
            warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
            forward = _matrix(self._crow, self._col, both[0], len(self._crow_t) - 1)
            backward = _matrix(self._crow_t, self._col_t, both[1], len(self._crow) - 1)
        self._values[values.dtype], self._matrices[values.dtype] = both, (forward, backward)

    def product(self, x: Tensor, transposed: bool) -> Tensor:
        """The bare product with no gradient: x must have a dtype whose values were set."""
        return _multiply(self._matrices[x.dtype][transposed], x)

    def __call__(self, x: Tensor, transposed: bool = False) -> Tensor:
        """The product, differentiable any number of times and by every ``torch.func`` transform."""
        if torch.compiler.is_compiling() and not _errors.transformed():
            values, values_t = self._values[x.dtype]
            parts = (self._crow, self._col, values), (self._crow_t, self._col_t, values_t)
            compiled: Tensor = _csr_product(x, *parts[transposed], *parts[not transposed])
            return compiled
        product: Tensor = _CsrProduct.apply(x, self, transposed)  # type: ignore[no-untyped-call]
        return product


def gather(x: Tensor, row: Tensor, col: Tensor, values: Tensor, num_nodes: int) -> Tensor:
    """The same product by gather, scale and ``index_add``."""
    messages = x.index_select(0, col) * values.unsqueeze(-1)
    return x.new_zeros(num_nodes, x.shape[1]).index_add(0, row, messages)


def choose(backend: str, x: Tensor, *, built: bool, weights_need_gradient: bool) -> str:
    """The backend to use: the caller's, or the fastest that is correct here."""
    if backend == "csr" and weights_need_gradient:
        raise ValueError(
            "backend='csr' gives edge weights no gradient, but edge_weight requires one: "
            "use backend='auto' or 'gather', or pass edge_weight.detach()."
        )
    if backend != "auto":
        return backend
    if torch.compiler.is_compiling() and _errors.transformed():
        return "gather"  # an operator has no derivative inside a compiled transform
    if weights_need_gradient or not (built or (_errors.plain() and _errors.have_values(x))):
        return "gather"  # while torch traces or transforms, a matrix can be used, but not built and kept
    return "csr" if x.device.type == "cuda" or (x.device.type == "cpu" and MKL) else "gather"


def _pointers(ordered: Tensor, rows: int, dtype: torch.dtype) -> Tensor:
    edges = torch.arange(rows + 1, device=ordered.device)
    return torch.searchsorted(ordered, edges).to(dtype)


def _matrix(crow: Tensor, col: Tensor, values: Tensor, columns: int) -> Tensor:
    size = (len(crow) - 1, columns)
    return torch.sparse_csr_tensor(crow, col, values, size, device=values.device, check_invariants=False)


def _multiply(matrix: Tensor, x: Tensor) -> Tensor:
    if torch.is_autocast_enabled(x.device.type):
        with torch.autocast(x.device.type, enabled=False):  # autocast would hand bfloat16 to a kernel that has none
            return matrix @ x
    return matrix @ x


@torch.library.custom_op("propreg::csr_product", mutates_args=())
def _csr_product(
    x: Tensor,
    crow: Tensor,
    col: Tensor,
    values: Tensor,
    crow_t: Tensor,
    col_t: Tensor,  # noqa: ARG001
    values_t: Tensor,  # noqa: ARG001
) -> Tensor:
    """The product as one operator that a compiler does not look into; the transpose is for its backward pass."""
    return _multiply(_matrix(crow, col, values, len(crow_t) - 1), x)


@_csr_product.register_fake
def _(x: Tensor, crow: Tensor, *_: Tensor) -> Tensor:
    return x.new_empty(crow.shape[0] - 1, x.shape[1])


def _keep_matrix(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG001
    ctx.save_for_backward(*inputs[1:])


def _csr_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    matrix = ctx.saved_tensors
    return (_csr_product(grad, *matrix[3:], *matrix[:3]), *[None] * 6)


_csr_product.register_autograd(_csr_backward, setup_context=_keep_matrix)


class _CsrProduct(torch.autograd.Function):
    """The matrix is passed as a plain object: no transform sees, wraps or differentiates it."""

    @staticmethod
    def forward(x: Tensor, csr: Csr, transposed: bool) -> Tensor:
        return csr.product(x, transposed)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Csr, bool], output: Tensor) -> None:  # noqa: ARG004
        _, ctx.csr, ctx.transposed = inputs

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return ctx.csr(grad, not ctx.transposed), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: None) -> Tensor:
        out: Tensor = ctx.csr(tangent, ctx.transposed)
        return out

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], x: Tensor, csr: Csr, transposed: bool) -> tuple[Tensor, int]:
        """A batch of matrices side by side is one wider matrix: one product serves them all."""
        batched = x.movedim(in_dims[0] or 0, 1)
        flat = batched.reshape(batched.shape[0], -1)
        return csr(flat, transposed).reshape(batched.shape[0], info.batch_size, -1), 1
