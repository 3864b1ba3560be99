"""Random states, torch's and Python's: left to the caller as they were; torch's is set for a run."""

import contextlib
import random
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def random_state_kept(device: torch.device) -> Iterator[None]:
    """Whatever is drawn inside, on the CPU and on this device, the caller draws what it would have drawn without it.

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
    """What ``torch.manual_seed`` does, but on the CPU and this device only: others are none of ours."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
