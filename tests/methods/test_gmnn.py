"""GMNN on six nodes, target by target, and its three phases."""

from typing import Any

import numpy as np
import pytest
import torch

import propreg
from engine.graphs import problem
from methods.six_nodes import X, Y, adjacency, cross_entropy, six_nodes, softmax
from propreg.engine import Method, Options, Protocol, Replica, train_all
from propreg.engine.models.network import no_dropout
from propreg.engine.ops.rmsprop import RMSprop
from propreg.engine.training.epoch import advance
from propreg.engine.training.passes import Passes
from propreg.engine.training.phases import Phase
from propreg.methods.gmnn import GmnnModel, RegularizedOnAllNodes, drawn, phases
from propreg.methods.gmnn import target_cross_entropy as entropy
from propreg.methods.networks import binarized
from reference import Array

SMALL = GmnnModel(hidden=5, pretraining=3, m_step=4, input_dropout=0.0)
RUNS = [Replica(split="own", seed=s, dropout=0.0, lr=0.05, strength=0.25) for s in range(2)]
EYE = np.eye(3)


def stepped(phase: Phase, epochs: int) -> None:
    """Train a phase that leaves the last epoch, without a ledger."""
    from propreg.engine.training.epoch import step

    for epoch in range(1, epochs + 1):
        advance(phase.objective, phase.state, epoch)
        begun = phase.network.begin(phase.state.tensors)
        step(phase.objective, phase.state, Passes(phase.network, phase.state, begun))


def array(t: torch.Tensor) -> Array:
    found: Array = t.detach().numpy()
    return found


def two_layers(x: Array, first: torch.Tensor, second: torch.Tensor) -> Array:
    z: Array = adjacency() @ np.maximum(adjacency() @ (x @ array(first)), 0) @ array(second)
    return z


def test_the_targets_of_both_steps() -> None:
    """p gets drawn classes, q the soft predictions of p; training nodes have their labels in both."""
    found = six_nodes()
    steps = phases(found, RUNS, model=SMALL, method=Method("preg"), protocol=Protocol())
    first = next(steps)
    q, network = first.state, first.network
    assert (first.leaves, first.epochs, first.rules[0].name) == ("best", 3, "first_best")
    second = next(steps)
    assert (second.leaves, second.epochs) == ("last", 4)
    classes = array(second.state.held["targets"])
    assert set(np.unique(classes)) == {0.0, 1.0}
    assert (classes.sum(-1) == 1).all()
    assert (classes[:, :3] == EYE[Y[:3]]).all()
    z = array(network.finish(q.tensors, None, no_dropout))
    expected = drawn(found, RUNS, SMALL, torch.from_numpy(softmax(z / 0.1)))
    assert (classes[:, 3:] == array(expected)[:, 3:]).all(), "from q at a temperature of 0.1"
    inputs = array(second.network.finish(second.state.tensors, None, no_dropout)[1])
    p = second.state.parameters
    np.testing.assert_allclose(inputs, two_layers(classes[1], p["v0"][1], p["v1"][1]), atol=1e-9)
    stepped(second, 4)
    third = next(steps)
    soft = array(third.state.held["targets"])
    predictions = two_layers(classes[0], p["v0"][0], p["v1"][0])
    np.testing.assert_allclose(soft[0, 3:], softmax(predictions)[3:], atol=1e-9)
    assert (soft[:, :3] == EYE[Y[:3]]).all()
    assert third.state is q, "q goes on, with its optimizer"
    assert isinstance(q.optimizer, RMSprop)
    assert third.rules[0].name == "official"


@pytest.mark.parametrize("name", ["plain", "preg", "label_smoothing"])
def test_the_loss_of_the_e_step(name: str) -> None:
    """Cross entropy against the soft targets of all nodes, and what the regularizer adds on the training nodes."""
    found, method = six_nodes(), Method(name)
    *_, third = phases(found, RUNS, model=SMALL, method=method, protocol=Protocol())
    assert isinstance(third.objective, RegularizedOnAllNodes)
    advance(third.objective, third.state, 1)
    logits = Passes(third.network, third.state, None)
    z = array(logits.trained(0)[0])
    np.testing.assert_allclose(
        z, two_layers(X, third.state.parameters["w0"][0], third.state.parameters["w1"][0]), atol=1e-6
    )
    targets = array(third.state.held["targets"])[0]
    expected = -(targets * np.log(softmax(z))).sum(1).mean()
    if name == "preg":
        edges = torch.from_numpy(found.graph.edge_index)
        expected += 0.25 * float(propreg.preg(torch.from_numpy(z), edges))
    elif name == "label_smoothing":
        even = -np.log(softmax(z))[:3].mean()
        expected += 0.25 * (even - cross_entropy(z))
    assert float(third.objective.loss(third.state, logits)[0].detach()) == pytest.approx(expected, abs=1e-9)


def test_classes_are_drawn_with_their_probabilities() -> None:
    """By each replica's own stream: the same again, and others for another seed."""
    found = problem()
    p = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64).expand(200, 60, 4)
    runs = [Replica(split="a", seed=s) for s in range(200)]
    chosen = drawn(found, runs, SMALL, p)
    assert bool((chosen.sum(-1) == 1).all())
    np.testing.assert_allclose(array(chosen.mean((0, 1))), [0.1, 0.2, 0.3, 0.4], atol=0.02)
    assert torch.equal(drawn(found, runs[7:8], SMALL, p[7:8]), chosen[7:8])
    assert not torch.equal(chosen[0], chosen[1])


def test_binarized_features() -> None:
    x = array(binarized(six_nodes().features).matrix.to_dense())
    there = (X != 0).astype(float)
    np.testing.assert_allclose(x, there / np.maximum(there.sum(1, keepdims=True), 1), atol=1e-9)


def test_target_cross_entropy_by_hand() -> None:
    z = torch.tensor([[[0.0, 0.0], [np.log(3.0), 0.0]]], dtype=torch.float64)
    targets = torch.tensor([[[0.5, 0.5], [1.0, 0.0]]], dtype=torch.float64)
    assert entropy(z, targets).tolist() == pytest.approx([(np.log(2) + np.log(4 / 3)) / 2])


def test_epochs_before_the_e_step_are_no_candidates() -> None:
    options = Options(rules=["last"], workers=1)
    runs = [Replica(split="a", dropout=0.0, lr=0.05)]
    model = GmnnModel(hidden=8, pretraining=6, m_step=5)
    ((_, result),) = train_all(problem(), model, Method(), runs, Protocol("first_best", max_epochs=7), options)
    assert result.epochs == 6 + 5 + 7
    assert [report.rule for report in result.reports] == ["first_best", "last"]
    assert 11 < result.reports[0].epoch <= result.reports[1].epoch == 18


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pretraining": 0}, "pretraining must be a whole number of at least 1, got 0"),
        ({"m_step": 1.5}, "m_step must be a whole number of at least 1, got 1.5"),
        ({"temperature": 0.0}, "temperature must be above 0, got 0.0"),
        ({"optimizer": "sgd"}, "optimizer must be 'rmsprop' or 'adam', got 'sgd'"),
    ],
)
def test_settings_out_of_range(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        list(train_all(problem(), GmnnModel(**change), Method(), [Replica(split="a")], Protocol()))
