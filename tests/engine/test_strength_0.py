"""A strength of 0 is the plain run to the last bit, on a GPU too, where the two have products of other widths."""

from typing import Literal

import numpy as np
import pytest
import torch

from propreg.data.features import from_dense
from propreg.data.graph import Graph, Split
from propreg.engine import Method, Model, Problem, Protocol, Replica
from propreg.engine.training.train import train

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU; other tests do this on a CPU")

NODES, WORDS, HUB = 3000, 300, 1500  # the hub's row is cut into several parts


def hubbed(classes: int, degree: int) -> Problem:
    """A random graph with a node that many are connected to."""
    rng = np.random.default_rng(classes)
    one, other = rng.integers(NODES, size=(2, NODES * degree // 2))
    one, other = np.append(one, np.zeros(HUB, np.int64)), np.append(other, np.arange(1, HUB + 1))
    edges = np.stack([np.append(one, other), np.append(other, one)])
    edges = np.unique(edges[:, edges[0] != edges[1]], axis=1).astype(np.int64)
    x = (rng.random((NODES, WORDS)) < 0.03).astype(np.float32)
    part = rng.integers(3, size=NODES)
    graph = Graph("hubbed", edges, from_dense(x), rng.integers(classes, size=NODES), None)
    return Problem(graph, {"a": Split(part == 0, part == 1, part == 2)}, torch.device("cuda"), torch.float32)


def regular(classes: int) -> Problem:
    """A graph whose nodes all have as many neighbors: all entries of Â are equal."""
    rng = np.random.default_rng(classes)
    one = np.arange(2048).repeat(80)
    other = (one + np.tile(np.append(np.arange(-40, 0), np.arange(1, 41)), 2048)) % 2048
    x, part = (rng.random((2048, WORDS)) < 0.03).astype(np.float32), rng.integers(3, size=2048)
    graph = Graph("regular", np.stack([one, other]), from_dense(x), rng.integers(classes, size=2048), None)
    return Problem(graph, {"a": Split(part == 0, part == 1, part == 2)}, torch.device("cuda"), torch.float32)


@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_strength_0_of_a_regular_graph(preset: Literal["paper", "reference"]) -> None:
    same_bits(regular(8), Model("gcn"), preset, 9)


@pytest.mark.parametrize(
    ("model", "classes", "degree"),
    [
        *((Model("gcn"), classes, 20) for classes in (3, 5, 7, 8, 10, 15)),
        *((Model("gcn"), 8, degree) for degree in (4, 60)),
        (Model("mlp"), 5, 20),
        (Model("gat", hidden=16, input_dropout=0.6), 5, 20),
    ],
    ids=str,
)
@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_strength_0(preset: Literal["paper", "reference"], model: Model, classes: int, degree: int) -> None:
    same_bits(hubbed(classes, degree), model, preset, 3 if degree == 60 else 9)


def same_bits(graph: Problem, model: Model, preset: Literal["paper", "reference"], count: int) -> None:
    """So many runs without a regularizer, and with a strength of 0."""
    runs = [Replica(seed=s, split="a", strength=0.0) for s in range(count)]
    protocol = Protocol(max_epochs=10)
    plain, zero = (
        dict(train(graph, model, method, runs, protocol, keep_weights=True, check_every=16))
        for method in (Method(), Method.preset(preset))
    )
    for number in range(len(runs)):
        assert plain[number].epoch == zero[number].epoch
        for name, weight in plain[number].weights.items():
            assert torch.equal(weight, zero[number].weights[name]), name
