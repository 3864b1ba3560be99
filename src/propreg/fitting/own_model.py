"""A model of the user's own: any module ``forward(x, edge_index)``, trained by the same loop as ours.

On a GPU replicas go through ``torch.func.vmap`` as one program where the module allows it, and else one after another.
Its random numbers (initial weights, dropout) are torch's own: a run alone is that of ``torch.manual_seed(seed)`` and a
loop by hand, but the dropout of a run in a batch depends on its batch.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.parameter import is_lazy

from propreg.data.graph import SparseFeatures
from propreg.engine.models import Draw, Parameters, Weight
from propreg.engine.passes import nothing_dropped
from propreg.engine.problem import Problem
from propreg.engine.spec import Replica, Result
from propreg.fitting.own_checks import (
    check_depends,
    check_logits,
    check_new,
    check_no_longer_lazy,
    check_parameters,
    check_same,
    check_unchanged,
)
from propreg.fitting.random_state import seed_torch

Factory = Callable[[], nn.Module]


class OwnNetwork:
    """The user's module as a network of the engine.

    Args:
        factory: Makes a module; called for each replica after torch's random numbers are set to its seed.
        problem: The graph on its device.
        together: Whether a batch is one program; None: on a GPU, where the module allows it. On a CPU, a batch was not
            reliably quicker on graphs of Cora's and Photo's sizes (readings from equal times to almost twice as long);
            one after another takes the memory of one, and an interruption keeps every run that has finished.
    """

    def __init__(self, factory: Factory, problem: Problem, together: bool | None = None) -> None:
        self.factory = factory
        graph = problem.graph
        x = graph.x.to_dense() if isinstance(graph.x, SparseFeatures) else graph.x
        self.x = torch.from_numpy(x).to(problem.device, problem.dtype, copy=True)  # a module may write into it
        self.edge_index = torch.from_numpy(graph.edge_index).to(problem.device)
        self.device, self.num_classes = problem.device, problem.num_classes
        self.base = self._made(0)
        other = self._made(1)
        check_new(self.base, other)
        check_parameters(self.base)
        check_logits(self._evaluated(self.base), len(self.x), self.num_classes)
        self.together = self._vmap_agrees(other) if together is None and self.device.type == "cuda" else bool(together)
        self._there_and_back()

    def weights(self) -> dict[str, Weight]:
        """Not asked for: the weights come from the user's modules."""
        return {}

    def initial(self, replicas: Sequence[Replica]) -> Parameters:
        """The parameters of a module made for each replica, stacked [R, …]; the frozen ones are there as constants."""
        modules = [self._made(replica.seed) for replica in replicas]
        if not self.together:
            self.base = modules[0]  # trained alone: its buffers are its own
        return _stacked(modules)

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
        # A sparse buffer is a constant, a matrix of the graph: a new module has it too.
        kept = {name: b for name, b in self.base.named_buffers() if b.layout == torch.strided}
        return {name: b.detach().unsqueeze(0) for name, b in kept.items()}

    def module(self, weights: Parameters, seed: int) -> nn.Module:
        """A new module with these parameters and buffers, in evaluation mode.

        A copy of a trained one would bring along what it has kept of its last pass; and state dicts lack tied
        parameters and some buffers.
        """
        module = self._made(seed)
        with torch.no_grad():
            for name, t in [*module.named_parameters(), *module.named_buffers()]:
                if name in weights:
                    t.copy_(weights[name])
        return module.eval()

    def predict(self, result: Result) -> Tensor:
        """Logits [N, C] of a run's module."""
        return self._evaluated(self.module(result.weights, result.replica.seed))

    def _logits(self, p: Parameters) -> Tensor:
        out: Tensor = functional_call(self.base, p, (self.x, self.edge_index))
        return out

    def _made(self, seed: int) -> nn.Module:
        seed_torch(seed, self.device)
        module = self.factory()
        if not isinstance(module, nn.Module):
            raise TypeError(f"model must make a torch.nn.Module, but it made a {type(module).__name__}.")
        module.to(self.device)
        if any(is_lazy(t) for t in [*module.parameters(), *module.buffers()]):
            self._evaluated(module)
            check_no_longer_lazy(module)
        return module

    @torch.no_grad()
    def _evaluated(self, module: nn.Module) -> Tensor:
        z: Tensor = module.eval()(self.x, self.edge_index)
        return z

    def _vmap_agrees(self, other: nn.Module) -> bool:
        if any(True for _ in self.base.buffers()):
            return False  # running statistics are changed in place, which has no meaning for a batch of replicas
        modules = [self.base, other]
        alone = torch.stack([self._evaluated(module) for module in modules])
        try:
            with torch.no_grad():
                self.base.train()
                torch.vmap(self._logits, randomness="different")(_stacked(modules))
                self.base.eval()
                batched = torch.vmap(self._logits)(_stacked(modules))
        except (RuntimeError, ValueError, TypeError, NotImplementedError, AttributeError):
            return False
        return torch.allclose(batched, alone, rtol=1e-4, atol=1e-5)

    def _there_and_back(self) -> None:
        """One pass of a training and the way from its weights to a module, before hours are spent on it."""
        p = self.initial([Replica()])
        with torch.enable_grad():
            for t in (t for t in p.values() if t.requires_grad):
                t.data.mul_(1.1).add_(0.01)  # other than those that a new module has anyway
            check_depends(self.finish(p, None, lambda _: None))
        check_unchanged(self.x)
        seed_torch(0, self.device)
        with torch.no_grad():
            z = self.finish(p, None, nothing_dropped)[0]
        weights = {name: t.detach()[0].cpu() for name, t in {**p, **self.buffers()}.items()}
        try:
            module = self.module(weights, 0)
        except RuntimeError as error:
            why = str(error).splitlines()[0]
            raise ValueError(
                f"the trained model could not be handed back, since its state cannot be set: {why}"
            ) from error
        seed_torch(0, self.device)
        check_same(z, self._evaluated(module))


def _stacked(modules: Sequence[nn.Module]) -> Parameters:
    found = [dict(module.named_parameters()) for module in modules]
    return {
        name: torch.stack([each[name].detach() for each in found]).contiguous().requires_grad_(p.requires_grad)
        for name, p in found[0].items()
    }


def _replicas(p: Parameters) -> int:
    return len(next(iter(p.values())))
