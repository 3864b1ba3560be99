"""A module of the user's own with an auxiliary loss, and with an optimizer of the user's choice."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fitting.own_modules import DATA, GRAPH, QUICK, SPLIT, Base
from propreg import load_model, preg
from propreg.engine import Method, Model, Protocol, Replica
from propreg.engine.models.user_module import OwnNetwork
from propreg.engine.ops.adam import Adam
from propreg.engine.tasks.node import Problem
from propreg.engine.training.train import train
from propreg.fitting.fit import fit


class Auxiliary(Base):
    """Pulls its hidden layer to zero by a loss of its own, in training only."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        h = self.hidden(x, edge_index)
        z = self.b(F.dropout(h, 0.4, self.training))
        return (z, 0.3 * h.square().mean()) if self.training else z


class Always(Auxiliary):
    """The same in evaluation, too, as a list."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        h = self.hidden(x, edge_index)
        return [self.b(F.dropout(h, 0.4, self.training)), 0.3 * h.square().mean().view(1)]


def losses_by_hand(factory: Any, replica: Replica, epochs: int, make: Any = None) -> list[float]:
    torch.manual_seed(replica.seed)
    module, train, losses = factory(), torch.from_numpy(SPLIT.train), []
    parameters = list(module.parameters())
    adam = torch.optim.Adam(parameters, lr=replica.lr, weight_decay=replica.weight_decay)
    optimizer = adam if make is None else make(parameters)
    for _ in range(epochs):
        found = module(DATA.x, DATA.edge_index)
        z, extra = found if isinstance(found, tuple | list) else (found, torch.zeros(()))
        loss = F.cross_entropy(z[train], DATA.y[train]) + replica.strength * preg(z, DATA.edge_index) + extra
        optimizer.zero_grad()
        loss.sum().backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("factory", [Auxiliary, Always])
def test_an_auxiliary_loss_is_added_to_the_loss_of_training(factory: Any) -> None:
    result = fit(GRAPH, factory, scale="none", **QUICK)
    with torch.random.fork_rng(devices=[]):
        for run in result.runs:
            np.testing.assert_allclose(run.history["loss"], losses_by_hand(factory, run.replica, 12), rtol=2e-4)
        without = losses_by_hand(Base, result.runs[0].replica, 12)
    assert not np.allclose(result.runs[0].history["loss"], without, rtol=1e-2)


def test_a_model_with_an_auxiliary_loss_predicts_and_is_saved(tmp_path: Path) -> None:
    result = fit(GRAPH, Always, **QUICK)
    result.save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors", Always())
    with torch.no_grad():
        expected = result.model(DATA.x, DATA.edge_index)[0].softmax(-1)
    np.testing.assert_allclose(result.predict_proba(DATA), expected, rtol=1e-5)
    np.testing.assert_allclose(again(DATA.x, DATA.edge_index)[0].softmax(-1).detach(), expected, rtol=1e-5)


@pytest.mark.parametrize("factory", [Base, Auxiliary])
def test_as_one_program_it_is_that_of_each(factory: Any) -> None:
    """What a GPU does with a batch."""

    class Undropped(factory):  # type: ignore[misc]  # a mask in a batch depends on the batch
        def forward(self, x: Tensor, edge_index: Tensor) -> Any:
            h = self.hidden(x, edge_index)
            return (self.b(h), 0.3 * h.square().mean()) if factory is Auxiliary else self.b(h)

    problem = Problem(GRAPH, {"own": SPLIT}, "cpu")
    replicas, found = [Replica(0), Replica(1)], []
    for together in (False, True):
        network = OwnNetwork(Undropped, problem, together)
        p = network.stacked(replicas)
        z = network.finish(p, None, type("Draw", (), {"training": True})())
        found.append((z, network.auxiliary))
    torch.testing.assert_close(found[0][0], found[1][0])
    if factory is Base:
        assert found[0][1] is found[1][1] is None
    else:
        assert found[0][1] is not None
        assert found[0][1].shape == (2,)
        torch.testing.assert_close(found[0][1], found[1][1])


@pytest.mark.parametrize("returned", [lambda z: (z, z), lambda z: (z, None), lambda z: (z, z.sum(), z.sum())])
def test_other_tuples_are_refused(returned: Any) -> None:
    class Net(Base):
        def forward(self, x: Tensor, edge_index: Tensor) -> Any:
            return returned(super().forward(x, edge_index))

    with pytest.raises(ValueError, match=r"must return logits, or \(logits, auxiliary loss\) with one number"):
        fit(GRAPH, Net, **QUICK)


def test_an_optimizer_of_your_own_trains_as_in_a_loop() -> None:
    def make(parameters: Any) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

    with torch.random.fork_rng(devices=[]):
        for run in fit(GRAPH, Base, optimizer=make, scale="none", **QUICK).runs:
            np.testing.assert_allclose(run.history["loss"], losses_by_hand(Base, run.replica, 12, make), rtol=2e-4)
    again = fit(GRAPH, Base, optimizer=make, refit="train+val", **QUICK)
    assert again.refit is not None


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("adamw", lambda params: torch.optim.AdamW(params, lr=0.02, weight_decay=0.3)),
        ("sgd", lambda params: torch.optim.SGD(params, lr=0.02, weight_decay=0.3)),
    ],
)
def test_optimizers_by_name_are_torchs(name: Any, make: Any) -> None:
    named: dict[str, Any] = {**QUICK, "lr": 0.02, "weight_decay": 0.3}
    with torch.random.fork_rng(devices=[]):
        for run in fit(GRAPH, Base, optimizer=name, scale="none", **named).runs:
            np.testing.assert_allclose(run.history["loss"], losses_by_hand(Base, run.replica, 12, make), rtol=2e-4)
    ends = [fit(GRAPH, "gcn", optimizer=kind, **named).runs[0].history["loss"][-1] for kind in ("adam", name)]
    assert ends[0] != ends[1]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"optimizer": "adan"}, "optimizer must be one of 'adam', 'adamw', 'sgd'"),
        ({"optimizer": torch.optim.SGD, "lr": 0.1}, "lr is set by your own optimizer: leave lr out"),
        ({"optimizer": torch.optim.SGD, "model": "gcn"}, "optimizer as a function is for a module of your own"),
        ({"optimizer": "sgd", "model": "gmnn"}, "optimizer is for models trained in one phase, and gmnn has its own"),
        ({"optimizer": torch.optim.SGD, "resume": "x"}, "resume cannot know whether an optimizer"),
        ({"optimizer": nn.ParameterList}, "optimizer must make a torch.optim.Optimizer"),
    ],
)
def test_what_cannot_be_combined_is_one_sentence(given: dict[str, Any], says: str, tmp_path: Path) -> None:
    if "resume" in given:
        given = {**given, "resume": tmp_path}
    with pytest.raises((ValueError, TypeError), match=says):
        fit(GRAPH, **{"model": Base, "on_error": "raise", **QUICK, **given})


def test_the_plain_run_computes_no_term_and_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone, a run at strength 0 has the losses that it has beside others, and no graph product is paid for."""
    expected = fit(GRAPH, Base, scale="none", **QUICK).runs
    with monkeypatch.context() as patched:

        def never(*_: Any, **__: Any) -> Any:
            raise AssertionError("a term of strength 0")

        patched.setattr("propreg.engine.regularizers.preg.Preg.loss", never)
        plain = fit(GRAPH, Base, scale="none", **{**QUICK, "mu": 0.0}).runs
    for run, alike in zip(plain, expected, strict=False):
        np.testing.assert_array_equal(run.history["loss"], alike.history["loss"])


def test_a_run_makes_as_many_steps_and_evaluations_as_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one pass more if the last weights are reported, without a step: whether they still have a loss."""
    seen: list[str] = []

    class Counted(Base):
        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            seen.append("training" if self.training else "evaluation")
            return super().forward(x, edge_index)

    step = Adam.step

    def counted(*given: Any) -> None:
        seen.append("step")
        step(*given)

    monkeypatch.setattr(Adam, "step", counted)
    problem = Problem(GRAPH, {"a": SPLIT}, "cpu")
    network = OwnNetwork(Counted, problem)
    for patience, most in ((99, 9), (2, 99)):
        seen.clear()
        replica, protocol = Replica(split="a", patience=patience, lr=0.05), Protocol(max_epochs=most)
        ((_, run),) = train(problem, Model(), Method(), [replica], protocol, network=network, keep_weights=True)
        assert (run.epochs == most) == (patience == 99)
        made = {kind: seen.count(kind) - run.epochs for kind in ("training", "evaluation", "step")}
        assert made == {"training": int(run.epoch == run.epochs), "evaluation": 0, "step": 0}
