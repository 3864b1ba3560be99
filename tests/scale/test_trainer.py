"""Training in mini-batches: with all nodes and neighbors in each it is full-batch training, and fewer change no run."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from communities import communities
from propreg.data.features import from_dense
from propreg.data.graph import Graph, Split
from propreg.data.scaling import Scaling
from propreg.engine import Method, Model, Options, Problem, Protocol, Replica, Result, train_all
from propreg.engine.models.network import no_dropout
from propreg.engine.models.user_module import OwnNetwork
from propreg.scale import blocks, inference
from propreg.scale.blocks import Block, LargeGraph
from propreg.scale.reach import module_and_reach
from propreg.scale.trainer import Batch, MiniBatches

NODES = 60
K = np.arange(NODES) // 3 % 10
SPLIT = Split(K < 3, (K >= 3) & (K < 6), K >= 6)
OTHER = Split(K >= 6, K < 2, (K >= 2) & (K < 6))
GRAPH = communities(NODES)
WEIGHTED = replace(GRAPH, edge_weight=np.linspace(1, 2, GRAPH.edge_index.shape[1], dtype=np.float32))
PROTOCOL = Protocol("strict", 8)
RUNS = [
    Replica(seed=seed, split=split, strength=mu, dropout=0.0, patience=2)
    for seed, split in ((0, "one"), (1, "one"), (0, "two"))
    for mu in (0.0, 0.4, 0.9)
]
PREG, REFERENCE = Method("preg"), Method.preset("reference")


class Mean(nn.Module):
    """Two layers that take the mean of each node's neighbors."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for layer in (self.a, self.b):
            h = layer(x)
            count = torch.bincount(edge_index[1], minlength=len(x)).clamp(min=1)
            x = h + h.new_zeros(h.shape).index_add(0, edge_index[1], h[edge_index[0]]) / count.unsqueeze(1)
            x = x.tanh() if layer is self.a else x
        return x


def problem(graph: Graph = GRAPH, dtype: torch.dtype = torch.float64, *, balanced: bool = False) -> Problem:
    return Problem(graph, {"one": SPLIT, "two": OTHER}, "cpu", dtype, balanced=balanced)


def trainer(found: Problem, model: Model, method: Method, size: int = NODES, **more: Any) -> MiniBatches:
    return MiniBatches(LargeGraph(found, Scaling()), model, method, PROTOCOL, size, **more)


def whole(found: Problem, model: Model, method: Method) -> MiniBatches:
    return trainer(found, model, method, num_neighbors=-1, preg_seeds=NODES)


def run(
    found: Problem, model: Model, method: Method, runs: list[Replica] = RUNS, protocol: Protocol = PROTOCOL, **more: Any
) -> dict[int, Result]:
    options = Options(keep_history=True, keep_weights=True, **more)
    return dict(train_all(found, model, method, runs, protocol, options))


def same(one: dict[int, Result], other: dict[int, Result], tolerance: float = 1e-8) -> None:
    assert one.keys() == other.keys()
    for place, mine in one.items():
        theirs = other[place]
        assert (mine.replica, mine.epoch, mine.epochs) == (theirs.replica, theirs.epoch, theirs.epochs)
        assert (mine.val, mine.test, mine.failed) == (theirs.val, theirs.test, False)
        for name in mine.history:
            np.testing.assert_allclose(mine.history[name], theirs.history[name], tolerance, tolerance)
        for name, weight in mine.weights.items():
            torch.testing.assert_close(weight, theirs.weights[name], rtol=tolerance, atol=tolerance)


GAT = Model("gat", hidden=3, heads=2)
CASES: dict[str, tuple[Graph, Model, Method]] = {
    "gcn": (GRAPH, Model("gcn", hidden=5), PREG),
    "gcn, weights, three layers, two passes": (WEIGHTED, Model("gcn", hidden=5, layers=3), REFERENCE),
    "gcn, squared error": (WEIGHTED, Model("gcn", hidden=5), Method("preg", phi="squared_error")),
    "mlp": (GRAPH, Model("mlp", hidden=5), PREG),
    "gat": (GRAPH, GAT, PREG),
    "label smoothing": (GRAPH, Model("gcn", hidden=5), Method("label_smoothing")),
    "confidence penalty": (GRAPH, Model("gcn", hidden=5), Method("confidence_penalty")),
}


@pytest.mark.parametrize("case", CASES)
def test_a_batch_of_everything_is_full_batch_training_step_by_step(case: str) -> None:
    graph, model, method = CASES[case]
    found = problem(graph, balanced="weights" in case)
    expected = run(found, model, method)
    if case == "gcn":
        assert len({result.epochs for result in expected.values()}) > 1, "some stop earlier than others"
    same(run(found, model, method, trainer=whole(found, model, method), batch=3), expected)


@pytest.mark.parametrize("task", ["multilabel", "regression"])
def test_other_tasks_too(task: Any) -> None:
    targets = np.random.default_rng(0).random((NODES, 2)).astype(np.float32)
    targets = targets.round() if task == "multilabel" else targets
    targets[5, 0] = np.nan
    found = problem(replace(GRAPH, targets=targets, task=task, y=np.zeros(NODES, np.int64)))
    method = replace(PREG, phi="bernoulli" if task == "multilabel" else "squared_error")
    model, protocol = Model("gcn", hidden=5), replace(PROTOCOL, rule="val_loss")
    expected = run(found, model, method, protocol=protocol)
    mine = replace(whole(found, model, method), protocol=protocol)
    same(run(found, model, method, protocol=protocol, trainer=mine, batch=3), expected)


def test_a_module_of_the_users_own_too() -> None:
    found = problem(dtype=torch.float32)
    runs = [replace(run, weight_decay=0.0) for run in RUNS]
    large = LargeGraph(found, Scaling())
    network, reach = module_and_reach(Mean, large, None, None)
    assert (reach.sampled, reach.whole) == (2, 2)
    mine = MiniBatches(large, Model(), PREG, PROTOCOL, NODES, network, reach, -1, preg_seeds=NODES)
    expected = run(found, Model(), PREG, runs, network=OwnNetwork(Mean, found), batch=1, workers=1)
    same(run(found, Model(), PREG, runs, trainer=mine, network=network, batch=3, workers=1), expected, 1e-4)
    logits = OwnNetwork(Mean, found).predict(expected[2])
    torch.testing.assert_close(mine.logits(expected[2]), logits, rtol=1e-5, atol=1e-5)


def test_strengths_of_a_seed_share_their_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone each is the same run: it sees the same batches. Together they are sampled once."""
    model, found, seen = Model("gcn", hidden=5), problem(), list[Tensor]()
    mine = trainer(found, model, PREG, 7, num_neighbors=2)

    class Seen(Batch):
        def __init__(self, trainer: MiniBatches, data: Any) -> None:
            seen.append(data.n_id)
            super().__init__(trainer, data)

    monkeypatch.setattr("propreg.scale.trainer.Batch", Seen)
    dropping = [replace(run, dropout=0.5, patience=20) for run in RUNS]
    together = run(found, model, PREG, dropping, trainer=mine, batch=3, workers=2)
    assert len(seen) == PROTOCOL.max_epochs * (3 + 3 + 4), "batches of 7: of 18 nodes, of as many, and of 24"
    alone = {i: run(found, model, PREG, [each], trainer=mine)[0] for i, each in enumerate(dropping)}
    same(alone, together)


def test_results_do_not_depend_on_workers() -> None:
    model, found = Model("gcn", hidden=5), problem(dtype=torch.float32)
    mine = trainer(found, model, PREG, 7, num_neighbors=2)
    one, two = (run(found, model, PREG, trainer=mine, batch=3, workers=workers) for workers in (1, 2))
    assert one == two
    for place in one:
        assert all(torch.equal(weight, two[place].weights[name]) for name, weight in one[place].weights.items())


@pytest.mark.parametrize("model", [Model("gcn", hidden=5, layers=3), Model("mlp", hidden=5), GAT])
@pytest.mark.parametrize("graph", [GRAPH, WEIGHTED])
def test_inference_is_the_full_forward_pass(model: Model, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    found = problem(graph)
    network = found.network(model)
    p = {name: t.detach() for name, t in network.initial(found, model, RUNS[:4]).items()}
    expected = network.finish(p, network.begin(p), no_dropout)
    large, nodes = LargeGraph(found, Scaling()), torch.tensor([3, 50, 7, 22])
    layered = model.architecture.layered
    assert layered is not None
    for edges in (1 << 18, 20):
        monkeypatch.setattr(blocks, "EDGES", edges)
        monkeypatch.setattr(blocks, "KEPT", 2 * edges)
        monkeypatch.setattr(inference, "AT_ONCE", 1 << 26 if edges > 20 else 1)
        logits = inference.LayerByLayer(large, layered(model), nodes)
        for _ in range(2):  # with blocks that are made, and that were kept
            torch.testing.assert_close(logits(p), expected[:, nodes], rtol=1e-10, atol=1e-10)


def test_a_sampled_edge_counts_for_those_that_were_not_drawn() -> None:
    """Node 0 has four neighbors, of which two are drawn: Â has 4/2 · 1/√(5 · 2) for them, and 1/5 for its loop."""
    edges = np.array([[1, 2, 3, 4, 0, 0, 0, 0], [0, 0, 0, 0, 1, 2, 3, 4]])
    star = Graph("star", edges, np.eye(5, dtype=np.float32), np.array([0, 1, 0, 1, 0]))
    every = np.ones(5, np.bool_)
    large = LargeGraph(Problem(star, {"": Split(every, every, every)}, "cpu", torch.float64), Scaling())
    drawn = torch.tensor([[1, 2], [0, 0]])
    block = Block(large, torch.tensor([0, 4, 2]), drawn, share=torch.tensor([2.0, 0.0, 0.0]))
    expected = torch.diag(torch.tensor([1 / 5, 1 / 2, 1 / 2], dtype=torch.float64))
    expected[0, 1:] = 2 / 10**0.5
    torch.testing.assert_close(block.adjacency("sym", True).to_dense(), expected)
    torch.testing.assert_close(block.features.matrix.to_dense(), torch.eye(5, dtype=torch.float64)[[0, 4, 2]])


def test_sparse_features_are_the_same_as_dense_ones() -> None:
    rare = np.asarray(GRAPH.x) * (np.random.default_rng(1).random((NODES, 8)) < 0.15)
    model = Model("gcn", hidden=5)
    found = [problem(replace(GRAPH, x=x, digests={"all": ""})) for x in (rare.astype(np.float32), from_dense(rare))]
    one, two = (run(each, model, PREG, trainer=trainer(each, model, PREG, 7), batch=3) for each in found)
    same(one, two)


def test_a_model_without_layers_is_refused() -> None:
    found, model = problem(), Model("appnp")
    with pytest.raises(ValueError, match=r"model='appnp' needs the whole graph at once"):
        run(found, model, PREG, trainer=trainer(found, model, PREG))
