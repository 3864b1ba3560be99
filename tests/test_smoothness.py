"""Dirichlet energy and mean average distance against their formulas, written as loops."""

import math

import pytest
import torch

from propreg import Propagation, dirichlet_energy, mean_average_distance
from reference import adjacency, dense
from samples import ODD, gaussian


def mad(z: torch.Tensor, edge_index: torch.Tensor) -> float:
    """The formula, edge by edge."""
    rows = dense(z)
    per_node: dict[int, list[float]] = {}
    for source, target in edge_index.t().tolist():
        if source != target:
            a, b = rows[source], rows[target]
            lengths = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
            per_node.setdefault(target, []).append(1 - (float(a @ b) / lengths if lengths else 0.0))
    means = [sum(each) / len(each) for each in per_node.values()]
    return sum(means) / len(means) if means else 0.0


@pytest.mark.parametrize("seed", range(5))
def test_mean_average_distance_is_its_formula(seed: int) -> None:
    z = gaussian(6, 4, seed=seed)
    assert mean_average_distance(z, ODD.edge_index).item() == pytest.approx(mad(z, ODD.edge_index))
    z[2] = 0
    assert mean_average_distance(z, ODD.edge_index).item() == pytest.approx(mad(z, ODD.edge_index))
    z.requires_grad_()
    mean_average_distance(z, Propagation(ODD.edge_index, num_nodes=6)).backward()  # type: ignore[no-untyped-call]
    assert z.grad is not None
    assert z.grad.isfinite().all()


@pytest.mark.parametrize("seed", range(5))
def test_dirichlet_energy_is_its_formula(seed: int) -> None:
    z, edge_index = gaussian(5, 3, seed=seed), torch.tensor([[0, 1, 1, 2, 2, 3, 0, 3], [1, 0, 2, 1, 3, 2, 3, 0]])
    matrix = adjacency(edge_index, 5)
    degree = matrix.sum(axis=1)
    rows, total = dense(z), 0.0
    for i in range(5):
        for j in range(i):
            if matrix[i, j]:
                apart = rows[i] / math.sqrt(degree[i]) - rows[j] / math.sqrt(degree[j])
                total += float(apart @ apart)
    assert dirichlet_energy(z, edge_index).item() == pytest.approx(total / 5)


def test_both_vanish_where_a_deep_network_ends() -> None:
    """Propagating again and again smooths: energy falls, and rows end up pointing the same way."""
    edge_index = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 3]])
    edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
    step = Propagation(edge_index, num_nodes=4, norm="sym", add_self_loops=True)
    z, energies = gaussian(4, 3), []
    for _ in range(60):
        energies.append(dirichlet_energy(z, edge_index).item())
        z = step(z)
    assert energies[-1] < 0.2 * energies[0]
    assert mean_average_distance(z, edge_index).item() < 1e-3


def test_a_graph_without_edges_is_perfectly_smooth() -> None:
    nothing = torch.zeros(2, 0, dtype=torch.int64)
    assert dirichlet_energy(gaussian(3, 2), nothing).item() == 0.0
    assert mean_average_distance(gaussian(3, 2), nothing).item() == 0.0
