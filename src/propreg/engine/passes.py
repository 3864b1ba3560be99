"""An epoch's passes through the network: the evaluation, and one training pass or two, each with masks of its own."""

import torch
from torch import Tensor

from propreg.engine.dropout import Masks
from propreg.engine.models import Network
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


class Passes:
    """The logits of an epoch, after :func:`propreg.engine.step.advance`.

    A network may compute all of them at once. Of any other the evaluation is asked first and a training pass not before
    the first time it is wanted: a module of the caller's own may change its statistics in it.
    """

    def __init__(self, network: Network, method: Method, state: State, begun: Tensor | None) -> None:
        self.network, self.p, self.begun = network, state.parameters, begun
        self.draws = [Drawn(state, number) for number in range(2 if method.second_pass else 1)]
        finish_all = getattr(network, "finish_all", None)
        self._at_once: tuple[Tensor, Tensor] | None = None
        if finish_all:  # in groups only what nobody asks each replica's logits of: to get them is a copy
            self._at_once = finish_all(self.p, begun, self.draws, method.usual)
        self._each: list[Tensor] = []

    @torch.no_grad()
    def evaluated(self) -> Tensor:
        """Those of the weights as they are, with nothing dropped and no gradient.

        [R, N, C], or [groups, members, N, C] where the network computes all passes at once.
        """
        if self._at_once is not None:
            return self._at_once[0]
        return self.network.finish(self.p, self.begun, nothing_dropped)

    def together(self) -> Tensor | None:
        """Those of all training passes, where they are at hand; else None.

        [R, N, passes, C], or [groups, members, N, passes, C] where the network computes them at once.
        """
        if self._at_once is not None:
            return self._at_once[1]
        return self._trained()[0].unsqueeze(2) if len(self.draws) == 1 else None

    def each(self) -> tuple[Tensor, Tensor]:
        """Those of the training pass, and those that P-reg propagates: of a second pass, or the same. [R, N, C]."""
        each = self._trained() if self._at_once is None else self._at_once[1].squeeze(1).unbind(2)
        return each[0], each[-1]

    def _trained(self) -> list[Tensor]:
        if not self._each:
            self._each = [self.network.finish(self.p, self.begun, draw) for draw in self.draws]
        return self._each
