"""The kernels of the molecule networks against plain torch, forward and backward, in float64."""

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from molecules.made_up import graphs, molecules
from propreg.engine import kernels
from propreg.engine.ops.dropout import Masks
from propreg.molecules import ops
from propreg.molecules.packing import BOND_CODES, Batch, Packed, assemble

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SEEDS, MEMBERS, WIDTH = 2, 2, 37


@pytest.fixture(scope="module")
def batch() -> Batch:
    packed = Packed.of(molecules(), DEVICE, torch.float64)
    chosen = torch.tensor([[0, 5, 1, 7, 9], [3, 1, 2, 11, -1]], device=DEVICE)
    return assemble(packed, chosen, 70, 130)


def same(function: Callable[..., Tensor], *inputs: Tensor, real: Tensor | None = None) -> None:
    """Equal values and gradients with kernels and without, where a row is real."""
    found = []
    for off in (True, False):
        given = [t.detach().clone().requires_grad_() for t in inputs]
        if off:
            with kernels.switched_off():
                out, gradients = _both(function, given, real)
        else:
            assert kernels.usable(*given)
            out, gradients = _both(function, given, real)
        found.append((out, *gradients))
    for plain, kernel in zip(*found, strict=True):
        torch.testing.assert_close(kernel, plain, rtol=1e-9, atol=1e-11)


def _both(
    function: Callable[..., Tensor], given: list[Tensor], real: Tensor | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    out = function(*given)
    if real is not None:
        out = out * real[:, None, :, None]
    weights = torch.linspace(-1, 1, out.numel(), dtype=out.dtype, device=out.device).view_as(out).sin()
    return out.detach(), torch.autograd.grad((out * weights).sum(), given)


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(len(shape))).to(DEVICE)


@pytest.mark.parametrize(("relu", "drop", "passes"), [*product((False, True), (False, True), (1,)), (True, True, 3)])
def test_batch_norm(batch: Batch, relu: bool, drop: bool, passes: int) -> None:
    replicas, nodes = SEEDS * MEMBERS, batch.real.shape[1]
    keys = torch.arange(4 * SEEDS * passes, dtype=torch.int32, device=DEVICE).view(-1, 4)[:, ::2].contiguous() * 12345
    rates = torch.full((SEEDS * passes,), 0.4, dtype=torch.float64, device=DEVICE)
    masks = Masks(keys + 678, rates) if drop else None
    running = []

    def normalized(h: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        running.append((torch.zeros_like(scale.detach()), torch.ones_like(scale.detach())))
        return ops.normalize(h, scale, shift, running[-1], batch.count, training=True, relu=relu, masks=masks)

    inputs = drawn(SEEDS, MEMBERS * passes, nodes, WIDTH) + 3, drawn(replicas, WIDTH), drawn(replicas, WIDTH)
    same(normalized, *inputs, real=batch.real)
    for plain, kernel in zip(*running, strict=True):
        torch.testing.assert_close(kernel, plain)
    if passes > 1:
        return
    fixed = running[0]
    with torch.no_grad():
        kernel = ops.normalize(*inputs, fixed, batch.count, training=False, relu=relu, masks=None)
        with kernels.switched_off():
            plain = ops.normalize(*inputs, fixed, batch.count, training=False, relu=relu, masks=None)
    torch.testing.assert_close(kernel, plain)


@pytest.mark.parametrize("passes", [1, 3])
def test_messages_with_bonds_and_own_rows(batch: Batch, passes: int) -> None:
    h = drawn(SEEDS, MEMBERS * passes, batch.real.shape[1], WIDTH)
    table, own = drawn(SEEDS * MEMBERS, BOND_CODES, WIDTH), drawn(SEEDS * MEMBERS)
    same(lambda h, table, own: ops.messages(h, table, batch.bonds, own), h, table, own)


def test_messages_with_loops(batch: Batch) -> None:
    h, table = drawn(SEEDS, MEMBERS, batch.real.shape[1], WIDTH), drawn(SEEDS * MEMBERS, BOND_CODES + 1, WIDTH)
    same(lambda h, table: ops.messages(h, table, batch.looped), h, table)


def test_the_mean_over_neighbors(batch: Batch) -> None:
    same(lambda h: ops.messages(h, None, batch.averaged), drawn(SEEDS, MEMBERS, batch.real.shape[1], WIDTH))


def test_agreement(batch: Batch) -> None:
    shape = SEEDS, MEMBERS, batch.real.shape[1], WIDTH
    weights = batch.real / batch.count.unsqueeze(1)
    same(lambda z, q: ops.agreement(z, q, weights).view(SEEDS, MEMBERS, 1, 1), drawn(*shape), 2 * drawn(*shape).flip(0))


@pytest.fixture(scope="module")
def directed() -> Batch:
    """Edges whose reverse is missing or has other features."""
    return assemble(
        Packed.of(graphs(), DEVICE, torch.float64), torch.tensor([[0, 5, 1], [3, 1, -1]], device=DEVICE), 40, 60
    )


def test_messages_of_directed_graphs(directed: Batch) -> None:
    h = drawn(SEEDS, MEMBERS, directed.real.shape[1], WIDTH)
    table, own = drawn(SEEDS * MEMBERS, 60, WIDTH), drawn(SEEDS * MEMBERS)
    same(lambda h, table, own: ops.messages(h, table, directed.bonds, own), h, table, own)
    looped = drawn(SEEDS * MEMBERS, 61, WIDTH)
    same(lambda h, table: ops.messages(h, table, directed.looped), h, looped)
    same(lambda h: ops.messages(h, None, directed.averaged), h)
