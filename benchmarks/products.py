"""The engine's wide sparse products on a CPU: with ``embedding_bag``, as CSR, and for the features as a dense product.

Of every dataset Â and the features, along rows and along columns, times a matrix of the width of a hidden layer, in
float32 on one thread, as each core of the engine works. Needs the benchmark data.
"""

import torch
from torch import Tensor

from common import Record, arguments, seconds, show
from engine import problem
from propreg.engine.ops import sparse
from propreg.engine.ops.sparse import Matrix

WIDTH = 64


def csr(matrix: Matrix, x: Tensor, transposed: bool) -> Tensor:
    """The product without ``embedding_bag``."""
    before, sparse.MIN_BAG_WIDTH = sparse.MIN_BAG_WIDTH, 10**9
    try:
        return matrix.multiply(x, transposed)
    finally:
        sparse.MIN_BAG_WIDTH = before


def compare(case: str, matrix: Matrix, repeats: int) -> list[Record]:
    """Both ways along rows and columns; a wrong product raises and is not timed."""
    records = []
    for transposed in (False, True):
        x = torch.randn(1, matrix.pattern.shape[0 if transposed else 1], WIDTH)
        torch.testing.assert_close(matrix.multiply(x, transposed), csr(matrix, x, transposed), rtol=1e-4, atol=1e-4)
        slow = seconds(lambda: csr(matrix, x, transposed), "cpu", repeats)  # noqa: B023  (called at once)
        fast = seconds(lambda: matrix.multiply(x, transposed), "cpu", repeats)  # noqa: B023
        label = f"{case}, along {'columns' if transposed else 'rows'}"
        records.append(Record(label, "cpu", "sums of embeddings", 1e3 * fast, "ms", "CSR", slow / fast))
    return records


def against_dense(case: str, matrix: Matrix, repeats: int) -> list[Record]:
    """Against dense features: the threshold on the share of non-zeros is chosen by this."""
    pattern = matrix.pattern
    x = torch.randn(1, pattern.shape[1], WIDTH)
    full = torch.zeros(pattern.shape)
    full[pattern.row, pattern.col] = matrix.values
    dense = seconds(lambda: torch.matmul(full, x), "cpu", repeats)
    fast = seconds(lambda: matrix.multiply(x, False), "cpu", repeats)
    share = pattern.nnz / (pattern.shape[0] * pattern.shape[1])
    metric = f"sums of embeddings, {100 * share:.1f} % non-zeros"
    return [Record(case, "cpu", metric, 1e3 * fast, "ms", "dense", dense / fast)]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    if options.device != "cpu":
        raise SystemExit("on a GPU these products are kernels: python benchmarks/kernels.py measures them.")
    torch.set_num_threads(1)
    records, repeats = [], 5 if options.quick else 15
    for name in ("cora", "photo") if options.quick else ("cora", "pubmed", "photo", "cs", "physics"):
        data = problem(name, "cpu")
        adjacency, features = data.adjacency("sym", True), data.features.matrix
        records += compare(f"Â of {name}", adjacency, repeats) + compare(f"X of {name}", features, repeats)
        records += against_dense(f"X of {name}", features, repeats)
    show(records, "cpu", options.json, options.save)


if __name__ == "__main__":
    main()
