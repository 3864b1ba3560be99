"""What training needs of a network. Every tensor begins with the replica axis [R, …].

A forward pass has two parts. :meth:`Network.begin` is the part that no dropout touches: it is the same for every
training pass and for the evaluation, so it is computed once per epoch. :meth:`Network.finish` is the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.ops.dropout import Masks
    from propreg.engine.ops.features import Features
    from propreg.engine.spec import Model, Replica
    from propreg.engine.tasks.node import Problem

Parameters: TypeAlias = "dict[str, Tensor]"


class Draw(Protocol):
    """Gives the dropout masks of a place in the network, or None where nothing is dropped."""

    @property
    def training(self) -> bool:
        """Whether it is a training pass, which sets a user's own module to training mode."""
        ...

    def __call__(self, place: str) -> Masks | None: ...


class Optimizer(Protocol):
    """Steps of a batch of replicas; what changes with the step number lies in tensors that are written in place."""

    def advance(self) -> None:
        """Prepare the next step: called once per epoch, before it."""

    def step(self, parameters: Parameters, gradients: Parameters) -> None:
        """One step, in place, of the parameters that have a gradient."""

    def tensors(self) -> Parameters:
        """What a step depends on beside parameters and gradients, [R, …]."""

    def restore(self, tensors: Parameters, steps: Tensor) -> None:
        """Go back by so many steps, [R], after which :meth:`tensors` were these."""

    def keep(self, kept: Tensor) -> None:
        """Compact to these replicas."""


MakeOptimizer: TypeAlias = "Callable[[Parameters, Tensor, Parameters], Optimizer]"
"""Called with the parameters, the learning rates [R], and the weight decay [R] of each parameter."""


@dataclass(frozen=True)
class NoDropout:
    """Draws no masks of its own: an evaluation, or a training pass of a module that draws its own."""

    training: bool = False

    def __call__(self, place: str) -> None:
        """No mask."""


no_dropout = NoDropout()
"""The draw of an evaluation."""


@dataclass(frozen=True)
class Start:
    """A distribution that a parameter starts from: uniform or normal, and without a spread a constant.

    Args:
        kind: ``"uniform"`` within ``spread`` of the center, or ``"normal"`` with this standard deviation.
        spread, center: Its numbers.
    """

    kind: Literal["uniform", "normal"] = "uniform"
    spread: float = 0.0
    center: float = 0.0


ONES = Start(center=1.0)


@dataclass(frozen=True)
class Weight:
    """A parameter of one replica.

    Args:
        shape: Its shape.
        fans: Its Glorot fans.
        start: The distribution that it starts from in place of Glorot's; without fans or this it starts at 0.
        decay: A weight decay of its own in place of the replica's, or the setting of the model that is it.
        trained: False for running statistics, which training passes update in place.
    """

    shape: tuple[int, ...]
    fans: tuple[int, int] | None = None
    start: Start | None = None
    decay: float | str | None = None
    trained: bool = True


def linear(number: int | str, fan_in: int, fan_out: int) -> dict[str, Weight]:
    """The weight and the bias of a layer as torch's ``nn.Linear`` draws them: uniform within 1/√fan_in."""
    start = Start(spread=fan_in**-0.5)
    return {f"w{number}": Weight((fan_in, fan_out), start=start), f"b{number}": Weight((fan_out,), start=start)}


def norm(number: int, width: int) -> dict[str, Weight]:
    """The parameters and running statistics of a batch norm, see :func:`propreg.engine.ops.batch_norm`."""
    return {
        f"scale{number}": Weight((width,), start=ONES),
        f"shift{number}": Weight((width,)),
        f"mean{number}": Weight((width,), trained=False),
        f"variance{number}": Weight((width,), start=ONES, trained=False),
    }


class Network:
    """A model on a graph. A subclass has at least :meth:`weights` and :meth:`finish`.

    The first linear map X W stands apart, so that a method can perturb X, or take the gradient with respect to it,
    without a dense tensor [R, N, F]. A perturbation r [R, N, F] or of a few rows enters as r W::

        xw = network.first(p)
        z = network.finish(p, network.begin_from(p, xw + r @ p["w0"]), draw)

    and with G = ∂loss/∂(X W) the gradient with respect to X, or to the perturbation, is G Wᵀ, of any rows. Dropout of
    the input, where a model has it, is that of ``first(p, masks)``; it applies to r, too, if a method says so.
    """

    recordable = True
    """Whether an epoch may be a CUDA graph, see :class:`propreg.engine.training.phases.Phase`."""
    draws = False
    """Whether it draws from torch's global random numbers, which two runs at a time would share."""
    auxiliary: Tensor | None = None
    """What the last :meth:`finish` adds to the loss of each replica [R]: only modules of the user's own do."""
    optimizer: MakeOptimizer | None = None
    """What makes the optimizer, in place of the protocol's."""

    def weights(self) -> dict[str, Weight]:
        """The parameters by name; the digits at the end of a name are the number of its layer."""
        raise NotImplementedError

    def initial(self, problem: Problem, model: Model, replicas: Sequence[Replica]) -> Parameters:
        """The parameters that the runs start from, [R, …]: drawn from each run's own random stream."""
        return initial(problem, self, model, replicas)

    def buffers(self) -> Parameters:
        """What the reported weights need beside the parameters: running statistics."""
        return {}

    def check_inputs(self) -> None:
        """Raise if it has changed what all runs share."""

    def first(self, p: Parameters, masks: Masks | None = None) -> Tensor:
        """X W, the first linear map [R, N, H], with the features' entries dropped by ``masks``."""
        raise NotImplementedError(f"{type(self).__name__} has no first linear map.")

    def begin_from(self, p: Parameters, xw: Tensor) -> Tensor:
        """What :meth:`begin` computes, from a first linear map of the caller's own [R, N, H]."""
        raise NotImplementedError(f"{type(self).__name__} has no first linear map.")

    def begin(self, p: Parameters) -> Tensor | None:  # noqa: ARG002
        """What all passes of an epoch share; None where nothing is."""
        return None

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C], from what :meth:`begin` computed."""
        raise NotImplementedError

    def finish_all(
        self,
        p: Parameters,  # noqa: ARG002
        begun: Tensor | None,  # noqa: ARG002
        draws: Sequence[Draw],  # noqa: ARG002
        in_groups: bool,  # noqa: ARG002
    ) -> tuple[Tensor, Tensor] | None:
        """The evaluation and all training passes at once, where that is faster; else None.

        [groups, members, N, C] and [groups, members, N, passes, C], with one member each if not ``in_groups``.
        """
        return None


class OnFeatures(Network):
    """A network whose first linear map is that of the features."""

    features: Features

    def first(self, p: Parameters, masks: Masks | None = None) -> Tensor:
        """X W."""
        return self.features(p["w0"], masks)


class SharedMap(OnFeatures):
    """One whose passes share X W and nothing else, where X is not dropped."""

    spec: Model

    def begin_from(self, p: Parameters, xw: Tensor) -> Tensor:  # noqa: ARG002
        """X W itself."""
        return xw

    def begin(self, p: Parameters) -> Tensor | None:
        """X W, where X is not dropped."""
        return None if self.spec.input_dropout > 0 else self.first(p)


def initial(
    problem: Problem, network: Network, model: Model, replicas: Sequence[Replica], again: str = ""
) -> Parameters:
    """The weights that the runs start from, [R, …]: drawn in float64 from each run's own stream.

    Runs that differ in strength or method have the same: they are drawn once and copied. ``again`` names another draw.
    """
    import numpy as np
    import torch

    from propreg.engine.ops.random import around, glorot, stream_key

    parameters = {}
    for name, weight in network.weights().items():
        start = weight.start or Start()
        if weight.fans is None and start.spread == 0:
            size = (len(replicas), *weight.shape)
            constant = torch.full(size, start.center, dtype=problem.dtype, device=problem.device)
            parameters[name] = constant.requires_grad_(weight.trained)
            continue
        keys = [stream_key(problem.digest, replica, model, name + again) for replica in replicas]
        number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        values = np.empty((len(number), *weight.shape))
        for key, i in number.items():
            shape, fans = weight.shape, weight.fans
            values[i] = around(key, start, shape) if fans is None else glorot(key, *fans, shape)
        drawn = torch.from_numpy(values).to(problem.dtype).to(problem.device)
        place = torch.tensor([number[key] for key in keys], device=problem.device)
        parameters[name] = drawn[place].requires_grad_(weight.trained)
    return parameters
