"""Adam for a batch of replicas, each with its own learning rate and weight decay; equal to torch's."""

import torch
from torch import Tensor

from propreg.engine import kernels

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """torch.optim.Adam (L2 inside the gradient) on parameters [R, …] with per-replica settings [R].

    What changes with the step number lies in tensors that are written in place, so that a captured graph sees it.
    """

    def __init__(self, parameters: dict[str, Tensor], lr: Tensor, weight_decay: dict[str, Tensor]) -> None:
        self.lr, self.weight_decay = lr, weight_decay
        self.first = {name: torch.zeros_like(p) for name, p in parameters.items()}
        self.second = {name: torch.zeros_like(p) for name, p in parameters.items()}
        self.step_number = 0
        self.missed: dict[str, int] = {}  # steps in which a parameter had no gradient: torch does not count those
        self.step_size, self.root = torch.zeros_like(lr), lr.new_zeros(())

    @torch.no_grad()
    def advance(self) -> None:
        """Prepare the next step's bias corrections."""
        self.step_number += 1
        torch.div(self.lr, 1 - BETA1**self.step_number, out=self.step_size)
        self.root.fill_((1 - BETA2**self.step_number) ** 0.5)

    @torch.no_grad()
    def step(self, parameters: dict[str, Tensor], gradients: dict[str, Tensor]) -> None:
        """One step, in place, after :meth:`advance`, of those parameters that have a gradient."""
        for name in self.first.keys() - parameters.keys():
            self.missed[name] = self.missed.get(name, 0) + 1
        for name, p in parameters.items():
            first, second, decay = self.first[name], self.second[name], self.weight_decay[name]
            step_size, root = self._corrections(name)
            if kernels.usable(p):
                from propreg.engine.kernels import adam as kernel

                kernel.update(p, first, second, gradients[name], step_size, decay, root)
                continue
            wide = (-1, *([1] * (p.dim() - 1)))
            grad = torch.addcmul(gradients[name], decay.view(wide), p)
            first.lerp_(grad, 1 - BETA1)
            second.mul_(BETA2).addcmul_(grad, grad, value=1 - BETA2)
            update = torch.sqrt(second).div_(root).add_(EPSILON).reciprocal_().mul_(first)
            p.addcmul_(update, step_size.view(wide), value=-1)

    def _corrections(self, name: str) -> tuple[Tensor, Tensor]:
        """The step sizes [R] and the root of the second moment's correction, by the steps of this parameter.

        Those of one that has missed some are made anew, which a recorded epoch could not do; the parameters of our own
        models, the only ones that are recorded, never miss a step.
        """
        if name not in self.missed:
            return self.step_size, self.root
        number = self.step_number - self.missed[name]
        return self.lr / (1 - BETA1**number), self.root.new_tensor((1 - BETA2**number) ** 0.5)

    def keep(self, kept: Tensor) -> None:
        """Compact to these replicas."""
        self.lr, self.step_size = self.lr[kept], self.step_size[kept]
        self.weight_decay = {name: w[kept] for name, w in self.weight_decay.items()}
        self.first = {name: t[kept] for name, t in self.first.items()}
        self.second = {name: t[kept] for name, t in self.second.items()}
