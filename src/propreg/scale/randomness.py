"""Random numbers of a batch, from the seed and the batch's number alone: whoever makes it, it is the same batch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def numpy_generator(key: Sequence[int]) -> np.random.Generator:
    """A generator for a batch on the CPU."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(list(key))))


def torch_generator(key: Sequence[int], device: torch.device) -> torch.Generator:
    """A generator for a batch on a GPU."""
    state = np.random.SeedSequence(list(key)).generate_state(1, np.uint64)
    return torch.Generator(device).manual_seed(int(state[0]) >> 1)


def distinct_numbers(count: int, below: int, rng: np.random.Generator | torch.Generator) -> Tensor:
    """Different numbers below ``below``, every set of them equally likely.

    Example:
        >>> sorted(distinct_numbers(3, 3, np.random.default_rng(0)).tolist())
        [0, 1, 2]
    """
    if isinstance(rng, torch.Generator):
        return torch.randperm(below, generator=rng, device=rng.device)[:count]
    return torch.from_numpy(rng.choice(below, count, replace=False, shuffle=False).astype(np.int64))
