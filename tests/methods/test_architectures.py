"""The architectures of table 2 against their formulas, written with dense matrices."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import batch_norm, layer_norm

from engine.graphs import problem
from methods.plain import Drop, Forward, Weights, check_trains_like, dense_features, no_drop, normalized, on_nonzeros
from methods.six_nodes import X, adjacency, six_nodes, softmax
from propreg.engine import Method, Model, Problem, Protocol, Replica, train_all
from propreg.engine.models.correct_smooth import CorrectSmoothModel
from propreg.engine.models.dagnn import DagnnModel
from propreg.engine.models.deep_appnp import DeepAppnp, DeepAppnpModel
from propreg.engine.models.gcnii import GcniiModel
from propreg.engine.models.label_propagation import LabelPropagationModel
from propreg.engine.models.network import no_dropout
from propreg.engine.models.s2gc import S2gcModel
from propreg.engine.models.tuned_gcn import TunedGcnModel
from propreg.engine.training.epoch import advance
from propreg.engine.training.objective import RegularizedLoss
from propreg.engine.training.passes import DropoutMasks
from propreg.engine.training.state import State, begin

RUNS = [
    Replica(seed=0, split="a", strength=0.3, dropout=0.5),
    Replica(seed=1, split="b", strength=0.1, dropout=0.2, lr=0.02, weight_decay=0.01),
]


def mlp(found: Problem, p: Weights, x: Tensor, drop: Drop) -> Tensor:
    h = (on_nonzeros(found, drop, x) @ p["w0"] + p["b0"]).relu()
    return drop("hidden1", h) @ p["w1"] + p["b1"]


def appnp(found: Problem, model: Model) -> Forward:
    def forward(p: Weights, x: Tensor, a: Tensor, drop: Drop) -> Tensor:
        start = z = mlp(found, p, x, drop)
        for _ in range(model.steps):
            z = (1 - model.teleport) * normalized(a) @ z + model.teleport * start
        return z

    return forward


def deep_appnp(found: Problem, model: Model) -> Forward:
    def forward(p: Weights, x: Tensor, a: Tensor, drop: Drop) -> Tensor:
        if drop is not no_drop:
            network: Any = found.network(model)
            pattern = network.edges.pattern  # the engine numbers the entries that it drops
            factors = drop("edges", torch.ones(pattern.nnz, dtype=a.dtype))
            kept = torch.zeros_like(a)
            kept[pattern.row, pattern.col] = (factors > 0).to(a.dtype)
            a = a * kept.fill_diagonal_(1)
        start = z = mlp(found, p, x, drop)
        for _ in range(model.steps):
            z = (1 - model.teleport) * normalized(a) @ z + model.teleport * start
        return z

    return forward


def s2gc(found: Problem, model: Model) -> Forward:  # noqa: ARG001
    def forward(p: Weights, x: Tensor, a: Tensor, drop: Drop) -> Tensor:  # noqa: ARG001
        spread = sum(torch.linalg.matrix_power(normalized(a), k) @ x for k in range(1, model.steps + 1))
        z: Tensor = ((1 - model.teleport) * spread / model.steps + model.teleport * x) @ p["w0"] + p["b0"]
        return z

    return forward


def dagnn(found: Problem, model: Model) -> Forward:
    def forward(p: Weights, x: Tensor, a: Tensor, drop: Drop) -> Tensor:
        z = mlp(found, p, x, drop)
        hops = torch.stack([torch.linalg.matrix_power(normalized(a), k) @ z for k in range(model.steps + 1)], 1)
        scores = torch.sigmoid(hops @ p["w2"] + p["b2"])  # [N, K + 1, 1]
        return (scores * hops).sum(1)

    return forward


def gcnii(found: Problem, model: Model) -> Forward:
    assert isinstance(model, GcniiModel)

    def forward(p: Weights, x: Tensor, a: Tensor, drop: Drop) -> Tensor:
        start = h = (on_nonzeros(found, drop, x) @ p["w0"] + p["b0"]).relu()
        eye = torch.eye(model.hidden, dtype=x.dtype)
        for layer in range(1, model.layers + 1):
            beta = math.log(model.identity_decay / layer + 1)
            mixed = (1 - model.teleport) * normalized(a) @ drop(f"hidden{layer}", h) + model.teleport * start
            h = (mixed @ ((1 - beta) * eye + beta * p[f"w{layer}"])).relu()
        last = model.layers + 1
        return drop(f"hidden{last}", h) @ p[f"w{last}"] + p[f"b{last}"]

    return forward


def tuned_gcn(found: Problem, model: Model) -> Forward:  # noqa: ARG001
    assert isinstance(model, TunedGcnModel)

    def forward(p: Weights, x: Tensor, a: Tensor, drop: Drop) -> Tensor:
        h = x
        for i in range(model.layers):
            z = normalized(a) @ (h @ p[f"w{i}"]) + p[f"b{i}"]
            if model.residual:
                z = z + h @ p[f"residual_w{i}"] + p[f"residual_b{i}"]
            if model.norm == "layer":
                z = layer_norm(z, z.shape[1:], p[f"scale{i}"], p[f"shift{i}"])
            elif model.norm == "batch":
                training = drop is not no_drop
                z = batch_norm(z, p[f"mean{i}"], p[f"variance{i}"], p[f"scale{i}"], p[f"shift{i}"], training)
            h = drop(f"hidden{i + 1}", z.relu())
        return h @ p[f"w{model.layers}"] + p[f"b{model.layers}"]

    return forward


GCNII = GcniiModel(hidden=8, layers=5, teleport=0.2, identity_decay=0.7, input_dropout=0.375, conv_decay=0.03)
TUNED = TunedGcnModel(hidden=8)
CASES: dict[str, tuple[Any, Model]] = {
    "APPNP": (appnp, Model("appnp", hidden=8, steps=4, teleport=0.2, input_dropout=0.5)),
    "DeepAPPNP": (deep_appnp, DeepAppnpModel(hidden=8, steps=9, drop_edge=0.25, input_dropout=0.5)),
    "S²GC": (s2gc, S2gcModel(steps=5, teleport=0.2)),
    "DAGNN": (dagnn, DagnnModel(hidden=8, steps=3, input_dropout=0.5)),
    "GCNII": (gcnii, GCNII),
    "tuned GCN": (tuned_gcn, TUNED),
    "tuned GCN, residual and layer norm": (tuned_gcn, replace(TUNED, residual=True, norm="layer", layers=2)),
    "tuned GCN, batch norm": (tuned_gcn, replace(TUNED, norm="batch")),
}


@pytest.mark.parametrize("kind", ["plain", "odd"])
@pytest.mark.parametrize("name", CASES)
def test_it_trains_like_its_formula(name: str, kind: str) -> None:
    """20 epochs with dropout and P-reg on a simple graph, and on a directed, weighted one with isolated nodes."""
    formula, model = CASES[name]
    found, runs = problem(kind), RUNS
    if "batch norm" in name:
        # No loss depends on the bias before a batch norm. Its gradient is rounding, which Adam with weight decay
        # multiplies by lr · decay / 1e-8 in every step.
        runs = [replace(run, weight_decay=0.0) for run in RUNS]
    check_trains_like(found, model, formula(found, model), runs)


def started(found: Problem, model: Model, replicas: list[Replica]) -> tuple[Any, State]:
    network = found.network(model)
    state = begin(found, network, model, replicas, Protocol())
    advance(RegularizedLoss(Method(), found.regularizer(Method())), state, 1)
    return network, state


def evaluated(model: Model) -> tuple[dict[str, Any], Any]:
    """Weights and logits on six nodes, as arrays."""
    network, state = started(six_nodes(), model, [Replica(split="own")])
    z = network.finish(state.tensors, network.begin(state.tensors), no_dropout)
    return {name: t[0].detach().numpy() for name, t in state.parameters.items()}, z[0].detach().numpy()


def on_six_nodes(model: Model) -> tuple[np.ndarray[Any, Any], Any, dict[str, Any]]:
    """D^(−1/2) A D^(−1/2) without loops, the labels of the training nodes, and the weights and logits."""
    a = (adjacency() > 0).astype(float) - np.eye(6)
    degree = a.sum(1)
    root = np.divide(1, np.sqrt(degree), out=np.zeros(6), where=degree > 0)
    labels = np.zeros((6, 3))
    labels[[0, 1, 2], [0, 1, 2]] = 1
    p, z = evaluated(model)
    return root[:, None] * a * root, labels, {**p, "logits": z}


def test_label_propagation_on_six_nodes() -> None:
    spread, labels, found = on_six_nodes(LabelPropagationModel(steps=3, teleport=0.25))
    shares = labels
    for _ in range(3):
        shares = 0.75 * spread @ shares + 0.25 * labels
    assert (found["labels"] == labels).all()
    np.testing.assert_allclose(np.exp(found["logits"]), np.maximum(shares, 1e-12), atol=1e-9)
    assert len(set(found["logits"][5])) == 1, "nothing reaches the node without neighbors"


def test_correct_and_smooth_on_six_nodes() -> None:
    model = CorrectSmoothModel(hidden=5, steps=2, teleport=0.25, smoothing_teleport=0.5)
    spread, labels, found = on_six_nodes(model)
    z = np.maximum(X @ found["w0"] + found["b0"], 0) @ found["w1"] + found["b1"]
    predicted = softmax(z)
    wrong = np.zeros((6, 3))
    wrong[:3] = labels[:3] - predicted[:3]
    errors = 0.75 * spread @ (0.75 * spread @ wrong + 0.25 * wrong) + 0.25 * wrong
    sizes = np.abs(errors).sum(1, keepdims=True)
    corrected = predicted + np.divide(errors * np.abs(wrong[:3]).sum(1).mean(), sizes, out=errors, where=sizes > 0)
    start = np.vstack([labels[:3], corrected[3:]])
    smoothed = 0.5 * spread @ (0.5 * spread @ start + 0.5 * start) + 0.5 * start
    np.testing.assert_allclose(np.exp(found["logits"]), np.maximum(smoothed, 1e-12), atol=1e-7)


def test_correct_and_smooth_trains_its_mlp() -> None:
    """A training pass has the logits of the MLP."""
    found = problem()
    network, state = started(found, CorrectSmoothModel(hidden=8), RUNS)
    draw = DropoutMasks(state, 0)
    z = network.finish(state.tensors, network.begin(state.tensors), draw)
    masks, p = draw("hidden1"), state.parameters
    assert masks is not None
    assert not p["labels"].requires_grad
    h = (dense_features(found) @ p["w0"] + p["b0"].unsqueeze(1)).relu()
    h = h * masks.factors(h[0].numel(), h.dtype).view(h.shape)
    torch.testing.assert_close(z, h @ p["w1"] + p["b1"].unsqueeze(1))


@pytest.mark.parametrize(("steps", "apart"), [(1, 1.0), (10, 0.5), (300, 1e-7)])
def test_appnp_approaches_its_closed_form(steps: int, apart: float) -> None:
    """α (I − (1 − α) Â)⁻¹ H, at the speed of (1 − α)^K."""
    p, z = evaluated(Model("appnp", hidden=5, steps=steps, teleport=0.1))
    h = np.maximum(X @ p["w0"] + p["b0"], 0) @ p["w1"] + p["b1"]
    closed = 0.1 * np.linalg.solve(np.eye(6) - 0.9 * adjacency(), h)
    size = np.abs(h).max()
    assert np.abs(z - closed).max() <= 2 * 0.9**steps * size * 6**0.5 + 1e-6
    assert np.abs(z - closed).max() < apart * size


def test_dropped_edges() -> None:
    """About a fifth of the directions of edges, each by itself, never a loop; what is left is normalized again."""
    found = problem()
    replicas = [Replica(seed=s, split="a") for s in range(20)]
    network, state = started(found, DeepAppnpModel(hidden=8), replicas)
    assert isinstance(network, DeepAppnp)
    matrix: Any = network.propagation(DropoutMasks(state, 0))
    row, col = matrix.pattern.row, matrix.pattern.col
    kept = matrix.values > 0
    assert bool(kept[:, row == col].all())
    between = kept[:, row != col]
    assert float((~between).double().mean()) == pytest.approx(0.2, abs=0.01)
    dense = torch.zeros(20, 60, 60, dtype=torch.float64)
    dense[:, row, col] = kept.double()
    one_way = (dense != dense.transpose(1, 2)).double().sum() / 2 / (row != col).double().sum() * 2 / 20
    assert float(one_way) == pytest.approx(2 * 0.8 * 0.2, abs=0.02), "the two directions are dropped by themselves"
    degree = dense.sum(2)
    expected = dense / (degree.unsqueeze(2) * degree.unsqueeze(1)).sqrt()
    torch.testing.assert_close(matrix.values, expected[:, row, col])
    assert network.propagation(no_dropout) is network.adjacency
    again: Any = network.propagation(DropoutMasks(state, 0))
    assert torch.equal(again.values, matrix.values), "one sample an epoch"


def test_the_convolutions_of_gcnii_decay_by_themselves() -> None:
    _, state = started(problem(), GCNII, RUNS)
    optimizer: Any = state.optimizer
    decay = {name: t.tolist() for name, t in optimizer.weight_decay.items()}
    assert decay["w0"] == decay["b6"] == [5e-4, 0.01]
    assert all(decay[f"w{i}"] == [0.03, 0.03] for i in range(1, 6))


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (DeepAppnpModel(drop_edge=-0.1), "drop_edge must lie between 0 and 1, got -0.1"),
        (GcniiModel(identity_decay=0.0), "identity_decay must be above 0, got 0.0"),
        (GcniiModel(conv_decay=-1.0), "conv_decay must be a number of at least 0, got -1.0"),
        (TunedGcnModel(norm="pair"), "norm must be 'none', 'batch' or 'layer', got 'pair'"),  # type: ignore[arg-type]
        (DagnnModel(layers=3), "dagnn has 2 layers, got layers=3"),
        (CorrectSmoothModel(smoothing_teleport=2.0), "smoothing_teleport must lie between 0 and 1, got 2.0"),
        (S2gcModel(heads=3), "heads does not apply to s2gc, got 3"),
    ],
)
def test_settings_out_of_range(model: Model, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        list(train_all(problem(), model, Method(), [Replica(split="a")], Protocol()))
