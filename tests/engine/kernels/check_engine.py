"""Whole training steps with kernels and without: the parts fit together."""

from typing import Literal

import numpy as np
import pytest
import torch

from engine.kernels.cases import DEVICE
from propreg.data.features import from_dense
from propreg.data.graph import Graph, Split
from propreg.engine import Method, Model, Problem, Protocol, Replica, kernels
from propreg.engine.kernels.linear.dense_fp16x2 import LEAST
from propreg.engine.spec import Result
from propreg.engine.training.train import train

EPOCHS = 2
MODELS = {
    "gcn": Model("gcn", hidden=16),
    "three layers, input dropped": Model("gcn", hidden=16, layers=3, input_dropout=0.3),
    "mlp": Model("mlp", hidden=16),
    "gat": Model("gat", hidden=8, heads=2, input_dropout=0.3, attention_dropout=0.4),
}


NODES = 14
DENSE, HALF_DENSE, SPARSE = 0.8, 0.12, 0.03  # dense anywhere, on tensor cores, and nowhere


def tiny(share: float) -> Problem:
    """A ring with a few chords, so many of whose features are not 0: the interpreter is slow."""
    rng = np.random.default_rng(3)
    one, other = np.arange(NODES), (np.arange(NODES) + 1) % NODES
    one, other = np.append(one, [0, 0, 0, 3]), np.append(other, [5, 7, 9, 8])
    x = rng.standard_normal((NODES, LEAST)) * (rng.random((NODES, LEAST)) < share)
    edges = np.stack([np.append(one, other), np.append(other, one)]).astype(np.int64)
    graph = Graph("tiny", edges, from_dense(x.astype(np.float32)), np.arange(NODES) % 3, None)
    part = np.arange(NODES) % 3
    return Problem(graph, {"a": Split(part == 0, part == 1, part == 2)}, DEVICE, torch.float32)


def results(model: Model, method: Method, share: float) -> list[Result]:
    mus = (0.0, 0.0) if method.name == "plain" else (0.5, 0.2)
    replicas = [Replica(seed=0, split="a", strength=mus[0]), Replica(seed=1, split="a", strength=mus[1], dropout=0.3)]
    done = train(
        tiny(share), model, method, replicas, Protocol(max_epochs=EPOCHS), keep_history=True, keep_weights=True
    )
    return [result for _, result in sorted(done, key=lambda pair: pair[0])]


@pytest.mark.parametrize(
    ("model", "method", "share"),
    [
        ("gcn", Method.preset("reference"), DENSE),
        ("gcn", Method.preset("reference"), SPARSE),
        ("three layers, input dropped", Method.preset("paper"), SPARSE),
        ("mlp", Method.preset("paper"), DENSE),
        ("mlp", Method.preset("paper"), HALF_DENSE),
        ("mlp", Method.preset("reference"), SPARSE),
        ("gcn", Method("laplacian"), SPARSE),
        ("gcn", Method("preg", phi="kl", second_pass=True), SPARSE),
        ("gat", Method(), DENSE),
        pytest.param("gat", Method(), HALF_DENSE, marks=pytest.mark.slow),
    ],
    ids=[
        "dense gcn",
        "gcn",
        "three layers",
        "dense mlp",
        "half-dense mlp",
        "mlp",
        "laplacian",
        "kl",
        "dense gat",
        "half-dense gat",
    ],
)
def test_two_epochs(model: str, method: Method, share: float) -> None:
    assert (tiny(share).features.dense is not None) == (share != SPARSE)
    ours = results(MODELS[model], method, share)
    with kernels.switched_off():
        theirs = results(MODELS[model], method, share)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.history["loss"], other.history["loss"], rtol=1e-5)
        for name, weight in other.weights.items():
            np.testing.assert_allclose(mine.weights[name], weight, rtol=1e-2, atol=1e-4)


def test_the_reported_logits_of_groups() -> None:
    """Nine replicas are one group of sixteen: its other members are no replicas."""
    replicas = [Replica(seed=i, split="a", strength=0.1 * i, patience=1 + i % 2) for i in range(9)]

    def trained() -> dict[int, Result]:
        protocol, method = Protocol("strict", EPOCHS), Method.preset("paper")
        return dict(
            train(tiny(SPARSE), MODELS["gcn"], method, replicas, protocol, measures=True, rules=["lowest_val_loss"])
        )

    ours = trained()
    with kernels.switched_off():
        theirs = trained()
    for i, result in theirs.items():
        for mine, other in zip(ours[i].reports, result.reports, strict=True):
            assert (mine.rule, mine.epoch, mine.val, mine.test) == (other.rule, other.epoch, other.val, other.test)
            assert mine.measures is not None
            assert other.measures is not None
            for part in ("val", "test"):
                one, two = getattr(mine.measures, part), getattr(other.measures, part)
                assert (one.count, one.right, one.predicted) == (two.count, two.right, two.predicted)
                np.testing.assert_allclose((one.nll, one.brier), (two.nll, two.brier), rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["paper", "reference"])
@pytest.mark.parametrize("model", ["gcn", "mlp", "gat"])
def test_a_strength_of_0_is_the_plain_run(model: str, preset: Literal["paper", "reference"]) -> None:
    runs = [Replica(seed=s, split="a", strength=0.0) for s in range(3)]
    found = [
        dict(train(tiny(SPARSE), MODELS[model], method, runs, Protocol(max_epochs=EPOCHS), keep_weights=True))
        for method in (Method.preset(preset), Method())
    ]
    for number in range(len(runs)):
        for name, weight in found[0][number].weights.items():
            assert torch.equal(weight, found[1][number].weights[name]), name
