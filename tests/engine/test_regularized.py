"""Both losses of a step as one function, on a CPU: the same values and the same gradient as apart."""

import pytest
import torch

from engine.kernels.cases import matrix, numbers
from propreg.engine.ops import dropout
from propreg.engine.ops.activation import bias_relu
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.loss import cross_entropy, preg, preg_and_cross_entropy
from propreg.engine.tasks.node import Targets
from propreg.engine.training.epoch import count_correct

NODES, REPLICAS = 20, 2
CPU_ONLY = pytest.mark.skipif(torch.cuda.is_available(), reason="the kernels' checks are elsewhere")


def targets(classes: int, dtype: torch.dtype) -> Targets:
    """Three nodes, and two that node 0 fills up."""
    nodes = torch.tensor([[1, 4, 7], [2, 0, 0]])
    return Targets(nodes, nodes % classes, torch.tensor([[1, 1, 1], [1.5, 1.5, 0]], dtype=dtype) / 3)


@CPU_ONLY
@pytest.mark.parametrize("own", [False, True], ids=["shared weights", "own weights"])
@pytest.mark.parametrize(
    ("classes", "dtype", "near"), [(5, torch.float64, 1e-14), (5, torch.float32, 1e-6), (12, torch.float32, 1e-6)]
)
def test_one_pass(classes: int, dtype: torch.dtype, near: float, own: bool) -> None:
    known = matrix(NODES, NODES, dtype)
    z = (3 * numbers(REPLICAS, NODES, classes, dtype=dtype, seed=1)).requires_grad_()
    weights = numbers(*((REPLICAS, NODES) if own else (NODES,)), dtype=dtype, seed=8).abs()
    both = preg_and_cross_entropy(known, z.unsqueeze(2), weights, targets(classes, dtype))
    assert both is not None
    apart = cross_entropy(z, targets(classes, dtype)), preg(known, z, z, weights)
    push = numbers(2, REPLICAS, dtype=dtype, seed=9)
    ours, theirs = (torch.autograd.grad((torch.stack(list(found)) * push).sum(), z)[0] for found in (both, apart))
    torch.testing.assert_close(torch.stack(list(both)), torch.stack(list(apart)), rtol=near, atol=near)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=near * float(theirs.abs().max()))


@CPU_ONLY
def test_two_passes_stay_apart() -> None:
    trained = numbers(REPLICAS, NODES, 2, 3, dtype=torch.float64)
    known = matrix(NODES, NODES, torch.float64)
    assert preg_and_cross_entropy(known, trained, trained[0, :, 0, 0].abs(), targets(3, torch.float64)) is None


@CPU_ONLY
@pytest.mark.parametrize("onto", [False, True])
@pytest.mark.parametrize(("width", "dtype"), [(3, torch.float64), (3, torch.float32), (12, torch.float32)])
def test_a_product_onto_something(width: int, dtype: torch.dtype, onto: bool) -> None:
    known, x = matrix(NODES, NODES, dtype), numbers(REPLICAS, NODES, width, dtype=dtype)
    before = numbers(REPLICAS, NODES, width, dtype=dtype, seed=3)
    expected = known.multiply(x, True) + (before if onto else 0)
    found = known.multiply(x, True, onto=before.clone() if onto else None)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-13)


@CPU_ONLY
@pytest.mark.parametrize("dropped", [False, True])
def test_a_relu_is_undone_once(dropped: bool) -> None:
    keys = torch.tensor([[3, 5], [7, 11]], dtype=torch.int32)
    drawn = Masks(keys, torch.tensor([0.3, 0.5])) if dropped else None
    h, w = numbers(2, 9, 4, dtype=torch.float64).requires_grad_(), numbers(2, 4, 3, dtype=torch.float64, seed=2)
    bias = numbers(2, 4, dtype=torch.float64, seed=3).requires_grad_()
    gated = dropout.dropped_linear(bias_relu(h * 1, bias, gated=True), w, drawn, rectified=True)
    plain = dropout.dropped_linear((h + bias.unsqueeze(1)).relu(), w, drawn)
    push = numbers(*plain.shape, dtype=torch.float64, seed=4)
    torch.testing.assert_close(gated, plain)
    for ours, theirs in zip(*(torch.autograd.grad(z, (h, bias), push) for z in (gated, plain)), strict=True):
        torch.testing.assert_close(ours, theirs)


@CPU_ONLY
def test_right_is_the_first_of_the_largest() -> None:
    logits = numbers(REPLICAS, 500, 4).mul(2).round()
    logits[0, 3, -1], logits[1, 5] = torch.nan, -torch.inf
    y = torch.arange(500) % 4
    each = torch.arange(500).repeat(500, 1), torch.eye(500, dtype=torch.bool)
    for mine in logits:
        assert torch.equal(count_correct(mine.expand(500, -1, -1), y, each)[0], (mine.argmax(-1) == y).long())
