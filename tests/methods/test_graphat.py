"""GraphAT and GraphVAT on six nodes, term by term."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import propreg
from engine.graphs import problem
from methods.six_nodes import X as EXACT
from methods.six_nodes import adjacency, cross_entropy, six_nodes, softmax
from propreg.engine import Method, Protocol, Replica, train_all
from propreg.engine.ops import Neighbors, Perturbed, divergence_to_neighbors, normals, uniforms
from propreg.engine.training.epoch import advance
from propreg.engine.training.passes import Passes
from propreg.engine.training.phases import Phase
from propreg.methods.graphat import DIRECTIONS, NEIGHBORS, GraphAtLoss, GraphAtModel, phases
from reference import Array

X = EXACT.astype(np.float32).astype(np.float64)
ALONE = Replica(split="own", dropout=0.0)
FULL = GraphAtModel("graphvat", hidden=5, graph_weight=0.8, graph_epsilon=0.3, virtual_weight=0.6, virtual_epsilon=0.9)


def started(model: GraphAtModel, method: Method | None = None, run: Replica = ALONE) -> tuple[Phase, Passes]:
    (phase,) = phases(six_nodes(), [run], model=model, method=method or Method(), protocol=Protocol())
    advance(phase.objective, phase.state, 1)
    begun = phase.network.begin(phase.state.tensors)
    return phase, Passes(phase.network, phase.state, begun, phase.objective.passes)


def loss_of(phase: Phase, seen: Passes) -> float:
    return float(phase.objective.loss(phase.state, seen).detach())


def weights(phase: Phase) -> tuple[Array, Array]:
    one, two = (phase.state.parameters[name][0].detach().numpy() for name in ("w0", "w1"))
    return one, two


def logits(phase: Phase, x: Array) -> Array:
    """Â relu(Â X W) W', without biases."""
    one, two = weights(phase)
    z: Array = adjacency() @ np.maximum(adjacency() @ x @ one, 0) @ two
    return z


def divergence(p: Array, q: Array) -> Array:
    found: Array = (p * np.log(p / q)).sum(-1)
    return found


def gradient_of(value: Any, at: Array, step: float = 1e-6) -> Array:
    """By differences."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        moved = np.zeros_like(at)
        moved[place] = step
        found[place] = (value(at + moved) - value(at - moved)) / (2 * step)
    return found


def expected_of_neighbors(phase: Phase, sampled: Array, epsilon: float, floor: float = 1e-12) -> float:
    p = softmax(logits(phase, X))

    def value(x: Array) -> float:
        return float(sum(divergence(p[row], softmax(logits(phase, x))).mean() for row in sampled))

    g = gradient_of(value, X)
    return value(X + epsilon * g / np.sqrt(np.maximum((g**2).sum(1, keepdims=True), floor)))


def expected_of_itself(phase: Phase, start: Array, epsilon: float) -> float:
    """The divergence is tiny near X: its gradient is that of its quadratic form, by autograd in float64."""
    one, two = (torch.from_numpy(w) for w in weights(phase))
    a, p = torch.from_numpy(adjacency()), torch.from_numpy(softmax(logits(phase, X)))

    def value(x: torch.Tensor) -> torch.Tensor:
        q = (a @ (a @ x @ one).relu() @ two).softmax(1)
        return (p * (p / q).log()).sum(1).mean()

    at = torch.from_numpy(X + start).requires_grad_()
    (g,) = torch.autograd.grad(value(at), at)
    r = epsilon * g / g.square().sum(1, keepdim=True).clamp_min(1e-12).sqrt()
    return float(value(torch.from_numpy(X) + r))


def own_step(phase: Phase, size: float) -> Array:
    u = normals(phase.state.keys(DIRECTIONS), 24, torch.float64)[0].numpy().reshape(6, 4)
    found: Array = size * u / np.linalg.norm(u, axis=1, keepdims=True)
    return found


def test_neighbors_are_sampled_and_a_lonely_node_is_its_own() -> None:
    phase, _ = started(FULL)
    objective: Any = phase.objective
    known = [{1, 3}, {0, 2}, {1, 3}, {0, 2, 4}, {3}, {5}]
    counts = np.zeros((6, 6))
    for epoch in range(1, 301):
        phase.state.keys.advance(epoch)
        sampled = objective.neighbors.sampled(phase.state.keys(NEIGHBORS), 2)
        assert sampled.shape == (1, 2, 6)
        for row in sampled[0].tolist():
            for node, neighbor in enumerate(row):
                counts[node, neighbor] += 1
    assert [set(np.flatnonzero(row)) for row in counts] == known
    np.testing.assert_allclose(counts[3] / 600, [1 / 3, 0, 1 / 3, 0, 1 / 3, 0], atol=0.06)


def test_random_numbers_are_uniform_and_normal() -> None:
    phase, _ = started(FULL)
    keys = phase.state.keys(DIRECTIONS)
    u, z = uniforms(keys, 100_001)[0], normals(keys, 100_001, torch.float64)[0]
    assert float(u.min()) > 0
    assert float(u.max()) < 1
    np.testing.assert_allclose(np.histogram(u, 10, (0, 1))[0] / 100_001, 0.1, atol=0.004)
    assert len(z) == 100_001
    assert float(z.mean()) == pytest.approx(0, abs=0.01)
    assert [float((z.abs() < width).double().mean()) for width in (1, 2)] == pytest.approx([0.6827, 0.9545], abs=0.005)
    assert float((z[:50_000] * z[-50_000:]).mean()) == pytest.approx(0, abs=0.015)


def test_the_divergence_from_neighbors() -> None:
    phase, seen = started(replace(FULL, virtual_weight=0.0))
    objective: Any = phase.objective
    sampled = objective.neighbors.sampled(phase.state.keys(NEIGHBORS), 2)[0].numpy()
    expected = cross_entropy(logits(phase, X)) + 0.8 * expected_of_neighbors(phase, sampled, 0.3)
    assert loss_of(phase, seen) == pytest.approx(expected, abs=1e-6)


def test_the_perturbation_has_the_floor_of_the_norm() -> None:
    """Rows above it have length ε, and those below are shorter in proportion."""
    phase, seen = started(FULL)
    w = phase.state.parameters["w0"].detach()
    perturbed = Perturbed(phase.network, seen.p, seen.draws[0])
    neighbors = Neighbors(torch.tensor([[1], [0]]), 6).sampled(phase.state.keys(NEIGHBORS), 1)
    clean = seen.trained(0).detach().log_softmax(-1)

    def of_neighbors(x: Array) -> float:
        p = softmax(logits(phase, X))
        return float(divergence(p[neighbors[0, 0]], softmax(logits(phase, x))).mean())

    g = gradient_of(of_neighbors, X)
    squared = (g**2).sum(1, keepdims=True)
    floor = float(np.median(squared))
    assert (squared > floor).any()
    assert (squared < floor / 2).any()
    found = perturbed.steepest(lambda log_q: divergence_to_neighbors(clean, log_q, neighbors), 0.3, floor)
    r = 0.3 * g / np.sqrt(np.maximum(squared, floor))
    np.testing.assert_allclose(found[0].detach().numpy(), r @ w[0].numpy(), atol=1e-7)


def test_the_divergence_from_itself() -> None:
    phase, seen = started(replace(FULL, graph_weight=0.0, virtual_step=1e-3))
    expected = cross_entropy(logits(phase, X)) + 0.6 * expected_of_itself(phase, own_step(phase, 1e-3), 0.9)
    assert loss_of(phase, seen) == pytest.approx(expected, abs=1e-9)


def test_under_the_floor_the_perturbation_is_short() -> None:
    """With the published step the gradient's rows lie below it, and the divergence is far below that of length ε."""
    values = []
    for step in (1e-3, 1e-9):
        phase, seen = started(replace(FULL, graph_weight=0.0, virtual_step=step))
        values.append(loss_of(phase, seen) - cross_entropy(logits(phase, X)))
    assert 0 <= values[1] < values[0] / 1e4


def test_the_perturbation_is_a_constant_and_the_clean_prediction_is_too() -> None:
    """The gradient of the loss to the weights, with r and p fixed, by differences."""
    phase, seen = started(replace(FULL, virtual_weight=0.0, graph_weight=1.0))
    objective: Any = phase.objective
    sampled = objective.neighbors.sampled(phase.state.keys(NEIGHBORS), 2)
    clean = seen.trained(0).detach().log_softmax(-1)
    perturbed = Perturbed(phase.network, seen.p, seen.draws[0])
    w = phase.state.parameters["w0"]
    (found,) = torch.autograd.grad(objective.from_neighbors(perturbed, clean, sampled).sum(), w)
    one, two = weights(phase)
    one, p = one.copy(), softmax(logits(phase, X))
    rows = sampled[0].numpy()

    def value(x: Array, w0: Array) -> float:
        z = adjacency() @ np.maximum(adjacency() @ x @ w0, 0) @ two
        return float(sum(divergence(p[row], softmax(z)).mean() for row in rows))

    g = gradient_of(lambda x: value(x, one), X)
    r = 0.3 * g / np.sqrt(np.maximum((g**2).sum(1, keepdims=True), 1e-12))
    np.testing.assert_allclose(found[0].numpy(), gradient_of(lambda w0: value(X + r, w0), one), atol=1e-6)


@pytest.mark.parametrize("method", [Method(), Method("preg")], ids=["plain", "P-reg"])
def test_the_loss_is_the_sum_of_its_terms(method: Method) -> None:
    strength = 0.25 if method.name == "preg" else 0.0
    phase, seen = started(replace(FULL, virtual_step=1e-3), method, replace(ALONE, strength=strength))
    objective: Any = phase.objective
    sampled = objective.neighbors.sampled(phase.state.keys(NEIGHBORS), 2)[0].numpy()
    z = logits(phase, X)
    expected = cross_entropy(z) + 0.8 * expected_of_neighbors(phase, sampled, 0.3)
    expected += 0.6 * expected_of_itself(phase, own_step(phase, 1e-3), 0.9)
    if strength:
        edges = torch.from_numpy(six_nodes().graph.edge_index)
        expected += strength * float(propreg.preg(torch.from_numpy(z), edges))
    assert loss_of(phase, seen) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"neighbors": 0}, "neighbors must be a whole number of at least 1, got 0"),
        ({"graph_weight": -1.0}, "graph_weight must be a number of at least 0, got -1.0"),
        ({"virtual_step": -1.0}, "virtual_step must be a number of at least 0, got -1.0"),
    ],
)
def test_settings_out_of_range(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        list(train_all(problem(), GraphAtModel(**change), Method(), [Replica(split="a")], Protocol()))


def test_graphat_is_the_graph_s_term_alone() -> None:
    known = GraphAtModel()
    assert (known.graph_weight, known.virtual_weight) == (1.0, 0.0)
    assert isinstance(started(known)[0].objective, GraphAtLoss)
