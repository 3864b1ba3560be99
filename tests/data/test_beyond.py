"""The graphs beyond the paper: counts, splits, the drawn validation nodes, where their files are looked for."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import propreg
from data.counts import Facts, check_counts
from propreg.data.benchmarks import am_gcn, cache, heterophilous
from propreg.data.benchmarks.catalog import NODE_SETS, NUM_SPLITS, fetchable, find
from propreg.data.benchmarks.load import load_node_graph, read_entry
from propreg.data.benchmarks.locate import dataset_file
from propreg.data.benchmarks.verify import verify_nodes
from propreg.data.errors import DataError
from propreg.data.formats.npz import write_npz
from propreg.data.graph import Split
from propreg.data.splits import grow_train, official_splits, ranks
from propreg.names import BEYOND, DATASETS, dataset_title

FACTS = {
    "actor": Facts(7600, 26659, 932, 5, 0, 40977, 0.217, "853 1337 1630 1815 1965"),
    "chameleon-filtered": Facts(890, 8854, 2325, 5, 0, 9903, 0.236, "242 134 209 164 141"),
    "squirrel-filtered": Facts(2223, 46998, 2089, 5, 0, 32481, 0.207, "756 516 397 321 233"),
    "minesweeper": Facts(10000, 39402, 7, 2, 0, 10000, 0.683, "8000 2000"),
    "tolokers": Facts(11758, 519000, 10, 2, 0, 61101, 0.595, "9192 2566"),
    "blogcatalog": Facts(5196, 171743, 8189, 6, 0, 369435, 0.401, "885 777 921 858 892 863"),
    "flickr": Facts(7575, 239738, 12047, 9, 0, 182517, 0.239, "834 799 856 801 795 888 843 876 883"),
    "acm": Facts(3025, 13128, 1870, 3, 561, 253300, 0.821, "1061 965 999"),
}
# Training, validation and test nodes in per cent, and how far a split may be from it.
# Without the duplicates, the shares differ between splits.
SHARES = {
    "actor": ((48, 32, 20), 0.01),
    "chameleon-filtered": ((48, 32, 20), 3),
    "squirrel-filtered": ((48, 32, 20), 2),
    "minesweeper": ((50, 25, 25), 0.01),
    "tolokers": ((50, 25, 25), 0.01),
}
DRAWN = ("blogcatalog", "flickr", "acm")


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A dataset that is on disk."""
    chosen: str = request.param
    if dataset_file(find(chosen)) is None:
        pytest.skip(f"{chosen} is not there: set PROPREG_DATA to the folder that holds {find(chosen).file}.npz")
    return chosen


def test_they_are_a_class_of_their_own() -> None:
    assert [entry.name for entry in NODE_SETS.values() if entry.beyond] == list(FACTS) == list(BEYOND)
    assert not set(BEYOND) & {*DATASETS, *fetchable()}
    assert [entry.name for entry in NODE_SETS.values() if entry.metric != "accuracy"] == ["minesweeper", "tolokers"]
    assert find("chameleon_filtered") is NODE_SETS["chameleon-filtered"]
    assert dataset_title("squirrel-filtered") == "Squirrel (filtered)"


@pytest.mark.parametrize("name", FACTS, indirect=True)
def test_counts(name: str) -> None:
    graph = load_node_graph(name)
    check_counts(graph, FACTS[name], valued=name == "tolokers")
    assert graph.split is None


@pytest.mark.parametrize("name", SHARES, indirect=True)
def test_the_heterophilous_splits_cover_every_node_once(name: str) -> None:
    splits = official_splits(name)
    assert len({split.train.tobytes() for split in splits}) == NUM_SPLITS
    shares, off = SHARES[name]
    for split in splits:
        parts = np.stack([split.train, split.val, split.test])
        assert (parts.sum(axis=0) == 1).all()
        assert np.abs(100 * parts.mean(axis=1) - shares).max() < off


@pytest.mark.parametrize("name", DRAWN, indirect=True)
def test_the_drawn_validation_nodes_are_of_neither_published_set(name: str) -> None:
    splits, y = official_splits(name), load_node_graph(name).y
    train, test = splits[0].train, splits[0].test
    assert np.bincount(y[train]).tolist() == [20] * FACTS[name].classes
    assert test.sum() == 1000
    assert len({split.val.tobytes() for split in splits}) == NUM_SPLITS
    for seed, split in enumerate(splits):
        assert (split.train == train).all()
        assert (split.test == test).all()
        assert not (train & test | split.val & (train | test)).any()
        # The same rule elsewhere: 500 nodes that grow_train draws from all others.
        drawn = grow_train(Split(train & False, train, test), y, total=500, seed=seed, keep=False)
        assert (split.val == drawn.train).all()


def test_validation_nodes_have_the_lowest_ranks(tmp_path: Path) -> None:
    """By hand, on 520 nodes: without the eight of training and testing, all but the twelve of the highest ranks."""
    write_npz(tmp_path / "toy.npz", {"train20_idx": np.arange(4), "test20_idx": np.arange(4, 8)})
    splits = am_gcn.read_splits(tmp_path / "toy.npz", "toy", 520)
    assert len(splits) == NUM_SPLITS
    for seed, split in enumerate(splits):
        by_rank = sorted(range(8, 520), key=ranks(520, seed).tolist().__getitem__)
        assert np.flatnonzero(split.val).tolist() == sorted(by_rank[:500])
        assert np.flatnonzero(split.train).tolist() == [0, 1, 2, 3]
        assert np.flatnonzero(split.test).tolist() == [4, 5, 6, 7]


def test_packed_splits_are_read_back(tmp_path: Path) -> None:
    masks = {part: np.random.default_rng(i).random((2, 11)) < 0.5 for i, part in enumerate(("train", "val", "test"))}
    write_npz(tmp_path / "toy.npz", {f"{part}_packed": np.packbits(mask, axis=1) for part, mask in masks.items()})
    splits = heterophilous.read_splits(tmp_path / "toy.npz", "toy", 11)
    for part, mask in masks.items():
        assert (np.stack([getattr(split, part) for split in splits]) == mask).all()


@pytest.mark.parametrize(
    ("train", "test", "nodes", "problem"),
    [
        ([0, 1], [1, 2], 600, "training and test nodes of toy overlap, or leave fewer than 500 for validation"),
        ([0, 1], [2, 3], 503, "training and test nodes of toy overlap, or leave fewer than 500 for validation"),
        ([0, 0], [2, 3], 600, "train20_idx names a node twice"),
        ([0, 1], [2, 600], 600, "test20_idx"),
    ],
)
def test_published_nodes_that_cannot_be_are_refused(
    tmp_path: Path, train: list[int], test: list[int], nodes: int, problem: str
) -> None:
    write_npz(tmp_path / "toy.npz", {"train20_idx": np.array(train), "test20_idx": np.array(test)})
    with pytest.raises(DataError, match=problem):
        am_gcn.read_splits(tmp_path / "toy.npz", "toy", nodes)


@pytest.mark.parametrize("read", [am_gcn.read_splits, heterophilous.read_splits, cache.read_splits])
def test_a_file_without_splits_is_refused(tmp_path: Path, read: object) -> None:
    write_npz(tmp_path / "toy.npz", {"y": np.zeros(9)})
    with pytest.raises(DataError, match=r"toy\.npz"):
        read(tmp_path / "toy.npz", "toy", 9)  # type: ignore[operator]


@pytest.mark.parametrize("load", [propreg.load_dataset, official_splits])
def test_without_the_file_the_error_names_the_folders(nowhere: Path, tmp_path: Path, load: object) -> None:
    with pytest.raises(DataError) as caught:
        load("actor", tmp_path)  # type: ignore[operator]
    assert str(caught.value) == (
        f"actor is read from actor.npz, which is not in {tmp_path} or {nowhere}, and no address to download it from is "
        "known: put it there, or set PROPREG_DATA to the folder that holds it."
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["chameleon-filtered"], indirect=True)
def test_a_changed_label_is_refused(name: str) -> None:
    entry = NODE_SETS[name]
    graph = read_entry(entry)
    with pytest.raises(DataError, match="the labels are not those of chameleon-filtered"):
        verify_nodes(replace(graph, y=(graph.y + 1) % 5), entry, "chameleon_filtered.npz")


@pytest.mark.parametrize("name", ["minesweeper"], indirect=True)
def test_a_fit_with_the_metric_of_the_catalog(name: str) -> None:
    data = propreg.load_dataset(name, split=2)
    result = propreg.fit(data, metric=find(name).metric, mu=[0.1], seeds=1, max_epochs=3)
    assert result.judging.score == "ROC-AUC"
    p = result.predict_proba()[:, 1]
    expected = roc_auc_score(data.y[data.test_mask], p[data.test_mask])
    assert expected in [pytest.approx(float(score), abs=1e-6) for score in result.test.ravel()]
