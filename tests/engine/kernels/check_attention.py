"""Attention, scores included, against the plain products and :func:`attend`."""

import pytest
import torch
from torch import Tensor

from engine.kernels.cases import DEVICE, check_close, check_twins, masks, numbers, places, plain
from propreg.engine.kernels.attention.attention import attention
from propreg.engine.kernels.spmm import segments
from propreg.engine.ops.attention import attend
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.sparse import Pattern

REPLICAS = 2


def looped(nodes: int) -> Pattern:
    """An odd graph with a loop at every node: attention over nothing is not defined."""
    there = torch.zeros(nodes, nodes, dtype=torch.bool, device=DEVICE).fill_diagonal_(True)
    there[places(nodes, nodes)] = True
    row, col = there.nonzero().unbind(1)
    return Pattern(row, col, (nodes, nodes))


def composed(pattern: Pattern, h: Tensor, source: Tensor, target: Tensor, drawn: Masks | None) -> Tensor:
    replicas, nodes, _ = h.shape
    heads, width = source.shape[1:]
    by_head = h.view(replicas, nodes, heads, width).transpose(1, 2).reshape(replicas * heads, nodes, width)
    scores = [torch.bmm(by_head, v.reshape(-1, width, 1)).squeeze(-1) for v in (source, target)]
    out = attend(pattern, by_head, scores[0], scores[1], drawn)
    return out.view(replicas, heads, nodes, width).transpose(1, 2)


def check(nodes: int, heads: int, width: int, dtype: torch.dtype, dropped: bool) -> None:
    pattern, drawn = looped(nodes), masks(REPLICAS) if dropped else None
    h = numbers(REPLICAS, nodes, heads * width, dtype=dtype, seed=1).requires_grad_()
    source = numbers(REPLICAS, heads, width, dtype=dtype, seed=2).requires_grad_()
    target = numbers(REPLICAS, heads, width, dtype=dtype, seed=3).requires_grad_()
    check_twins(
        lambda: attention(pattern, h, source, target, drawn),
        lambda: composed(pattern, h, source, target, drawn),
        h,
        source,
        target,
    )


@pytest.mark.parametrize(("heads", "width", "dropped"), [(1, 7, False), (3, 5, True), (2, 40, False)])
def test_attention(heads: int, width: int, dropped: bool) -> None:
    check(9, heads, width, torch.float64, dropped)


@pytest.mark.parametrize("dropped", [False, True])
def test_long_rows_are_cut(dropped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "CUT", 3)
    check(9, 2, 4, torch.float64, dropped)


def test_single_precision() -> None:
    check(9, 4, 3, torch.float32, True)


def test_rows_of_more_than_64() -> None:
    check(66, 1, 2, torch.float64, False)


def test_without_gradients() -> None:
    pattern = looped(9)
    h, vector = numbers(REPLICAS, 9, 8), numbers(REPLICAS, 2, 4, seed=2)
    with torch.no_grad():
        ours = attention(pattern, h, vector, vector, None)
    check_close(ours, plain(lambda: composed(pattern, h, vector, vector, None)))


def test_large_scores_stay_finite() -> None:
    pattern = looped(9)
    h = (1e4 * numbers(REPLICAS, 9, 8)).requires_grad_()
    vector = numbers(REPLICAS, 2, 4, seed=2)
    out = attention(pattern, h, vector, vector, None)
    (gradient,) = torch.autograd.grad(out.sum(), h)
    assert bool(out.isfinite().all() & gradient.isfinite().all())
