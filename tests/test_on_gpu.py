"""On a GPU as on a CPU: the term, a mask of nobody, the product under ``torch.compile``, fits with other optimizers."""

from typing import Literal

import pytest
import torch
from torch import Tensor

import propreg

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICE = torch.device("cuda")
EDGES = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 5, 2, 3], [1, 0, 2, 1, 4, 3, 5, 4, 3, 2]])


def term(device: torch.device, z: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The value and its gradient, on the CPU."""
    leaf = z.to(device).requires_grad_()
    value = propreg.preg(leaf, EDGES.to(device), mask=None if mask is None else mask.to(device))
    (grad,) = torch.autograd.grad(value, leaf)
    return value.detach().cpu(), grad.cpu()


@pytest.mark.parametrize("mask", [None, [True, False, True, True, False, True], [False] * 6])
def test_the_term_is_that_of_a_cpu(mask: list[bool] | None) -> None:
    z = torch.randn(6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    nodes = None if mask is None else torch.tensor(mask)
    mine, theirs = term(DEVICE, z, nodes), term(torch.device("cpu"), z, nodes)
    torch.testing.assert_close(mine, theirs)
    if mask is not None and not any(mask):
        assert mine[0] == 0
        assert not mine[1].any()


def test_a_built_propagation_keeps_its_product_under_compile() -> None:
    z = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    built = propreg.Propagation(EDGES, 6).to(DEVICE).build()
    regularizer = propreg.PReg()
    eager, compiled = (
        call(z, built) for call in (regularizer, torch.compile(regularizer, backend="aot_eager", fullgraph=True))
    )
    torch.testing.assert_close(eager, compiled)


@pytest.mark.parametrize(("optimizer", "lr"), [("adamw", 0.01), ("sgd", 1.0)])
def test_a_fit_takes_another_optimizer(optimizer: Literal["adamw", "sgd"], lr: float) -> None:
    data = propreg.load_dataset("digits", split=0)
    found = propreg.fit(
        data, "mlp", mu=[0.3], seeds=1, optimizer=optimizer, lr=lr, max_epochs=40, device=str(DEVICE), progress=False
    )
    assert found.val.max() > 0.5
