"""A model of the user's own: any module ``forward(x, edge_index)``, trained by the same loop as ours.

Replicas go through ``torch.func.vmap`` as one program where the module allows it, and else one after another. Its
random numbers (initial weights, dropout) are torch's own, so unlike with our models a run depends on its batch.
"""

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from propreg.data.graph import SparseFeatures
from propreg.engine.models import Draw, Parameters, Weight
from propreg.engine.problem import Problem
from propreg.engine.spec import Replica
from propreg.engine.step import nothing_dropped

Factory = Callable[[], nn.Module]


class OwnNetwork:
    """The user's module as a network of the engine."""

    def __init__(self, factory: Factory, problem: Problem) -> None:
        self.factory = factory
        graph = problem.graph
        x = graph.x.to_dense() if isinstance(graph.x, SparseFeatures) else graph.x
        self.x = torch.from_numpy(x).to(problem.device, problem.dtype)
        self.edge_index = torch.from_numpy(graph.edge_index).to(problem.device)
        self.device, self.num_classes = problem.device, problem.num_classes
        self.base = self._made(0)
        self._check(self.base)
        self.together = self._vmap_works()

    def weights(self) -> dict[str, Weight]:
        """Not asked for: the weights come from the user's modules."""
        return {}

    def initial(self, replicas: Sequence[Replica]) -> Parameters:
        """A module made for each replica after torch.manual_seed(its seed), parameters stacked [R, …]."""
        modules = [self._made(replica.seed) for replica in replicas]
        if not self.together:
            self.base = modules[0]  # trained alone: its buffers are its own
        stacked, _ = stack_module_state(modules)
        return {name: p.detach().requires_grad_() for name, p in stacked.items()}

    def begin(self, p: Parameters) -> None:
        """Nothing is known to be shared between passes."""

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:  # noqa: ARG002
        """Logits [R, N, C]."""
        self.base.train(draw is not nothing_dropped)
        if self.together:
            run = torch.vmap(self._logits, randomness="different")
            logits: Tensor = run(p)
            return logits
        return torch.stack([self._logits({name: t[r] for name, t in p.items()}) for r in range(_replicas(p))])

    def buffers(self) -> Parameters:
        """What the module keeps beside its parameters (running statistics), as a batch of one."""
        return {name: b.detach().unsqueeze(0) for name, b in self.base.named_buffers()}

    def module(self, weights: Parameters) -> nn.Module:
        """A module with these weights, in evaluation mode."""
        module = copy.deepcopy(self.base)
        module.load_state_dict(weights)
        return module.eval()

    def _logits(self, p: Parameters) -> Tensor:
        out: Tensor = functional_call(self.base, p, (self.x, self.edge_index))
        return out

    def _made(self, seed: int) -> nn.Module:
        torch.manual_seed(seed)
        module = self.factory()
        if not isinstance(module, nn.Module):
            raise TypeError(f"model must make a torch.nn.Module, but it made a {type(module).__name__}.")
        return module.to(self.device)

    def _check(self, module: nn.Module) -> None:
        module.eval()
        with torch.no_grad():
            z = module(self.x, self.edge_index)
        expected = (self.x.shape[0], self.num_classes)
        if not isinstance(z, Tensor) or z.shape != expected:
            came = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
            raise ValueError(f"model(x, edge_index) must return logits of shape {expected}, but {came} came.")

    def _vmap_works(self) -> bool:
        if any(True for _ in self.base.buffers()):
            return False  # running statistics are changed in place, which has no meaning for a batch of replicas
        modules = [self._made(seed) for seed in (0, 1)]
        stacked, _ = stack_module_state(modules)
        try:
            with torch.no_grad():
                self.base.train()
                torch.vmap(self._logits, randomness="different")(stacked)
                self.base.eval()
                batched = torch.vmap(self._logits)(stacked)
                alone = torch.stack([m.eval()(self.x, self.edge_index) for m in modules])
        except (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError):
            return False
        return torch.allclose(batched, alone, rtol=1e-4, atol=1e-5)


def _replicas(p: Parameters) -> int:
    return len(next(iter(p.values())))
