"""Adam's fused step against :class:`propreg.engine.ops.adam.Adam`."""

import pytest
import torch

from engine.kernels.cases import DEVICE, DTYPES, check_close, numbers
from propreg.engine import kernels
from propreg.engine.kernels.adam import update
from propreg.engine.ops.adam import Adam


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(3, 5, 7), (2, 1100), (2, 1)])
def test_steps(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    replicas = shape[0]
    lr = torch.linspace(0.01, 0.03, replicas, dtype=dtype, device=DEVICE)
    decay = torch.linspace(0.0, 0.1, replicas, dtype=dtype, device=DEVICE)
    theirs = {"w": numbers(*shape, dtype=dtype)}
    adam = Adam(theirs, lr, {"w": decay})
    ours = theirs["w"].clone()
    first, second = torch.zeros_like(ours), torch.zeros_like(ours)
    for step in range(1, 4):
        grad = numbers(*shape, dtype=dtype, seed=step)
        adam.advance()
        with kernels.switched_off():
            adam.step(theirs, {"w": grad})
        update(ours, first, second, grad, adam.step_size, decay, adam.root)
    check_close(ours, theirs["w"])
    check_close(first, adam.first["w"])
    check_close(second, adam.second["w"])
