"""Optimizers beside the batch's Adam: decoupled weight decay, plain gradient steps, and any of torch's."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from propreg.engine.models.network import MakeOptimizer, Parameters
from propreg.engine.ops.adam import Adam

MakeTorch = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


class AdamW(Adam):
    """torch.optim.AdamW on parameters [R, …] with per-replica settings [R]."""

    def __init__(self, parameters: Parameters, lr: Tensor, weight_decay: Parameters) -> None:
        super().__init__(parameters, lr, {name: torch.zeros_like(decay) for name, decay in weight_decay.items()})
        self.decoupled = weight_decay

    @torch.no_grad()
    def step(self, parameters: Parameters, gradients: Parameters) -> None:
        """One step, in place, after the decay."""
        for name, p in parameters.items():
            p.mul_((1 - self.lr * self.decoupled[name]).view(-1, *([1] * (p.dim() - 1))))
        super().step(parameters, gradients)

    def keep(self, kept: Tensor) -> None:
        """Compact to these replicas."""
        super().keep(kept)
        self.decoupled = {name: decay[kept] for name, decay in self.decoupled.items()}


class SGD:
    """torch.optim.SGD without momentum (L2 inside the gradient) on parameters [R, …] with per-replica settings [R]."""

    def __init__(self, parameters: Parameters, lr: Tensor, weight_decay: Parameters) -> None:  # noqa: ARG002
        self.lr, self.weight_decay = lr, weight_decay

    def advance(self) -> None:
        """Nothing: no number depends on the step."""

    @torch.no_grad()
    def step(self, parameters: Parameters, gradients: Parameters) -> None:
        """One step, in place, of the parameters that have a gradient."""
        for name, p in parameters.items():
            wide = (-1, *([1] * (p.dim() - 1)))
            grad = torch.addcmul(gradients[name], self.weight_decay[name].view(wide), p)
            p.addcmul_(grad, self.lr.view(wide), value=-1)

    def tensors(self) -> Parameters:
        """Nothing: a step depends on parameters and gradients alone."""
        return {}

    def restore(self, tensors: Parameters, steps: Tensor) -> None:
        """Nothing to go back to."""

    def keep(self, kept: Tensor) -> None:
        """Compact to these replicas."""
        self.lr = self.lr[kept]
        self.weight_decay = {name: decay[kept] for name, decay in self.weight_decay.items()}


class EachItsOwn:
    """An optimizer of torch for each replica: it sees the parameters of one module, whatever it does with them.

    Args:
        make: Called with the parameters of a replica.
        parameters: Of all replicas [R, …]; those that require no gradient are constants.
        lr, weight_decay: Not used: the caller's optimizer has its own.
    """

    def __init__(self, make: MakeTorch, parameters: Parameters, lr: Tensor, weight_decay: Parameters) -> None:  # noqa: ARG002
        trained = {name: p for name, p in parameters.items() if p.requires_grad}
        self.rows = [{name: nn.Parameter(p.detach()[r]) for name, p in trained.items()} for r in range(len(lr))]
        self.each = [make(list(row.values())) for row in self.rows]
        for made in self.each:
            if not isinstance(made, torch.optim.Optimizer):
                raise TypeError(f"optimizer must make a torch.optim.Optimizer, but it made a {type(made).__name__}.")

    def advance(self) -> None:
        """Nothing: torch's optimizers count their own steps."""

    @torch.no_grad()
    def step(self, parameters: Parameters, gradients: Parameters) -> None:
        """One step, in place, of the parameters that have a gradient."""
        for r, (row, optimizer) in enumerate(zip(self.rows, self.each, strict=True)):
            for name, p in row.items():
                p.grad = None
                if name in parameters:
                    p.data, p.grad = parameters[name].data[r], gradients[name][r]
            optimizer.step()

    def tensors(self) -> Parameters:
        """Raises: torch's optimizers keep what they like."""
        raise NotImplementedError("an optimizer of torch is for trainings of one phase.")

    def restore(self, tensors: Parameters, steps: Tensor) -> None:  # noqa: ARG002
        """Raises, as :meth:`tensors`."""
        self.tensors()

    def keep(self, kept: Tensor) -> None:
        """Compact to these replicas."""
        self.rows, self.each = [self.rows[r] for r in kept.tolist()], [self.each[r] for r in kept.tolist()]


OPTIMIZERS: dict[str, MakeOptimizer] = {"adam": Adam, "adamw": AdamW, "sgd": SGD}
"""By name, as a protocol has them."""
