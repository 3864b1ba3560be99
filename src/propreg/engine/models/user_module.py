"""A user's own module, ``forward(x, edge_index)``, trained by the same loop as the built-in models.

On a GPU replicas go through ``torch.func.vmap`` as one program if the module allows it, otherwise one after another.
Its random numbers (initial weights, dropout) are torch's own: a run alone equals
``torch.manual_seed(seed)`` and a loop by hand, but the dropout of a run in a batch depends on its batch.
A ``forward`` may return (logits, auxiliary loss): the latter is added to the loss of a training pass.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from propreg.engine.models.module_inputs import Inputs, inputs_of, tensors_of
from propreg.engine.models.network import Draw, Network, NoDropout, Parameters, Weight, no_dropout
from propreg.engine.spec import Model, Replica, Result
from propreg.engine.tasks.node import Problem
from propreg.engine.torch_modes import seed_torch
from propreg.engine.training.optimizers import EachItsOwn, MakeTorch

Factory = Callable[[], nn.Module]


class OwnNetwork(Network):
    """The user's module as a network of the engine.

    Args:
        factory: Makes a module; called for each replica after torch is seeded with its seed.
        problem: The graph on its device.
        together: Whether a batch is one program; None: on a GPU, if the module allows it. On a CPU, a batch was not
            reliably quicker on graphs of Cora's and Photo's sizes (readings from equal times to almost twice as long);
            one after another takes the memory of one run, and an interruption keeps every finished run.
        inputs: The names of the tensors that ``forward`` takes; None: see :func:`.module_inputs.inputs_of`.
        optimizer: Makes the optimizer of each run from its parameters, in place of the protocol's.
    """

    draws = True

    def __init__(
        self,
        factory: Factory,
        problem: Problem,
        together: bool | None = None,
        inputs: Sequence[str] | None = None,
        optimizer: MakeTorch | None = None,
    ) -> None:
        self.factory, self.asked = factory, inputs
        self.optimizer = None if optimizer is None else partial(EachItsOwn, optimizer)
        self.tensors = tensors_of(problem.graph, problem.device, problem.dtype)
        self.num_nodes = problem.num_nodes
        self.device, self.num_classes = problem.device, problem.num_classes
        self.inputs: Inputs | None = None
        self._places: tuple[nn.Module, Places] | None = None
        self._nothing = torch.zeros((), device=self.device)
        self.base = self._made(0)
        other = self._made(1)
        check_new(self.base, other)
        check_parameters(self.base)
        check_finite(self._evaluated(self.base))
        self.together = self._vmap_agrees(other) if together is None and self.device.type == "cuda" else bool(together)
        self._there_and_back()

    def on(self, tensors: Parameters) -> None:
        """Compute on this graph from now on, like a batch of a larger one."""
        if self.inputs is None:
            raise RuntimeError("no module was made.")
        self.tensors, self.num_nodes = tensors, len(tensors["x"])
        self._call = self.inputs.arguments(tensors)

    def weights(self) -> dict[str, Weight]:
        """None to draw: the weights come from the user's modules."""
        return {}

    def initial(self, problem: Problem, model: Model, replicas: Sequence[Replica]) -> Parameters:  # noqa: ARG002
        """The parameters of a new module for each replica."""
        return self.stacked(replicas)

    def stacked(self, replicas: Sequence[Replica]) -> Parameters:
        """The parameters of a new module for each replica, [R, …]; frozen ones are included as constants."""
        modules = [self._made(replica.seed) for replica in replicas]
        if not self.together:
            self.base = modules[0]  # trained alone: its buffers are its own
        return _stacked(modules)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:  # noqa: ARG002
        """Logits [R, N, C]."""
        self.base.train(draw.training)
        if self.together:
            logits, extra = torch.vmap(self._outputs, randomness="different")(p)
        elif len(next(iter(p.values()))) == 1:  # as a view, whose gradient needs no tensor of zeros
            logits, extra = (t.unsqueeze(0) for t in self._outputs({name: t.squeeze(0) for name, t in p.items()}))
        else:
            each = [self._outputs({name: t[r] for name, t in p.items()}) for r in range(len(next(iter(p.values()))))]
            logits, extra = (torch.stack(parts) for parts in zip(*each, strict=True))
        self.auxiliary = extra if extra.requires_grad else None
        if not draw.training and not bool(logits.sum().isfinite()):  # one pass; a sum that overflows costs a second one
            for z in logits.detach():  # what a diverged training pass gives is a loss that is not finite
                check_finite(z)
        return logits

    def buffers(self) -> Parameters:
        """The module's buffers (running statistics), as a batch of one."""
        # A sparse buffer is a constant, like a matrix of the graph: a new module has it too.
        kept = {name: b for name, b in self.base.named_buffers() if b.layout == torch.strided}
        return {name: b.detach().unsqueeze(0) for name, b in kept.items()}

    def module(self, weights: Parameters, seed: int) -> nn.Module:
        """A new module with these parameters and buffers, in evaluation mode.

        Not a copy of the trained one, which may hold tensors of its last pass; and not by a state dict, which lacks
        tied parameters and some buffers.
        """
        module = self._made(seed)
        with torch.no_grad():
            for name, t in [*module.named_parameters(), *module.named_buffers()]:
                if name in weights:
                    t.copy_(weights[name])
        return module.eval()

    def predict(self, result: Result) -> Tensor:
        """The logits [N, C] of a finished run."""
        return self._evaluated(self.module(result.weights, result.replica.seed))

    def check_inputs(self) -> None:
        """Raise if a module has written into the features or edges, which all runs share."""
        for name, t in self.tensors.items():
            check_unchanged(name, t)

    def _logits(self, p: Parameters) -> Tensor:
        return self._outputs(p)[0]

    def _outputs(self, p: Parameters) -> tuple[Tensor, Tensor]:
        """The logits [N, C] and the auxiliary loss, 0 without one."""
        if self._places is None or self._places[0] is not self.base:
            self._places = self.base, places_of(self.base)
        with borrowed(self._places[1], p):
            given, named = self._call
            z, auxiliary = parted(self.base(*given, **named))
        z = check_logits(z, self.num_nodes, self.num_classes)
        return z, self._nothing if auxiliary is None else auxiliary

    def _made(self, seed: int) -> nn.Module:
        seed_torch(seed, self.device)
        module = self.factory()
        if not isinstance(module, nn.Module):
            raise TypeError(f"model must make a torch.nn.Module, but it made a {type(module).__name__}.")
        module.to(self.device)
        if self.inputs is None:
            self.inputs = inputs_of(self.asked, module, weighted="edge_weight" in self.tensors)
            self._call = self.inputs.arguments(self.tensors)
        if any(is_lazy(t) for t in [*module.parameters(), *module.buffers()]):
            self._evaluated(module)
            check_no_longer_lazy(module)
        return module

    @torch.no_grad()
    def _evaluated(self, module: nn.Module) -> Tensor:
        given, named = self._call
        return check_logits(parted(module.eval()(*given, **named))[0], self.num_nodes, self.num_classes)

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
        """Try a training pass and the way from its weights to a module before hours are spent on training."""
        p = self.stacked([Replica()])
        with torch.enable_grad():
            for t in (t for t in p.values() if t.requires_grad):
                t.data.mul_(1.1).add_(0.01)  # unlike the weights of any new module
            check_depends(self.finish(p, None, NoDropout(training=True)))
        self.check_inputs()
        seed_torch(0, self.device)
        with torch.no_grad():
            z = self.finish(p, None, no_dropout)[0]
        weights = {name: t.detach()[0].cpu() for name, t in {**p, **self.buffers()}.items()}
        try:
            module = self.module(weights, 0)
        except RuntimeError as error:
            why = str(error).splitlines()[0]
            raise ValueError(
                f"the trained model could not be returned, since its state cannot be set: {why}"
            ) from error
        seed_torch(0, self.device)
        check_same(z, self._evaluated(module))


Places = list[tuple[dict[str, nn.Parameter | None], str, nn.Parameter, str]]
"""Where a module holds its parameters: a dict, the key in it, the parameter, and its full name."""


def places_of(module: nn.Module) -> Places:
    """All of them; tied parameters have several."""
    names = {id(t): name for name, t in module.named_parameters()}
    return [
        (part._parameters, key, t, names[id(t)])
        for part in module.modules()
        for key, t in part._parameters.items()
        if t is not None
    ]


@contextmanager
def borrowed(places: Places, p: Parameters) -> Iterator[None]:
    """Let a module compute with these tensors in the place of its parameters.

    As ``torch.func.functional_call``, which looks for the places at each call: a tenth of an epoch on small graphs.
    """
    try:
        for held, key, _, name in places:
            held[key] = p[name]  # type: ignore[assignment]
        yield
    finally:
        for held, key, t, _ in places:
            held[key] = t


def _stacked(modules: Sequence[nn.Module]) -> Parameters:
    found = [dict(module.named_parameters()) for module in modules]
    return {
        name: torch.stack([each[name].detach() for each in found]).contiguous().requires_grad_(p.requires_grad)
        for name, p in found[0].items()
    }


def check_new(first: nn.Module, second: nn.Module) -> None:
    """Raise for a function that returns the same module twice: its runs would not be independent."""
    theirs = {id(p) for p in second.parameters()}
    if first is second or any(p.requires_grad and id(p) in theirs for p in first.parameters()):
        raise ValueError(
            "model must make a new module at every call, but two calls share their parameters: "
            "build it inside the function, like lambda: MyGNN(...)."
        )
    shapes = [{name: p.shape for name, p in module.named_parameters()} for module in (first, second)]
    if shapes[0] != shapes[1]:
        raise ValueError("model must make the same architecture at every call, but two calls made different ones.")


def check_parameters(module: nn.Module) -> None:
    """Raise for parameters that cannot be trained, or not in float32."""
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if not trained:
        raise ValueError("model has no parameter that requires a gradient: there is nothing to train.")
    for name, part in module.named_modules():
        if getattr(part, "sparse", False) is True and isinstance(part, nn.Embedding | nn.EmbeddingBag):
            raise ValueError(f"{name!r} of model has sparse gradients, which fit does not take: leave out sparse=True.")
    for name, p in trained.items():
        if p.dtype != torch.float32:
            raise TypeError(
                f"parameter {name!r} of model is {p.dtype}, but fit trains in torch.float32: call .float() on the "
                "module inside the function."
            )


def check_no_longer_lazy(module: nn.Module) -> None:
    """Raise for a lazy parameter or buffer that a forward pass has left without a size."""
    for name, t in [*module.named_parameters(), *module.named_buffers()]:
        if is_lazy(t):
            raise ValueError(f"{name!r} of model is lazy, and forward does not use it: give it a size, or remove it.")


def parted(returned: Any) -> tuple[Any, Tensor | None]:
    """What a ``forward`` returns, parted into logits and auxiliary loss; raises for a tuple of anything else.

    Example:
        >>> parted((torch.zeros(2, 1), torch.tensor(0.5)))
        (tensor([[0.],
            [0.]]), tensor(0.5000))
    """
    if not isinstance(returned, tuple | list):
        return returned, None
    z, *rest = returned
    if len(rest) == 1 and isinstance(rest[0], Tensor) and rest[0].numel() == 1 and rest[0].is_floating_point():
        return z, rest[0].reshape(())
    got = ", ".join(str(tuple(t.shape)) if isinstance(t, Tensor) else type(t).__name__ for t in returned)
    wanted = "must return logits, or (logits, auxiliary loss) with one number as the loss"
    raise ValueError(f"model(x, edge_index) {wanted}, got ({got}).")


def check_logits(z: object, nodes: int, classes: int) -> Tensor:
    """The logits; raises unless they are float32 and of every node."""
    if not isinstance(z, Tensor) or z.shape != (nodes, classes):
        got = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
        raise ValueError(f"model(x, edge_index) must return logits of shape {(nodes, classes)}, got {got}.")
    if z.dtype != torch.float32:
        raise TypeError(f"model(x, edge_index) must return logits in torch.float32, got {z.dtype}.")
    return z


def check_finite(z: Tensor) -> None:
    """Raise for logits of a few nodes that are not finite: they count as an answer there, and no loss shows them.

    If all are, the model has diverged, and its run fails.
    """
    broken = ~z.isfinite().all(1)
    if broken.any() and not broken.all():
        row = int(broken.nonzero()[0])
        raise ValueError(
            f"model(x, edge_index) returned NaN or infinite logits for {int(broken.sum())} of {len(z)} nodes, first "
            f"node {row}: the model has diverged, or divides by 0 there; lower lr, or look at that node's edges."
        )


def check_depends(z: Tensor) -> None:
    """Raise for logits that no parameter can change."""
    if not z.requires_grad:
        raise ValueError(
            "no gradient flows from model(x, edge_index) to its parameters: is something detached, or under "
            "torch.no_grad()?"
        )


def check_unchanged(name: str, t: Tensor) -> None:
    """Raise for an input that a module has written into."""
    if t._version:
        raise ValueError(
            f"the module changes {name} in place, which all runs share: leave inplace=True out on {name}, or begin "
            f"forward with {name} = {name}.clone()."
        )


def check_same(trained: Tensor, handed_back: Tensor) -> None:
    """Raise for a module whose parameters and buffers do not determine its logits."""
    size = max(1.0, float(trained.nan_to_num().abs().max()))
    if not torch.allclose(trained, handed_back, rtol=1e-3, atol=1e-4 * size, equal_nan=True):
        raise ValueError(
            "the trained model could not be returned: a new module with the same parameters and buffers gives other "
            "logits, so keep everything that forward uses in parameters or buffers, or derive it from torch's seed."
        )
