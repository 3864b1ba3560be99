"""A model of the user's own: what is trained of it, and what is handed back."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fitting.own_modules import DATA, EVERY, GRAPH, QUICK, SPLIT, Base, Frozen, Tied, Unused
from propreg import preg
from propreg.data.own.pyg import to_data
from propreg.engine import Replica
from propreg.fitting import inputs as reading
from propreg.fitting.fit import fit
from samples import pyg


def by_hand(factory: Any, replica: Replica, epochs: int) -> tuple[nn.Module, list[float]]:
    """The loop that everybody writes, and its losses."""
    torch.manual_seed(replica.seed)
    module = factory()
    train = torch.from_numpy(SPLIT.train)
    if any(isinstance(p, nn.UninitializedParameter) for p in module.parameters()):
        module.eval()(DATA.x, DATA.edge_index)
        module.train()
    adam = torch.optim.Adam(module.parameters(), lr=replica.lr, weight_decay=replica.weight_decay)
    losses = []
    for _ in range(epochs):
        z = module(DATA.x, DATA.edge_index)
        loss = F.cross_entropy(z[train], DATA.y[train]) + replica.strength * preg(z, DATA.edge_index)
        adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        losses.append(loss.item())
    return module, losses


@pytest.mark.parametrize("factory", EVERY)
def test_a_run_is_that_of_a_loop_by_hand(factory: Any) -> None:
    """Initial weights, dropout, Adam, what is frozen or unused: all as torch has them."""
    with torch.random.fork_rng(devices=[]):
        for run in fit(GRAPH, factory, scale="none", **QUICK).runs:
            module, losses = by_hand(factory, run.replica, 12)
            np.testing.assert_allclose(run.history["loss"], losses, rtol=2e-4, atol=1e-5)
            if run.epoch == 12:
                for name, p in module.named_parameters():
                    np.testing.assert_allclose(run.weights[name], p.detach(), rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("factory", EVERY)
def test_the_module_handed_back_is_the_trained_one(factory: Any) -> None:
    result = fit(GRAPH, factory, **QUICK)
    best = max((r for r in result.runs if r.replica.strength == result.mu), key=lambda r: r.val)
    with torch.no_grad():
        right = (result.model(DATA.x, DATA.edge_index).argmax(-1) == DATA.y).numpy()
    assert right[SPLIT.val].mean() == pytest.approx(best.val)
    assert right[SPLIT.test].mean() == pytest.approx(best.test)
    assert not result.model.training
    for mu, classes in result.predicted.items():
        for seed, predicted in enumerate(classes[0]):
            there = (predicted == GRAPH.y)[SPLIT.test].mean()
            assert there == pytest.approx(result.test[result.mus.index(mu), 0, seed])


def test_frozen_parameters_stay_as_each_seed_drew_them() -> None:
    runs = fit(GRAPH, Frozen, **QUICK).runs
    with torch.random.fork_rng(devices=[]):
        for run in runs:
            torch.manual_seed(run.replica.seed)
            module = Frozen()
            assert torch.equal(run.weights["a.weight"], module.a.weight)
            assert torch.equal(run.weights["order"], module.order)
            assert not torch.equal(run.weights["b.weight"], module.b.weight)
    first, second = runs[0], runs[1]
    assert not torch.equal(first.weights["a.weight"], second.weights["a.weight"])


def test_tied_weights_are_handed_back_tied() -> None:
    model = fit(GRAPH, Tied, **QUICK).model
    assert isinstance(model, Tied)
    assert model.a.weight is model.b.weight


def test_what_forward_does_not_use_is_left_alone_by_weight_decay_too() -> None:
    result = fit(GRAPH, Unused, weight_decay=0.5, **QUICK)
    with torch.random.fork_rng(devices=[]):
        for run in result.runs:
            torch.manual_seed(run.replica.seed)
            module = Unused()
            assert torch.equal(run.weights["c.weight"], module.c.weight)
            assert torch.equal(run.weights["c.bias"], module.c.bias)


@pytest.mark.parametrize("layer", ["GCNConv", "SAGEConv"])
def test_lazy_layers_of_pyg(layer: str) -> None:
    conv = getattr(pyg("torch_geometric.nn"), layer)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = conv(-1, 6), conv(6, 3)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            out: Tensor = self.b(self.a(x, edge_index).relu(), edge_index)
            return out

    result = fit(GRAPH, Net, **QUICK)
    assert result.model(DATA.x, DATA.edge_index).shape == (120, 3)
    ends = [torch.cat([w.flatten() for w in run.weights.values()]) for run in result.runs]
    assert len({tuple(weights.tolist()) for weights in ends}) == 4


def test_edge_weights_that_forward_does_not_get_are_warned_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_given", set())
    weighted = to_data(replace(GRAPH, edge_weight=np.full(GRAPH.edge_index.shape[1], 0.5, np.float32)))
    with pytest.warns(UserWarning, match="P-reg uses the graph's edge weights, but a model of your own") as said:
        fit(weighted, Base, **QUICK)
    (one,) = said
    assert one.filename == __file__
    fit(weighted, Base, **QUICK)  # a second warning would be an error here
    fit(weighted, Base, **{**QUICK, "mu": 0.1}, method="label_smoothing")


class Masked(Base):
    """A mask of infinities among its buffers, as attention has them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.tensor([0.0, -torch.inf]))


class Spoiled(Base):
    """Statistics that only an evaluation uses, and that training spoils."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.training:
            self.steps: Tensor = self.steps + torch.nan
            return super().forward(x, edge_index)
        return super().forward(x, edge_index) + self.steps


def test_infinities_in_a_buffer_are_no_failure() -> None:
    plain, masked = (fit(GRAPH, factory, **QUICK) for factory in (Base, Masked))
    np.testing.assert_array_equal(masked.test, plain.test)
    assert not any(run.failed for run in masked.runs)


def test_statistics_that_training_spoils_are_one() -> None:
    with pytest.raises(RuntimeError, match="NaN or infinite"):
        fit(GRAPH, Spoiled, **QUICK)
