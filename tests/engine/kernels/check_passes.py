"""An epoch's passes at once, and the loss of them, against each for itself."""

from typing import Any

import pytest
import torch
from torch import Tensor

from engine.kernels.cases import DEVICE, check_close, check_twins, masks, matrix, numbers
from propreg.engine import dropout as plain
from propreg.engine import kernels
from propreg.engine.activation import spread
from propreg.engine.agreement import agreement
from propreg.engine.dropout import Masks
from propreg.engine.kernels import judge
from propreg.engine.kernels.column_sums import column_sums, leave
from propreg.engine.kernels.passes import passes
from propreg.engine.kernels.pitch import in_slots, slot_for
from propreg.engine.kernels.regularised import regularised
from propreg.engine.losses import cross_entropy
from propreg.engine.sparse import Matrix
from propreg.engine.targets import Targets

NODES, REPLICAS, HIDDEN = 13, 2, 32


def drawn(count: int) -> list[Masks]:
    """Masks of so many passes, with the same rates."""
    found = [masks(REPLICAS) for _ in range(count)]
    for number, each in enumerate(found):
        each.keys = each.keys + 2 * number
    return found


@pytest.mark.parametrize(("count", "classes", "graph"), [(1, 3, True), (2, 7, True), (2, 5, False)])
def test_all_passes_are_each_for_itself(count: int, classes: int, graph: bool) -> None:
    known = matrix(NODES, NODES, torch.float32) if graph else None
    h = numbers(REPLICAS, NODES, HIDDEN, seed=8).relu().requires_grad_()
    w = numbers(REPLICAS, HIDDEN, classes, seed=9).requires_grad_()
    bias = numbers(REPLICAS, classes, seed=10).requires_grad_()
    found = drawn(count)

    def one(m: Masks | None) -> Tensor:
        return spread(known, plain.dropped_linear(h.relu(), w, m), bias)

    check_twins(
        lambda: passes(known, h, w, bias, found)[1], lambda: torch.stack([one(m) for m in found], 2), h, w, bias
    )
    evaluated = passes(known, h, w, bias, found)[0]
    assert not evaluated.requires_grad
    with kernels.switched_off():
        check_close(evaluated, one(None))


def loss(known: Matrix, trained: Tensor, weights: Tensor, targets: Targets) -> Tensor:
    """Both values in plain torch."""
    z, source = trained[:, :, 0], trained[:, :, -1]
    return torch.stack([cross_entropy(z, targets), agreement(known, z, source, weights)])


@pytest.mark.parametrize("beside", [0, 1, 5], ids=["alone", "beside one", "beside others"])
@pytest.mark.parametrize(
    ("count", "classes", "dtype"),
    [(1, 5, torch.float64), (2, 7, torch.float32), (2, 2, torch.float64), (2, 5, torch.float32)],
)
def test_one_gradient_of_both_losses(count: int, classes: int, dtype: torch.dtype, beside: int) -> None:
    known = matrix(NODES, NODES, dtype)
    every = 3 * numbers(REPLICAS, NODES, beside + count * classes, dtype=dtype, seed=1)
    trained = every[..., beside:].view(REPLICAS, NODES, count, classes).requires_grad_()
    assert trained.is_contiguous() == (beside == 0)
    nodes = torch.tensor([[1, 4, 7], [2, 0, 0]], device=DEVICE)  # the second has only two, and node 0 fills up
    targets = Targets(nodes, nodes % classes, torch.tensor([[1, 1, 1], [1.5, 1.5, 0]], device=DEVICE, dtype=dtype) / 3)
    weights = numbers(NODES, dtype=dtype, seed=8).abs()
    check_twins(
        lambda: torch.stack(regularised(known, trained, weights, targets)),
        lambda: loss(known, trained, weights, targets),
        trained,
    )


@pytest.mark.parametrize("beside", [0, 2], ids=["alone", "beside others"])
@pytest.mark.parametrize("classes", [1, 3, 8])
def test_right_is_argmax(classes: int, beside: int) -> None:
    logits = numbers(REPLICAS, 1500, beside + classes).mul(2).round()[..., beside:]  # with many ties
    logits[0, 3, -1], logits[1, 5] = torch.nan, -torch.inf
    logits[0, 4, 0], logits[0, 4, -1] = torch.inf, torch.nan
    y = torch.arange(1500, device=DEVICE) % classes
    y[7] = -1
    assert torch.equal(judge.right(logits, y), logits.argmax(-1) == y)


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 1, 0)], ids=str)
def test_logits_in_any_order_of_memory(order: tuple[int, int, int]) -> None:
    """As modules of the caller's own may give them, through vmap."""
    back = [order.index(i) for i in range(3)]
    shape = (REPLICAS, NODES, 3)
    z = numbers(*(shape[i] for i in order)).permute(back)
    assert z.shape == shape
    y = torch.arange(NODES, device=DEVICE) % 3
    assert torch.equal(judge.right(z, y), z.argmax(-1) == y)
    known, z = matrix(NODES, NODES, torch.float32), z.detach().unsqueeze(2).requires_grad_()
    nodes = torch.tensor([[1, 4], [2, 0]], device=DEVICE)
    targets = Targets(nodes, nodes % 3, torch.full((2, 2), 0.5, device=DEVICE))
    weights = numbers(NODES, seed=8).abs()
    check_twins(
        lambda: torch.stack(regularised(known, z, weights, targets)), lambda: loss(known, z, weights, targets), z
    )


def test_one_node() -> None:
    z = torch.empty_strided((REPLICAS, 1, 3), (3, 100, 1), device=DEVICE).copy_(numbers(REPLICAS, 1, 3))
    y = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    assert torch.equal(judge.right(z, y), z.argmax(-1) == y)


@pytest.mark.parametrize("count", [1, 2])
def test_what_wrote_a_gradient_leaves_its_column_sums(count: int) -> None:
    h = numbers(REPLICAS, NODES, HIDDEN, seed=8).relu().requires_grad_()
    w, bias = numbers(REPLICAS, HIDDEN, 3, seed=9), numbers(REPLICAS, 3, seed=10)
    trained = passes(matrix(NODES, NODES, torch.float32), Seen.apply(h), w, bias, drawn(count))[1]  # type: ignore[no-untyped-call]
    (to_h,) = torch.autograd.grad(trained, h, numbers(*trained.shape, seed=3))
    assert Seen.left is not None  # where autograd hands the gradient on, the sums are still there
    check_close(Seen.left, to_h.sum(1))
    changed = leave(to_h.clone(), Seen.left)
    changed[0, 0, 0] += 1
    assert torch.equal(column_sums(changed), changed.sum(1))


class Seen(torch.autograd.Function):
    """Does nothing, and remembers the sums that came with the gradient."""

    left: Tensor | None = None

    @staticmethod
    def forward(ctx: Any, h: Tensor) -> Tensor:  # noqa: ARG004
        return h.view_as(h)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # noqa: ARG004
        known = getattr(grad, "_column_sums", None)
        Seen.left = None if known is None else column_sums(grad)
        return grad


@pytest.mark.parametrize(("classes", "dtype"), [(5, torch.float32), (7, torch.float64), (8, torch.float32)])
@pytest.mark.parametrize("count", [1, 2])
def test_a_gradient_in_slots_is_not_copied(count: int, classes: int, dtype: torch.dtype) -> None:
    slot = slot_for(classes)
    every = numbers(REPLICAS, NODES, count, slot, dtype=dtype)
    grad = every[..., slot - classes :]
    rows, found, shift = in_slots(grad)
    assert (rows.data_ptr(), found, shift) == (every.data_ptr(), slot, slot - classes)
    assert torch.equal(rows, every.flatten(2))
    for other in (grad.contiguous(), every[..., :classes], grad.transpose(1, 2).contiguous().transpose(1, 2)):
        rows, found, shift = in_slots(other)
        assert (found, shift) == (classes, 0)
        assert torch.equal(rows, other.flatten(2))
