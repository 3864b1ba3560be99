"""BVAT on six nodes, term by term."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import propreg
from engine.graphs import problem
from methods.six_nodes import TRAIN, Y, adjacency, six_nodes
from methods.six_nodes import X as EXACT
from propreg.engine import Method, Model, Protocol, Replica, train_all
from propreg.engine.ops import Apart, normals, truncated_normals
from propreg.engine.training.epoch import advance
from propreg.engine.training.passes import DropoutMasks, Passes
from propreg.engine.training.phases import Phase
from propreg.methods.bvat import START, OBvatModel, SBvatModel, nearly_normalized, phases
from reference import Array

X = torch.from_numpy(EXACT.astype(np.float32)).double()
ALONE = Replica(split="own", dropout=0.0)
OPTIMIZED = OBvatModel(hidden=5, input_dropout=0.0, entropy_weight=0.0, adversarial_weight=0.8, ascent_lr=0.02)
SAMPLED = SBvatModel(hidden=5, input_dropout=0.0, entropy_weight=0.0, adversarial_weight=0.8, sampled=2, hops=1)
SAMPLED = replace(SAMPLED, epsilon=0.3, random_step=0.01)


def started(model: Model, method: Method | None = None, run: Replica = ALONE) -> tuple[Phase, Passes]:
    (phase,) = phases(six_nodes(), [run], model=model, method=method or Method(), protocol=Protocol())
    return phase, seen_at(phase, 1)


def seen_at(phase: Phase, epoch: int) -> Passes:
    advance(phase.objective, phase.state, epoch)
    return Passes(phase.network, phase.state, phase.network.begin(phase.state.tensors), phase.objective.passes)


def loss_of(phase: Phase, seen: Passes) -> float:
    return float(phase.objective.loss(phase.state, seen).detach())


def log_p(phase: Phase, x: Tensor) -> Tensor:
    one, two = (phase.state.parameters[name][0].detach() for name in ("w0", "w1"))
    a = torch.from_numpy(adjacency())
    return (a @ (a @ x @ one).relu() @ two).log_softmax(1)


def cross_entropy(phase: Phase) -> float:
    return -float(log_p(phase, X)[TRAIN, Y[TRAIN]].mean())


@pytest.mark.parametrize("method", [Method(), Method("preg")], ids=["plain", "P-reg"])
def test_the_entropy_of_all_nodes(method: Method) -> None:
    strength = 0.25 if method.name == "preg" else 0.0
    model = replace(OPTIMIZED, adversarial_weight=0.0, entropy_weight=0.7)
    phase, seen = started(model, method, replace(ALONE, strength=strength))
    z = log_p(phase, X)
    expected = cross_entropy(phase) + 0.7 * float(-(z.exp() * z).sum() / 6)
    if strength:
        expected += strength * float(propreg.preg(z, torch.from_numpy(six_nodes().graph.edge_index)))
    assert loss_of(phase, seen) == pytest.approx(expected, abs=1e-12)


def test_the_optimized_perturbation_by_hand() -> None:
    """Ten steps of torch's Adam in each of two epochs: R starts anew, the moments go on."""
    phase, seen = started(OPTIMIZED)
    q = log_p(phase, X).exp()
    r = torch.zeros(6, 4, dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([r], lr=0.02)
    for epoch in (1, 2):
        seen = seen_at(phase, epoch)
        start = 0.01 * truncated_normals(phase.state.keys(START), 24, torch.float64)[0].view(6, 4)
        with torch.no_grad():
            r.copy_(start)
        for _ in range(10):
            adam.zero_grad()
            (r.square().sum() / 2 + (q * log_p(phase, X + r)).sum(1).mean()).backward()  # type: ignore[no-untyped-call]
            adam.step()
        assert float((r - start).abs().mean().detach()) > 1e-3
        expected = cross_entropy(phase) - 0.8 * float((q * log_p(phase, X + r)).sum(1).mean().detach())
        assert loss_of(phase, seen) == pytest.approx(expected, abs=1e-9)
    assert float(phase.state.held["ascents"]) == 20


def test_the_sampled_perturbation_by_hand() -> None:
    phase, seen = started(SAMPLED)
    nodes = phase.state.held["nodes"][0]
    assert phase.state.held["node_weights"].tolist() == [[0.5, 0.5]]
    q = log_p(phase, X).exp()[nodes]

    def value(r: Tensor) -> Tensor:
        moved = X.clone().index_add(0, nodes, r)
        return -(q * log_p(phase, moved)[nodes]).sum(1).mean()

    u = normals(phase.state.keys(START), 8, torch.float64)[0].view(2, 4)
    at = (0.01 * u / u.norm(dim=1, keepdim=True)).requires_grad_()
    (g,) = torch.autograd.grad(value(at), at)
    g = g / g.abs().max()
    r = 0.3 * g / (1e-6 + g.square().sum(1, keepdim=True)).sqrt()
    assert loss_of(phase, seen) == pytest.approx(cross_entropy(phase) + 0.8 * float(value(r)), abs=1e-9)


def test_rows_far_below_the_largest_gradient_stay_short() -> None:
    """(3, 4) is divided by 4 and has length 5/4, and a row of 0.004 has length 0.001 then."""
    g = torch.tensor([[[3.0, 4.0], [0.004, 0.0]]], dtype=torch.float64)
    found = nearly_normalized(g)[0]
    assert found[0].tolist() == pytest.approx([0.6, 0.8], abs=1e-6)
    assert found[1].tolist() == pytest.approx([0.001 / 2e-6**0.5, 0.0])


@pytest.mark.parametrize("model", [OPTIMIZED, SAMPLED], ids=["optimized", "sampled"])
def test_the_perturbation_and_the_target_are_constants(model: Any) -> None:
    """The gradient to the weights is that of −q log f(X + R) with q and R fixed."""
    phase, seen = started(model)
    objective: Any = phase.objective
    w = phase.state.parameters["w0"]
    q = log_p(phase, X).exp()
    (found,) = torch.autograd.grad(objective.adversarial(phase.state, seen, q.unsqueeze(0)).sum(), w)
    step, two, a = 1e-6, phase.state.parameters["w1"][0].detach(), torch.from_numpy(adjacency())
    kept: list[Tensor] = []
    original = objective.perturbed

    def keeping(logits: Passes, draw: Any, r: Tensor, nodes: Tensor | None = None) -> Tensor:
        kept.append(r.detach()[0])
        result: Tensor = original(logits, draw, r, nodes)
        return result

    objective.perturbed = keeping
    phase.state.held.update({n: torch.zeros_like(t) for n, t in phase.state.held.items() if "ascent" in n})
    objective.adversarial(phase.state, seen, q.unsqueeze(0))
    nodes = phase.state.held.get("nodes", torch.arange(6).unsqueeze(0))[0]
    moved = X.clone().index_add(0, nodes, kept[-1])
    by_difference = torch.zeros_like(w[0])
    for i, j in np.ndindex(*w[0].shape):
        values = []
        for sign in (1, -1):
            one = w[0].detach().clone()
            one[i, j] += sign * step
            z = (a @ (a @ moved @ one).relu() @ two).log_softmax(1)
            values.append(float(-(q * z).sum(1)[nodes].mean()))
        by_difference[i, j] = (values[0] - values[1]) / (2 * step)
    torch.testing.assert_close(found[0], by_difference, atol=1e-7, rtol=1e-5)


def test_dropout_of_the_input_acts_on_the_perturbation_and_passes_have_masks_of_their_own() -> None:
    phase, seen = started(replace(OPTIMIZED, input_dropout=0.5))
    objective: Any = phase.objective
    r = torch.arange(24, dtype=torch.float64).view(1, 6, 4) / 24
    draw = seen.another(5)
    found = objective.perturbed(seen, draw, r)[0].detach()
    known: Any = phase.network
    matrix = known.features.matrix
    x = torch.zeros(6, 4, dtype=torch.float64)
    mask = DropoutMasks(phase.state, 5)("input")
    other = DropoutMasks(phase.state, 5)("input1")
    assert mask is not None
    assert other is not None
    x[matrix.pattern.row, matrix.pattern.col] = matrix.values * mask.factors(matrix.pattern.nnz, x.dtype)[0]
    expected = log_p(phase, x + r[0] * other.factors(24, x.dtype)[0].view(6, 4))
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    assert not torch.equal(objective.clean(seen, 1), objective.clean(seen, 2))


def test_drawn_nodes_are_far_apart() -> None:
    """On a path of 30 nodes: at most every fourth one, and others in every epoch, the same for the same stream."""
    path = np.stack([np.arange(29), np.arange(1, 30)])
    apart = Apart(path, 30, 3, 20)
    streams = np.array([5, 9, 5], np.uint64)
    seen = set()
    for epoch in range(50):
        nodes, weights = apart.drawn(streams, epoch)
        assert torch.equal(nodes[0], nodes[2])
        chosen = np.sort(nodes[0][weights[0] > 0].numpy())
        assert 4 <= len(chosen) <= 8
        assert np.diff(chosen).min() > 3
        assert np.diff(chosen).max() <= 7, "no other node fits between them"
        assert float(weights[0].sum()) == pytest.approx(1)
        seen |= set(chosen.tolist())
    assert seen == set(range(30))
    assert apart.drawn(streams, 0)[0].tolist() != apart.drawn(streams, 1)[0].tolist()
    few = Apart(path, 30, 3, 2).drawn(streams, 0)
    assert few[1].tolist() == [[0.5, 0.5]] * 3


def test_the_start_is_a_truncated_normal() -> None:
    phase, _ = started(OPTIMIZED)
    z: Array = truncated_normals(phase.state.keys(START), 100_000, torch.float64)[0].numpy()
    assert np.abs(z).max() < 2
    assert float(z.std()) == pytest.approx(0.8796, abs=0.01)
    assert float(np.mean(np.abs(z) < 1)) == pytest.approx(0.6827 / 0.9545, abs=0.005)


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (OBvatModel(ascents=0), "ascents must be a whole number of at least 1, got 0"),
        (OBvatModel(entropy_weight=-1.0), "entropy_weight must be a number of at least 0, got -1.0"),
        (SBvatModel(sampled=0), "sampled must be a whole number of at least 1, got 0"),
        (SBvatModel(epsilon=-1.0), "epsilon must be a number of at least 0, got -1.0"),
    ],
)
def test_settings_out_of_range(model: Model, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        list(train_all(problem(), model, Method(), [Replica(split="a")], Protocol()))
