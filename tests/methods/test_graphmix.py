"""GraphMix on six nodes, term by term."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import propreg
from engine.graphs import problem, splits
from methods.six_nodes import TRAIN, Y, adjacency, six_nodes
from methods.six_nodes import X as EXACT
from propreg.engine import Method, Problem, Protocol, Replica, train_all
from propreg.engine.ops import elementwise_cross_entropy, mixed
from propreg.engine.training.batches import Options
from propreg.engine.training.epoch import advance, step
from propreg.engine.training.passes import DropoutMasks, Passes
from propreg.engine.training.phases import Phase
from propreg.methods.graphmix import GraphMixModel, average, draws, phases, ramp

X = torch.from_numpy(EXACT.astype(np.float32)).double()
ALONE = Replica(split="own", dropout=0.0)
CLEAN = GraphMixModel("graphmix-clean", hidden=5, input_dropout=0.0, predictions=2, temperature=0.4, as_published=False)
CLEAN = replace(CLEAN, consistency=3.0, ramp_start=2, ramp_end=20)


def started(model: GraphMixModel, method: Method | None = None, run: Replica = ALONE) -> Phase:
    (phase,) = phases(six_nodes(), [run], model=model, method=method or Method(), protocol=Protocol())
    return phase


def seen_at(phase: Phase, epoch: int) -> Passes:
    advance(phase.objective, phase.state, epoch)
    return Passes(phase.network, phase.state, None, phase.objective.passes)


def with_coin(phase: Phase, heads: bool, start: int = 1) -> tuple[int, Passes]:
    """The first epoch from a start in which the coin shows that."""
    for epoch in range(start, start + 40):
        seen = seen_at(phase, epoch)
        if bool(phase.state.held["heads"][0]) == heads:
            return epoch, seen
    raise AssertionError("forty equal tosses")


def loss_of(phase: Phase, seen: Passes) -> float:
    return float(phase.objective.loss(phase.state, seen).detach())


def weights(phase: Phase) -> tuple[Tensor, Tensor]:
    one, two = (phase.state.parameters[name][0].detach() for name in ("w0", "w1"))
    return one, two


def gcn(phase: Phase, x: Tensor) -> Tensor:
    (one, two), a = weights(phase), torch.from_numpy(adjacency())
    return a @ (a @ x @ one).relu() @ two


def cross_entropy(phase: Phase) -> float:
    return -float(gcn(phase, X).log_softmax(1)[TRAIN, Y[TRAIN]].mean())


def bce(z: Tensor, t: Tensor) -> float:
    p = z.softmax(1)
    return float(-(t * p.log() + (1 - t) * (1 - p).log()).mean())


def mixup(phase: Phase, epoch: int, pseudo: Tensor, last_stays: bool) -> float:
    """BCE of training and of drawn nodes, row by row, from what the run draws in the epoch."""
    one, two = weights(phase)
    h, held = (X @ one).relu(), phase.state.held
    losses = []
    for call, nodes in enumerate((TRAIN, held["drawn"][0].tolist())):
        share, order = float(held["share"][0, call]), held["order"][0, call].tolist()
        targets = torch.eye(3, dtype=torch.float64)[Y[nodes]] if call == 0 else pseudo[nodes]
        rows = [share * h[i] + (1 - share) * h[nodes[order[k]]] for k, i in enumerate(nodes)]
        goals = [share * targets[k] + (1 - share) * targets[order[k]] for k in range(len(nodes))]
        if call and last_stays:
            rows = [rows[max(k for k in range(len(nodes)) if nodes[k] == i)] for i in nodes]
        losses.append(bce(torch.stack(rows) @ two, torch.stack(goals)))
    done = min(max((epoch - 1 - 2) / 18, 0), 1)
    return losses[0] + 3 * math.exp(-5 * (1 - done) ** 2) * losses[1]


def sharpened(p: Tensor, temperature: float) -> Tensor:
    power = p ** (1 / temperature)
    return power / power.sum(1, keepdim=True)


def test_tails_is_a_step_of_the_gcn() -> None:
    phase = started(CLEAN)
    _, seen = with_coin(phase, heads=False)
    assert loss_of(phase, seen) == pytest.approx(cross_entropy(phase), abs=1e-12)


@pytest.mark.parametrize("method", [Method(), Method("preg")], ids=["plain", "P-reg"])
@pytest.mark.parametrize("published", [True, False])
def test_heads_is_mixup_of_the_twin(published: bool, method: Method) -> None:
    """In several epochs, some of them within the ramp; and with P-reg of the GCN's logits on top."""
    strength = 0.25 if method.name == "preg" else 0.0
    model = replace(CLEAN, as_published=published)
    repeated = 0
    for start in range(1, 40, 3):
        phase = started(model, method, replace(ALONE, strength=strength))
        epoch = start
        while not draws(int(phase.state.keys.streams[0]), epoch, 3, 3, np.array([3, 4, 5]))["heads"]:
            epoch += 1
        advance(phase.objective, phase.state, 1)
        if epoch == 1 or not published:  # without the average's factor, which is another test
            seen = seen_at(phase, epoch)
        else:
            before = [p.detach().clone() for p in phase.state.parameters.values()]
            seen = seen_at(phase, epoch)
            for p, kept in zip(phase.state.parameters.values(), before, strict=True):
                p.data.copy_(kept)
        assert set(phase.state.held["drawn"][0].tolist()) <= {3, 4, 5}, "nodes without a label"
        assert sorted(phase.state.held["order"][0, 0].tolist()) == [0, 1, 2]
        repeated += len(set(phase.state.held["drawn"][0].tolist())) < 3
        pseudo = sharpened(gcn(phase, X).softmax(1), 0.4)
        expected = mixup(phase, epoch, pseudo, last_stays=published)
        if strength:
            edges = torch.from_numpy(six_nodes().graph.edge_index)
            expected += strength * float(propreg.preg(gcn(phase, X), edges))
        assert loss_of(phase, seen) == pytest.approx(expected, abs=1e-9)
    assert repeated > 3


def test_pseudo_labels_are_the_sharpened_mean_of_predictions_with_dropout() -> None:
    phase = started(replace(CLEAN, input_dropout=0.5, predictions=3))
    seen = seen_at(phase, 1)
    objective: Any = phase.objective
    pattern = objective.network.features.matrix.pattern
    each = []
    for number in (1, 2, 3):
        mask = DropoutMasks(phase.state, number)("input")
        assert mask is not None
        x = torch.zeros_like(X)
        x[pattern.row, pattern.col] = X[pattern.row, pattern.col] * mask.factors(len(pattern.row), torch.float64)[0]
        each.append(gcn(phase, x).softmax(1))
    assert not torch.equal(each[0], each[1])
    found = objective.pseudo_labels(seen)
    torch.testing.assert_close(found[0], sharpened(torch.stack(each).mean(0), 0.4), atol=1e-12, rtol=0)
    assert not found.requires_grad


def test_mixup_by_hand() -> None:
    """A quarter of (1, 0) and three quarters of (5, 4)."""
    h = torch.tensor([[[1.0, 0.0], [5.0, 4.0]]])
    assert mixed(h, torch.tensor([[1, 0]]), torch.tensor([0.25])).tolist() == [[[4.0, 3.0], [2.0, 1.0]]]


def test_binary_cross_entropy_by_hand() -> None:
    """Probabilities 3/4 and 1/4 against (1, 0): each entry gives −log 3/4; a row of weight 0 gives nothing."""
    z = torch.tensor([[[math.log(3.0), 0.0], [1e9, -1e9]]], dtype=torch.float64)
    targets = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]], dtype=torch.float64)
    weights = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert elementwise_cross_entropy(z, targets, weights).tolist() == pytest.approx([-math.log(0.75)])


def test_the_ramp() -> None:
    """e⁻⁵ of the weight until epoch 500, e^(−5/4) half way, all of it from 1000 on."""
    model = GraphMixModel()
    assert [ramp(model, epoch) / 10 for epoch in (1, 501, 751, 1001, 1500)] == pytest.approx(
        [math.exp(-5), math.exp(-5), math.exp(-1.25), 1, 1]
    )


def test_the_published_average_sets_the_weights_to_zero_after_the_first_epoch() -> None:
    """By its own lines: both names are one tensor. Then momentum alone moves the weights."""
    for epoch in (1, 2, 3, 5, 2000):
        live = torch.tensor([0.5, -2.0], dtype=torch.float64)
        kept, a = live, min(1 - 1 / epoch, 0.999)
        kept *= a
        kept += (1 - a) * live
        p = {"w": torch.tensor([0.5, -2.0], dtype=torch.float64, requires_grad=True)}
        average(p, epoch)
        torch.testing.assert_close(p["w"].detach(), live, atol=0, rtol=1e-14)
    phase = started(replace(CLEAN, as_published=True), run=replace(ALONE, weight_decay=0.0))
    seen = seen_at(phase, 1)
    loss, w1 = phase.objective.loss(phase.state, seen), phase.state.parameters["w1"]
    (gradient,) = torch.autograd.grad(loss.sum(), w1, retain_graph=True)
    step(phase.objective, phase.state, seen)
    seen = seen_at(phase, 2)
    assert not any(p.any() for p in phase.state.parameters.values())
    step(phase.objective, phase.state, seen)
    moved = phase.state.parameters["w1"].detach()
    assert float(moved.abs().max()) == pytest.approx(0.01 * (0.09 / 0.19) / (0.000999 / 0.001999) ** 0.5, rel=1e-3)
    assert torch.equal(moved.sign(), -gradient.sign())


def test_coins_are_fair_and_shares_uniform() -> None:
    found = [draws(7, epoch, 3, 5, np.array([3, 4, 5])) for epoch in range(2000)]
    assert np.mean([each["heads"] for each in found]) == pytest.approx(0.5, abs=0.04)
    shares = np.array([each["share"] for each in found])
    np.testing.assert_allclose(np.quantile(shares, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.03)
    assert all(each["order"][0][3:] == [3, 4] for each in found), "what fills a row up stays in its place"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="a CPU sums the gradient of a repeated row in order anyway")
def test_the_same_batch_gives_the_same_bits_on_a_gpu() -> None:
    """Nodes are drawn with replacement, so that rows repeat."""
    graph = Problem(problem().graph, splits("plain"), torch.device("cuda"), torch.float32)
    model = GraphMixModel(hidden=16, predictions=2, ramp_start=2, ramp_end=10)
    runs = [Replica(split="ab"[seed % 2], seed=seed) for seed in range(12)]

    def trained() -> list[dict[str, Any]]:
        found = train_all(graph, model, Method(), runs, Protocol("last", 60), Options(keep_weights=True))
        return [result.weights for _, result in sorted(found, key=lambda each: each[0])]

    for first, second in zip(trained(), trained(), strict=True):
        for name, weight in first.items():
            assert torch.equal(weight, second[name])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"predictions": 0}, "predictions must be a whole number of at least 1, got 0"),
        ({"temperature": 0.0}, "temperature must be above 0, got 0.0"),
        ({"consistency": -1.0}, "consistency must be a number of at least 0, got -1.0"),
        ({"ramp_start": 2000}, "ramp_start must lie between 0 and ramp_end, got 2000 and 1000"),
    ],
)
def test_settings_out_of_range(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        list(train_all(problem(), GraphMixModel(**change), Method(), [Replica(split="a")], Protocol()))
