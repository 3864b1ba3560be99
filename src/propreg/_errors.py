"""One sentence for every bad parameter: its name, what is allowed, what came, and the fix."""

import difflib
from collections.abc import Iterable

import torch
from torch import Tensor


def one_of(name: str, value: object, allowed: Iterable[str], extra: str = "") -> None:
    """Refuse a name that is not known, listing the known ones and the nearest."""
    known = list(allowed)
    if isinstance(value, str) and value in known:
        return
    listed = ", ".join(repr(k) for k in known)
    near = difflib.get_close_matches(value, known, n=1, cutoff=0.4) if isinstance(value, str) else []
    hint = f" Did you mean {near[0]!r}?" if near else ""
    kind = ValueError if isinstance(value, str) else TypeError
    raise kind(f"{name} must be one of {listed}{extra}, but {value!r} came.{hint}")


def logits(name: str, z: object) -> Tensor:
    """Refuse what is not a floating [N, C] tensor with at least one row and one column."""
    if not isinstance(z, Tensor):
        raise TypeError(f"{name} must be a tensor of logits [N, C], but a {type(z).__name__} came.")
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


def same_device(first: str, a: Tensor, second: str, b: Tensor) -> None:
    """Refuse two tensors on different devices before a kernel does so less clearly."""
    if a.device != b.device:
        raise ValueError(
            f"{first} is on {a.device} and {second} on {b.device}: move one of them, "
            f"for example {second}.to({str(a.device)!r})."
        )


def finite_rows(name: str, z: Tensor) -> None:
    """Refuse NaN and infinite logits, naming the first bad row."""
    if bool(z.detach().sum().isfinite()):  # one pass; a sum that overflows only costs the second look
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
    """Whether values may be looked at: by default only on the CPU, in eager mode, outside torch.func.

    On a GPU a look costs a synchronisation; under ``torch.compile`` and ``torch.func`` there is no value yet.
    """
    if validate is not None:
        if not isinstance(validate, bool):
            raise TypeError(f"validate must be None, True or False, but {validate!r} came.")
        return validate
    return plain() and all(t.device.type == "cpu" for t in tensors)


def plain() -> bool:
    """Whether tensors hold values now: neither ``torch.compile`` traces nor a ``torch.func`` transform runs.

    Only then may something be looked at or kept: a tensor made inside a transform dies with it.
    """
    if torch.compiler.is_compiling():
        return False
    # What torch.autograd.Function itself asks; the guard keeps us working should it move.
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    return active is None or not active()


def lasting() -> bool:
    """Whether what is made now may be kept for later: autograd refuses a tensor that inference mode made."""
    return plain() and not torch.is_inference_mode_enabled()
