"""A regularizer with its strength: what is added to a loss, with its schedule and its last value."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from propreg._schedules import constant

Schedule = Callable[[float, int], float]
START = 0.5
LEARNED = (1e-3, 10.0)
"""Where a learned strength begins, and between which bounds it stays."""


class Term(nn.Module):
    r"""A regularizer that owns its strength: ``loss = ce + term(z, edge_index)``, and ``term.step()`` after an epoch.

    The strength in epoch e is ``schedule(mu, e)``. Both are part of ``state_dict``, so a resumed training continues
    with the right strength. Nothing is computed where the strength is 0.

    With ``mu="learned"`` the strength follows the one-step hypergradient of a validation loss, in :meth:`learn`. It
    starts at 0.5 and stays between 0.001 and 10. Where we compared the two, a grid found better strengths.

    Args:
        regularizer: A module like :class:`propreg.PReg`, or any callable that returns a scalar.
        mu: The strength, at least 0; or ``"learned"``.
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

    def __init__(
        self,
        regularizer: Callable[..., Tensor],
        mu: float | Literal["learned"] = 0.5,
        *,
        schedule: Schedule = constant,
    ) -> None:
        super().__init__()
        if isinstance(regularizer, type):
            name = regularizer.__name__
            raise TypeError(f"regularizer is the class {name}: pass an instance, {name}().")
        if not callable(regularizer):
            raise TypeError(f"regularizer must be callable, for example PReg(), got a {type(regularizer).__name__}.")
        if not callable(schedule):
            raise TypeError(f"schedule must be a function (mu, epoch) → strength, got a {type(schedule).__name__}.")
        self.regularizer, self.schedule, self.last = regularizer, schedule, None
        self.learned = mu == "learned"
        self.mu = START if self.learned else mu  # type: ignore[assignment]  # the setter refuses other words
        self.epoch = 1

    last: Tensor | None

    @property
    def mu(self) -> float:
        """The strength it was given or has learned; may be changed."""
        return self._mu

    @mu.setter
    def mu(self, mu: float) -> None:
        if isinstance(mu, bool) or not isinstance(mu, int | float):
            raise TypeError(f"mu must be a number or 'learned', got {mu!r}.")
        if not (math.isfinite(mu) and mu >= 0):
            raise ValueError(f"mu must be a finite number of at least 0, got {mu}.")
        self._mu = float(mu)

    @property
    def strength(self) -> float:
        """The strength of the current epoch."""
        return self.schedule(self.mu, self.epoch)

    def step(self) -> None:
        """Advance to the next epoch; call it as often as a learning-rate scheduler."""
        self.epoch += 1

    def learn(
        self,
        validation_loss: Tensor,
        parameters: Iterable[Tensor],
        z: Tensor | Mapping[str, Tensor],
        *graph: Any,
        rate: float = 0.05,
        **options: Any,
    ) -> float:
        r"""Move a learned strength one step toward a smaller validation loss, and return it.

        A step of gradient descent moves the parameters by :math:`-\eta (g_{train} + \mu g_{reg})`. To first order in
        its length η, the validation loss then changes by :math:`-\eta \, g_{val} \cdot (g_{train} + \mu g_{reg})`, so
        that its derivative with respect to :math:`\log \mu` is :math:`-\eta \mu \, g_{val} \cdot g_{reg}`. This step
        moves against the derivative:

        .. math::
            \log \mu \leftarrow \log \mu + \text{rate} \cdot \cos(g_{val}, g_{reg}) .

        The cosine makes a step independent of η and of the scale of either loss; how an optimizer transforms the
        gradients (Adam's moments, weight decay) is ignored. It costs two backward passes.

        Args:
            validation_loss: A loss on validation nodes, computed from ``z``.
            parameters: The model's parameters.
            z: Logits of a forward pass, with its graph of gradients; by node type for :class:`propreg.HeteroPReg`.
            graph: What the term takes after ``z``.
            rate: The largest change of log μ in one step.
            options: What the term takes by name.

        Example:
            >>> import torch
            >>> from propreg import PReg, Term
            >>> term, z = Term(PReg(phi="squared_error"), mu="learned"), torch.tensor([[0.0], [2.0]]).requires_grad_()
            >>> edges = torch.tensor([[0, 1], [1, 0]])
            >>> term.learn((z[1] - 1).square().sum(), [z], z, edges) > 0.5  # neighbors at 0 and 2, and 1 is right
            True
        """
        if not self.learned:
            raise ValueError(f"the strength is {self.mu:g}, not learned: make the term with mu='learned'.")
        each = list(parameters)
        if not each:
            raise ValueError("parameters is empty: pass model.parameters().")
        if not isinstance(validation_loss, Tensor) or validation_loss.dim() or not validation_loss.requires_grad:
            raise ValueError("validation_loss must be one number with a gradient: compute it from z.")
        value = self.regularizer(z, *graph, **options)
        gradients = [
            torch.autograd.grad(loss, each, retain_graph=True, allow_unused=True, materialize_grads=True)
            for loss in (validation_loss, value)
        ]
        toward, pull = (torch.cat([part.flatten() for part in gradient]) for gradient in gradients)
        if not toward.any() and not pull.any():
            raise ValueError("neither loss depends on parameters: pass those of the model that z comes from.")
        length = toward.norm() * pull.norm()
        cosine = float(toward @ pull / length) if length > 0 else 0.0
        self.mu = min(max(self.mu * math.exp(rate * cosine), LEARNED[0]), LEARNED[1])
        return self.mu

    def forward(self, z: Tensor | Mapping[str, Tensor], *graph: Any, **options: Any) -> Tensor:
        """The strength times the regularizer of ``z`` and the graph."""
        strength = self.strength
        if strength == 0:
            self.last = None
            return torch.stack([0.0 * each.sum() for each in (z.values() if isinstance(z, Mapping) else (z,))]).sum()
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
        shown = f"mu={self.mu:g}" + (", learned" if self.learned else "")
        if not isinstance(self.regularizer, nn.Module):
            shown += f", regularizer={getattr(self.regularizer, '__name__', self.regularizer)}"
        return shown if self.schedule is constant else f"{shown}, schedule={name}"
