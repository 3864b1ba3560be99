"""Random numbers of an epoch on the device: functions of (run, epoch, site), like the masks of dropout.

``keys`` int32 [R, 2] are those of :class:`.dropout.MaskKeys`; a recorded epoch sees the keys of every epoch.
"""

import math

import torch
from torch import Tensor

from propreg.engine.ops.dropout import hashed

_BITS = 24


def uniforms(keys: Tensor, count: int) -> Tensor:
    """Numbers inside (0, 1), multiples of 2⁻²⁴ moved by half a step. float64 [R, count]."""
    words = hashed(count, keys).bitwise_right_shift_(32 - _BITS).bitwise_and_(2**_BITS - 1)
    return words.double().add_(0.5).div_(2**_BITS)


def normals(keys: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """Standard normal numbers, by Box and Muller's formula. [R, count]."""
    half = (count + 1) // 2
    one, two = uniforms(keys, 2 * half).to(dtype).view(len(keys), 2, half).unbind(1)
    radius, angle = one.log().mul(-2).sqrt_(), two.mul(2 * math.pi)
    return torch.cat([radius * angle.cos(), radius * angle.sin()], 1)[:, :count]


def truncated_normals(keys: Tensor, count: int, dtype: torch.dtype) -> Tensor:
    """Standard normal numbers between −2 and 2, as TensorFlow's. [R, count]."""
    inside = math.erf(2**0.5)
    return uniforms(keys, count).mul_(2).sub_(1).mul_(inside).erfinv_().mul_(2**0.5).to(dtype)


class Neighbors:
    """The sources of the edges into each node; a node without any is its own neighbor.

    Args:
        edge_index: Edges as (source, target), int64 [2, E].
        nodes: The number of nodes.
    """

    def __init__(self, edge_index: Tensor, nodes: int) -> None:
        source, target = edge_index
        alone = torch.ones(nodes, dtype=torch.bool, device=edge_index.device)
        alone[target] = False
        own = alone.nonzero().squeeze(1)
        source, target = torch.cat([source, own]), torch.cat([target, own])
        self.source = source[target.argsort(stable=True)]
        self.count = torch.bincount(target, minlength=nodes)
        self.start = self.count.cumsum(0) - self.count

    def sampled(self, keys: Tensor, each: int) -> Tensor:
        """So many neighbors of each node, drawn uniformly with replacement. int64 [R, each, N]."""
        nodes = len(self.count)
        drawn = uniforms(keys, each * nodes).view(-1, each, nodes)
        return self.source[self.start + (drawn * self.count).long()]
