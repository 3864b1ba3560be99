"""A stream's key depends on the dataset, split, seed, architecture and name, and on nothing else."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.graphs import problem, sample, unweighted
from propreg.engine import Model, Replica
from propreg.engine.models.network import initial
from propreg.engine.ops.random import generator, glorot, mask_keys, stream_key
from propreg.engine.tasks.node import graph_digest

RUN = Replica(seed=3, split="a")
GCN = Model("gcn")


def key(digest: str = "d", replica: Replica = RUN, model: Model = GCN, name: str = "w0") -> int:
    return stream_key(digest, replica, model, name)


def test_each_part_of_the_identity_gives_another_key() -> None:
    keys = [
        key(),
        key(digest="e"),
        key(replica=replace(RUN, seed=4)),
        key(replica=replace(RUN, split="b")),
        key(model=replace(GCN, hidden=65)),
        key(model=replace(GCN, layers=3)),
        *(key(model=replace(GCN, name=name)) for name in ("mlp", "gat", "appnp")),
        key(name="w1"),
        key(name="dropout"),
    ]
    assert len(set(keys)) == len(keys)
    assert all(0 <= k < 2**64 for k in keys)


@pytest.mark.parametrize("name", ["heads", "out_heads", "steps", "teleport"])
def test_a_setting_counts_for_the_models_that_have_it(name: str) -> None:
    owner = "gat" if "heads" in name else "appnp"
    for model in (Model("gcn"), Model("mlp"), Model("gat"), Model("appnp")):
        changed = replace(model, **{name: 3})  # type: ignore[arg-type]
        assert (key(model=changed) != key(model=model)) == (model.name == owner)


@pytest.mark.parametrize(
    "other",
    [
        {"strength": 0.5},
        {"lr": 0.1},
        {"weight_decay": 0.0},
        {"dropout": 0.1},
        {"patience": 7},
        {"unmask": 0.5},
    ],
    ids=lambda d: next(iter(d)),
)
def test_what_a_replica_does_with_its_numbers_does_not_count(other: dict[str, float]) -> None:
    assert key(replica=replace(RUN, **other)) == key()  # type: ignore[arg-type]


@pytest.mark.parametrize("rate", ["input_dropout", "attention_dropout"])
def test_dropout_rates_do_not_count(rate: str) -> None:
    for model in (Model("gcn"), Model("gat")):
        assert key(model=replace(model, **{rate: 0.3})) == key(model=model)  # type: ignore[arg-type]


def test_the_parts_cannot_run_into_each_other() -> None:
    keys = {
        key(digest=d, replica=Replica(seed=s, split=p)) for d in ("", "1", "11") for s in (1, 11) for p in ("1", "11")
    }
    assert len(keys) == 12


def test_keys_are_the_same_on_every_machine() -> None:
    # Recorded results rest on these numbers: they change only with the recipe.
    assert key() == RECORDED_KEY
    assert generator(RECORDED_KEY).random(3).tolist() == RECORDED_NUMBERS


RECORDED_KEY = 16465886934523989599
RECORDED_NUMBERS = [0.774663889969825, 0.08516288653026982, 0.08138714088998877]


@pytest.mark.parametrize(
    ("model", "recorded"),
    [
        (Model("mlp", hidden=5, layers=3, input_dropout=0.3), 3990754379789419142),
        (Model("gat", hidden=3, heads=2, out_heads=4, attention_dropout=0.1), 7674734065524435965),
        (Model("appnp", hidden=7, steps=4, teleport=0.25), 11109797700106176725),
    ],
    ids=["mlp", "gat", "appnp"],
)
def test_keys_of_other_models_are_those_of_recorded_runs(model: Model, recorded: int) -> None:
    assert key(model=model) == recorded


def test_glorot_stays_in_its_bounds_and_fills_them() -> None:
    bound = (6 / (30 + 50)) ** 0.5
    values = glorot(5, 30, 50, (30, 50))
    assert float(np.abs(values).max()) <= bound
    assert float(np.abs(values).max()) > 0.98 * bound
    assert abs(float(values.mean())) < 0.05 * bound
    assert float(values.var()) == pytest.approx(bound**2 / 3, rel=0.1)


def test_a_mask_has_its_own_key_at_every_epoch_and_place() -> None:
    streams = np.array([key(replica=Replica(seed=s)) for s in range(5)], np.uint64)
    words = np.concatenate([mask_keys(streams, epoch, site) for epoch in range(1, 60) for site in range(150)])
    pairs = {(int(a), int(b)) for a, b in words}
    assert len(pairs) == len(words)
    assert bool((words[:, 0] & 1).all()), "an even multiplier would lose bits"


def test_mask_keys_of_a_replica_do_not_depend_on_the_batch() -> None:
    streams = np.array([key(replica=Replica(seed=s)) for s in range(9)], np.uint64)
    whole = mask_keys(streams, 17, 3)
    for i in range(9):
        assert np.array_equal(mask_keys(streams[i : i + 1], 17, 3), whole[i : i + 1])


def test_the_digest_follows_the_graph() -> None:
    graph = sample("odd")
    digests = {graph_digest(g) for g in (graph, unweighted("odd"), sample("plain"), sample("dense"))}
    assert len(digests) == 4
    assert graph_digest(sample("odd")) == problem("odd").digest
    moved = replace(graph, y=np.roll(graph.y, 1))
    assert graph_digest(moved) != graph_digest(graph)
    named = replace(graph, digests={"edges": "1", "labels": "2"})
    turned = replace(graph, digests={"labels": "2", "edges": "1"})
    assert graph_digest(named) == graph_digest(turned) != graph_digest(graph)


def test_runs_that_differ_in_strength_start_alike() -> None:
    known, model = problem(), Model("gcn", hidden=8)
    runs = [Replica(0, "a", 0.1), Replica(1, "a", 0.1), Replica(0, "a", 0.5), Replica(0, "b", 0.1)]
    found = initial(known, known.network(model), model, runs)
    for name, weight in known.network(model).weights().items():
        mine = found[name]
        assert mine.is_leaf
        assert mine.requires_grad
        assert mine.shape == (len(runs), *weight.shape)
        if weight.fans is None:
            assert not mine.any()
            continue
        assert torch.equal(mine[0], mine[2])
        for run, values in zip(runs, mine, strict=True):
            expected = glorot(stream_key(known.digest, run, model, name), *weight.fans, weight.shape)
            assert torch.equal(values, torch.from_numpy(expected).to(values.dtype))
        assert not torch.equal(mine[0], mine[1])
        assert not torch.equal(mine[0], mine[3])
