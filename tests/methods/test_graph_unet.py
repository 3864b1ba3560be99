"""Graph U-Nets against PyG's, against a formula with dense matrices, and by hand on six nodes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.follow import check_near
from engine.graphs import problem
from methods.plain import Drop, Forward, Weights, check_trains_like, dense_features, no_drop, normalized, on_nonzeros
from methods.six_nodes import X, adjacency, six_nodes
from propreg.engine import Method, Problem, Protocol, Replica, train_all
from propreg.engine.models.graph_unet import GRAPH_UNET, GraphUNet, GraphUNetModel, Pooled, two_hops
from propreg.engine.models.network import no_dropout
from propreg.engine.ops import Pattern
from propreg.engine.training.epoch import advance
from propreg.engine.training.objective import RegularizedLoss
from propreg.engine.training.passes import DropoutMasks
from propreg.engine.training.state import State, begin
from reference import Array

SMALL = GraphUNetModel(hidden=8, pooled=30, input_dropout=0.5, drop_edge=0.25)
RUNS = [
    Replica(seed=0, split="a", strength=0.3),
    Replica(seed=1, split="b", strength=0.1, lr=0.02, weight_decay=0.01),
]


def started(found: Problem, model: GraphUNetModel, replicas: list[Replica]) -> tuple[GraphUNet, State]:
    network = GraphUNet(found, model)
    state = begin(found, network, model, replicas, Protocol())
    advance(RegularizedLoss(Method(), found.regularizer(Method())), state, 1)
    return network, state


def evaluated(network: GraphUNet, state: State) -> Tensor:
    return network.finish(state.tensors, network.begin(state.tensors), no_dropout).detach()


def formula(found: Problem, model: GraphUNetModel) -> Forward:
    """With whole matrices: the square of each level is computed, and then its rows and columns are kept."""
    nodes, loops = found.num_nodes, torch.from_numpy(found.graph.edge_index)
    own = torch.zeros(nodes, dtype=torch.bool)
    own[loops[0, loops[0] == loops[1]]] = True

    def forward(p: Weights, x: Tensor, a: Tensor, drop: Drop) -> Tensor:
        if drop is not no_drop:
            network = GraphUNet(found, model)
            left = drop("edges", torch.ones(network.pairs, dtype=a.dtype)) > 0
            kept = torch.zeros_like(a)
            kept[network.pattern.row, network.pattern.col] = left[network.pair].to(a.dtype)
            a = a * kept.fill_diagonal_(1)
        matrix = normalized(a + torch.where(own, 0.0, 1.0).diag())  # a node without a loop of its own has 1 in a
        h = (matrix @ (on_nonzeros(found, drop, x) @ p["w0"]) + p["b0"]).relu()
        a = a - a.diag().diag()
        matrices, skips, chosen = [matrix], [h], []
        for i in range(1, model.depth + 1):
            score = h @ p[f"score{i}"] / p[f"score{i}"].norm()
            size = min(model.pooled, nodes) if i == 1 else -(-len(h) // 2)
            best = score.float().sort(descending=True, stable=True).indices[:size].sort().values  # nodes may be alike
            a = (a + torch.eye(len(a), dtype=a.dtype)) @ (a + torch.eye(len(a), dtype=a.dtype))
            a = a[best][:, best] - a[best, best].diag()
            matrices.append(normalized(a + 2 * torch.eye(size, dtype=a.dtype)))
            h = (matrices[-1] @ (h[best] * score[best].tanh().unsqueeze(1)) @ p[f"w{i}"] + p[f"b{i}"]).relu()
            skips.append(h)
            chosen.append(best)
        for i in range(model.depth + 1, 2 * model.depth + 1):
            level = 2 * model.depth - i
            up = torch.zeros_like(skips[level]).index_put((chosen[level],), h)
            h = matrices[level] @ (skips[level] + up) @ p[f"w{i}"] + p[f"b{i}"]
            h = h if level == 0 else h.relu()
        return h

    return forward


@pytest.mark.parametrize("kind", ["plain", "odd"])
@pytest.mark.parametrize("model", [SMALL, replace(SMALL, depth=1), replace(SMALL, pooled=2000, input_dropout=0.0)])
def test_it_trains_like_its_formula(model: GraphUNetModel, kind: str) -> None:
    """20 epochs with dropout and P-reg on a simple graph, and on a directed, weighted one with isolated nodes."""
    check_trains_like(problem(kind), model, formula(problem(kind), model), RUNS)


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("kind", ["plain", "odd"])
def test_the_twin_of_pyg(kind: str) -> None:
    """PyG's own forward, which squares whole matrices, with our weights."""
    from torch_geometric.nn.models import GraphUNet as Twin

    found = problem(kind)
    network, state = started(found, SMALL, [replace(run, split="a") for run in RUNS])
    twin = Twin(found.features.shape[1], 8, found.num_classes, 3, [30, 0.5, 0.5]).double()
    known = {name: t.detach()[1] for name, t in state.parameters.items()}
    weights = {f"pools.{i - 1}.select.weight": known[f"score{i}"].unsqueeze(0) for i in (1, 2, 3)}
    for i in range(7):
        name = f"down_convs.{i}" if i < 4 else f"up_convs.{i - 4}"
        weights |= {f"{name}.lin.weight": known[f"w{i}"].t(), f"{name}.bias": known[f"b{i}"]}
    twin.load_state_dict(weights)
    edges = torch.from_numpy(found.graph.edge_index)
    edge_weight = None if found.edge_weight is None else found.edge_weight.double()
    expected = twin(dense_features(found), edges, edge_weight=edge_weight).detach()
    check_near(evaluated(network, state)[1], expected, 1e-9, kind)


def test_six_nodes_by_hand() -> None:
    """One pooling to three nodes, in NumPy."""
    found = six_nodes()
    network, state = started(found, GraphUNetModel(hidden=5, depth=1, pooled=3), [Replica(split="own")])
    p: dict[str, Array] = {name: t[0].detach().numpy() for name, t in state.parameters.items()}
    a = (adjacency() > 0) - np.eye(6)

    def conv(a: Array, h: Array, i: int) -> Array:
        looped = a + 2 * np.eye(len(a))
        degree = looped.sum(1)
        z: Array = looped / np.sqrt(degree[:, None] * degree) @ h @ p[f"w{i}"] + p[f"b{i}"]
        return z

    h = np.maximum(conv(a, X.astype(np.float32).astype(float), 0), 0)
    score = h @ p["score1"] / np.sqrt((p["score1"] ** 2).sum())
    best = sorted(range(6), key=lambda i: -score[i])[:3]
    # Walks of two steps on the ring 0–1–2–3 with 3–4, where a node may wait: a neighbor is reached in two ways, the
    # node across the ring in two, and 4 from 0 and 2 in one.
    walks = np.array(
        [[0, 2, 2, 2, 1, 0], [2, 0, 2, 2, 0, 0], [2, 2, 0, 2, 1, 0], [2, 2, 2, 0, 2, 0], [1, 0, 1, 2, 0, 0], [0] * 6]
    )
    pooled = np.maximum(conv(walks[best][:, best], h[best] * np.tanh(score[best])[:, None], 1), 0)
    for node, row in zip(best, pooled, strict=True):
        h[node] += row
    np.testing.assert_allclose(evaluated(network, state)[0].numpy(), conv(a, h, 2), atol=1e-9)


def test_two_hops_of_a_path() -> None:
    """0 – 1 – 2 with loops: [[1, 1, 0], [1, 1, 1], [0, 1, 1]]² = [[2, 2, 1], [2, 3, 2], [1, 2, 2]]."""
    row, col = torch.tensor([0, 0, 1, 1, 1, 2, 2]), torch.tensor([0, 1, 0, 1, 2, 1, 2])
    pattern, values = Pattern(row, col, (3, 3)), torch.ones(2, 7, dtype=torch.float64)
    values[1, 1] = 0.0  # without 1 → 0: [[1, 0, 0], [1, 1, 1], [0, 1, 1]]² = [[1, 0, 0], [2, 2, 2], [1, 2, 2]]
    found = two_hops(pattern, values, torch.tensor([[0, 2], [0, 1]]))
    assert found.tolist() == [[[2, 1], [1, 2]], [[1, 0], [2, 2]]]
    level = Pooled(found)
    assert level.a.tolist() == [[[0, 1], [1, 0]], [[0, 0], [2, 0]]]
    x = torch.tensor([[[1.0], [4.0]]] * 2, dtype=torch.float64)
    # (A + 2I) has degrees 3, 3, and 2, 4.
    expected = [[6 / 3, 9 / 3], [2 * 1 / 2, 2 * 4 / 4 + 2 / 8**0.5]]
    torch.testing.assert_close(level(x).squeeze(2), torch.tensor(expected, dtype=torch.float64))


def test_undirected_edges_are_dropped() -> None:
    """About a fifth of them, both directions at once, never a loop, and others in another pass."""
    found = problem()
    network, state = started(found, replace(SMALL, drop_edge=0.2), [Replica(seed=s, split="a") for s in range(40)])
    masks = DropoutMasks(state, 0)("edges")
    other = DropoutMasks(state, 1)("edges")
    assert masks is not None
    assert other is not None
    kept, dense = masks.kept(network.pairs, torch.float64)[:, network.pair], torch.zeros(40, 60, 60)
    row, col = network.pattern.row, network.pattern.col
    dense[:, row, col] = kept.float()
    between = ~torch.eye(60, dtype=torch.bool)
    assert torch.equal(dense * between, dense.transpose(1, 2) * between)
    assert float(kept[:, ~network.loops].mean()) == pytest.approx(0.8, abs=0.01)
    assert not torch.equal(kept, other.kept(network.pairs, torch.float64)[:, network.pair])


def test_the_published_settings() -> None:
    """Those of PyG's example; only for Cora it has any."""
    for name, recipe in GRAPH_UNET.recipes.items():
        assert recipe.training["weight_decay"] == 0.001
        assert (recipe.normalize, recipe.ours) == (False, name != "cora")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"depth": 0}, "depth must be a whole number of at least 1, got 0"),
        ({"pooled": 0.5}, "pooled must be a whole number of at least 1, got 0.5"),
        ({"drop_edge": 1.5}, "drop_edge must lie between 0 and 1, got 1.5"),
    ],
)
def test_settings_out_of_range(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        list(train_all(problem(), GraphUNetModel(**change), Method(), [Replica(split="a")], Protocol()))
