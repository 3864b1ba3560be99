"""How far a module looks is found on a ring; a module that looks at the whole graph is refused."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from fitting.own_modules import GRAPH, SPLIT, Base, Lazy, Scaled
from propreg.data.scaling import Scaling
from propreg.engine import Problem
from propreg.engine.models.user_module import Factory
from propreg.scale.blocks import LargeGraph
from propreg.scale.reach import Reach, module_and_reach


class Stack(nn.Module):
    def __init__(self, kind: type[nn.Module], layers: int) -> None:
        super().__init__()
        widths = [8, *[6] * (layers - 1), 3]
        self.layers = nn.ModuleList(kind(*each) for each in itertools.pairwise(widths))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x.tanh() if i else x, edge_index)
        return x


class Pooled(Base):
    """Adds the mean of all nodes."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x + x.mean(0), edge_index)


class Alone(Base):
    """Sees no edges."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return super().forward(x, edge_index[:, :0])


class Weighs(Base):
    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        assert edge_weight is not None
        return super().forward(x, edge_index) * edge_weight.new_ones(())


def reach(factory: Factory, *, weighted: bool = False, inputs: tuple[str, ...] | None = None) -> Reach:
    weight = np.ones(GRAPH.edge_index.shape[1], np.float32) if weighted else None
    graph = replace(GRAPH, edge_weight=weight, extra={"color": torch.zeros(120)})
    problem = Problem(graph, {"": SPLIT}, "cpu")
    return module_and_reach(factory, LargeGraph(problem, Scaling()), inputs, None)[1]


@pytest.mark.parametrize(
    ("factory", "sampled", "whole"),
    [
        (lambda: Stack(SAGEConv, 2), 2, 2),
        (lambda: Stack(GATConv, 2), 2, 2),
        (lambda: Stack(GCNConv, 2), 2, 3),  # the degrees of the farthest nodes need their neighbors
        (lambda: Stack(SAGEConv, 4), 4, 4),
        (Alone, 0, 0),
        (Base, 1, 1),
        (Lazy, 1, 1),
    ],
)
def test_reach(factory: Factory, sampled: int, whole: int) -> None:
    assert reach(factory) == Reach(sampled, whole)


def test_an_output_that_is_no_number_depends_on_nothing() -> None:
    """The training then says what is wrong, as that of full batches does."""

    class Broken(Base):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return super().forward(x, edge_index) * torch.nan

    assert reach(Broken) == Reach(0, 0)


def test_weights_are_passed_on() -> None:
    assert reach(Weighs, weighted=True) == Reach(1, 1)


def test_what_is_no_part_of_a_graph_is_refused() -> None:
    for factory, says in (
        (Pooled, "looks further than 4 hops"),
        (lambda: Stack(SAGEConv, 5), "looks further than 4 hops, .* give it fewer layers .*, or pass batch='full'"),
        (Scaled, r"does not run on another graph than the whole, .*Error: .*120.*pass batch='full'"),
    ):
        with pytest.raises(ValueError, match=says):
            reach(factory)
    with pytest.raises(ValueError, match="inputs names 'color', but mini-batches have x, edge_index and edge_weight"):
        reach(Base, inputs=("x", "edge_index", "color"))
    same = Base()
    with pytest.raises(ValueError, match="model must make a new module at every call"):
        reach(lambda: same)
