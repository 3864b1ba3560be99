"""A trained replica as an ordinary PyG module: it needs no propreg to run, and costs nothing extra at inference."""

import threading
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from propreg.data.scaling import Scaling
from propreg.engine.models.architecture import ON_EDGES, ON_WEIGHTED_EDGES, Layer, Weights
from propreg.engine.spec import Model
from propreg.fitting.preprocessing import layer_of, layer_of_targets, scaling_arrays

UNSCALED = Scaling()
# Private names of torch_geometric.nn.Sequential.
_WRITES, _IMPORTS = "_set_jittable_template", "_caller_module"
_one_at_a_time = threading.Lock()


def as_module(
    model: Model,
    weights: Weights,
    sizes: tuple[int, int],
    dropout: float,
    *,
    weighted: bool = False,
    scaling: Scaling = UNSCALED,
) -> nn.Module:
    """A ``torch_geometric.nn.Sequential`` with ``forward(x, edge_index)`` and these weights, in evaluation mode.

    Trained on a ``weighted`` graph, it takes ``edge_weight`` as a third argument. ``sizes`` are the numbers of features
    and classes. It scales the features by itself, and gives predicted numbers in the units of the targets.
    """
    layers = _layers(model, sizes, dropout, scaling)
    state = {
        f"module_{i}.{name}": value(weights).float()
        for i, layer in enumerate(layers)
        for name, value in layer.state.items()
    }
    module = _joined(layers, weighted)
    module.load_state_dict(state)
    return module.eval()


def untrained_module(
    model: Model, sizes: tuple[int, int], dropout: float, *, weighted: bool = False, scaling: Scaling = UNSCALED
) -> nn.Module:
    """The architecture in PyG's layers, for ``sizes`` = (features, classes)."""
    return _joined(_layers(model, sizes, dropout, scaling), weighted)


def state_shapes(model: Model, sizes: tuple[int, int], scaling: Scaling = UNSCALED) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the module's state, without memory for it.

    Example:
        >>> state_shapes(Model("mlp", hidden=4), (8, 3))["module_3.weight"]
        (3, 4)
    """
    with torch.device("meta"):
        layers = _layers(model, sizes, 0.0, scaling)
    states = ((i, layer.module.state_dict()) for i, layer in enumerate(layers))
    return {f"module_{i}.{name}": tuple(t.shape) for i, state in states for name, t in state.items()}


def _layers(model: Model, sizes: tuple[int, int], dropout: float, scaling: Scaling) -> list[Layer]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyG still uses torch.jit when it is imported
        import torch_geometric.nn  # noqa: F401
    first = []
    if (scaled := layer_of(scaling)) is not None:
        first.append(
            Layer(scaled, state={name: partial(_constant, array) for name, array in scaling_arrays(scaling).items()})
        )
    if model.input_dropout:
        first.append(Layer(nn.Dropout(model.input_dropout)))
    last = []
    if (units := layer_of_targets(scaling)) is not None:
        arrays = scaling_arrays(scaling.targets)
        last.append(Layer(units, state={name: partial(_constant, array) for name, array in arrays.items()}))
    return [*first, *model.architecture.export(model, *sizes, dropout), *last]


def _constant(array: NDArray[np.float32], weights: Weights) -> Tensor:  # noqa: ARG001
    return torch.tensor(array)


def _joined(layers: Sequence[Layer], weighted: bool) -> nn.Module:
    known = ON_WEIGHTED_EDGES if weighted else ON_EDGES
    steps = [(layer.module, f"{', '.join(name for name in layer.inputs if name in known)} -> x") for layer in layers]
    return sequential(", ".join(known), steps).to("cpu", torch.float32)  # whatever torch's defaults are


def sequential(arguments: str, steps: Sequence[Any]) -> nn.Module:
    """``torch_geometric.nn.Sequential(arguments, steps)`` without the code that it writes and imports.

    To support TorchScript it writes its forward pass as a Python file. That file begins with an import of everything
    from the calling module by its bare name, so a file of this name in the user's folder would be run. Without the
    file it works the same.
    """
    from torch_geometric.nn import Sequential

    with _one_at_a_time:
        writes = getattr(Sequential, _WRITES, None)
        if writes is not None:
            setattr(Sequential, _WRITES, lambda _, raise_on_error=False: None)  # noqa: ARG005
        try:
            module: nn.Module = Sequential(arguments, steps)
        finally:
            if writes is not None:
                setattr(Sequential, _WRITES, writes)
    if hasattr(module, _IMPORTS):
        setattr(module, _IMPORTS, "propreg_no_such_module")  # a copy of the module would try again
    return module
