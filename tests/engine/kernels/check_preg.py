"""P-reg's cross entropy, propagation included, against the product and :func:`soft_cross_entropy`."""

import pytest
import torch
from torch import Tensor

from engine.kernels.cases import DTYPES, check_twins, matrix, numbers
from propreg.engine.kernels.preg import preg
from propreg.engine.ops.loss import soft_cross_entropy

NODES, REPLICAS = 12, 2


def logits(classes: int, dtype: torch.dtype, seed: int) -> Tensor:
    return (3 * numbers(REPLICAS, NODES, classes, dtype=dtype, seed=seed)).requires_grad_()


def weights(dtype: torch.dtype, own: bool) -> Tensor:
    return numbers(REPLICAS, NODES, dtype=dtype, seed=8).abs() if own else numbers(NODES, dtype=dtype, seed=8).abs()


@pytest.mark.parametrize(
    ("classes", "own", "dtype"),
    [(2, False, torch.float32), (7, False, torch.float64), (7, True, torch.float32), (20, True, torch.float64)],
)
def test_one_pass(classes: int, own: bool, dtype: torch.dtype) -> None:
    known, z, w = matrix(NODES, NODES, dtype), logits(classes, dtype, 1), weights(dtype, own)
    check_twins(lambda: preg(known, z, z, w), lambda: soft_cross_entropy(z, known(z), w), z)


def test_two_passes() -> None:
    dtype = torch.float64
    known, z, source, w = matrix(NODES, NODES, dtype), logits(5, dtype, 1), logits(5, dtype, 2), weights(dtype, True)
    check_twins(lambda: preg(known, z, source, w), lambda: soft_cross_entropy(z, known(source), w), z, source)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("detach", ["self", "neighbours"])
def test_detached(detach: str, dtype: torch.dtype) -> None:
    known, z, w = matrix(NODES, NODES, dtype), logits(5, dtype, 1), weights(dtype, False)
    mine, source = (z.detach(), z) if detach == "self" else (z, z.detach())
    check_twins(lambda: preg(known, mine, source, w), lambda: soft_cross_entropy(mine, known(source), w), z)


def test_long_rows_have_programs_of_their_own() -> None:
    dtype, nodes = torch.float64, 70
    known = matrix(nodes, nodes, dtype)
    assert int(known.pattern.crow.diff().max()) > 64
    z = numbers(1, nodes, 3, dtype=dtype).requires_grad_()
    w = torch.ones_like(z[0, :, 0].detach())
    check_twins(lambda: preg(known, z, z, w), lambda: soft_cross_entropy(z, known(z), w), z)
