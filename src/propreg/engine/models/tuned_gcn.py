"""Tuned GCN: blocks of convolution, residual, norm, ReLU and dropout, then a linear layer ("classic GNNs")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from propreg.engine import ops
from propreg.engine.models.architecture import (
    ON_WEIGHTED_EDGES,
    Architecture,
    Layer,
    Recipe,
    Source,
    count_dropped,
    same,
    settings_of,
    transposed,
)
from propreg.engine.models.network import ONES, Draw, OnFeatures, Parameters, Weight, linear, norm
from propreg.engine.spec import Model, Sizes

if TYPE_CHECKING:
    from torch import Tensor

    from propreg.engine.tasks.node import Problem


@dataclass(frozen=True)
class TunedGcnModel(Model):
    """The settings of a tuned GCN; the defaults are those of Cora.

    Args:
        name: ``"tuned-gcn"``.
        hidden, layers: Width and number of the convolutions.
        residual: Whether a linear map of its input is added to each convolution.
        norm: The norm of each block: ``"none"``, ``"batch"`` or ``"layer"``.
    """

    name: str = "tuned-gcn"
    hidden: int = 512
    layers: int = 3
    residual: bool = False
    norm: Literal["none", "batch", "layer"] = "none"


class TunedGcn(OnFeatures):
    """Convolutions and a linear layer on top."""

    def __init__(self, problem: Problem, model: TunedGcnModel) -> None:
        self.spec, self.features, self.classes = model, problem.features, problem.num_classes
        self.adjacency = problem.adjacency("sym", True)

    def weights(self) -> dict[str, Weight]:
        """Of each block the convolution, the residual's map and the norm."""
        s, found = self.spec, dict[str, Weight]()
        for i in range(s.layers):
            width = s.hidden if i else self.features.shape[1]
            found |= {f"w{i}": Weight((width, s.hidden), (width, s.hidden)), f"b{i}": Weight((s.hidden,))}
            if s.residual:
                found |= {f"residual_{name}": weight for name, weight in linear(i, width, s.hidden).items()}
            if s.norm == "batch":
                found |= norm(i, s.hidden)
            elif s.norm == "layer":
                found |= {f"scale{i}": Weight((s.hidden,), start=ONES), f"shift{i}": Weight((s.hidden,))}
        return found | linear(s.layers, s.hidden, self.classes)

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:  # noqa: ARG002
        """Logits [R, N, C]."""
        s, h = self.spec, None
        for i in range(s.layers):
            masks = draw("input") if i == 0 and s.input_dropout > 0 else None
            mapped = self.features(p["w0"], masks) if h is None else h @ p[f"w{i}"]
            z = ops.propagate(self.adjacency, mapped, p[f"b{i}"])
            if s.residual:
                beside = self.features(p["residual_w0"], masks) if h is None else h @ p[f"residual_w{i}"]
                z = z + beside + p[f"residual_b{i}"].unsqueeze(1)
            h = ops.dropped(self._normed(p, z, i, draw.training).relu(), draw(f"hidden{i + 1}"))
        if h is None:
            raise ValueError("a tuned GCN has at least one layer.")
        return h @ p[f"w{s.layers}"] + p[f"b{s.layers}"].unsqueeze(1)

    def _normed(self, p: Parameters, z: Tensor, i: int, training: bool) -> Tensor:
        if self.spec.norm == "batch":
            return ops.batch_norm(z, p, i, training=training)
        if self.spec.norm == "none":
            return z
        from torch.nn.functional import layer_norm

        return layer_norm(z, z.shape[-1:]) * p[f"scale{i}"].unsqueeze(1) + p[f"shift{i}"].unsqueeze(1)


def build(problem: Problem, model: Model) -> TunedGcn:
    """On the graph with self-loops, symmetrically normalized."""
    return TunedGcn(problem, settings_of(model, TunedGcnModel))


def export(model: Model, features: int, classes: int, dropout: float) -> list[Layer]:
    """Blocks as modules of ours around PyG's ``GCNConv``, and a linear layer."""
    from torch import nn

    from propreg.engine.models.modules import Block, norm_state

    mine, found = settings_of(model, TunedGcnModel), list[Layer]()
    for i in range(mine.layers):
        block = Block(mine.hidden if i else features, mine.hidden, mine.residual, mine.norm, dropout)
        state = {"conv.lin.weight": transposed(f"w{i}"), "conv.bias": same(f"b{i}")}
        if mine.residual:
            state |= {"beside.weight": transposed(f"residual_w{i}"), "beside.bias": same(f"residual_b{i}")}
        if mine.norm == "batch":
            state |= {f"norm.{name}": value for name, value in norm_state(i).items()}
        elif mine.norm == "layer":
            state |= {"norm.weight": same(f"scale{i}"), "norm.bias": same(f"shift{i}")}
        found.append(Layer(block, ON_WEIGHTED_EDGES, state))
    head = {"weight": transposed(f"w{mine.layers}"), "bias": same(f"b{mine.layers}")}
    return [*found, Layer(nn.Linear(mine.hidden, classes), state=head)]


def check(model: Model) -> None:
    """Raise for an unknown norm."""
    mine = settings_of(model, TunedGcnModel)
    if mine.norm not in ("none", "batch", "layer"):
        raise ValueError(f"norm must be 'none', 'batch' or 'layer', got {mine.norm!r}.")


def count_parameters(model: Model, sizes: Sizes) -> int:
    """The convolutions, as often again with residuals, and the linear layer."""
    convolutions = model.hidden * (sizes.features + (model.layers - 1) * model.hidden)
    return convolutions * (1 + settings_of(model, TunedGcnModel).residual) + model.hidden * sizes.classes


def count_activations(model: Model, sizes: Sizes, passes: int) -> int:
    """Of each block its output before and after dropout, more with a norm; a few slabs in the making."""
    mine = settings_of(model, TunedGcnModel)
    slabs = passes * (2.5 + 2 * (mine.norm != "none")) * model.layers + 5
    logits = (2 + 2 * passes) * sizes.classes
    return int(sizes.nodes * (slabs * model.hidden + logits)) + count_dropped(model, sizes, passes)


def count_touched(model: Model, sizes: Sizes) -> int:
    """The numbers that a layer touches."""
    return sizes.nodes * model.width * (4 + model.width // 16) + sizes.edges * model.width


_TRAINING = {"lr": 0.001, "weight_decay": 5e-4, "max_epochs": 500, "rule": "first_best"}

# Published for one random split of 20 nodes per class. Features are not normalized there.
TUNED_GCN = Architecture(
    "tuned-gcn",
    "tuned GCN",
    build=build,
    export=export,
    streams=("hidden", "layers", "residual", "norm"),
    kind=TunedGcnModel,
    dropout=0.7,
    training=_TRAINING,
    source=Source("Luo and others", 2024, "NeurIPS", "a wide GCN with a linear layer on top and tuned settings"),
    recipes={
        "cora": Recipe({}, {**_TRAINING, "dropout": 0.7}, normalize=False),
        "citeseer": Recipe({"layers": 2}, {**_TRAINING, "weight_decay": 0.01, "dropout": 0.5}, normalize=False),
        "pubmed": Recipe({"hidden": 256, "layers": 2}, {**_TRAINING, "lr": 0.005, "dropout": 0.7}, normalize=False),
    },
    check=check,
    parameters=count_parameters,
    activations=count_activations,
    cost=count_touched,
)
