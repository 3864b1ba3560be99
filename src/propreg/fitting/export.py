"""A trained replica as an ordinary PyG module: it needs no propreg to run, and costs nothing extra at inference."""

import itertools
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from propreg.engine.spec import Model
from propreg.fitting.plain_sequential import sequential

Weights = Mapping[str, Tensor]


def as_module(model: Model, weights: Weights, dropout: float, *, weighted: bool = False) -> nn.Module:
    """A ``torch_geometric.nn.Sequential`` with ``forward(x, edge_index)`` and these weights, in evaluation mode.

    Trained on a ``weighted`` graph, it takes ``edge_weight`` as a third argument.
    """
    module = untrained_module(model, _sizes(model, weights), dropout, weighted=weighted)
    module.load_state_dict(_state(model, weights))
    return module.eval()


def untrained_module(model: Model, sizes: tuple[int, int], dropout: float, *, weighted: bool = False) -> nn.Module:
    """The architecture in PyG's layers, for ``sizes`` = (features, classes)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyG still uses torch.jit when it is imported
        from torch_geometric.nn import APPNP, GATConv, GCNConv

    features, classes = sizes
    arguments = "x, edge_index, edge_weight" if weighted else "x, edge_index"
    spread = f"{arguments} -> x"
    steps: list[Any] = [(nn.Dropout(model.input_dropout), "x -> x")] if model.input_dropout else []
    if model.name == "gat":
        wide, rate = model.heads * model.hidden, model.attention_dropout
        steps += [
            (GATConv(features, model.hidden, heads=model.heads, dropout=rate), "x, edge_index -> x"),
            (nn.ELU(), "x -> x"),
            (nn.Dropout(dropout), "x -> x"),
            (GATConv(wide, classes, heads=model.out_heads, concat=False, dropout=rate), "x, edge_index -> x"),
        ]
        return sequential(arguments, steps).to("cpu", torch.float32)
    widths = [features, *[model.hidden] * (model.layers - 1), classes]
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
        if i:
            steps += [(nn.ReLU(), "x -> x"), (nn.Dropout(dropout), "x -> x")]
        convolution = model.name == "gcn"
        layer = GCNConv(fan_in, fan_out) if convolution else nn.Linear(fan_in, fan_out)
        steps.append((layer, spread if convolution else "x -> x"))
    if model.name == "appnp":
        steps.append((APPNP(model.steps, model.teleport), spread))
    return sequential(arguments, steps).to("cpu", torch.float32)  # whatever torch's defaults are


def state_shapes(model: Model, sizes: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """The names and shapes of the module's state, without building it.

    Example:
        >>> state_shapes(Model("mlp", hidden=4), (8, 3))["module_3.weight"]
        (3, 4)
    """
    (features, classes), start = sizes, 1 if model.input_dropout else 0
    shapes: dict[str, tuple[int, ...]] = {}
    if model.name == "gat":
        wide = model.heads * model.hidden
        first, last = f"module_{start}", f"module_{start + 3}"
        shapes |= {f"{first}.lin.weight": (wide, features), f"{first}.bias": (wide,)}
        shapes |= {f"{last}.lin.weight": (model.out_heads * classes, wide), f"{last}.bias": (classes,)}
        for side in ("att_src", "att_dst"):
            shapes[f"{first}.{side}"] = (1, model.heads, model.hidden)
            shapes[f"{last}.{side}"] = (1, model.out_heads, classes)
        return shapes
    widths = [features, *[model.hidden] * (model.layers - 1), classes]
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
        name = f"module_{start + 3 * i}"
        shapes[f"{name}.lin.weight" if model.name == "gcn" else f"{name}.weight"] = (fan_out, fan_in)
        shapes[f"{name}.bias"] = (fan_out,)
    return shapes


def _sizes(model: Model, weights: Weights) -> tuple[int, int]:
    last = 1 if model.name == "gat" else model.layers - 1
    return int(weights["w0"].shape[0]), int(weights[f"b{last}"].shape[0])


def _state(model: Model, weights: Weights) -> dict[str, Tensor]:
    """The weights under the names that PyG's Sequential gives them."""
    start = 1 if model.input_dropout else 0
    state = {}
    layers = 2 if model.name == "gat" else model.layers
    for i in range(layers):
        at = f"module_{start + 3 * i}"
        matrix = weights[f"w{i}"].t().contiguous()
        state[f"{at}.bias"] = weights[f"b{i}"]
        if model.name == "gat":
            state[f"{at}.lin.weight"] = matrix
            state[f"{at}.att_src"] = weights[f"source{i}"].unsqueeze(0)
            state[f"{at}.att_dst"] = weights[f"target{i}"].unsqueeze(0)
        else:
            state[f"{at}.lin.weight" if model.name == "gcn" else f"{at}.weight"] = matrix
    return {name: t.float() for name, t in state.items()}
