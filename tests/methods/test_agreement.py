"""GAM's agreement model: its value and loss by hand, the pairs that it sees, and a training step by step."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import leaky_relu

from engine.graphs import problem, splits
from methods.plain import dense_features
from methods.six_nodes import X, six_nodes
from propreg.engine import Problem, Protocol, Replica
from propreg.engine.ops import uniforms
from propreg.engine.training.state import begin
from propreg.methods.agreement import (
    BATCH,
    SITE,
    Agreement,
    Pairs,
    agreements,
    disagreement,
    labeled_pairs,
    places,
    validated,
)
from propreg.methods.gam import GamModel

Whole = NDArray[np.int64]
MODEL = GamModel(hidden=5)
CPU = torch.device("cpu")
RUN = Replica(split="a", lr=0.05, patience=40)
NOTHING: Any = lambda: False  # noqa: E731


def labels(found: Any = None) -> Whole:
    """Every other node of the graph is labeled."""
    y: Whole = (found or problem()).graph.y.copy()
    y[::2] = -1
    return y


def test_the_agreement_of_six_nodes_by_hand() -> None:
    found = six_nodes()
    network = Agreement(found, 5, 0.0, 1)
    p = begin(found, network, MODEL, [Replica(split="own", seed=s) for s in range(2)], Protocol()).parameters
    with torch.no_grad():
        p["b0"].fill_(0.1)
        p["b1"].fill_(-0.2)
    h = network.embedded(p)
    z = network.between(p, h, torch.tensor([[[0, 4], [3, 1]]] * 2)).detach().numpy()
    v, w = p["v0"][1].detach().numpy(), p["v1"][1].detach().numpy()[:, 0]
    mapped = X.astype(np.float32).astype(float) @ v + 0.1
    mapped = np.where(mapped > 0, mapped, 0.2 * mapped)
    for column, (i, j) in enumerate([(0, 3), (4, 1)]):
        expected = sum(w[k] * (mapped[i, k] - mapped[j, k]) ** 2 for k in range(5)) - 0.2
        assert z[1, column] == pytest.approx(expected, abs=1e-9)


def test_the_loss_is_a_sum_over_real_pairs() -> None:
    """σ(log 3) = 3/4 for a pair of the same class, σ(log 3) for one of different classes; the others do not count."""
    z = torch.tensor([[np.log(3.0), 5.0, np.log(3.0), 7.0]])
    found = disagreement(z, torch.tensor([[True, False, True, False]]))
    assert found.tolist() == pytest.approx([-np.log(3 / 4) - np.log(1 / 4)])


def test_the_pairs_of_labeled_nodes() -> None:
    rng = np.random.default_rng(3)
    edges, classes = rng.integers(0, 40, (2, 400)), np.repeat([0, 1, 2, -1], 10)
    found = labeled_pairs(edges, classes, rng)
    among = edges[:, (edges < 30).all(0)]
    parts = [found["same"], found["different"], found["left_out"]]
    assert found["left_out"].shape[1] == among.shape[1] // 10
    assert Counter(map(tuple, np.concatenate(parts, 1).T)) == Counter(map(tuple, among.T)), "each once"
    assert (classes[found["same"][0]] == classes[found["same"][1]]).all()
    assert (classes[found["different"][0]] != classes[found["different"][1]]).all()
    assert (found["agree"][0] == (classes[found["left_out"][0]] == classes[found["left_out"][1]])).all()


def test_random_pairs_of_different_classes_are_all_alike() -> None:
    classes = np.array([0, 0, 0, 1, -1, 2, 2])
    pairs = Pairs([labeled_pairs(np.zeros((2, 0), np.int64), classes, np.random.default_rng())] * 2, CPU)
    u = torch.from_numpy(np.random.default_rng(1).random((2, 2, 44_000)))
    found = Counter(map(tuple, pairs.apart(u[:, 0], u[:, 1])[1].T.tolist()))
    labeled = [0, 1, 2, 3, 5, 6]
    possible = {(i, j) for i in labeled for j in labeled if classes[i] != classes[j]}
    assert found.keys() == possible
    assert len(possible) == 22
    assert max(abs(count - 2000) for count in found.values()) < 250


def test_a_batch_has_as_many_pairs_of_each_kind() -> None:
    """Edges within a class once each where they are few; of different classes edges as often as they are there."""
    classes = np.array([0, 0, 0, 1, 1, 1])
    edges = np.array([[0, 1, 2, 0], [1, 2, 0, 3]])
    run = {**labeled_pairs(edges, classes, np.random.default_rng(0)), "left_out": edges[:, :0]}
    longer = labeled_pairs(np.tile(edges, 9), classes, np.random.default_rng(0))
    pairs = Pairs([run, longer], CPU)
    u = torch.from_numpy(np.random.default_rng(2).random((2, 4, 8)))
    ends, real = pairs.drawn(u)
    assert real[0].tolist() == [True, True, True, *[False] * 5] * 2
    assert real[1].all()
    assert {tuple(pair) for pair in ends[0, :, :3].T.tolist()} == {(0, 1), (1, 2), (2, 0)}
    y = torch.from_numpy(classes)
    assert (y[ends[:, 0, :8]] == y[ends[:, 1, :8]]).all()
    assert (y[ends[:, 0, 8:]] != y[ends[:, 1, 8:]]).all()
    many = pairs.drawn(torch.from_numpy(np.random.default_rng(2).random((2, 4, 30_000))))[0][0, :, 30_000:]
    edge = float(((many[0] == 0) & (many[1] == 3)).double().mean())
    assert edge == pytest.approx(1 / 3 + 2 / 3 / 18, abs=0.01), "one of three is the edge, and two are random pairs"


def test_places() -> None:
    u = torch.tensor([[0.1, 0.9, 0.5], [0.1, 0.9, 0.5], [0.1, 0.9, 0.5]], dtype=torch.float64)
    number, real = places(u, torch.tensor([[2], [10], [0]]))
    assert number.tolist() == [[0, 1, 0], [1, 9, 5], [0, 0, 0]]
    assert real.tolist() == [[True, True, False], [True] * 3, [False] * 3]


def test_it_trains_like_plain_torch() -> None:
    """Eleven steps with weight decay on the summed loss, of which the first and the last one are candidates."""
    found, edges = problem(), problem().graph.edge_index
    network = Agreement(found, 5, 0.3, 2)
    classes = labels()
    state = begin(found, network, MODEL, [RUN], Protocol(), stream="pairs of round 2")
    p = {name: t[0].detach().clone().requires_grad_() for name, t in state.parameters.items()}
    from propreg.engine.ops.random import generator, stream_key

    rng = generator(stream_key(found.digest, RUN, MODEL, "pairs of round 2"))
    pairs = Pairs([labeled_pairs(edges, classes, rng)], CPU)
    groups: list[dict[str, Any]] = [{"params": [p["v0"], p["v1"]], "weight_decay": 0.3}, {"params": [p["b0"], p["b1"]]}]
    adam, x = torch.optim.Adam(groups, lr=RUN.lr), dense_features(found)

    def between(ends: Tensor) -> Tensor:
        h = leaky_relu(x @ p["v0"] + p["b0"], 0.2)
        return ((h[ends[0]] - h[ends[1]]) ** 2 @ p["v1"]).squeeze(1) + p["b1"]

    kept: dict[float, Any] = {}
    for step in range(1, 12):
        state.keys.advance(step)
        ends, real = pairs.drawn(uniforms(state.keys(SITE), 2 * BATCH).view(1, 4, BATCH // 2))
        target = torch.cat([torch.ones(BATCH // 2), torch.zeros(BATCH // 2)]).double()
        each = torch.nn.functional.binary_cross_entropy_with_logits(between(ends[0]), target, reduction="none")
        adam.zero_grad()
        each[real[0]].sum().backward()  # type: ignore[no-untyped-call]
        adam.step()
        if step in (1, 11):
            right = float(((between(pairs.left_out[0]) >= 0) == pairs.agree[0]).double().mean())
            kept.setdefault(right, between(torch.from_numpy(edges)).sigmoid().detach())
    result = agreements(found, MODEL, [RUN], Protocol(max_epochs=11), network, [classes], edges, NOTHING)
    assert result is not None
    torch.testing.assert_close(result[0], kept[max(kept)], atol=1e-9, rtol=0)
    assert len(kept) == 2, "the two candidates differ"


def trained(run: Replica, classes: Whole, edges: Whole, found: Problem | None = None) -> tuple[int, Tensor]:
    """How many steps a training takes, of at most 500, and the agreement."""
    found, steps = found or problem(), list[int]()
    network = Agreement(found, 5, 0.0, 1)

    def look() -> bool:
        steps.append(1)
        return False

    result = agreements(found, MODEL, [run], Protocol(max_epochs=500), network, [classes], edges, look)
    assert result is not None
    return len(steps), result[0]


def test_it_ends_after_its_patience_or_once_all_is_right() -> None:
    """What is left out is judged after steps 1, 11, 21, …; here the best is that of the first ones."""
    found = problem()
    random = np.random.default_rng(0).integers(0, 4, 60)
    steps = [trained(replace(RUN, patience=n, lr=1e-9), random, found.graph.edge_index)[0] for n in (20, 60)]
    assert steps == [31, 71], "21 and 61, where the next look is"
    easy, edges = communities_by_feature()
    steps_taken, agreement = trained(replace(RUN, patience=500), easy.graph.y, edges, easy)
    assert steps_taken < 300
    same = torch.from_numpy(easy.graph.y[edges[0]] == easy.graph.y[edges[1]])
    assert float(agreement[same].min()) > 0.5 > float(agreement[~same].max())


def communities_by_feature() -> tuple[Problem, Whole]:
    """The graph with features that are its classes, and edges between all pairs of some nodes."""
    known = problem().graph
    y = np.eye(4, dtype=np.float32)[known.y]
    graph = replace(known, x=np.ascontiguousarray(y), digests={"edges": "by feature"})
    nodes = np.arange(0, 60, 3)
    edges: Whole = np.stack(np.meshgrid(nodes, nodes)).reshape(2, -1)
    return Problem(graph, splits("plain"), CPU, torch.float64), edges[:, edges[0] != edges[1]]


def test_without_pairs_of_both_kinds_nothing_is_learned() -> None:
    """Two labeled nodes without an edge, or labels of a single class: the weights are those that it starts with."""
    found = problem()
    edges, start = found.graph.edge_index, Agreement(found, 5, 0.0, 1)
    p = begin(found, start, MODEL, [RUN], Protocol()).parameters
    expected = start.between(p, start.embedded(p), torch.from_numpy(edges).unsqueeze(0)).sigmoid().detach()[0]
    few = np.full(60, -1)
    few[[0, 30]] = 0, 1
    for classes in (few, np.where(labels() == 1, 1, -1)):
        steps, agreement = trained(RUN, classes, edges)
        assert steps == 1
        torch.testing.assert_close(agreement, expected)


def test_a_run_is_the_same_alone_and_beside_one_that_ends_earlier() -> None:
    found, edges = problem(), problem().graph.edge_index
    runs = [replace(RUN, seed=0, patience=15, lr=1e-9), replace(RUN, seed=1, patience=60), RUN]
    few = np.full(60, -1)
    few[[0, 30]] = 0, 1
    classes, network = [labels(), labels(), few], Agreement(found, 5, 0.0, 1)
    together = agreements(found, MODEL, runs, Protocol(max_epochs=90), network, classes, edges, NOTHING)
    assert together is not None
    for run, own, known in zip(runs, together, classes, strict=True):
        alone = agreements(found, MODEL, [run], Protocol(max_epochs=90), network, [known], edges, NOTHING)
        assert alone is not None
        torch.testing.assert_close(own, alone[0], atol=1e-9, rtol=0)


def test_it_can_be_stopped() -> None:
    found, looks = problem(), iter([False, False, True])
    network = Agreement(found, 5, 0.0, 1)
    args = Protocol(max_epochs=500), network, [labels()], found.graph.edge_index
    assert agreements(found, MODEL, [RUN], *args, lambda: next(looks)) is None


def test_nothing_left_out_is_all_right() -> None:
    found = problem()
    pairs = Pairs([labeled_pairs(found.graph.edge_index[:, :0], labels(), np.random.default_rng())], CPU)
    network = Agreement(found, 5, 0.0, 1)
    p = begin(found, network, MODEL, [RUN], Protocol()).parameters
    assert validated(network, p, pairs).tolist() == [1.0]
