"""Attention over a batch of heads against a dense softmax, with dropped coefficients and very large scores."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from propreg.engine.ops.attention import attend
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.random import mask_keys
from propreg.engine.ops.sparse import Pattern
from samples import gaussian

NODES = 7


def pattern() -> tuple[Pattern, Tensor]:
    """A directed graph with loops at all nodes, one of which has no other edge; and where it has entries [N, N]."""
    there = gaussian(NODES, NODES, seed=4).abs() < 0.4
    there[3] = there[:, 3] = False
    there = there | torch.eye(NODES, dtype=torch.bool)
    row, col = there.nonzero(as_tuple=True)
    order = gaussian(len(row), seed=6).argsort()
    return Pattern(row[order], col[order], (NODES, NODES)), there


def coefficients(source: Tensor, target: Tensor, there: Tensor) -> Tensor:
    """Softmax of leaky(source_j + target_i) over j, [B, N, N]."""
    score = leaky_relu(source.unsqueeze(1) + target.unsqueeze(2), 0.2)
    return score.masked_fill(~there, float("-inf")).softmax(-1)


def inputs(batch: int, width: int = 3, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    h, source, target = (
        gaussian(batch, NODES, width),
        scale * gaussian(batch, NODES, seed=1),
        scale * gaussian(batch, NODES, seed=2),
    )
    return h.requires_grad_(), source.requires_grad_(), target.requires_grad_()


def drawn(rates: list[float], epoch: int = 1) -> Masks:
    keys = mask_keys(np.arange(len(rates), dtype=np.uint64), epoch, 48)
    return Masks(torch.from_numpy(keys), torch.tensor(rates, dtype=torch.float64))


@pytest.mark.parametrize("batch", [1, 6])
def test_it_is_the_dense_softmax(batch: int) -> None:
    graph, there = pattern()
    h, source, target = inputs(batch)
    expected = coefficients(source, target, there) @ h
    torch.testing.assert_close(attend(graph, h, source, target, None), expected, rtol=0, atol=1e-13)
    assert torch.autograd.gradcheck(lambda h, s, t: attend(graph, h, s, t, None), (h, source, target))


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e8])
def test_large_scores_neither_overflow_nor_lose_their_gradients(scale: float) -> None:
    graph, there = pattern()
    given = inputs(4, scale=scale)
    h, source, target = given
    out, expected = attend(graph, *given, None), coefficients(source, target, there) @ h
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-12)
    push = gaussian(*out.shape, seed=7)
    pairs = zip(*(torch.autograd.grad((o * push).sum(), given) for o in (out, expected)), strict=True)
    for grad, by_hand in pairs:
        assert bool(grad.isfinite().all())
        torch.testing.assert_close(grad, by_hand, rtol=1e-9, atol=1e-12)


def test_scores_are_relative_to_the_highest_of_a_node() -> None:
    graph, there = pattern()
    h, source, target = (t.detach().float() for t in inputs(2))
    for shift in (-300.0, 300.0):
        out = attend(graph, h, source, target + 5 * shift, None)
        expected = coefficients(source.double(), (target + 5 * shift).double(), there) @ h.double()
        torch.testing.assert_close(out.double(), expected, rtol=0, atol=3e-4)  # 1500 in float32 is exact to 1e-4


def seen(graph: Pattern, source: Tensor, target: Tensor, masks: Masks | None) -> Tensor:
    """The coefficients after dropout, [B, N, N], made visible by an identity for the features."""
    eye = torch.eye(NODES, dtype=torch.float64).repeat(len(source), 1, 1)
    return attend(graph, eye, source, target, masks)


def test_dropped_coefficients_are_0_or_scaled_up() -> None:
    graph, there = pattern()
    _, source, target = inputs(3 * 4)  # three replicas of four heads
    rates = [0.5, 0.25, 0.0]
    alpha = coefficients(source, target, there)
    after = seen(graph, source, target, drawn(rates))
    for r, rate in enumerate(rates):
        mine, whole = after[4 * r : 4 * r + 4], alpha[4 * r : 4 * r + 4]
        kept = mine != 0
        torch.testing.assert_close(mine[kept], (whole / (1 - rate))[kept], rtol=1e-12, atol=0)
        number = 4 * int(there.sum())
        assert 1 - int(kept.sum()) / number == pytest.approx(rate, abs=4 * (rate * (1 - rate) / number) ** 0.5)
    heads = (after[:4] != 0).flatten(1)
    assert len({tuple(row.tolist()) for row in heads}) == 4, "heads must not share a mask"
    assert not torch.equal(after != 0, seen(graph, source, target, drawn(rates, epoch=2)) != 0)


def test_the_product_uses_the_dropped_coefficients_and_so_do_its_gradients() -> None:
    graph, there = pattern()
    given = inputs(2 * 3)
    h, source, target = given
    masks = drawn([0.5, 0.25])
    factors = torch.where(there, seen(graph, source, target, masks) / coefficients(source, target, there), 0.0)
    expected = (coefficients(source, target, there) * factors.detach()) @ h
    out = attend(graph, *given, masks)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)
    push = gaussian(*out.shape, seed=7)
    pairs = zip(*(torch.autograd.grad((o * push).sum(), given) for o in (out, expected)), strict=True)
    for grad, by_hand in pairs:
        torch.testing.assert_close(grad, by_hand, rtol=0, atol=1e-12)


def test_a_replica_s_mask_does_not_depend_on_the_batch() -> None:
    graph, _ = pattern()
    _, source, target = inputs(3 * 4)
    whole = seen(graph, source, target, drawn([0.5, 0.5, 0.5]))
    first = seen(graph, source[:4], target[:4], drawn([0.5]))
    assert torch.equal(whole[:4] != 0, first != 0)


def test_nan_stays_in_its_replica() -> None:
    graph, there = pattern()
    h, source, target = (t.detach().clone() for t in inputs(3))
    expected = coefficients(source, target, there) @ h
    h[1] = source[1] = float("nan")
    torch.testing.assert_close(attend(graph, h, source, target, None)[::2], expected[::2], rtol=0, atol=1e-13)
