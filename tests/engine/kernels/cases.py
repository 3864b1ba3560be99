"""What the checks of the kernels share: odd little matrices, masks, and how close is close."""

from collections.abc import Callable

import torch
from torch import Tensor

from propreg.engine import kernels
from propreg.engine.ops.dropout import Masks
from propreg.engine.ops.sparse import Matrix, Pattern

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
DTYPES = (torch.float32, torch.float64)


def numbers(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> Tensor:
    """Normal numbers, the same on any device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(DEVICE, dtype)


def places(rows: int, columns: int) -> tuple[Tensor, Tensor]:
    """Random places of entries; the first row and column are full but for one, the last row and column empty."""
    generator = torch.Generator().manual_seed(rows + 31 * columns)
    there = torch.rand(rows, columns, generator=generator) < 0.25
    there[0], there[:, 0] = True, True
    there[-1], there[:, -1] = False, False
    row, col = there.nonzero().unbind(1)
    shuffled = torch.randperm(len(row), generator=generator)
    return row[shuffled].to(DEVICE), col[shuffled].to(DEVICE)


def pattern(rows: int, columns: int) -> Pattern:
    """An odd pattern."""
    return Pattern(*places(rows, columns), (rows, columns))


def matrix(rows: int, columns: int, dtype: torch.dtype) -> Matrix:
    """An odd pattern with values."""
    row, col = places(rows, columns)
    return Matrix(row, col, numbers(len(row), dtype=dtype, seed=5), (rows, columns))


def masks(replicas: int) -> Masks:
    """Masks of different rates."""
    generator = torch.Generator().manual_seed(9)
    keys = torch.randint(-(2**31), 2**31, (replicas, 2), generator=generator).int()
    keys[:, 0] |= 1
    return Masks(keys.to(DEVICE), torch.linspace(0.2, 0.6, replicas).to(DEVICE))


def check_close(actual: Tensor, expected: Tensor) -> None:
    """Equal but for rounding: ‖actual − expected‖ against ‖expected‖."""
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    allowed = {torch.float32: 5e-6, torch.float64: 1e-13}[actual.dtype]
    actual, expected = actual.detach().double(), expected.detach().double()
    assert float((actual - expected).norm()) <= allowed * float(expected.norm())  # NaN is never close


def plain(function: Callable[[], Tensor]) -> Tensor:
    """What a function of the engine gives without kernels."""
    with kernels.switched_off():
        return function()


def check_twins(kernel: Callable[[], Tensor], twin: Callable[[], Tensor], *inputs: Tensor) -> None:
    """A function and its plain twin have the same value and the same gradients, for a random direction."""
    value = kernel()
    direction = numbers(*value.shape, dtype=value.dtype, seed=77)
    ours = torch.autograd.grad(value, inputs, direction)
    with kernels.switched_off():
        expected = twin()
        theirs = torch.autograd.grad(expected, inputs, direction)
    check_close(value, expected)
    for mine, other in zip(ours, theirs, strict=True):
        check_close(mine, other)
