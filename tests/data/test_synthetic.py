"""Random graphs are what they were asked for."""

from typing import Any

import pytest
import torch

from propreg.data.errors import DataError
from propreg.data.synthetic import random_graph


def test_a_graph_has_its_size_and_no_loop_or_duplicate() -> None:
    data = random_graph(2000, 30_000, 12, 5)
    source, target = data.edge_index
    key = source * 2000 + target
    assert (key.diff() > 0).all(), "sorted, each edge once"
    assert (source != target).all()
    assert torch.equal((target * 2000 + source).sort().values, key), "both directions"
    assert data.x.dtype == torch.float32
    assert (data.train_mask.int() + data.val_mask.int() + data.test_mask.int() == 1).all()
    assert data.train_mask.float().mean() == pytest.approx(0.1, abs=0.03)


def test_classes_and_features_are_as_hard_as_asked() -> None:
    """Homophily among planted classes, and the accuracy of the best classifier, which knows the means."""
    easy = random_graph(20_000, 100_000, 16, 8, homophily=0.6, feature_accuracy=0.45, label_noise=0.0)
    source, target = easy.edge_index
    assert (easy.y[source] == easy.y[target]).float().mean() == pytest.approx(0.6, abs=0.02)
    means = torch.stack([easy.x[easy.y == c].mean(0) for c in range(8)])
    assert ((easy.x @ means.T).argmax(-1) == easy.y).float().mean() == pytest.approx(0.45, abs=0.02)
    noisy = random_graph(20_000, 100_000, 16, 8, homophily=0.6, feature_accuracy=0.45, label_noise=0.2)
    assert torch.equal(noisy.edge_index, easy.edge_index)
    assert torch.equal(noisy.x, easy.x)
    assert (noisy.y != easy.y).float().mean() == pytest.approx(0.2 * 7 / 8, abs=0.01)


def test_degrees_follow_the_power_law() -> None:
    """The share of nodes with at least twice a large degree falls by about 2^(1 - exponent)."""
    for exponent in (2.5, 3.5):
        data = random_graph(50_000, 1_000_000, 1, 2, exponent=exponent)
        degree = torch.bincount(data.edge_index[0], minlength=50_000)
        share = [float((degree >= d).float().mean()) for d in (60, 120)]
        assert share[1] / share[0] == pytest.approx(2 ** (1 - exponent), rel=0.2)


def test_the_seed_decides() -> None:
    one, same, other = (random_graph(300, 2000, 4, 3, seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(one[key], same[key]) for key in one.keys())  # noqa: SIM118  (of a Data)
    assert not torch.equal(one.edge_index, other.edge_index)


def test_small_and_odd_graphs_can_be_drawn() -> None:
    assert random_graph(2, 2, 1, 2, homophily=0.9, seed=2).num_edges == 2
    assert random_graph(5, 0, 3, 9, homophily=1.0).edge_index.shape == (2, 0)
    assert random_graph(12, 60, 3, 2, homophily=0.8).num_edges == 60, "half of all pairs"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"num_nodes": 1}, "num_nodes must be a whole number of at least 2"),
        ({"num_edges": 3}, "num_edges counts both directions of each edge"),
        ({"num_edges": 10**6}, "at most 9900 for 100 nodes"),
        ({"homophily": 0.1}, "homophily must be at least that of chance"),
        ({"homophily": 2}, "homophily is a share from 0 to 1"),
        ({"exponent": 2}, "exponent must be above 2"),
        ({"feature_accuracy": 0.1}, "feature_accuracy must be at least that of guessing, 0.25"),
        ({"feature_accuracy": 1.0}, "and below 1, got 1.0"),
        ({"train": 0.8, "val": 0.3}, "train and val are shares"),
    ],
)
def test_impossible_graphs_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        random_graph(**{"num_nodes": 100, "num_edges": 400, "num_classes": 4, **options})


def test_a_graph_that_is_not_found_is_reported() -> None:
    with pytest.raises(DataError, match="use fewer edges, more nodes"):
        random_graph(200, 200 * 199, 2, 4, homophily=1.0)
