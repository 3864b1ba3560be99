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


def uniform(count: int, rng: np.random.Generator | torch.Generator) -> Tensor:
    """Numbers from 0 to 1, float64."""
    if isinstance(rng, torch.Generator):
        return torch.rand(count, generator=rng, device=rng.device, dtype=torch.float64)
    return torch.from_numpy(rng.random(count))


def distinct_numbers(count: int, below: int, rng: np.random.Generator | torch.Generator) -> Tensor:
    """Different numbers below ``below``, every set of them equally likely.

    Example:
        >>> sorted(distinct_numbers(3, 3, np.random.default_rng(0)).tolist())
        [0, 1, 2]
    """
    if isinstance(rng, torch.Generator):
        return _first_distinct(count, below, rng)
    return torch.from_numpy(rng.choice(below, count, replace=False, shuffle=False).astype(np.int64))


def _first_distinct(count: int, below: int, rng: torch.Generator) -> Tensor:
    """The first different numbers in a row of draws, without waiting for a GPU and in O(count)."""
    if 16 * count > below:
        return torch.randperm(below, generator=rng, device=rng.device)[:count]
    # Each draw repeats an earlier number with a probability below 1/16, and count + 64 of these have to:
    # the draws are too few with a probability below 2^(2 count + 64) / 16^(count + 64) < 2^-190.
    size = 2 * count + 64
    drawn = uniform(size, rng).mul_(below).long()
    ordered, place = drawn.sort(stable=True)
    new = torch.ones(size, dtype=torch.bool, device=rng.device)
    new[place[1:]] = ordered[1:] != ordered[:-1]
    kept = torch.where(new, new.cumsum(0) - 1, count).clamp_(max=count)  # the entry after the last takes all others
    return drawn.new_zeros(count + 1).index_copy_(0, kept, drawn)[:-1]
