"""Sparse products of a batch against dense ones, with their gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from propreg.engine.ops import sparse
from propreg.engine.ops.activation import bias_relu
from propreg.engine.ops.sparse import MIN_BAG_WIDTH, Matrix, Pattern
from samples import gaussian
from strategies import thorough

SHAPES = [(5, 5), (7, 4), (3, 9), (1, 1)]


def entries(shape: tuple[int, int], seed: int, density: float = 0.4) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, columns and values in no order; some rows and columns are empty, and one entry comes twice."""
    present = gaussian(*shape, seed=seed).abs() < density
    present[-1] = shape[0] == 1  # the last row is empty
    row, col = present.nonzero(as_tuple=True)
    row, col = torch.cat([row, row[:1]]), torch.cat([col, col[:1]])
    order = gaussian(len(row), seed=seed + 1).argsort()
    return row[order], col[order], gaussian(len(row), seed=seed + 2)


def dense(row: Tensor, col: Tensor, values: Tensor, shape: tuple[int, int]) -> Tensor:
    """The same matrix written out."""
    return torch.zeros(shape, dtype=values.dtype).index_put((row, col), values, accumulate=True)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("width", [1, 6])
def test_a_matrix_times_a_batch(shape: tuple[int, int], replicas: int, width: int) -> None:
    row, col, values = entries(shape, seed=shape[0])
    matrix, expected = Matrix(row, col, values, shape), dense(row, col, values, shape)
    x = gaussian(replicas, shape[1], width).requires_grad_()
    torch.testing.assert_close(matrix(x), expected @ x, rtol=0, atol=1e-13)
    assert torch.autograd.gradcheck(matrix, x)
    (grad,) = torch.autograd.grad((matrix(x) * gaussian(replicas, shape[0], width, seed=9)).sum(), x)
    by_hand = expected.t() @ gaussian(replicas, shape[0], width, seed=9)
    torch.testing.assert_close(grad, by_hand, rtol=0, atol=1e-13)


@pytest.mark.parametrize("transposed", [False, True])
def test_a_pattern_with_values_of_each_replica(transposed: bool) -> None:
    shape = (6, 4)
    row, col, _ = entries(shape, seed=3)
    pattern = Pattern(row, col, shape)
    values = gaussian(3, len(row), seed=8)
    ordered = values[:, pattern.order]
    x = gaussian(3, shape[0] if transposed else shape[1], 5)
    expected = torch.stack([dense(row, col, v, shape) for v in values])
    expected = expected.transpose(1, 2) if transposed else expected
    given_as = ordered[:, pattern.column_order].contiguous() if transposed else ordered
    torch.testing.assert_close(pattern.multiply(given_as, x, transposed), expected @ x, rtol=0, atol=1e-13)


@pytest.mark.parametrize("bags", [True, False], ids=["bags", "CSR"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("width", [MIN_BAG_WIDTH - 1, MIN_BAG_WIDTH, 64, 100])
def test_float32_as_sums_of_embeddings(
    width: int, replicas: int, own: bool, bags: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bags and not sparse.has_embedding_bag():
        pytest.skip("this build of torch has no fast sums of embeddings")
    monkeypatch.setattr(sparse, "has_embedding_bag", lambda: bags)
    shape = (17, 9)
    row, col, _ = entries(shape, seed=3)
    pattern = Pattern(row, col, shape)
    values = gaussian(replicas if own else 1, len(row), seed=8)
    expected = torch.stack([dense(row, col, v, shape) for v in values])
    ordered = values[:, pattern.order].float()
    for transposed in (False, True):
        x = gaussian(replicas, width, shape[0] if transposed else shape[1]).transpose(1, 2)  # not in order
        entry = ordered[:, pattern.column_order] if transposed else ordered
        given_as = entry.contiguous() if own else entry[0].contiguous()
        product = pattern.multiply(given_as, x.float(), transposed)
        by_hand = (expected.transpose(1, 2) if transposed else expected) @ x
        torch.testing.assert_close(product.double(), by_hand, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_wide_product_may_be_overwritten(replicas: int) -> None:
    shape = (6, 4)
    row, col, values = entries(shape, seed=3)
    matrix = Matrix(row, col, values.float(), shape)
    x, bias = gaussian(replicas, 4, 16).float().requires_grad_(), gaussian(replicas, 16, seed=2).float()
    (grad,) = torch.autograd.grad(bias_relu(matrix(x), bias).sum(), x)
    twin = x.detach().double().requires_grad_()
    expected = (dense(row, col, values, shape) @ twin + bias.double().unsqueeze(1)).relu()
    (by_hand,) = torch.autograd.grad(expected.sum(), twin)
    torch.testing.assert_close(grad.double(), by_hand, rtol=1e-5, atol=1e-5)


def test_inputs_and_gradients_that_do_not_lie_in_order() -> None:
    shape = (5, 5)
    row, col, values = entries(shape, seed=5)
    matrix, expected = Matrix(row, col, values, shape), dense(row, col, values, shape)
    for x in (
        gaussian(4, 3, 5).permute(1, 2, 0),
        gaussian(3, 4, 5).transpose(1, 2),
        gaussian(3, 5, 8)[:, :, ::2],
        gaussian(3, 1, 4).expand(3, 5, 4),
        gaussian(1, 5, 4).expand(3, 5, 4),
    ):
        leaf = x.clone().requires_grad_()
        torch.testing.assert_close(matrix(x), expected @ x, rtol=0, atol=1e-13)
        (grad,) = torch.autograd.grad(matrix(leaf).sum(), leaf)  # the gradient of a sum is expanded from one number
        torch.testing.assert_close(grad, expected.t() @ torch.ones_like(x), rtol=0, atol=1e-13)


def test_a_product_onto_an_addend_with_scaled_values() -> None:
    row, col, values = entries((7, 4), seed=7)
    matrix, whole = Matrix(row, col, values, (7, 4)), dense(row, col, values, (7, 4))
    x, addend = gaussian(3, 4, 5, seed=1).requires_grad_(), gaussian(3, 7, 5, seed=2).requires_grad_()
    before = addend.detach().clone()
    for one, expected in ((matrix, whole), (matrix.scaled(0.25), 0.25 * whole)):
        torch.testing.assert_close(one.plus(x, addend), expected @ x + addend, rtol=0, atol=1e-13)
        assert torch.equal(addend, before)
        assert torch.autograd.gradcheck(one.plus, (x, addend))


def test_a_matrix_of_nothing() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    matrix = Matrix(none, none, torch.zeros(0, dtype=torch.float64), (4, 3))
    x = gaussian(2, 3, 5).requires_grad_()
    assert matrix(x).shape == (2, 4, 5)
    assert not matrix(x).any()
    (grad,) = torch.autograd.grad(matrix(x).sum(), x)
    assert not grad.any()


def test_the_result_does_not_look_at_old_memory() -> None:
    row, col, values = entries((6, 6), seed=2)
    matrix, expected = Matrix(row, col, values, (6, 6)), dense(row, col, values, (6, 6))
    x = gaussian(2, 6, 3)
    torch.use_deterministic_algorithms(True, warn_only=True)  # new memory is then full of NaN
    try:
        assert bool(torch.empty(3).isnan().all())
        product = matrix(x)
    finally:
        torch.use_deterministic_algorithms(False)
    torch.testing.assert_close(product, expected @ x, rtol=0, atol=1e-13)


def test_nan_stays_in_its_replica() -> None:
    row, col, values = entries((6, 6), seed=4)
    matrix, expected = Matrix(row, col, values, (6, 6)), dense(row, col, values, (6, 6))
    x = gaussian(3, 6, 2)
    x[1] = float("nan")
    product = matrix(x)
    torch.testing.assert_close(product[::2], expected @ x[::2], rtol=0, atol=1e-13)


@thorough
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**20), st.integers(1, 3))
def test_any_pattern(rows: int, columns: int, seed: int, width: int) -> None:
    row, col, values = entries((rows, columns), seed)
    if len(row) == 0:
        return
    matrix, expected = Matrix(row, col, values, (rows, columns)), dense(row, col, values, (rows, columns))
    x = gaussian(2, columns, width, seed=seed)
    torch.testing.assert_close(matrix(x), expected @ x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_dtype_is_kept(dtype: torch.dtype) -> None:
    row, col, values = entries((5, 5), seed=1)
    matrix = Matrix(row, col, values.to(dtype), (5, 5))
    assert matrix(gaussian(2, 5, 3, dtype=dtype)).dtype == dtype


@pytest.mark.skipif(not sparse.has_embedding_bag(), reason="this build of torch has no fast sums of embeddings")
@pytest.mark.parametrize("rows", [1, 2, 7, 40])
def test_a_transposed_product_in_blocks_is_the_same(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Blocks of so many rows, of which the last is not full, and columns without entries in some of them."""
    torch.manual_seed(0)
    dense = torch.randn(40, 6) * (torch.rand(40, 6) < 0.4)
    row, col = dense.nonzero().unbind(1)
    matrix = sparse.Matrix(row, col, dense[row, col], (40, 6))
    x = torch.randn(3, 40, 16)
    whole = matrix.multiply(x, True)
    monkeypatch.setattr(sparse, "CACHE_BYTES", rows * 16 * 4)
    monkeypatch.setattr(sparse, "MIN_ENTRIES_PER_BAG", 1)
    cut = matrix.multiply(x, True)
    blocks = min(-(-40 // rows), matrix.pattern.nnz // 6)
    assert list(matrix._in_blocks) == ([blocks] if blocks > 1 else [])
    torch.testing.assert_close(cut, whole, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(cut, dense.t() @ x, rtol=1e-5, atol=1e-5)


def test_a_pattern_is_csr_and_csc_of_its_entries_and_duplicates_keep_their_order() -> None:
    row = torch.tensor([2, 0, 2, 0, 2, 1])
    col = torch.tensor([1, 3, 1, 0, 0, 3])
    pattern = Pattern(row, col, (3, 4))
    assert pattern.order.tolist() == [3, 1, 5, 4, 0, 2]
    assert (pattern.row.tolist(), pattern.col.tolist()) == ([0, 0, 1, 2, 2, 2], [0, 3, 3, 0, 1, 1])
    assert (pattern.crow.tolist(), pattern.ccol.tolist()) == ([0, 2, 3, 6], [0, 2, 4, 4, 6])
    assert pattern.column_order.tolist() == [0, 3, 4, 5, 1, 2]
    assert pattern.row32.tolist() == [0, 2, 2, 2, 0, 1]


def test_entries_that_rise_already_are_not_sorted_again() -> None:
    row, col, values = entries((6, 5), seed=7)
    order = (row * 5 + col).argsort(stable=True)
    row, col, values = row[order], col[order], values[order]
    matrix = Matrix(row, col, values, (6, 5))
    assert matrix.values.data_ptr() == values.data_ptr()
    assert torch.equal(matrix.pattern.order, torch.arange(len(row)))
    turned = Matrix(row.flip(0), col.flip(0), values.flip(0), (6, 5))
    assert torch.equal(turned.pattern.row, row)
    assert torch.equal(turned.pattern.col, col)
    x = gaussian(2, 5, 3)
    torch.testing.assert_close(matrix(x), turned(x), rtol=0, atol=1e-13)
