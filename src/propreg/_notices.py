"""What looks like a mistake in how the term is called: a warning each, once per process, where values may be read."""

import sys
import warnings

import torch
from torch import Tensor

from propreg._operator import Operator
from propreg._propagation import Propagation

MANY = 50
"""Counted nodes from which on a graph is taken for more than a toy."""
_given: set[str] = set()


def notice_probabilities(z: Tensor) -> None:
    """Warn if every row of what should be logits is a distribution."""
    if "probabilities" in _given or z.shape[0] < MANY or z.shape[1] == 1 or not _distributions(z[:1]):
        return
    if _distributions(z):
        _warn(
            "probabilities",
            "z looks like probabilities (every row is positive and sums to 1), but the term takes logits and applies "
            "softmax itself: pass the model's outputs from before its softmax.",
        )


def notice_sampled(propagation: Operator, mask: Tensor | None) -> None:
    """Warn if most counted nodes send edges and receive none, as in a batch of a neighbor sampler."""
    if "sampled" in _given or not isinstance(propagation, Propagation) or propagation.size[0] != propagation.size[1]:
        return
    silent, counted = ~propagation.connected(), propagation.num_nodes
    if mask is not None:
        silent, counted = silent & mask, int(mask.sum())
    if counted < MANY or 2 * int(silent.sum()) <= counted:
        return
    sources = propagation.edge_index[0]
    outer = int((silent & (torch.bincount(sources, minlength=propagation.num_nodes) > 0)).sum())
    if 2 * outer > counted:
        _warn(
            "sampled",
            f"{outer} of {counted} counted nodes send edges but receive none, so the term is 0 at them. In a sampled "
            "batch they are the outer nodes: call PReg().on_batch(z, batch), which counts the batch's own, or pass "
            "mask=torch.arange(batch.batch_size) and sample one hop more than the model has layers. In a graph of "
            "one-way edges, add the reverse edges.",
        )


def _distributions(z: Tensor) -> bool:
    z = z.detach()
    return bool((z >= 0).all()) and bool(((z.sum(-1) - 1).abs() < 1e-3).all())


def _warn(topic: str, sentence: str) -> None:
    _given.add(topic)
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(("propreg.", "torch.")):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, stacklevel=level)
