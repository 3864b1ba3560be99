"""Class frequencies of validation against the other labeled nodes: the test statistic, and the note of a fit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from communities import communities
from propreg.data.graph import Graph, Split
from propreg.fitting.fit import fit
from propreg.fitting.shift import compare, shift_of
from propreg.running.compare import record_of

QUICK: dict[str, Any] = {"mu": [0.5], "seeds": 1, "max_epochs": 3, "progress": False}
SAYS = "Validation has other class frequencies than the labeled nodes outside training and validation (χ² = "


def skewed(nodes: int = 300) -> Graph:
    """Two thirds of the nodes are of class 0, the others of class 1 and 2."""
    rng, graph = np.random.default_rng(0), communities(nodes)
    return replace(graph, y=rng.choice(3, nodes, p=[0.66, 0.17, 0.17]), class_names=("red", "green", "blue"))


def balanced_split(graph: Graph, seed: int = 0) -> Split:
    """Five training and ten validation nodes of each class; all others test."""
    order = np.random.default_rng(seed).permutation(graph.num_nodes)
    train, val = (np.zeros(graph.num_nodes, bool) for _ in range(2))
    for c in range(3):
        mine = order[graph.y[order] == c]
        train[mine[:5]], val[mine[5:15]] = True, True
    return Split(train, val, ~(train | val))


def natural_split(graph: Graph) -> Split:
    order = np.random.default_rng(3).permutation(graph.num_nodes)
    parts = [np.isin(np.arange(graph.num_nodes), each) for each in np.split(order, [60, 160])]
    return Split(*parts)


@pytest.mark.parametrize("seed", range(3))
def test_the_statistic_is_that_of_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    val, others = rng.integers(0, 5, 80), rng.choice(5, 400, p=[0.3, 0.3, 0.2, 0.1, 0.1])
    found = compare(val, others)
    assert found is not None
    table = np.stack([np.bincount(each, minlength=5) for each in (val, others)])
    expected = chi2_contingency(table, correction=False)
    assert found.chi_squared == pytest.approx(expected.statistic)
    assert found.freedom == expected.dof
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    shares = table / table.sum(axis=1, keepdims=True)
    assert found.distance == pytest.approx(abs(shares[0] - shares[1]).sum() / 2)


def test_classes_that_neither_has_do_not_count() -> None:
    found = compare(np.array([0, 0, 3, 3, 3]), np.array([0, 3, 3]))
    assert found is not None
    assert found.freedom == 1


@pytest.mark.parametrize(("val", "others"), [([], [0, 1]), ([0, 1], []), ([2, 2], [2])])
def test_nothing_is_compared_where_there_is_nothing_to_compare(val: list[int], others: list[int]) -> None:
    assert compare(np.array(val, np.int64), np.array(others, np.int64)) is None


def test_a_validation_part_drawn_like_the_others_is_seldom_called_different() -> None:
    """At the level of 5 %, of 400 samples about 20 have p < 0.05; the bounds are three standard deviations."""
    rng = np.random.default_rng(5)
    shares = [0.5, 0.3, 0.15, 0.05]
    found = [compare(rng.choice(4, 150, p=shares), rng.choice(4, 1000, p=shares)) for _ in range(400)]
    low = sum(each is not None and each.p_value < 0.05 for each in found)
    assert 20 - 13 <= low <= 20 + 13


def test_every_split_must_differ() -> None:
    graph = skewed()
    different, alike = balanced_split(graph), natural_split(graph)
    assert shift_of(graph.y, [different, balanced_split(graph, 1)]) is not None
    assert shift_of(graph.y, [different, alike]) is None
    assert shift_of(graph.y, [alike]) is None


def test_a_small_difference_is_no_note_however_many_nodes_show_it() -> None:
    y = np.repeat([0, 1, 0, 1], [51_000, 49_000, 53_000, 47_000])
    val = np.arange(200_000) < 100_000
    found = compare(y[val], y[~val])
    assert found is not None
    assert found.p_value < 1e-6
    assert shift_of(y, [Split(np.zeros(200_000, bool), val, ~val)]) is None


def test_a_fit_says_so_with_the_class_that_differs_most() -> None:
    graph = skewed()
    split = balanced_split(graph)
    result = fit(graph, "gcn", splits=[split], **QUICK)
    (note,) = (line for line in result.summary().splitlines() if line.startswith("Note: "))
    assert note.startswith(f"Note: {SAYS}")
    share = 100 * (graph.y[split.test] == 0).mean()
    assert f"class red is 33 % of the former and {share:.0f} % of the latter" in note
    assert note.endswith('select="reweighted" picks it for estimated frequencies.')
    assert sum(SAYS in each and "--select reweighted" in each for each in record_of(result)["notes"]) == 1
    chosen = fit(graph, "gcn", splits=[split], select="reweighted", **QUICK)
    assert "picks it for estimated frequencies" not in chosen.summary()
    assert SAYS in chosen.summary()


def test_a_fit_whose_validation_is_like_the_others_says_nothing() -> None:
    graph = skewed()
    assert SAYS not in fit(graph, "gcn", splits=[natural_split(graph)], **QUICK).summary()
    unlabeled = replace(graph, y=np.where(balanced_split(graph).test, -1, graph.y))
    split = balanced_split(graph)
    alone = Split(split.train, split.val, np.zeros(graph.num_nodes, bool))
    assert SAYS not in fit(unlabeled, "gcn", splits=[alone], **QUICK).summary(), "no label outside is known"


def test_what_is_said_changes_no_training() -> None:
    """Other labels outside training and validation change the note, and neither validation nor the strength."""
    graph = replace(skewed(), digests=dict.fromkeys(("edges", "features", "labels"), "0"))
    split = balanced_split(graph)
    other = replace(graph, y=np.where(split.test, np.arange(graph.num_nodes) % 3, graph.y))
    one, two = (fit(each, "gcn", splits=[split], **QUICK) for each in (graph, other))
    np.testing.assert_array_equal(one.val, two.val)
    assert one.mu == two.mu
    assert SAYS in one.summary()
    assert SAYS not in two.summary()
