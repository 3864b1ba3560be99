"""What a phase of a training minimizes: cross entropy with a regularizer, and what a method adds to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.regularizers.regularizer import Term
    from propreg.engine.spec import Method
    from propreg.engine.training.passes import Passes
    from propreg.engine.training.state import State


class Objective:
    """What a phase minimizes. A subclass has at least :meth:`loss`."""

    passes: int = 1  # training passes per epoch, each with dropout masks of its own
    in_groups: bool = False  # whether ``loss`` reads the logits by ``together()`` alone

    def advance(self, state: State, epoch: int) -> None:
        """Set what changes from epoch to epoch and is not learned, in place: before the part that a GPU records."""

    def loss(self, state: State, logits: Passes) -> Tensor:
        """The loss of each replica, [R]."""
        raise NotImplementedError


class RegularizedLoss(Objective):
    """Cross entropy on the training nodes, and the method's regularizer times its strength.

    An auxiliary loss of the network, which only a module of the user's own has, is added to it. A training method with
    an objective of its own adds its terms to this one, so that any regularizer goes on top::

        class Mine(RegularizedLoss):
            def loss(self, state, logits):
                return super().loss(state, logits) + mine(logits)

    Args:
        method, term: The regularizer.
        over: The mean of the loss over so many training passes. A regularizer that compares a pass with a second one
            takes the next pass, and the first one for the last.
    """

    def __init__(self, method: Method, term: Term, over: int = 1) -> None:
        self.method, self.term, self.over = method, term, over
        self.needs = method.regularizer.passes(method)
        self.passes = max(over, self.needs)
        self.in_groups = over == 1 and method.regularizer.in_groups(method)

    def advance(self, state: State, epoch: int) -> None:
        """Anneal the strength (Appendix C): 0 ** (1/epoch) is 0, so that a strength of 0 stays the plain run."""
        import torch

        exponent = 1.0 / epoch if self.method.schedule == "annealed" else 1.0
        torch.pow(state.strength, exponent, out=state.current)

    def loss(self, state: State, logits: Passes) -> Tensor:
        """That of the method's term."""
        if self.over == 1:
            loss = self.term.loss(logits, state.current, state.counted, state.targets)
            return loss if logits.auxiliary is None else loss + logits.auxiliary
        parts = [logits.some(*((s + i) % self.passes for i in range(self.needs))) for s in range(self.over)]
        losses = [self.term.loss(part, state.current, state.counted, state.targets) for part in parts]
        return sum(losses[1:], losses[0]) / self.over
