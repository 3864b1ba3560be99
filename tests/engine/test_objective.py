"""A regularized loss over several passes, distributions that parameters start from, and decay of their own."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import propreg
from engine.graphs import problem, sample
from propreg.data.graph import Split
from propreg.engine import Method, Model, Problem, Protocol, Replica
from propreg.engine.models.gcn_mlp import Layers
from propreg.engine.models.network import ONES, Start, Weight, linear
from propreg.engine.training.epoch import advance
from propreg.engine.training.objective import RegularizedLoss
from propreg.engine.training.passes import Passes
from propreg.engine.training.phases import Phase
from propreg.engine.training.state import begin
from propreg.engine.training.stopping import LAST
from propreg.engine.training.train import train
from propreg.study.spec.presets import named_method

MODEL = Model("gcn", hidden=8)
RUNS = [Replica(seed=s, split="ab"[s], strength=0.3 + s) for s in range(2)]


class Known:
    """Logits of passes that are known."""

    def __init__(self, each: Sequence[Tensor]) -> None:
        self.kept = each

    def some(self, *numbers: int) -> "Known":
        return Known([self.kept[i] for i in numbers])

    def each(self) -> tuple[Tensor, ...]:
        return tuple(self.kept)

    def together(self) -> Tensor | None:
        return self.kept[0].unsqueeze(2) if len(self.kept) == 1 else None


def test_p_reg_is_kl_plus_the_entropy_of_all_nodes() -> None:
    """On a graph whose nodes all have neighbors; the entropy by hand."""
    rng = np.random.default_rng(0)
    ring = np.stack([np.arange(6), (np.arange(6) + 1) % 6])
    graph = replace(
        sample("plain"),
        edge_index=np.concatenate([ring, ring[::-1]], 1),
        y=np.arange(6) % 4,
        x=np.eye(6, dtype=np.float32),
    )
    found = Problem(graph, {"a": Split(*np.eye(6, dtype=bool)[:3])}, torch.device("cpu"), torch.float64)
    z = torch.from_numpy(3 * rng.standard_normal((2, 6, 4)))
    targets = found.targets([Replica(split="a")] * 2)
    whole, kl, entropy = (
        found.regularizer(named_method(name).settings).value(z, z, None, targets)
        for name in ("preg-paper", "preg-paper_kl", "entropy")
    )
    torch.testing.assert_close(whole, kl + entropy)
    p = np.exp(z.numpy()) / np.exp(z.numpy()).sum(-1, keepdims=True)
    np.testing.assert_allclose(entropy, -(p * np.log(p)).sum(-1).mean(-1))


@pytest.mark.parametrize(
    "method",
    [Method(), Method("preg"), Method.preset("reference"), Method("laplacian"), Method("label_smoothing")],
    ids=lambda m: f"{m.name} {m.norm}",
)
def test_the_mean_over_three_passes(method: Method) -> None:
    """Each pass has the loss that the library's functions compute; a second pass is the next one."""
    found = problem()
    objective = RegularizedLoss(method, found.regularizer(method), over=3)
    assert objective.passes == 3
    state = begin(found, found.network(MODEL), MODEL, RUNS, Protocol())
    advance(objective, state, 1)
    z = [torch.from_numpy(np.random.default_rng(i).standard_normal((2, 60, 4))) for i in range(3)]
    loss = objective.loss(state, Known(z))  # type: ignore[arg-type]
    edges, y = torch.from_numpy(found.graph.edge_index), torch.from_numpy(found.graph.y)
    for r, run in enumerate(RUNS):
        nodes = torch.from_numpy(found.splits[run.split].train)
        expected = 0.0
        for s in range(3):
            smooth = run.strength if method.name == "label_smoothing" else 0.0
            part = torch.nn.functional.cross_entropy(z[s][r][nodes], y[nodes], label_smoothing=min(smooth, 1.0))
            if method.name == "preg":
                source = z[(s + 1) % 3][r] if method.second_pass else None
                options: Any = {"norm": method.norm, "add_self_loops": method.add_self_loops}
                part = part + run.strength * propreg.preg(z[s][r], edges, source=source, **options)
            elif method.name == "laplacian":
                part = part + run.strength * propreg.laplacian(z[s][r], edges)
            expected += float(part) / 3
        if smooth <= 1:
            assert float(loss[r]) == pytest.approx(expected, abs=1e-12)


def test_one_pass_is_the_loss_of_the_term() -> None:
    objective = RegularizedLoss(Method.preset("reference"), problem().regularizer(Method.preset("reference")))
    assert (objective.passes, objective.over) == (2, 1)


class Spread(Layers):
    """A network whose parameters start in every way, one of them untrained, and decay differently."""

    def weights(self) -> dict[str, Weight]:
        found = super().weights()
        found["w0"] = Weight(found["w0"].shape, start=Start("normal", 0.5, -2.0))
        found["b0"] = Weight(found["b0"].shape, start=ONES, trained=False)
        found["w1"] = Weight(found["w1"].shape, fans=found["w1"].fans, decay=0.25)
        return found | {"extra": Weight((300,), start=Start("uniform", 0.1, 1.0))}


def network(found: Problem) -> Spread:
    return Spread(MODEL, found.features, found.num_classes, found.adjacency("sym", True))


def test_parameters_start_where_they_should() -> None:
    found = problem()
    started = network(found).initial(found, MODEL, [*RUNS, Replica(seed=0, split="a", strength=9.0)])
    assert [started[name].requires_grad for name in ("w0", "b0")] == [True, False]
    p = {name: t.detach() for name, t in started.items()}
    assert float(p["w0"].mean()) == pytest.approx(-2.0, abs=0.05)
    assert float(p["w0"].std()) == pytest.approx(0.5, abs=0.05)
    assert bool((p["b0"] == 1).all())
    assert 0.9 <= float(p["extra"].min()) < 0.91
    assert 1.09 < float(p["extra"].max()) <= 1.1
    assert torch.equal(p["w0"][0], p["w0"][2]), "the same seed and split"
    assert not torch.equal(p["w0"][0], p["w0"][1])


def test_a_layer_starts_as_torch_draws_it() -> None:
    found = linear(3, 25, 7)
    assert {name: w.shape for name, w in found.items()} == {"w3": (25, 7), "b3": (7,)}
    bound = float(torch.nn.Linear(25, 7).weight.detach().abs().max())
    assert all(w.start is not None and bound <= w.start.spread == 0.2 for w in found.values())


def test_a_decay_of_its_own_and_an_untrained_parameter() -> None:
    found = problem()
    state = begin(found, network(found), MODEL, RUNS, Protocol())
    decay: Any = state.optimizer.weight_decay  # type: ignore[attr-defined]
    assert decay["w1"].tolist() == [0.25, 0.25]
    assert decay["w0"].tolist() == [5e-4, 5e-4]

    def procedure(found: Problem, replicas: Sequence[Replica]) -> Iterator[Phase]:
        mine = network(found)
        state = begin(found, mine, MODEL, replicas, Protocol())
        yield Phase(mine, state, RegularizedLoss(Method(), found.regularizer(Method())), [LAST], 5)

    results = dict(train(found, MODEL, Method("preg"), RUNS, Protocol(), procedure=procedure, keep_weights=True))
    assert bool((results[0].weights["b0"] == 1).all())
    assert not bool((results[0].weights["b1"] == 0).all())


def test_passes_by_number() -> None:
    found = problem()
    mine = network(found)
    state = begin(found, mine, MODEL, RUNS, Protocol())
    logits = Passes(mine, state, mine.begin(state.tensors), 3)
    two = logits.some(2, 0)
    assert torch.equal(two.each()[0], logits.trained(2))
    assert torch.equal(two.each()[1], logits.trained(0))
    assert two.together() is None
    alone = logits.some(1).together()
    assert alone is not None
    assert torch.equal(alone.squeeze(2), logits.trained(1))
