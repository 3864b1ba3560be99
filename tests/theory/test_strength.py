"""μ and ω: how the strength of squared-error P-reg tightens the output on a fixed graph.

The model-free problem min ½‖Z − Y‖² + μ · P-reg has the closed form Z(μ) = (I + (μ/N) Δ̃ᵀΔ̃)⁻¹ Y.
"""

from itertools import pairwise

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import propreg
from known_graphs import connected_graphs, normal, normalized_laplacian, seeds, tensor, two_cliques
from reference import Array
from strategies import Graph, thorough

STRENGTHS = (0.0, 0.1, 1.0, 10.0, 100.0, 1e4, 1e6)


def minimizer(graph: Graph, y: Array, mu: float) -> Array:
    delta = normalized_laplacian(graph)
    system = np.eye(graph.num_nodes) + mu / graph.num_nodes * delta.T @ delta
    return np.asarray(np.linalg.solve(system, y), dtype=np.float64)


def omega(z: Array, labels: Array) -> float:
    return propreg.intra_class_distance(tensor(z), torch.from_numpy(labels.astype(np.int64))).item()


@thorough
@given(graph=connected_graphs(), seed=seeds, mu=st.sampled_from(STRENGTHS))
def test_the_closed_form_is_the_minimizer(graph: Graph, seed: int, mu: float) -> None:
    """The gradient of ½‖Z − Y‖² + μ · preg(Z), by autograd, is 0 at Z(μ)."""
    y = normal(seed, graph.num_nodes, 2)
    z = tensor(minimizer(graph, y, mu), requires_grad=True)
    loss = 0.5 * (z - tensor(y)).square().sum() + mu * propreg.preg(z, graph.edge_index, phi="squared_error")
    (gradient,) = torch.autograd.grad(loss, z)
    assert gradient.abs().max().item() < 1e-8


def test_a_larger_strength_gives_a_smaller_distance() -> None:
    """Two communities with noisy outputs: ω falls with every larger μ, to 0."""
    graph, labels = two_cliques(6), np.repeat([0.0, 1.0], 6)
    y = np.repeat(np.eye(2), 6, axis=0) + 0.5 * normal(0, 12, 2)
    distances = [omega(minimizer(graph, y, mu), labels) for mu in STRENGTHS]
    assert all(b < a for a, b in pairwise(distances))
    assert distances[-1] < 1e-3


@thorough
@given(graph=connected_graphs(), seed=seeds)
def test_the_spread_falls_on_every_graph_and_bounds_the_distance(graph: Graph, seed: int) -> None:
    """What holds for every connected graph, output and labeling.

    The spread s(μ), the root mean square distance of the rows from their mean, falls strictly with μ, at least like
    1/(1 + μλ/N) with λ the smallest positive eigenvalue of Δ̃ᵀΔ̃, and ω(μ) ≤ s(μ). So ω goes to 0 under a falling bound.
    """
    y = normal(seed, graph.num_nodes, 2)
    labels = np.random.default_rng(seed).integers(0, 2, graph.num_nodes)
    delta = normalized_laplacian(graph)
    smallest = np.linalg.eigvalsh(delta.T @ delta)[1]
    spreads = []
    for mu in STRENGTHS:
        z = minimizer(graph, y, mu)
        spreads.append(np.sqrt(np.mean(np.sum((z - z.mean(axis=0)) ** 2, axis=1))))
        assert omega(z, labels.astype(np.float64)) <= spreads[-1] + 1e-12
        assert spreads[-1] <= spreads[0] / (1 + mu * smallest / graph.num_nodes) + 1e-12
    assert all(b < a for a, b in pairwise(spreads))


def test_the_distance_itself_need_not_fall_at_once() -> None:
    """ω is not monotone for every Y: outputs that are already equal within each class have ω = 0, and smoothing a
    class's border first pulls it apart. In the end ω is 0 again, since all rows are equal."""
    graph, labels = two_cliques(4), np.repeat([0.0, 1.0], 4)
    y = np.repeat(np.eye(2), 4, axis=0)
    distances = [omega(minimizer(graph, y, mu), labels) for mu in (0.0, 10.0, 1e8)]
    assert distances[0] == 0.0
    assert distances[1] > 0.01
    assert distances[2] < 1e-4
