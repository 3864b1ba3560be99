"""The benchmarks follow the code that they measure: what they patch is still there."""

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from communities import communities
from propreg import Propagation, preg
from propreg.data.benchmarks.load import load_node_graph
from propreg.data.features import from_dense
from propreg.data.graph import SparseFeatures
from propreg.data.splits import official_splits, random_split
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.experiment import read_experiment
from propreg.study.tables.costs import EPOCH, EPOCH_IN_BATCH, case_of


def test_the_parts_of_a_fit_that_are_timed_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent.parent / "benchmarks"), *sys.path])
    for part, module, name in importlib.import_module("fixed_costs").PARTS:
        owner = importlib.import_module(module)
        for each in name.split("."):
            assert hasattr(owner, each), f"{part}: there is no {module}.{name}"
            owner = getattr(owner, each)


def test_a_learned_strength_is_compared_with_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent.parent / "benchmarks"), *sys.path])
    learned_mu = importlib.import_module("learned_mu")
    for name, value in (("GRID", (0.0, 0.3)), ("STARTS", (0.05,)), ("SEEDS", 1), ("EPOCHS", 3)):
        monkeypatch.setattr(learned_mu, name, value)
    found = {each.metric: each.value for each in learned_mu.compare("digits", "cpu")}
    assert {metric.rpartition(":")[0] for metric in found} == {"plain", "grid of 2", "learned from 0.05"}
    assert found["plain: μ"] == 0.0
    assert found["grid of 2: validation"] >= found["plain: validation"] > 0
    assert 0.05 != found["learned from 0.05: μ"] == pytest.approx(0.05, rel=0.2)


def test_the_costs_of_a_training_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent.parent / "benchmarks"), *sys.path])
    costs = importlib.import_module("costs")
    text = "[[parts]]\ndatasets = ['digits']\nmodels = ['appnp']\nmethods = ['preg-paper']\nsplits = 1\nseeds = 1\n"
    (line,) = read_experiment("costs", text).lines
    found = list(costs.measure(line, Trainer("cpu"), costs.QUICK))
    assert [(each.case, each.metric) for each in found] == [(case_of(line), EPOCH), (case_of(line), EPOCH_IN_BATCH)]
    assert all(each.value > 0 for each in found)


def test_the_rivals_train_what_the_engine_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their loss, without dropout, is that of PyG-like layers with propreg.preg, and so are its gradients."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent.parent / "benchmarks"), *sys.path])
    rivals = importlib.import_module("rivals")
    graph = load_node_graph("digits")
    graph = replace(graph, x=graph.x if isinstance(graph.x, SparseFeatures) else from_dense(graph.x))
    splits = {str(i): split for i, split in enumerate(official_splits("digits"))}
    task = rivals.Task.of(graph, splits)
    p = {name: torch.from_numpy(w[0]).requires_grad_() for name, w in task.weights(1).items()}
    edge_index, y = torch.from_numpy(graph.edge_index), torch.from_numpy(graph.y)
    adjacency = Propagation(edge_index, num_nodes=graph.num_nodes, norm="sym", add_self_loops=True)
    x, train = torch.from_numpy(task.x.to_dense()), torch.from_numpy(splits["3"].train)
    z = adjacency(adjacency(x @ p["w0"]).add(p["b0"]).relu() @ p["w1"]) + p["b1"]
    wanted = F.cross_entropy(z[train], y[train]) + rivals.STRENGTH * preg(z, edge_index)
    slopes = torch.autograd.grad(wanted, list(p.values()))

    at = rivals.torch_task(task, "cpu")
    found = rivals.torch_loss(at, p, torch.from_numpy(task.train[3]), 0.0)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(torch.autograd.grad(found, list(p.values())), slopes, rtol=1e-3, atol=1e-6)
    epoch = rivals.torch_vmap(task, "cpu", 2)
    epoch()
    if not rivals.has_jax():
        return
    for sparse in (False, True):
        loss, logits = rivals.jax_loss(task, sparse=sparse)
        weights = {name: w.detach().numpy() for name, w in p.items()}
        assert float(loss(weights, task.train[3], None)) == pytest.approx(wanted.item(), rel=1e-4)
        np.testing.assert_allclose(np.asarray(logits(weights)), z.detach().numpy(), atol=1e-4)
        rivals.jax_scan(task, 2, 3, sparse=sparse)()


def test_fit_is_compared_with_the_loop_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent.parent / "benchmarks"), *sys.path])
    own = importlib.import_module("own_models")
    split = random_split(communities().y, 5, 10, 0)
    fit, loop = own.compare(replace(communities(), split=split), 1, 2, "cpu", 1)
    assert fit.ratio == pytest.approx(loop.value / fit.value)
