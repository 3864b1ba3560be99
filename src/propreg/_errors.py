"""One sentence for every bad parameter: its name, what is allowed, what it got, and the fix."""

from typing import Protocol

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from propreg import _choices

one_of = _choices.one_of


def logits(name: str, z: object) -> Tensor:
    """Raise unless z is a floating-point [N, C] tensor with at least one row and one column."""
    if not isinstance(z, Tensor):
        raise TypeError(f"{name} must be a tensor of logits [N, C], got a {type(z).__name__}.")
    if z.dim() != 2:
        raise ValueError(
            f"{name} must have two dimensions, [nodes, classes], but its shape is {tuple(z.shape)}: "
            "a single column of yes/no logits is z.unsqueeze(-1) with phi='bernoulli', a batch of graphs one "
            "block-diagonal graph."
        )
    if not z.is_floating_point():
        raise TypeError(f"{name} must hold floating-point logits, but its dtype is {z.dtype}.")
    if z.shape[0] == 0 or z.shape[1] == 0:
        raise ValueError(f"{name} is empty: its shape is {tuple(z.shape)}, and there is nothing to average.")
    return z


class Placed(Protocol):
    """What is on a device: a tensor, or a graph."""

    @property
    def device(self) -> torch.device: ...


def same_device(first: str, a: Placed, second: str, b: Placed) -> None:
    """Raise if two tensors are on different devices: a kernel's own message is less clear."""
    if a.device != b.device:
        raise ValueError(
            f"{first} is on {a.device} and {second} on {b.device}: move one of them, "
            f"for example {second}.to({str(a.device)!r})."
        )


def finite_rows(name: str, z: Tensor) -> None:
    """Raise on NaN and infinite logits, naming the first bad row."""
    if bool(z.detach().sum().isfinite()):  # one pass; a sum that overflows only costs a second one
        return
    bad = (~z.detach().isfinite()).any(dim=-1).nonzero().flatten()
    if len(bad):
        row = int(bad[0])
        more = f" (and {len(bad) - 1} more rows)" if len(bad) > 1 else ""
        raise ValueError(
            f"{name} has a NaN or infinite value in row {row}{more}: the model has diverged; "
            "lower the learning rate or look at that node's features. validate=False skips this check."
        )


def values_are_checked(validate: bool | None, *tensors: Tensor) -> bool:
    """Whether to check values: by default only on the CPU, in eager mode, outside torch.func.

    On a GPU a check costs a synchronization; under ``torch.compile`` and ``torch.func`` there are no values yet.
    """
    if validate is not None:
        if not isinstance(validate, bool):
            raise TypeError(f"validate must be None, True or False, got {validate!r}.")
        return validate and have_values(*tensors)
    return plain() and all(t.device.type == "cpu" for t in tensors) and have_values(*tensors)


def have_values(*tensors: Tensor) -> bool:
    """Whether the tensors are more than a shape: meta and fake tensors have no values to look at."""
    return not any(t.is_meta or isinstance(t, FakeTensor) for t in tensors)


def at_least_float32(z: Tensor) -> Tensor:
    """Half precision as float32, in which sums over nodes are taken."""
    return z.float() if z.dtype in (torch.float16, torch.bfloat16) else z


def autocast(device: torch.device) -> bool:
    """Whether autocast is on for the device; the meta device has none."""
    return device.type != "meta" and torch.is_autocast_enabled(device.type)


def plain() -> bool:
    """Whether tensors hold values now: neither ``torch.compile`` traces nor a ``torch.func`` transform runs.

    Only then may values be read or cached: a tensor created inside a transform dies with it.
    """
    if torch.compiler.is_compiling() or torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None:
        return False
    return not transformed()


def transformed() -> bool:
    """Whether a ``torch.func`` transform runs: the test of torch.autograd.Function itself."""
    return torch._C._are_functorch_transforms_active()


def lasting() -> bool:
    """Whether a tensor created now may be cached: autograd refuses tensors created in inference mode."""
    return plain() and not torch.is_inference_mode_enabled()
