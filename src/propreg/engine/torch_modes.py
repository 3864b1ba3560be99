"""What training must neither depend on nor change: the caller's modes of torch, and random states."""

import contextlib
import random
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


@contextlib.contextmanager
def random_state_kept(device: torch.device) -> Iterator[None]:
    """Restore torch's random state, of the CPU and of this device, and Python's afterward.

    Example:
        >>> before = torch.get_rng_state()
        >>> with random_state_kept(torch.device("cpu")):
        ...     drawn = torch.rand(3)
        >>> torch.equal(before, torch.get_rng_state())
        True
    """
    cuda, python = device.type == "cuda", random.getstate()  # PyG draws from Python's when a layer is made
    with torch.random.fork_rng(devices=[device] if cuda else [], device_type="cuda"):
        try:
            yield
        finally:
            random.setstate(python)


def seed_torch(seed: int, device: torch.device) -> None:
    """``torch.manual_seed`` for the CPU and this device only: the states of other devices belong to the caller."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
