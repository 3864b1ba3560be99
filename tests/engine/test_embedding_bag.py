"""Sums of embeddings for several replicas at once are those of each alone, to the last bit."""

import pytest
import torch

from propreg.engine.ops import embedding_bag as bags
from propreg.engine.ops import sparse
from propreg.engine.ops.embedding_bag import BagMatrix, bag_product

pytestmark = pytest.mark.skipif(
    not sparse.has_embedding_bag(), reason="this build of torch has no fast sums of embeddings"
)


def matrix(rows: int = 30, columns: int = 20, density: float = 0.3) -> sparse.Matrix:
    torch.manual_seed(1)
    dense = torch.randn(rows, columns) * (torch.rand(rows, columns) < density)
    dense[rows // 2] = 0  # a row without entries
    row, col = dense.nonzero().unbind(1)
    return sparse.Matrix(row, col, dense[row, col], (rows, columns))


@pytest.mark.parametrize("replicas", [1, 2, 3, 7])
@pytest.mark.parametrize("transposed", [False, True])
def test_each_replica_has_the_bits_that_it_has_alone(replicas: int, transposed: bool) -> None:
    mine = matrix()
    x = torch.randn(replicas, 30 if transposed else 20, 16)
    together = mine.multiply(x, transposed)
    assert together.shape == (replicas, 20 if transposed else 30, 16)
    for r in range(replicas):
        assert torch.equal(together[r], mine.multiply(x[r : r + 1], transposed)[0])


def test_numbers_of_replicas_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when runs leave a batch; and beyond a size nothing is kept more than once."""
    mine, x = matrix(), torch.randn(5, 20, 16)
    known = mine.pattern
    whole = BagMatrix(known.crow, known.col32, mine.values)
    for replicas in (5, 2, 5, 1, 3):
        one_by_one = bag_product(known.crow, known.col32, mine.values, x[:replicas])
        assert torch.equal(whole.multiply(x[:replicas]), one_by_one)
    assert sorted(replicas for replicas, _ in whole._repeated) == [2, 3, 5]
    monkeypatch.setattr(bags, "MOST_REPEATED", 4 * known.nnz)
    limited = BagMatrix(known.crow, known.col32, mine.values)
    assert torch.equal(limited.multiply(x), whole.multiply(x))
    assert not limited._repeated


def test_a_matrix_without_entries_is_zero() -> None:
    assert not matrix(density=0.0).multiply(torch.randn(3, 20, 16), False).any()


def test_the_product_may_be_overwritten() -> None:
    """Autograd copies a view before it is changed in place, and a large copy is what bags are to save."""
    product = matrix().multiply(torch.randn(3, 20, 16), False)
    assert not product._is_view()
