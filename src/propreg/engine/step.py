"""One training step of all replicas, and one look at how well they do."""

import torch
from torch import Tensor

from propreg.engine import kernels
from propreg.engine.losses import Regulariser, cross_entropy
from propreg.engine.models import Network, Parameters
from propreg.engine.passes import Passes
from propreg.engine.spec import Method
from propreg.engine.state import State


def advance(state: State, method: Method, epoch: int) -> None:
    """Set what changes from epoch to epoch and is not learnt: mask keys, bias corrections, the annealed strength."""
    state.keys.advance(epoch)
    state.adam.advance()
    # Annealing (Appendix C): 0 ** (1/epoch) is 0, so that a strength of 0 stays the plain run.
    torch.pow(state.strength, 1.0 / epoch if method.schedule == "annealed" else 1.0, out=state.current)


def step(regulariser: Regulariser | None, method: Method, state: State, logits: Passes) -> Tensor:
    """One step of Adam on each replica's loss; returns the losses [R]."""
    loss = _loss(regulariser, method, state, logits)
    p = state.parameters
    trained = {name: t for name, t in p.items() if t.requires_grad}  # a caller's own module may have frozen some
    gradients = torch.autograd.grad(loss.sum(), list(trained.values()), allow_unused=True)
    # As in torch, what the loss does not depend on is left as it is, by weight decay too.
    moved = {name: g for name, g in zip(trained, gradients, strict=True) if g is not None}
    state.adam.step({name: trained[name] for name in moved}, moved)
    return loss.detach()


def _loss(regulariser: Regulariser | None, method: Method, state: State, logits: Passes) -> Tensor:
    """Cross entropy, and the method's term times its strength."""
    targets, strength = state.targets, state.current
    together = logits.together()
    if regulariser is not None and together is not None:
        both = regulariser.beside_cross_entropy(together, state.counted, targets)
        if both is not None:
            return both[0] + strength * both[1]
    z, source = logits.each()
    loss = cross_entropy(z, targets, strength if method.name == "label_smoothing" else None)
    if regulariser is not None:
        loss = loss + strength * regulariser.value(z, source, state.counted, targets)
    return loss


@torch.no_grad()
def correct(logits: Tensor, state: State, y: Tensor) -> tuple[Tensor, Tensor]:
    """How many validation and test nodes each replica gets right, by :meth:`.Passes.evaluated`. int64 [R] each."""
    found = right(logits, y)
    return _count(found, *state.val), _count(found, *state.test)


def right(logits: Tensor, y: Tensor) -> Tensor:
    """Whether the largest of the logits [R, N, C], the first of equal ones, is that of the class. bool [R, N].

    In groups they are [groups, members, N, C]; the last rows then may be of members that are no replicas.
    """
    if kernels.usable(logits, y):
        from propreg.engine.kernels.judge import right as kernel

        return kernel(logits, y)
    return logits.max(-1).indices == y  # as argmax, in half of its time on a CPU


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
