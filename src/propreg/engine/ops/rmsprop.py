"""RMSprop for a batch of replicas, each with its own learning rate and weight decay; equal to torch's."""

import torch
from torch import Tensor

ALPHA, EPSILON = 0.99, 1e-8


class RMSprop:
    """torch.optim.RMSprop (L2 inside the gradient) on parameters [R, …] with per-replica settings [R]."""

    def __init__(self, parameters: dict[str, Tensor], lr: Tensor, weight_decay: dict[str, Tensor]) -> None:
        self.lr, self.weight_decay = lr, weight_decay
        self.square = {name: torch.zeros_like(p) for name, p in parameters.items()}

    def advance(self) -> None:
        """Nothing: no number depends on the step."""

    @torch.no_grad()
    def step(self, parameters: dict[str, Tensor], gradients: dict[str, Tensor]) -> None:
        """One step, in place, of the parameters that have a gradient."""
        for name, p in parameters.items():
            wide = (-1, *([1] * (p.dim() - 1)))
            grad = torch.addcmul(gradients[name], self.weight_decay[name].view(wide), p)
            square = self.square[name].mul_(ALPHA).addcmul_(grad, grad, value=1 - ALPHA)
            p.addcmul_(grad.div_(square.sqrt().add_(EPSILON)), self.lr.view(wide), value=-1)

    def tensors(self) -> dict[str, Tensor]:
        """The running means of squared gradients, [R, …]."""
        return {f"square.{name}": t for name, t in self.square.items()}

    def restore(self, tensors: dict[str, Tensor], steps: Tensor) -> None:  # noqa: ARG002
        """Go back by so many steps, [R], after which :meth:`tensors` were these."""
        for name, t in self.tensors().items():
            t.copy_(tensors[name])

    def keep(self, kept: Tensor) -> None:
        """Compact to these replicas."""
        self.lr = self.lr[kept]
        self.weight_decay = {name: w[kept] for name, w in self.weight_decay.items()}
        self.square = {name: t[kept] for name, t in self.square.items()}
