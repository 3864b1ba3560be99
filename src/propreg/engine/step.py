"""One training step of all replicas, and one look at how well they do."""

import torch
from torch import Tensor

from propreg.engine.dropout import Masks
from propreg.engine.losses import Regulariser, cross_entropy
from propreg.engine.models import Network, Parameters
from propreg.engine.spec import Method
from propreg.engine.state import State

_SITES = {"input": 0, "hidden": 1, "attention": 24}


class Drawn:
    """The dropout masks of the current epoch and one of its two passes, by place in the network."""

    def __init__(self, state: State, number: int) -> None:
        self.state, self.number = state, number

    def __call__(self, place: str) -> Masks | None:
        kind = place.rstrip("0123456789")
        site = 2 * (_SITES[kind] + int(place[len(kind) :] or 0)) + self.number
        return Masks(self.state.keys(site), self.state.rates[kind])


def nothing_dropped(place: str) -> None:
    """The draw of an evaluation."""


def advance(state: State, method: Method, epoch: int) -> None:
    """Set what changes from epoch to epoch and is not learnt: mask keys, bias corrections, the annealed strength."""
    state.keys.advance(epoch)
    state.adam.advance()
    # Annealing (Appendix C): 0 ** (1/epoch) is 0, so that a strength of 0 stays the plain run.
    torch.pow(state.strength, 1.0 / epoch if method.schedule == "annealed" else 1.0, out=state.current)


def step(
    network: Network, regulariser: Regulariser | None, method: Method, state: State, begun: Tensor | None
) -> Tensor:
    """One step of Adam on each replica's loss, after :func:`advance`; returns the losses [R]."""
    p = state.parameters
    z, source = _passes(network, method, state, begun)
    loss = cross_entropy(z, state.targets, state.current if method.name == "label_smoothing" else None)
    if regulariser is not None:
        loss = loss + state.current * regulariser.value(z, source, state.counted, state.targets)
    trained = {name: t for name, t in p.items() if t.requires_grad}  # a caller's own module may have frozen some
    gradients = torch.autograd.grad(loss.sum(), list(trained.values()), allow_unused=True)
    # As in torch, what the loss does not depend on is left as it is, by weight decay too.
    moved = {name: g for name, g in zip(trained, gradients, strict=True) if g is not None}
    state.adam.step({name: trained[name] for name in moved}, moved)
    return loss.detach()


def _passes(network: Network, method: Method, state: State, begun: Tensor | None) -> tuple[Tensor, Tensor]:
    """The logits, and those that P-reg propagates: of a second pass with other masks, or the same."""
    draws = Drawn(state, 0), Drawn(state, 1)
    if method.second_pass and begun is not None:
        twice = getattr(network, "finish_twice", None)
        both: tuple[Tensor, Tensor] | None = twice(state.parameters, begun, draws) if twice else None
        if both is not None:
            return both
    z = network.finish(state.parameters, begun, draws[0])
    return z, network.finish(state.parameters, begun, draws[1]) if method.second_pass else z


@torch.no_grad()
def correct(network: Network, state: State, begun: Tensor | None, y: Tensor) -> tuple[Tensor, Tensor]:
    """How many validation and test nodes each replica gets right, with the weights as they are. int64 [R] each."""
    logits = network.finish(state.parameters, begun, nothing_dropped)
    right = logits.argmax(-1) == y
    return _count(right, *state.val), _count(right, *state.test)


@torch.no_grad()
def remember(network: Network, state: State, val: Tensor, official: bool) -> None:
    """Keep the weights of replicas that report this epoch, unless they have stopped."""
    recorded = state.rule.recorded(val, official)
    beside: Parameters = getattr(network, "buffers", dict)()  # running statistics of a module of the caller's own
    for name, p in {**state.parameters, **beside}.items():
        if name not in state.best:
            state.best[name] = p.detach().clone()
        wide = recorded.view(-1, *([1] * (p.dim() - 1)))
        state.best[name].copy_(torch.where(wide, p, state.best[name]))


def _count(right: Tensor, nodes: Tensor, real: Tensor) -> Tensor:
    return (right.gather(1, nodes) & real).sum(1)
