"""GAM's agreement model: how likely two nodes are of the same class, by their features.

    agreement_ij = σ(v · (f(x_i) − f(x_j))² + c),    f(x) = leaky_relu(x V + b)

It is trained on pairs of labeled nodes: edges within a class, and as many pairs of different classes, which are edges
or, where there are fewer of these, drawn at random. The loss is the sum of binary cross entropies. A tenth of the edges
is left out and decides at every tenth step: the best weights count, and the training ends once they are all right, or
after a patience of steps without a better one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from propreg.engine import ops
from propreg.engine.models.network import Network, Parameters, Weight, initial
from propreg.engine.spec import Model, Protocol, Replica
from propreg.methods.networks import rows

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    from propreg.engine.tasks.node import Problem

BATCH, EVERY, SLOPE = 128, 10, 0.2
HELD_OUT, MOST_HELD_OUT = 0.1, 10_000
SITE = 2**15 + 4  # of random numbers, apart from those of dropout


class Agreement(Network):
    """Both ends of a pair through one layer, and a weight for each of their squared differences.

    Args:
        problem: Its features.
        hidden: Its width.
        decay: The weight decay of its weights.
        number: Of the round, which has weights of its own.
    """

    def __init__(self, problem: Problem, hidden: int, decay: float, number: int) -> None:
        self.features, self.hidden, self.decay, self.number = problem.features, hidden, decay, number

    def weights(self) -> dict[str, Weight]:
        """Glorot's; biases do not decay."""
        width, hidden = self.features.shape[1], self.hidden
        return {
            "v0": Weight((width, hidden), (width, hidden), decay=self.decay),
            "b0": Weight((hidden,), decay=0.0),
            "v1": Weight((hidden, 1), (hidden, 1), decay=self.decay),
            "b1": Weight((1,), decay=0.0),
        }

    def initial(self, problem: Problem, model: Model, replicas: Sequence[Replica]) -> Parameters:
        """Drawn for the round."""
        return initial(problem, self, model, replicas, f" of round {self.number}")

    def embedded(self, p: Parameters) -> Tensor:
        """f(x) of all nodes, [R, N, H]."""
        from torch.nn.functional import leaky_relu

        return leaky_relu(self.features(p["v0"]) + p["b0"].unsqueeze(1), SLOPE)

    def between(self, p: Parameters, h: Tensor, ends: Tensor) -> Tensor:
        """The logits of pairs of nodes [R, 2, K], from f(x). [R, K]."""
        left, right = (rows(h, nodes) for nodes in ends.unbind(1))
        return ((left - right).square() @ p["v1"]).squeeze(2) + p["b1"]


def labeled_pairs(
    edges: NDArray[np.int64], classes: NDArray[np.int64], rng: np.random.Generator
) -> dict[str, NDArray[np.int64]]:
    """The pairs of a run [2, …]: ``same`` and ``different`` edges, those ``left_out`` and if they ``agree`` [1, …].

    ``ordered`` [4, n] are the labeled nodes by class, with the number of nodes of their class, the place of the first
    of them, and the running number of pairs of different classes.

    Args:
        edges: (source, target) [2, E].
        classes: Those of the labeled nodes, −1 for all others. [N].
        rng: Chooses what is left out.
    """
    import numpy as np

    edges = edges[:, (classes[edges] >= 0).all(0)]
    edges = edges[:, rng.permutation(edges.shape[1])]
    count = min(int(HELD_OUT * edges.shape[1]), MOST_HELD_OUT)
    left_out, rest = edges[:, :count], edges[:, count:]
    agree = classes[rest[0]] == classes[rest[1]]
    nodes = np.flatnonzero(classes >= 0)
    nodes = nodes[np.argsort(classes[nodes], kind="stable")]
    sizes = np.bincount(classes[nodes])
    size, first = sizes[classes[nodes]], (sizes.cumsum() - sizes)[classes[nodes]]
    return {
        "same": rest[:, agree],
        "different": rest[:, ~agree],
        "left_out": left_out,
        "agree": (classes[left_out[:1]] == classes[left_out[1:]]).astype(np.int64),
        "ordered": np.stack([nodes, size, first, (len(nodes) - size).cumsum()]),
    }


class Pairs:
    """The pairs of several runs, filled up to one length: by name [R, …, n], and their numbers [R, 1]."""

    def __init__(self, runs: Sequence[Mapping[str, NDArray[np.int64]]], device: torch.device) -> None:
        import torch

        self.counts = {name: torch.tensor([[run[name].shape[1]] for run in runs], device=device) for name in runs[0]}
        self.same, self.different, self.left_out, agree, self.ordered = (
            torch.from_numpy(filled_up([run[name] for run in runs])).to(device) for name in runs[0]
        )
        self.agree = agree.squeeze(1) > 0
        # No pair of different classes, or none of the same: nothing can be learned.
        most = torch.maximum(self.counts["different"].squeeze(1), self.ordered[:, 3].amax(1))
        self.learnable = (self.counts["same"].squeeze(1) > 0) & (most > 0)

    def drawn(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """K pairs of the same class and K of different ones, [R, 2, 2K], and which are real [R, 2K], from u [R, 4, K].

        Where there are no more than K of the same class, each is taken once, and as many of different ones.
        """
        import torch

        counts = self.counts["same"], self.counts["different"]
        number, real = places(u[:, 0], counts[0])
        other = (u[:, 1] * torch.maximum(*counts)).long()
        edges = pairs_at(self.different, other.clamp(max=self.different.shape[2] - 1))
        negative = torch.where((other < counts[1]).unsqueeze(1), edges, self.apart(u[:, 2], u[:, 3]))
        return torch.cat([pairs_at(self.same, number), negative], 2), real.repeat(1, 2)

    def apart(self, u: Tensor, v: Tensor) -> Tensor:
        """Labeled nodes of different classes, all such pairs alike, from u and v [R, K]. [R, 2, K]."""
        import torch

        nodes, size, start, running = self.ordered.unbind(1)
        last, count = len(nodes[0]) - 1, self.counts["ordered"]
        total = running.amax(1, keepdim=True)
        one = torch.searchsorted(running.contiguous(), (u * total).long(), right=True).clamp(max=last)
        size, start = size.gather(1, one), start.gather(1, one)
        two = (v * (count - size)).long()
        two = torch.where(two < start, two, two + size).clamp(max=last)
        return torch.stack([nodes.gather(1, one), nodes.gather(1, two)], 1)


def filled_up(rows: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Arrays [k, n] with their last column, or 0, up to the longest, which is at least 1. [R, k, n]."""
    import numpy as np

    longest = max(1, *(row.shape[1] for row in rows))
    found = np.zeros((len(rows), rows[0].shape[0], longest), np.int64)
    for each, row in zip(found, rows, strict=True):
        each[:] = row[:, -1:] if row.shape[1] else 0
        each[:, : row.shape[1]] = row
    return found


def places(u: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    """Of so many things [R, 1] each once where they are no more than u's columns, else drawn; and which are real."""
    import torch

    each = torch.arange(u.shape[1], device=u.device)
    drawn = torch.where(count <= u.shape[1], each % count.clamp(min=1), (u * count).long())
    return drawn, each < count


def pairs_at(pairs: Tensor, number: Tensor) -> Tensor:
    """Pairs [R, 2, n] by number [R, K]. [R, 2, K]."""
    return pairs.gather(2, number.unsqueeze(1).expand(-1, 2, -1))


def disagreement(logits: Tensor, real: Tensor) -> Tensor:
    """The sum of −log σ(z) of the first half of pairs [R, 2K] and −log σ(−z) of the others, if they are real. [R]."""
    import torch
    from torch.nn.functional import softplus

    same, different = logits.chunk(2, 1)
    return (softplus(torch.cat([-same, different], 1)) * real).sum(1)


def agreements(
    problem: Problem,
    model: Model,
    replicas: Sequence[Replica],
    protocol: Protocol,
    network: Agreement,
    classes: Sequence[NDArray[np.int64]],
    edges: NDArray[np.int64],
    stop: Callable[[], bool],
) -> Tensor | None:
    """The agreement of both ends of each edge, [R, E], by models that are trained first; None if stopped.

    Args:
        problem, model, replicas, protocol: As for :func:`.train.train`; the learning rate, the patience and the most
            steps are the classifier's.
        network: The agreement model.
        classes: Of each run's labeled nodes, −1 for all others.
        edges: (source, target) [2, E].
        stop: Called at every step; True ends the training.
    """
    import torch

    from propreg.engine.ops.random import generator, stream_key
    from propreg.engine.training.epoch import remember
    from propreg.engine.training.state import begin

    stream = f"pairs of round {network.number}"
    keys = [stream_key(problem.digest, replica, model, stream) for replica in replicas]
    found = [labeled_pairs(edges, each, generator(key)) for each, key in zip(classes, keys, strict=True)]
    pairs = Pairs(found, problem.device)
    state = begin(problem, network, model, replicas, protocol, stream=stream)
    p, live = state.parameters, pairs.learnable
    kept = {name: t.detach().clone() for name, t in p.items()}
    best, at = state.loss - 1, torch.zeros_like(state.patience)
    for step in range(1, protocol.max_epochs + 1):
        if stop():
            return None
        if step % EVERY == 1 and not bool(live.any()):
            break
        state.keys.advance(step)
        state.optimizer.advance()
        ends, real = pairs.drawn(ops.uniforms(state.keys(SITE), 2 * BATCH).view(len(replicas), 4, -1))
        loss = disagreement(network.between(p, network.embedded(p), ends), real)
        gradients = torch.autograd.grad(loss.sum(), list(p.values()))
        state.optimizer.step(p, dict(zip(p, gradients, strict=True)))
        if step % EVERY == 1:
            right = validated(network, p, pairs)
            better = live & (right > best)
            remember(kept, p, better)
            best, at = torch.where(better, right, best), torch.where(better, step, at)
        live = live & (best < 1) & (step - at < state.patience)
    with torch.no_grad():
        h, of_all = network.embedded(kept), torch.from_numpy(edges).to(problem.device)
        one_by_one = (
            network.between({name: t[i : i + 1] for name, t in kept.items()}, h[i : i + 1], of_all.unsqueeze(0))
            for i in range(len(replicas))
        )
        return torch.cat(list(one_by_one)).sigmoid()


def validated(network: Agreement, p: Parameters, pairs: Pairs) -> Tensor:
    """The share of the edges left out that are right; 1 where there are none. [R]."""
    import torch

    with torch.no_grad():
        right = (network.between(p, network.embedded(p), pairs.left_out) >= 0) == pairs.agree
        count = pairs.counts["left_out"]
        right = right & (torch.arange(right.shape[1], device=right.device) < count)
        return torch.where(count == 0, 1.0, right.sum(1, keepdim=True) / count).squeeze(1).to(p["b1"].dtype)
