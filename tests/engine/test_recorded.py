"""Epochs recorded on a GPU against the same epochs launched one kernel after the other."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from engine.graphs import problem, splits
from propreg.engine import Method, Model, Problem, Protocol, Replica, Result
from propreg.engine.models.network import no_dropout
from propreg.engine.training.epoch import Epoch
from propreg.engine.training.train import train
from propreg.metrics import METRICS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU to record on")

RUNS = [Replica(seed=s, split="ab"[s % 2], strength=0.1 * (s % 7), patience=1 + 2 * s, lr=0.02) for s in range(24)]


@contextmanager
def unrecorded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    begin = Epoch.__init__

    def plainly(self: Epoch, *args: Any, **options: Any) -> None:
        begin(self, *args, **{**options, "record": False})

    with monkeypatch.context() as patch:
        patch.setattr(Epoch, "__init__", plainly)
        yield


def trained(graph: Problem, model: Model, weights: bool, every: int) -> dict[int, Result]:
    method, protocol = Method.preset("reference"), Protocol(max_epochs=80)
    return dict(
        train(
            *(graph, model, method, RUNS, protocol),
            keep_history=True,
            keep_weights=weights,
            measures=True,
            rules=["lowest_val_loss", "last"],
            check_every=every,
        )
    )


@pytest.mark.parametrize("recording", [0, 10**7])  # compact at once, or after a while
@pytest.mark.parametrize("model", [Model("gcn", hidden=16), Model("gat", hidden=8, input_dropout=0.5)], ids=str)
def test_recorded_epochs_are_the_same(model: Model, recording: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("propreg.engine.training.train.RECORDING", recording)
    graph = Problem(problem().graph, splits("plain"), torch.device("cuda"), torch.float64)
    with unrecorded(monkeypatch):
        expected = trained(graph, model, True, 1)
    network, y = graph.network(model), graph.y.cpu()
    for i, result in trained(graph, model, True, 16).items():
        assert (result.epoch, result.epochs) == (expected[i].epoch, expected[i].epochs)
        assert result.val == expected[i].val
        for found, wanted in zip(result.reports, expected[i].reports, strict=True):
            assert found.measures is not None
            assert wanted.measures is not None
            assert (found.rule, found.epoch, found.test) == (wanted.rule, wanted.epoch, wanted.test)
            assert found.measures.test.predicted == wanted.measures.test.predicted
            assert METRICS["nll"].compute(found.measures.val) == pytest.approx(
                METRICS["nll"].compute(wanted.measures.val)
            )
        np.testing.assert_allclose(result.history["loss"], expected[i].history["loss"], rtol=0, atol=1e-8)
        p = {name: w.unsqueeze(0).cuda() for name, w in result.weights.items()}
        right = (network.finish(p, network.begin(p), no_dropout)[0].argmax(-1).cpu() == y).numpy()
        assert right[graph.splits[result.replica.split].val].mean() == pytest.approx(result.val)
