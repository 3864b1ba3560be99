"""An epoch's passes at once, and the loss of them, against each for itself."""

from typing import Any

import pytest
import torch
from torch import Tensor

from engine.kernels.cases import DEVICE, check_close, check_twins, masks, matrix, numbers
from propreg.engine import kernels
from propreg.engine.kernels import accuracy
from propreg.engine.kernels.layout import from_slots, group_size, in_slots, slot_width
from propreg.engine.kernels.linear.last_layer import last_layer
from propreg.engine.kernels.preg import preg_and_cross_entropy
from propreg.engine.kernels.reductions import attach_column_sums, column_sums
from propreg.engine.kernels.spmm import frequent_columns, segments
from propreg.engine.ops import dropout as plain
from propreg.engine.ops.activation import propagate
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.loss import cross_entropy, preg
from propreg.engine.ops.sparse import Matrix
from propreg.engine.tasks.node import Targets

NODES, REPLICAS, HIDDEN = 13, 2, 32


def drawn(count: int, replicas: int = REPLICAS) -> list[Masks]:
    """Masks of so many passes, with the same rates."""
    found = [masks(replicas) for _ in range(count)]
    for number, each in enumerate(found):
        each.keys = each.keys + 2 * number
    return found


@pytest.mark.parametrize(
    ("count", "classes", "graph", "replicas"),
    [(1, 3, True, 1), (2, 7, True, 5), (2, 5, False, 5), (1, 15, True, 5), (1, 16, True, 3)],
)
@pytest.mark.parametrize("in_groups", [False, True])
def test_all_passes_are_each_for_itself(count: int, classes: int, graph: bool, replicas: int, in_groups: bool) -> None:
    known = matrix(NODES, NODES, torch.float32) if graph else None
    h = numbers(replicas, NODES, HIDDEN, seed=8).relu().requires_grad_()
    w = numbers(replicas, HIDDEN, classes, seed=9).requires_grad_()
    bias = numbers(replicas, classes, seed=10).requires_grad_()
    found = drawn(count, replicas)

    def one(m: Masks | None) -> Tensor:
        return propagate(known, plain.dropped_linear(h.relu(), w, m), bias)

    def all_of_them() -> tuple[Tensor, Tensor]:
        both = last_layer(known, h, w, bias, found, in_groups=in_groups)
        assert (both[0].shape[1] > 1) == (in_groups and replicas > 1)  # one is no group
        return both

    check_twins(lambda: alone(all_of_them()[1], replicas), lambda: torch.stack([one(m) for m in found], 2), h, w, bias)
    evaluated = all_of_them()[0]
    assert not evaluated.requires_grad
    with kernels.switched_off():
        check_close(alone(evaluated, replicas), one(None))


def alone(x: Tensor, replicas: int) -> Tensor:
    """Each replica for itself, [R, …] of [groups, members, …]."""
    return x.flatten(0, 1)[:replicas]


def loss(known: Matrix, trained: Tensor, weights: Tensor, targets: Targets) -> Tensor:
    """Both values in plain torch."""
    z, source = trained[:, :, 0], trained[:, :, -1]
    return torch.stack([cross_entropy(z, targets), preg(known, z, source, weights)])


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
        lambda: torch.stack(preg_and_cross_entropy(known, trained, weights, targets)),
        lambda: loss(known, trained, weights, targets),
        trained,
    )


@pytest.mark.parametrize(
    ("count", "classes", "replicas", "own"),
    [(1, 5, 5, False), (2, 7, 5, True), (2, 15, 5, False), (1, 3, 1, True), (2, 8, 5, False)],
)
def test_losses_of_groups(count: int, classes: int, replicas: int, own: bool) -> None:
    """Of logits as they come from all passes at once, and with the gradient as it goes back to them."""
    known, found = matrix(NODES, NODES, torch.float32), drawn(count, replicas)
    h = numbers(replicas, NODES, HIDDEN, seed=8).relu().requires_grad_()
    w = numbers(replicas, HIDDEN, classes, seed=9).requires_grad_()
    bias = numbers(replicas, classes, seed=10).requires_grad_()
    nodes = torch.stack([(torch.arange(4, device=DEVICE) * (r + 2)) % NODES for r in range(replicas)])
    targets = Targets(nodes, nodes % classes, numbers(replicas, 4, seed=11).abs())
    weights = numbers(replicas, NODES, seed=12).abs() if own else numbers(NODES, seed=12).abs()

    def ours() -> Tensor:
        trained = last_layer(known, h, w, bias, found, in_groups=True)[1]
        return torch.stack(preg_and_cross_entropy(known, trained, weights, targets))

    def theirs() -> Tensor:
        trained = torch.stack([propagate(known, plain.dropped_linear(h.relu(), w, m), bias) for m in found], 2)
        return loss(known, trained, weights, targets)

    check_twins(ours, theirs, h, w, bias)


def test_a_long_row_of_a_group() -> None:
    nodes, replicas, classes = 70, 8, 5
    known = matrix(nodes, nodes, torch.float32)
    assert int(known.pattern.crow.diff().max()) > 64
    every = numbers(1, nodes, replicas, 8).requires_grad_()
    first = torch.zeros(replicas, 1, dtype=torch.int64, device=DEVICE)
    targets = Targets(first, first, numbers(replicas, 1))
    weights = numbers(nodes, seed=12).abs()
    trained = every.transpose(1, 2)[..., None, 8 - classes :]
    check_twins(
        lambda: torch.stack(preg_and_cross_entropy(known, trained, weights, targets)),
        lambda: loss(known, trained.flatten(0, 1), weights, targets),
        every,
    )


@pytest.mark.slow
def test_a_group_has_the_bits_of_those_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the graph has columns that are multiplied as dense ones: the widths of the two differ."""
    nodes = 128
    monkeypatch.setattr(frequent_columns, "LEAST", 1)
    one = torch.arange(nodes, device=DEVICE).repeat_interleave(6)
    other = (one + torch.arange(-3, 3, device=DEVICE).repeat(nodes)) % nodes
    known = Matrix(one, other, torch.full((6 * nodes,), 1 / 6, device=DEVICE), (nodes, nodes))
    assert frequent_columns.find_columns(known.pattern, known.column_values, numbers(1, nodes, 64)) is not None
    h, w, bias = numbers(8, nodes, 16, seed=8).relu(), numbers(8, 16, 8, seed=9), numbers(8, 8, seed=10)
    direction = numbers(8, nodes, 1, 8, seed=3)

    def gradient(in_groups: bool) -> tuple[Tensor, Tensor]:
        leaf = w.clone().requires_grad_()
        evaluated, trained = last_layer(known, h, leaf, bias, drawn(1, 8), in_groups=in_groups)
        assert evaluated.shape[1] == (8 if in_groups else 1)
        (to_w,) = torch.autograd.grad(alone(trained, 8), leaf, direction)
        return alone(evaluated, 8), to_w

    for mine, theirs in zip(gradient(True), gradient(False), strict=True):
        assert torch.equal(mine, theirs)


def test_losses_of_a_large_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose rows come in an order of their own."""
    for name, number in (("LARGE", 0), ("WINDOW", 16), ("WHOLE_TILES", 8)):
        monkeypatch.setattr(segments, name, number)
    test_a_long_row_of_a_group()


def check_counts(logits: Tensor, y: Tensor, right: Tensor) -> None:
    """The counts of many random choices of nodes, which differ wherever one node is judged differently."""
    replicas, nodes = right.shape
    draw = torch.Generator().manual_seed(0)
    for number in (0, 1, *[nodes] * 5):
        chosen = torch.randint(nodes, (replicas, number), generator=draw).to(DEVICE)
        real = (torch.rand(replicas, number, generator=draw) < 0.5).to(DEVICE)
        every = torch.arange(nodes, device=DEVICE).repeat(replicas, 1)
        half = (torch.rand(replicas, nodes, generator=draw) < 0.5).to(DEVICE)
        found = accuracy.count_correct(logits, y, (chosen, real), (every, half))
        assert torch.equal(found[0], (right.gather(1, chosen) & real).sum(1))
        assert torch.equal(found[1], (right & half).sum(1))


@pytest.mark.parametrize("members", [1, 2, 3])
def test_right_in_groups(members: int) -> None:
    logits = numbers(2, 40, members, 8).transpose(1, 2)[..., 3:]
    y = torch.arange(40, device=DEVICE) % 5
    check_counts(logits, y, (logits.argmax(-1) == y).flatten(0, 1))


@pytest.mark.parametrize("beside", [0, 2], ids=["alone", "beside others"])
@pytest.mark.parametrize("classes", [1, 3, 8])
def test_right_is_argmax(classes: int, beside: int) -> None:
    logits = numbers(REPLICAS, 1500, beside + classes).mul(2).round()[..., beside:]  # with many ties
    logits[0, 3, -1], logits[1, 5] = torch.nan, -torch.inf
    logits[0, 4, 0], logits[0, 4, -1] = torch.inf, torch.nan
    y = torch.arange(1500, device=DEVICE) % classes
    y[7] = -1
    check_counts(logits, y, logits.argmax(-1) == y)


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (2, 1, 0)], ids=str)
def test_logits_in_any_order_of_memory(order: tuple[int, int, int]) -> None:
    """As modules of the caller's own may give them, through vmap."""
    back = [order.index(i) for i in range(3)]
    shape = (REPLICAS, NODES, 3)
    z = numbers(*(shape[i] for i in order)).permute(back)
    assert z.shape == shape
    y = torch.arange(NODES, device=DEVICE) % 3
    check_counts(z, y, z.argmax(-1) == y)
    known, z = matrix(NODES, NODES, torch.float32), z.detach().unsqueeze(2).requires_grad_()
    nodes = torch.tensor([[1, 4], [2, 0]], device=DEVICE)
    targets = Targets(nodes, nodes % 3, torch.full((2, 2), 0.5, device=DEVICE))
    weights = numbers(NODES, seed=8).abs()
    check_twins(
        lambda: torch.stack(preg_and_cross_entropy(known, z, weights, targets)),
        lambda: loss(known, z, weights, targets),
        z,
    )


def test_one_node() -> None:
    z = torch.empty_strided((REPLICAS, 1, 3), (3, 100, 1), device=DEVICE).copy_(numbers(REPLICAS, 1, 3))
    y = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    check_counts(z, y, z.argmax(-1) == y)


@pytest.mark.parametrize("count", [1, 2])
def test_what_wrote_a_gradient_leaves_its_column_sums(count: int) -> None:
    h = numbers(REPLICAS, NODES, HIDDEN, seed=8).relu().requires_grad_()
    w, bias = numbers(REPLICAS, HIDDEN, 3, seed=9), numbers(REPLICAS, 3, seed=10)
    trained = last_layer(matrix(NODES, NODES, torch.float32), Seen.apply(h), w, bias, drawn(count))[1]  # type: ignore[no-untyped-call]
    (to_h,) = torch.autograd.grad(trained, h, numbers(*trained.shape, seed=3))
    assert Seen.left is not None  # where autograd hands the gradient on, the sums are still there
    check_close(Seen.left, to_h.sum(1))
    changed = attach_column_sums(to_h.clone(), Seen.left)
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
@pytest.mark.parametrize("members", [1, 4])
def test_a_gradient_in_slots_is_not_copied(members: int, count: int, classes: int, dtype: torch.dtype) -> None:
    slot = slot_width(classes)
    every = numbers(2, NODES, count, members * slot, dtype=dtype)
    grad = from_slots(every, members, slot - classes, classes)
    assert grad.shape == (2, members, NODES, count, classes)
    rows, found, shift = in_slots(grad)
    assert (rows.data_ptr(), found, shift) == (every.data_ptr(), slot, slot - classes)
    assert torch.equal(rows, every.flatten(2))
    others = [grad.contiguous(), grad.transpose(1, 2).contiguous().transpose(1, 2)]
    if classes < slot:
        others.append(from_slots(every, members, 0, classes))
    for other in others:
        rows, found, shift = in_slots(other)
        assert (found, shift) == (classes, 0)
        assert torch.equal(rows, other.permute(0, 2, 3, 1, 4).flatten(2))


def test_a_group_stays_in_the_cache() -> None:
    assert group_size(500, 34_493, 16, 8) == 8
    assert group_size(500, 34_493, 48, 16) == 2
    assert group_size(500, 34_493, 16, 8, 6_000_000) == 1
    assert group_size(500, 2_000_000, 16, 8) == 1
    assert group_size(5, 100, 16, 8) == 8
    assert group_size(4, 100, 16, 8) == 1
    assert group_size(9, 100, 128, 64) == 1
