"""Adam for a batch of replicas, each with its own learning rate and weight decay; equal to torch's."""

import torch
from torch import Tensor

from propreg.engine import kernels

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """torch.optim.Adam (L2 inside the gradient) on parameters [R, …] with per-replica settings [R].

    Numbers that change with the step are in tensors written in place, so that a captured graph sees them.
    """

    def __init__(self, parameters: dict[str, Tensor], lr: Tensor, weight_decay: dict[str, Tensor]) -> None:
        self.lr, self.weight_decay = lr, weight_decay
        self.first = {name: torch.zeros_like(p) for name, p in parameters.items()}
        self.second = {name: torch.zeros_like(p) for name, p in parameters.items()}
        self.step_number = 0
        self.missed: dict[str, int] = {}  # steps in which a parameter had no gradient: torch does not count them
        self.undone: Tensor | None = None  # steps that each replica has gone back by, [R]
        self.step_size, self.root = torch.zeros_like(lr), lr.new_zeros(())

    @torch.no_grad()
    def advance(self) -> None:
        """Prepare the next step's bias corrections."""
        self.step_number += 1
        if self.undone is not None:
            number = (self.step_number - self.undone).double()
            self.step_size.copy_(self.lr / (1 - BETA1**number))
            self.root.copy_((1 - BETA2**number).sqrt())
            return
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
            if kernels.usable(p) and self.undone is None:
                from propreg.engine.kernels import adam as kernel

                kernel.update(p, first, second, gradients[name], step_size, decay, root)
                continue
            wide = (-1, *([1] * (p.dim() - 1)))
            grad = torch.addcmul(gradients[name], decay.view(wide), p)
            first.lerp_(grad, 1 - BETA1)
            second.mul_(BETA2).addcmul_(grad, grad, value=1 - BETA2)
            root = root if root.dim() == 0 else root.view(wide)
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

    def tensors(self) -> dict[str, Tensor]:
        """The moments, [R, …]."""
        return {f"{kind}.{name}": t for kind in ("first", "second") for name, t in getattr(self, kind).items()}

    def restore(self, tensors: dict[str, Tensor], steps: Tensor) -> None:
        """Go back by so many steps, [R], after which :meth:`tensors` were these."""
        for name, t in self.tensors().items():
            t.copy_(tensors[name])
        self.undone = steps if self.undone is None else self.undone + steps
        self.root = self.lr.new_ones(len(steps))

    def keep(self, kept: Tensor) -> None:
        """Compact to these replicas."""
        self.lr, self.step_size = self.lr[kept], self.step_size[kept]
        if self.undone is not None:
            self.undone, self.root = self.undone[kept], self.root[kept]
        self.weight_decay = {name: w[kept] for name, w in self.weight_decay.items()}
        self.first = {name: t[kept] for name, t in self.first.items()}
        self.second = {name: t[kept] for name, t in self.second.items()}
