"""The operations of the molecule networks, each with a kernel for GPUs where one saves memory traffic.

Tensors of atoms are [S, M, N, W]: seeds, replicas of a seed, atoms, channels. Real atoms come first, padding last.

Several training passes may go through an operation at once: the P passes of a replica then stand side by side in the
place of one, [S, M·P, N, W], and share its parameters [R, …]. Their masks are drawn for [S·P].
"""

from typing import Any

import torch
from torch import Tensor

from propreg.engine import kernels
from propreg.engine.ops.dropout import Masks
from propreg.molecules.packing import Links

MOMENTUM, EPSILON = 0.1, 1e-5  # torch's BatchNorm1d


def each(shared: Tensor, replicas: int) -> Tensor:
    """What neighboring replicas, or passes, share, once for each of them: [S, …] → [R, …]."""
    return shared.unsqueeze(1).expand(-1, replicas // len(shared), *shared.shape[1:]).flatten(0, 1)


def linear(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """[S, M, N, W] times each replica's weight [R, W, V], plus its bias."""
    flat = torch.baddbmm(bias.unsqueeze(1), h.reshape(len(weight), -1, h.shape[3]), weight)
    return flat.view(*h.shape[:3], -1)


def normalize(
    h: Tensor, scale: Tensor, shift: Tensor, running: tuple[Tensor, Tensor], count: Tensor, *,
    training: bool, relu: bool, masks: Masks | None,
) -> Tensor:  # fmt: skip
    """Batch norm over each replica's real rows, then ReLU and dropout if asked for.

    Args:
        h: [S, M, N, W].
        scale, shift: [R, W].
        running: Mean and variance [R, W]: used in evaluation, updated in place in training, pass by pass.
        count: How many rows of each seed are real, int32 [S].
        training: Whether the rows' own statistics are used.
        relu: Whether a ReLU follows.
        masks: Dropout masks of the seeds and their passes, None for no dropout.
    """
    if kernels.usable(h, scale, shift):
        out: Tensor = _Normalize.apply(h, scale, shift, *running, count, training, relu, masks)  # type: ignore[no-untyped-call]
        return out
    replicas = h.shape[0] * h.shape[1]
    passes = replicas // len(scale)
    scale, shift, mean, variance = (each(t, replicas).view(*h.shape[:2], 1, -1) for t in (scale, shift, *running))
    if training:
        rows = torch.arange(h.shape[2], device=h.device) < count.unsqueeze(1)
        number = count.to(h.dtype).view(-1, 1, 1, 1)
        weight = rows.to(h.dtype)[:, None, None, :] / number  # products with it are sums over rows, in one pass
        own_mean = weight @ h
        centered = h - own_mean
        own_variance = weight @ centered.square()
        with torch.no_grad():
            unbiased = own_variance * (number / (number - 1))
            for i in range(passes):
                for kept, found in zip(running, (own_mean, unbiased), strict=True):
                    kept.lerp_(found.view(-1, passes, h.shape[3])[:, i], MOMENTUM)
        variance = own_variance
    else:
        centered = h - mean
    out = torch.addcmul(shift, centered, (variance + EPSILON).rsqrt() * scale)
    out = out.relu() if relu else out
    if masks is not None:
        factors = masks.factors(h.shape[2] * h.shape[3], h.dtype)
        by_pass = out.view(len(h), -1, passes, *h.shape[2:])
        out = (by_pass * factors.view(len(h), 1, *by_pass.shape[2:])).view(h.shape)
    return out


class _Normalize(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, h: Tensor, scale: Tensor, shift: Tensor, mean: Tensor, variance: Tensor, count: Tensor,
        training: bool, relu: bool, masks: Masks | None,
    ) -> Tensor:  # fmt: skip
        from propreg.molecules.kernels import normalize

        h = h.contiguous()
        out, mean, rstd = normalize(h, scale, shift, mean, variance, count, training, relu, masks)
        ctx.save_for_backward(h, scale, shift, mean, rstd, count)
        ctx.relu, ctx.masks = relu, masks
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        from propreg.molecules.kernels import normalize_backward

        h, scale, shift, mean, rstd, count = ctx.saved_tensors
        found = normalize_backward(grad.contiguous(), h, scale, shift, mean, rstd, count, ctx.relu, ctx.masks)
        return *found, *[None] * 6


def messages(h: Tensor, table: Tensor | None, links: Links, own: Tensor | None = None) -> Tensor:
    """Σ over links j → i of weight · relu(h_j + table[code]), without a table of weight · h_j; plus own · h_i.

    Args:
        h: [S, M, N, W].
        table: One embedding per link code, [R, codes, W], or None.
        links: Where to add what up.
        own: A factor of each replica for the atom's own row, [R], or None.
    """
    if kernels.usable(h, table, own):
        out: Tensor = _Messages.apply(h, table, own, links)  # type: ignore[no-untyped-call]
        return out
    seeds, members, nodes, width = h.shape
    replicas = seeds * members

    def flat(index: Tensor, rows: int, tables: int = replicas) -> Tensor:
        start = each(torch.arange(tables, device=index.device) * rows, replicas)
        return (index.unsqueeze(1) + start.view(seeds, members, 1)).flatten()

    sent = h.reshape(-1, width)[flat(links.source, nodes)]
    if table is not None:
        sent = (sent + table.reshape(-1, width)[flat(links.code, table.shape[1], len(table))]).relu()
    sent = sent * links.weight.unsqueeze(1).expand(-1, members, -1).reshape(-1, 1)
    out = torch.zeros_like(h).view(-1, width).index_add(0, flat(links.target, nodes), sent).view(h.shape)
    return out if own is None else out + each(own, replicas).view(seeds, members, 1, 1) * h


class _Messages(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, h: Tensor, table: Tensor | None, own: Tensor | None, links: Links) -> Tensor:
        from propreg.molecules.kernels import messages

        h = h.contiguous()
        table = None if table is None else table.contiguous()
        ctx.save_for_backward(h, table, own)
        ctx.links = links
        return messages(h, table, own, links)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None, None]:
        from propreg.molecules.kernels import messages_backward, table_gradient

        h, table, own = ctx.saved_tensors
        grad = grad.contiguous()
        to_h, to_own = messages_backward(grad, h, table, own, ctx.links.back or ctx.links)
        return to_h, None if table is None else table_gradient(grad, h, table, ctx.links), to_own, None


def agreement(z: Tensor, propagated: Tensor, weights: Tensor) -> Tensor:
    """Σ_i weights_i · CE(softmax(z_i), softmax(propagated_i)) of each replica, [S, M]; weights [S, N]."""
    if kernels.usable(z, propagated, weights):
        value: Tensor = _Agreement.apply(z, propagated, weights)  # type: ignore[no-untyped-call]
        return value
    entropy = -(z.softmax(-1) * propagated.log_softmax(-1)).sum(-1)
    return (entropy * weights.unsqueeze(1)).sum(-1)


class _Agreement(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, propagated: Tensor, weights: Tensor) -> Tensor:
        from propreg.molecules.kernels import agreement

        z, propagated = z.contiguous(), propagated.contiguous()
        ctx.save_for_backward(z, propagated, weights)
        return agreement(z, propagated, weights)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        from propreg.molecules.kernels import agreement_backward

        to_z, to_propagated = agreement_backward(grad.contiguous(), *ctx.saved_tensors)
        return to_z, to_propagated, None
