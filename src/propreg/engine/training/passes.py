"""An epoch's passes through the network: the evaluation, and any number of training passes with masks of their own."""

from collections.abc import Sequence

import torch
from torch import Tensor

from propreg.engine.models.network import Network, no_dropout
from propreg.engine.ops.dropout import Masks
from propreg.engine.training.state import State

_SITES = {"input": 0, "hidden": 1, "attention": 24, "nodes": 1024, "edges": 2048}
_PAIR = 2**16  # sites of two passes: recorded runs know passes 0 and 1, whose sites alternate
_AT_ONCE = 2  # training passes that kernels compute together


class DropoutMasks:
    """The dropout masks of one training pass of the current epoch, by place in the network."""

    training = True

    def __init__(self, state: State, number: int) -> None:
        self.state, self.number = state, number

    def __call__(self, place: str) -> Masks | None:
        kind = place.rstrip("0123456789")
        pair, side = divmod(self.number, 2)
        site = pair * _PAIR + 2 * (_SITES[kind] + int(place[len(kind) :] or 0)) + side
        return Masks(self.state.keys(site), self.state.rates[kind], self.state.keys.streams)


class Passes:
    """The logits of an epoch.

    A network may compute all of them at once. Otherwise the evaluation comes first, and a training pass is computed
    when it is first needed: a module of the user's own may change its statistics in it. An objective that needs no
    gradient through a pass asks for it under ``torch.no_grad()``.

    Args:
        network: The network.
        state: Its parameters, held tensors and mask keys.
        begun: What :meth:`.Network.begin` computed.
        count: How many training passes there are.
        in_groups: Whether the objective takes :meth:`together` in groups; what each replica needs is a copy of them.
    """

    def __init__(
        self, network: Network, state: State, begun: Tensor | None, count: int = 1, in_groups: bool = False
    ) -> None:
        self.network, self.p, self.begun, self._state = network, state.tensors, begun, state
        self.draws = [DropoutMasks(state, number) for number in range(count)]
        at_once = 1 <= count <= _AT_ONCE
        self._at_once = network.finish_all(self.p, begun, self.draws, in_groups) if at_once else None
        self._each: dict[int, Tensor] = {}
        self.auxiliary: Tensor | None = None  # of the first training pass, [R]

    @torch.no_grad()
    def evaluated(self) -> Tensor:
        """The logits of an evaluation, without dropout or gradient.

        [R, N, C], or [groups, members, N, C] if the network computes all passes at once.
        """
        if self._at_once is not None:
            return self._at_once[0]
        return self.network.finish(self.p, self.begun, no_dropout)

    def together(self) -> Tensor | None:
        """The logits of all training passes as one tensor if that takes no copy, else None.

        [R, N, passes, C], or [groups, members, N, passes, C] if the network computes all passes at once.
        """
        if self._at_once is not None:
            return self._at_once[1]
        return self.trained(0).unsqueeze(2) if len(self.draws) == 1 else None

    def each(self) -> tuple[Tensor, ...]:
        """The logits of every training pass, [R, N, C] each."""
        return tuple(self.trained(number) for number in range(len(self.draws)))

    def another(self, number: int) -> DropoutMasks:
        """The masks of a pass beyond those that regularizers read."""
        return DropoutMasks(self._state, number)

    def some(self, *numbers: int) -> "SomePasses":
        """A few of the training passes."""
        return SomePasses(self, numbers)

    def trained(self, number: int) -> Tensor:
        """The logits of one training pass, [R, N, C]."""
        if self._at_once is not None and not self._each:
            self._each = dict(enumerate(self._at_once[1].squeeze(1).unbind(2)))  # once: its gradient is one tensor
        if number not in self._each:
            self._each[number] = self.network.finish(self.p, self.begun, self.draws[number])
            self.auxiliary = self.network.auxiliary if number == 0 else self.auxiliary
        return self._each[number]


class SomePasses:
    """A few of an epoch's training passes, as a regularizer reads them."""

    def __init__(self, logits: Passes, numbers: Sequence[int]) -> None:
        self.logits, self.numbers = logits, numbers

    def each(self) -> tuple[Tensor, ...]:
        """The logits of each, [R, N, C]."""
        return tuple(self.logits.trained(number) for number in self.numbers)

    def together(self) -> Tensor | None:
        """The logits of a single one as [R, N, 1, C], else None."""
        return self.each()[0].unsqueeze(2) if len(self.numbers) == 1 else None
