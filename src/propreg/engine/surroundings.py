"""The caller's modes of torch, which have no part in a training."""

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def ordinary_modes(device: torch.device) -> Iterator[None]:
    """Gradients on, inference mode and autocast off, whatever surrounds it.

    Example:
        >>> with torch.no_grad(), ordinary_modes(torch.device("cpu")):
        ...     torch.is_grad_enabled()
        True
    """
    with contextlib.ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.enable_grad())
        for kind in sorted({"cpu", device.type}):
            modes.enter_context(torch.autocast(kind, enabled=False))
        yield
