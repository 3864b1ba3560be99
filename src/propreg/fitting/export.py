"""A trained replica as an ordinary PyG module: it needs no propreg to run, and costs nothing extra at inference."""

import itertools
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from propreg.engine.spec import Model

Weights = Mapping[str, Tensor]


def as_module(model: Model, weights: Weights, dropout: float) -> nn.Module:
    """A ``torch_geometric.nn.Sequential`` with ``forward(x, edge_index)`` and these weights, in evaluation mode."""
    module = untrained_module(model, _sizes(model, weights), dropout)
    module.load_state_dict(_state(model, weights))
    return module.eval()


def untrained_module(model: Model, sizes: tuple[int, int], dropout: float) -> nn.Module:
    """The architecture in PyG's layers, for ``sizes`` = (features, classes)."""
    from torch_geometric.nn import APPNP, GATConv, GCNConv, Sequential

    features, classes = sizes
    steps: list[Any] = [(nn.Dropout(model.input_dropout), "x -> x")] if model.input_dropout else []
    if model.name == "gat":
        wide, rate = model.heads * model.hidden, model.attention_dropout
        steps += [
            (GATConv(features, model.hidden, heads=model.heads, dropout=rate), "x, edge_index -> x"),
            (nn.ELU(), "x -> x"),
            (nn.Dropout(dropout), "x -> x"),
            (GATConv(wide, classes, heads=model.out_heads, concat=False, dropout=rate), "x, edge_index -> x"),
        ]
        return Sequential("x, edge_index", steps)  # type: ignore[no-any-return]
    widths = [features, *[model.hidden] * (model.layers - 1), classes]
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(widths)):
        if i:
            steps += [(nn.ReLU(), "x -> x"), (nn.Dropout(dropout), "x -> x")]
        convolution = model.name == "gcn"
        layer = GCNConv(fan_in, fan_out) if convolution else nn.Linear(fan_in, fan_out)
        steps.append((layer, "x, edge_index -> x" if convolution else "x -> x"))
    if model.name == "appnp":
        steps.append((APPNP(model.steps, model.teleport), "x, edge_index -> x"))
    return Sequential("x, edge_index", steps)  # type: ignore[no-any-return]


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
    return {name: torch.as_tensor(t).float() for name, t in state.items()}
