"""The scaling of features inside a trained module, so that it takes them as the graph has them."""

from collections.abc import Mapping
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


class _DivideRows(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        dense = x.to_dense()
        totals = dense.abs().sum(1, keepdim=True)
        return dense / torch.where(totals > 0, totals, 1)


def layer_of(scaling: Scaling) -> nn.Module | None:
    """The scaling as a layer; None if nothing is scaled.

    Traced, so that a pickle of it holds its code: a trained model needs no propreg to run.
    """
    if scaling.kind == "none":
        return None
    layer = _Standardize(scaling) if scaling.kind == "standard" else _DivideRows()
    return fx.GraphModule(layer, fx.Tracer().trace(layer), type(layer).__name__.strip("_"))


def scaling_arrays(scaling: Scaling) -> Mapping[str, NDArray[np.float32]]:
    """The numbers of a scaling by name."""
    if scaling.mean is None or scaling.deviation is None:
        return {}
    return {MEAN: scaling.mean, DEVIATION: scaling.deviation}


class _Hook:
    """Scales the first argument of a module's ``forward``, on whatever device it is."""

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer

    def __call__(self, module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ARG002
        x = given[0] if given else named["x"]
        x = self.layer.to(x.device)(x)
        return ((x, *given[1:]), named) if given else (given, {**named, "x": x})


def take_raw_features(module: nn.Module, scaling: Scaling) -> nn.Module:
    """Have a module of the user's own scale ``x`` before its ``forward``, once; it stays the same module."""
    hooks, layer = module._forward_pre_hooks, layer_of(scaling)
    for number in [number for number, hook in hooks.items() if isinstance(hook, _Hook)]:
        del hooks[number], module._forward_pre_hooks_with_kwargs[number]
    if layer is not None:
        module.register_forward_pre_hook(_Hook(layer), with_kwargs=True)
    return module
