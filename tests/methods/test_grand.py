"""GRAND on six nodes, term by term, and its training against a plain one with torch's modules."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import propreg
from engine.follow import check_near
from engine.graphs import problem
from methods.six_nodes import X, adjacency, cross_entropy, six_nodes, softmax
from propreg.engine import Method, Model, Problem, Protocol, Replica
from propreg.engine.models.network import no_dropout
from propreg.engine.ops import Sharing, sharpened
from propreg.engine.training.epoch import advance, step
from propreg.engine.training.passes import DropoutMasks, Passes
from propreg.engine.training.phases import Phase
from propreg.methods.grand import GrandLoss, GrandModel, inconsistency, phases
from reference import Array

ALONE = Replica(split="own", dropout=0.0)
SMALL = GrandModel(hidden=5, steps=3, augmentations=2, input_dropout=0.0, consistency=0.0)


def started(found: Problem, model: Model, replicas: list[Replica], method: Method | None = None) -> Phase:
    (phase,) = phases(found, replicas, model=model, method=method or Method(), protocol=Protocol())
    return phase


def array(t: Tensor) -> Array:
    found: Array = t.detach().numpy()
    return found


def mlp(p: dict[str, Array], x: Array) -> Array:
    z: Array = np.maximum(x @ p["w0"] + p["b0"], 0) @ p["w1"] + p["b1"]
    return z


def powers(steps: int) -> Array:
    mean: Array = np.mean([np.linalg.matrix_power(adjacency(), k) for k in range(steps + 1)], axis=0)
    return mean


def seen(phase: Phase, passes: int) -> tuple[dict[str, Array], Passes]:
    """The weights of the only replica, and the passes of the first epoch."""
    advance(phase.objective, phase.state, 1)
    begun = phase.network.begin(phase.state.tensors)
    p = {name: array(t[0]) for name, t in phase.state.parameters.items()}
    return p, Passes(phase.network, phase.state, begun, passes)


def mask(phase: Phase, number: int, place: str, size: int) -> Array:
    drawn = DropoutMasks(phase.state, number)(place)
    assert drawn is not None
    return array(drawn.kept(size, torch.float64)[0])


def test_the_evaluation_scales_the_features_instead_of_masking_them() -> None:
    phase = started(six_nodes(), replace(SMALL, drop_node=0.3), [ALONE])
    p, logits = seen(phase, 1)
    np.testing.assert_allclose(array(logits.evaluated()[0]), mlp(p, powers(3) @ (0.7 * X)), atol=1e-6)


@pytest.mark.parametrize("dropped", [0.0, 0.375])
def test_a_training_pass_masks_nodes_without_scaling_them(dropped: float) -> None:
    """And the dropout of the input acts on what is propagated, with its scale."""
    phase = started(six_nodes(), replace(SMALL, input_dropout=dropped), [ALONE])
    p, logits = seen(phase, 2)
    masks = [mask(phase, number, "nodes", 6) for number in range(2)]
    assert not np.array_equal(masks[0], masks[1]), "each augmentation has a mask of its own"
    for number, nodes in enumerate(masks):
        spread = powers(3) @ (nodes[:, None] * X)
        if dropped:
            spread = spread * mask(phase, number, "input", 24).reshape(6, 4) / 0.625
        np.testing.assert_allclose(array(logits.trained(number)[0]), mlp(p, spread), atol=1e-6)


def test_about_half_of_the_nodes_are_dropped() -> None:
    phase = started(problem(), SMALL, [Replica(seed=s, split="a") for s in range(50)])
    advance(phase.objective, phase.state, 1)
    drawn = DropoutMasks(phase.state, 0)("nodes")
    assert drawn is not None
    assert float(drawn.kept(60, torch.float64).mean()) == pytest.approx(0.5, abs=0.03)


def test_batch_norm_stands_before_the_input_s_dropout_and_after_the_relu() -> None:
    model = replace(SMALL, input_dropout=0.375, batch_norm=True)
    phase = started(six_nodes(), model, [ALONE])
    with torch.no_grad():
        phase.state.parameters["scale0"] += torch.arange(4)
        phase.state.parameters["shift0"] -= 0.3
        phase.state.parameters["scale1"] += 0.5
    p, logits = seen(phase, 1)

    def normed(x: Array, number: int) -> Array:
        centered = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
        out: Array = centered * p[f"scale{number}"] + p[f"shift{number}"]
        return out

    spread = powers(3) @ (mask(phase, 0, "nodes", 6)[:, None] * X)
    x = normed(spread, 0) * mask(phase, 0, "input", 24).reshape(6, 4) / 0.625
    h = np.maximum(x @ p["w0"] + p["b0"], 0)
    z = normed(h, 1) @ p["w1"] + p["b1"]
    np.testing.assert_allclose(array(logits.trained(0)[0]), z, atol=1e-6)
    after = {name: array(t[0]) for name, t in phase.state.parameters.items()}
    np.testing.assert_allclose(after["mean0"], 0.1 * spread.mean(0), atol=1e-6)
    np.testing.assert_allclose(after["variance0"], 0.9 + 0.1 * spread.var(0, ddof=1), atol=1e-6)
    np.testing.assert_allclose(after["variance1"], 0.9 + 0.1 * h.var(0, ddof=1), atol=1e-6)
    running = (powers(3) @ (0.5 * X) - after["mean0"]) / np.sqrt(after["variance0"] + 1e-5)
    h = np.maximum((running * p["scale0"] + p["shift0"]) @ p["w0"] + p["b0"], 0)
    h = (h - after["mean1"]) / np.sqrt(after["variance1"] + 1e-5) * p["scale1"] + p["shift1"]
    z = h @ p["w1"] + p["b1"]
    evaluated = phase.network.finish(phase.state.tensors, None, no_dropout)
    np.testing.assert_allclose(array(evaluated[0]), z, atol=1e-6)


def test_sharpening_by_hand() -> None:
    """0.6² : 0.4² = 36 : 16, and a temperature of 1 changes nothing."""
    p = torch.tensor([0.6, 0.4], dtype=torch.float64)
    assert sharpened(p, 0.5).tolist() == pytest.approx([36 / 52, 16 / 52])
    assert sharpened(p, 1.0).tolist() == pytest.approx([0.6, 0.4])


def test_inconsistency_by_hand() -> None:
    """Two passes, two nodes: their means are (0.6, 0.4) and (0.5, 0.5), and the second one stays as it is."""
    one = torch.tensor([[[0.8, 0.2], [0.5, 0.5]]], dtype=torch.float64, requires_grad=True)
    two = torch.tensor([[[0.4, 0.6], [0.5, 0.5]]], dtype=torch.float64)
    target = 36 / 52
    expected = ((0.8 - target) ** 2 + (target - 0.4) ** 2) * 2 / 2 / 2  # two classes; mean of nodes, of passes
    value = inconsistency([one, two], 0.5)
    assert value.tolist() == pytest.approx([expected])
    (gradient,) = torch.autograd.grad(value.sum(), one)
    assert float(gradient[0, 0, 0]) == pytest.approx(2 * (0.8 - target) / 2 / 2), "the target is a constant"


@pytest.mark.parametrize("method", [Method(), Method("preg")], ids=["plain", "P-reg"])
def test_the_loss_is_the_sum_of_its_terms(method: Method) -> None:
    model = replace(SMALL, consistency=0.7, temperature=0.3, augmentations=3)
    phase = started(six_nodes(), model, [replace(ALONE, strength=0.25 if method.name == "preg" else 0.0)], method)
    _, logits = seen(phase, 3)
    z = [array(logits.trained(number)[0]) for number in range(3)]
    mean = sum(map(softmax, z)) / 3
    target = mean ** (1 / 0.3) / (mean ** (1 / 0.3)).sum(1, keepdims=True)
    expected = np.mean([cross_entropy(each) for each in z])
    expected += 0.7 * np.mean([((softmax(each) - target) ** 2).sum(1).mean() for each in z])
    if method.name == "preg":
        edges = torch.from_numpy(six_nodes().graph.edge_index)
        expected += 0.25 * np.mean([float(propreg.preg(torch.from_numpy(each), edges)) for each in z])
    assert float(phase.objective.loss(phase.state, logits).detach()) == pytest.approx(float(expected), abs=1e-10)


class Plain(nn.Module):
    """One replica's MLP with torch's layers, batch norm included."""

    def __init__(self, p: dict[str, Tensor], batch_norm: bool) -> None:
        super().__init__()
        width, hidden = p["w0"].shape
        self.first, self.second = nn.Linear(width, hidden).double(), nn.Linear(hidden, p["w1"].shape[1]).double()
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(size).double() if batch_norm else nn.Identity() for size in (width, hidden)
        )
        with torch.no_grad():
            for layer, i in ((self.first, 0), (self.second, 1)):
                layer.weight.copy_(p[f"w{i}"].t())
                layer.bias.copy_(p[f"b{i}"])

    def forward(self, x: Tensor, inputs: Tensor | None = None, hidden: Tensor | None = None) -> Tensor:
        x = self.norms[0](x)
        h = self.first(x if inputs is None else x * inputs).relu()
        h = self.norms[1](h)
        z: Tensor = self.second(h if hidden is None else h * hidden)
        return z


FULL = GrandModel(hidden=6, steps=3, augmentations=3, consistency=0.8, temperature=0.4)
MODELS: dict[str, tuple[GrandModel, str]] = {
    "as Cora": (FULL, "plain"),
    "as CiteSeer": (replace(FULL, input_dropout=0.0), "odd"),
    "as PubMed": (replace(FULL, input_dropout=0.6, batch_norm=True), "dense"),
}
RUNS = [
    Replica(seed=0, split="a", strength=0.3, dropout=0.5),
    Replica(seed=1, split="b", strength=0.1, dropout=0.2, lr=0.02),
    Replica(seed=0, split="a", strength=0.0, dropout=0.5),
]


@pytest.mark.parametrize("name", MODELS)
def test_it_trains_like_a_plain_loop(name: str) -> None:
    """P-reg on top, 20 epochs, all masks those of the engine: logits of the evaluation within 1e-8."""
    model, kind = MODELS[name]
    found, method = problem(kind), Method("preg")
    phase = started(found, model, RUNS, method)
    state = phase.state
    whole = torch.from_numpy(found.graph.edge_index)
    weight = None if found.edge_weight is None else found.edge_weight.double()
    spread: Any = propreg.Propagation(whole, found.num_nodes, weight, norm="sym", add_self_loops=True)
    average = propreg.Propagation(whole, found.num_nodes, weight)
    x = torch.from_numpy(found.graph.x if isinstance(found.graph.x, np.ndarray) else found.graph.x.to_dense()).double()
    plain = [Plain({n: t[r] for n, t in state.parameters.items()}, model.batch_norm) for r in range(len(RUNS))]
    adams = [
        torch.optim.Adam(m.parameters(), lr=r.lr, weight_decay=r.weight_decay) for m, r in zip(plain, RUNS, strict=True)
    ]

    def propagated(start: Tensor) -> Tensor:
        total = start
        for _ in range(model.steps):
            start = spread(start)
            total = total + start
        return total / (model.steps + 1)

    def masks(number: int, place: str, size: int) -> Tensor:
        drawn = DropoutMasks(state, number)(place)
        assert drawn is not None
        return drawn.kept(size, torch.float64) if place == "nodes" else drawn.factors(size, torch.float64)

    for epoch in range(1, 21):
        advance(phase.objective, state, epoch)
        begun = phase.network.begin(state.tensors)
        logits = Passes(phase.network, state, begun, phase.objective.passes)
        drawn = [
            [masks(s, place, size) for place, size in
             (("nodes", len(x)), ("input", x.numel()), ("hidden1", len(x) * model.hidden))]
            for s in range(3)
        ]  # fmt: skip
        for r, (module, adam, run) in enumerate(zip(plain, adams, RUNS, strict=True)):
            module.eval()
            check_near(logits.evaluated()[r], module(propagated(0.5 * x)), 1e-8, f"epoch {epoch}, run {r}")
            module.train()
            each = [
                module(
                    propagated(x * nodes[r].unsqueeze(1)),
                    inputs[r].view(x.shape) if model.input_dropout else None,
                    hidden[r].view(len(x), -1),
                )
                for nodes, inputs, hidden in drawn
            ]
            train = torch.from_numpy(found.splits[run.split].train)
            loss = sum(nn.functional.cross_entropy(z[train], found.y[train]) for z in each) / 3
            loss = loss + run.strength * sum(propreg.preg(z, average) for z in each) / 3
            p = torch.stack([z.softmax(-1) for z in each])
            target = p.mean(0).detach() ** (1 / 0.4)
            target = target / target.sum(-1, keepdim=True)
            loss = loss + 0.8 * ((p - target) ** 2).sum(-1).mean()
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
        step(phase.objective, state, logits)
    for r, module in enumerate(plain):
        w = {name: t[r] for name, t in state.parameters.items()}
        check_near(w["w0"], module.first.weight.t(), 1e-8, "the first layer")
        check_near(w["w1"], module.second.weight.t(), 1e-8, "the second layer")


def test_replicas_of_a_stream_share_a_product() -> None:
    """Whatever the order and the number of a stream's replicas."""
    rng = np.random.default_rng(0)
    for streams in ([5, 9, 5, 7, 5, 9], [3, 1, 2], [4, 4], [8]):
        share = Sharing(np.array(streams, np.uint64), torch.device("cpu"))
        x = torch.from_numpy(rng.standard_normal((len(set(streams)), 6, 4)))
        w = torch.from_numpy(rng.standard_normal((len(streams), 4, 3)))
        assert [streams[i] for i in share.first] == list(dict.fromkeys(streams))
        torch.testing.assert_close(share.product(x, w), x[share.member] @ w)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"augmentations": 0}, "augmentations must be a whole number of at least 1, got 0"),
        ({"drop_node": 1.5}, "drop_node must lie between 0 and 1, got 1.5"),
        ({"temperature": 0.0}, "temperature must be above 0, got 0.0"),
        ({"consistency": -1.0}, "consistency must be a number of at least 0, got -1.0"),
        ({"layers": 3}, "grand has 2 layers, got layers=3"),
        ({"heads": 2}, "heads does not apply to grand, got 2"),
    ],
)
def test_settings_out_of_range(change: dict[str, Any], says: str) -> None:
    from propreg.engine import train_all

    with pytest.raises(ValueError, match=says):
        list(train_all(problem(), GrandModel(**change), Method(), [Replica(split="a")], Protocol()))


def test_the_consistency_is_part_of_a_loss_of_its_own() -> None:
    loss = GrandLoss(FULL, Method.preset("reference"), problem().regularizer(Method.preset("reference")))
    assert (loss.passes, loss.over, loss.in_groups) == (3, 3, False)
