"""The scaling of features inside a trained module, so that it takes them as the graph has them.

A regression's predictions are taken back to the units of its targets in the same way.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from propreg.data.scaling import Scaling

MEAN, DEVIATION = "mean", "deviation"


class _Standardize(nn.Module):
    mean: Tensor
    deviation: Tensor

    def __init__(self, scaling: Scaling) -> None:
        super().__init__()
        self.register_buffer(MEAN, torch.tensor(scaling.mean))
        self.register_buffer(DEVIATION, torch.tensor(scaling.deviation))

    def forward(self, x: Tensor) -> Tensor:
        return (x.to_dense() - self.mean) / self.deviation


class _InUnits(_Standardize):
    def forward(self, x: Tensor) -> Tensor:
        return x * self.deviation + self.mean


class _DivideRows(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        dense = x.to_dense()
        totals = torch.linalg.vector_norm(dense, 1, dim=1, keepdim=True)
        return dense / torch.where(totals > 0, totals, 1)


def layer_of(scaling: Scaling) -> nn.Module | None:
    """The scaling as a layer; None if nothing is scaled.

    Traced, so that a pickle of it holds its code: a trained model needs no propreg to run.
    """
    if scaling.kind == "none":
        return None
    return _traced(_Standardize(scaling) if scaling.kind == "standard" else _DivideRows())


def layer_of_targets(scaling: Scaling) -> nn.Module | None:
    """The layer after the last one, which gives numbers in the units of the targets; None without such."""
    return None if scaling.targets is None else _traced(_InUnits(scaling.targets))


def _traced(layer: nn.Module) -> nn.Module:
    return fx.GraphModule(layer, fx.Tracer().trace(layer), type(layer).__name__.strip("_"))


def scaling_arrays(scaling: Scaling | None) -> Mapping[str, NDArray[np.float32]]:
    """The numbers of a scaling by name."""
    if scaling is None or scaling.mean is None or scaling.deviation is None:
        return {}
    return {MEAN: scaling.mean, DEVIATION: scaling.deviation}


class _Hook:
    """Scales the features among the arguments of a module's ``forward``, on whatever device they are."""

    def __init__(self, layer: nn.Module, place: int = 0) -> None:
        self.layer, self.place = layer, place

    def __call__(self, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ARG002
        if len(given) > self.place:
            return (*given[: self.place], self._scaled(given[self.place]), *given[self.place + 1 :]), named
        return given, {name: self._scaled(value) if name in ("x", "data") else value for name, value in named.items()}

    def _scaled(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            return self.layer.to(x.device)(x)
        data = copy.copy(x)  # a forward that takes a Data
        data.x = self._scaled(data.x)
        return data


class _OutputHook:
    """Gives what a module's ``forward`` returns, perhaps beside an auxiliary loss, in the units of the targets."""

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer

    def __call__(self, module: nn.Module, given: Any, returned: Any) -> Any:
        if isinstance(returned, tuple | list):
            return (self(module, given, returned[0]), *returned[1:])
        return self.layer.to(returned.device)(returned)


def take_raw_features(module: nn.Module, scaling: Scaling, inputs: Sequence[str] = ("x", "edge_index")) -> nn.Module:
    """Have a module of the user's own scale ``x`` before its ``forward``, once; it stays the same module.

    Predicted numbers it gives in the units of the targets.

    Args:
        module: The module.
        scaling: What is done to the features.
        inputs: The names of what ``forward`` takes, ``x`` or ``data`` among them.
    """
    hooks, layer = module._forward_pre_hooks, layer_of(scaling)
    for number in [number for number, hook in hooks.items() if isinstance(hook, _Hook)]:
        del hooks[number], module._forward_pre_hooks_with_kwargs[number]
    place = next((place for place, name in enumerate(inputs) if name in ("x", "data")), None)
    if layer is not None and place is not None:
        module.register_forward_pre_hook(_Hook(layer, place), with_kwargs=True)
    after = module._forward_hooks
    for number in [number for number, hook in after.items() if isinstance(hook, _OutputHook)]:
        del after[number]
    if (units := layer_of_targets(scaling)) is not None:
        module.register_forward_hook(_OutputHook(units))
    return module
