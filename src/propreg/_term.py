"""A regularizer with its strength: what is added to a loss, with its schedule and its last value."""

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from propreg._schedules import constant

Schedule = Callable[[float, int], float]


class Term(nn.Module):
    r"""A regularizer that owns its strength: ``loss = ce + term(z, edge_index)``, and ``term.step()`` after an epoch.

    The strength in epoch e is ``schedule(mu, e)``. Both are part of ``state_dict``, so that a training that is resumed
    goes on with the right strength. Nothing is computed where the strength is 0.

    Args:
        regularizer: A module like :class:`propreg.PReg`, or any callable that returns a scalar.
        mu: The strength, at least 0.
        schedule: A function (mu, epoch) → strength, for example :func:`propreg.annealed`; default
            :func:`propreg.constant`.

    Attributes:
        epoch: The current epoch, from 1.
        last: The value of the last call without its strength, detached, for logs; None before the first call, and after
            one at strength 0.

    Example:
        >>> import torch
        >>> from propreg import PReg, Term
        >>> term = Term(PReg(phi="squared_error"), mu=0.5)
        >>> term(torch.tensor([[0.0], [2.0]]), torch.tensor([[0, 1], [1, 0]]))
        tensor(1.)
        >>> term.last
        tensor(2.)
        >>> term
        Term(
          mu=0.5
          (regularizer): PReg(phi='squared_error', norm='rw', add_self_loops=False)
        )
    """

    def __init__(self, regularizer: Callable[..., Tensor], mu: float = 0.5, *, schedule: Schedule = constant) -> None:
        super().__init__()
        if not callable(regularizer):
            raise TypeError(f"regularizer must be callable, for example PReg(), got a {type(regularizer).__name__}.")
        if not callable(schedule):
            raise TypeError(f"schedule must be a function (mu, epoch) → strength, got a {type(schedule).__name__}.")
        self.regularizer, self.schedule, self.last = regularizer, schedule, None
        self.mu = mu
        self.epoch = 1

    last: Tensor | None

    @property
    def mu(self) -> float:
        """The strength it was given; may be changed."""
        return self._mu

    @mu.setter
    def mu(self, mu: float) -> None:
        if isinstance(mu, bool) or not isinstance(mu, int | float):
            raise TypeError(f"mu must be a number, got {mu!r}.")
        if not (math.isfinite(mu) and mu >= 0):
            raise ValueError(f"mu must be a finite number of at least 0, got {mu}.")
        self._mu = float(mu)

    @property
    def strength(self) -> float:
        """The strength of the current epoch."""
        return self.schedule(self.mu, self.epoch)

    def step(self) -> None:
        """Go on to the next epoch; call it as often as a learning-rate scheduler."""
        self.epoch += 1

    def forward(self, z: Tensor, *graph: Any, **options: Any) -> Tensor:
        """The strength times the regularizer of ``z`` and the graph."""
        strength = self.strength
        if strength == 0:
            self.last = None
            return 0.0 * z.sum()
        value = self.regularizer(z, *graph, **options)
        self.last = value.detach()
        return strength * value

    def get_extra_state(self) -> dict[str, float]:
        """Numbers on no device: reading the epoch waits for no GPU."""
        return {"mu": self.mu, "epoch": self.epoch}

    def set_extra_state(self, state: dict[str, float]) -> None:
        """As saved."""
        self.mu, self.epoch = state["mu"], int(state["epoch"])

    def extra_repr(self) -> str:
        name = getattr(self.schedule, "__name__", repr(self.schedule))
        shown = f"mu={self.mu:g}"
        if not isinstance(self.regularizer, nn.Module):
            shown += f", regularizer={getattr(self.regularizer, '__name__', self.regularizer)}"
        return shown if self.schedule is constant else f"{shown}, schedule={name}"
