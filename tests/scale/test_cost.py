"""The cost of mini-batches: within 30 % of every measured point on a core, and by hand."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from propreg.engine.spec import Method, Model, Sizes
from propreg.scale.cost import NANOSECONDS, estimate_batches
from propreg.scale.trainer import COST

RECORDS = Path(__file__).parents[2] / "results" / "benchmarks" / "cost-model-cpu.json"
POINT = re.compile(
    r"(\d+) nodes, degree \d+, (\d+) features \([\d.]+%\), (\d+) classes, (\w+) (\d+) x (\d), (\w+), "
    r"batches of (\d+) of (\d+), keeping ([\d.]+); (\d+) edges, (\d+) nonzeros"
)
MARGIN = 0.3
MEASURED = [each for each in json.loads(RECORDS.read_text("utf-8"))["records"] if "batches of" in each["case"]]


@pytest.mark.parametrize("record", MEASURED, ids=lambda record: f"{record['case']} {record['unit']}")
def test_a_core(record: dict[str, Any]) -> None:
    found = POINT.fullmatch(record["case"])
    assert found is not None
    nodes, features, classes, hidden, layers, size, train, edges, nonzeros = (
        int(found[i]) for i in (1, 2, 3, 5, 6, 8, 9, 11, 12)
    )
    method = Method() if found[7] == "plain" else Method.preset("paper")
    sizes, model = Sizes(nodes, edges, features, classes, nonzeros), Model(found[4], hidden=hidden, layers=layers)
    cost = estimate_batches(sizes, model, method, size, train, float(found[10]))
    seconds = cost.epoch()
    assert seconds is not None
    predicted = {"ms": 1e3 * seconds, "nodes": cost.nodes, "edges": cost.edges}[record["unit"]]
    assert predicted == pytest.approx(record["value"], rel=MARGIN)


def test_there_are_points() -> None:
    assert len(MEASURED) == 18 * 3


def test_counts_by_hand() -> None:
    """Two hops of 3 neighbors from 10 of 1,000 nodes: each edge leads to any node; 47 batches of 10 for 461."""
    sizes = Sizes(nodes=1000, edges=5000, features=20, classes=4, nonzeros=20_000)
    cost = estimate_batches(sizes, Model("gcn", hidden=8), Method(), 10, 461, kept=3)
    roots = 1000 * (1 - math.exp(-10 / 1000))
    first = (1000 - roots) * (1 - math.exp(-3 * roots / 1000))
    second = (1000 - roots - first) * (1 - math.exp(-3 * first / 1000))
    nodes = roots + first + second
    assert cost.nodes == pytest.approx(nodes)
    assert cost.edges == pytest.approx(3 * (roots + first))
    assert cost.steps == 47
    price = NANOSECONDS
    step = nodes * (price["nodes"] + 20 * price["features"] + 20 * 8 * price["dense"])
    step += (nodes + roots + first) * 8 * price["rows"] + (roots + first) * 8 * 4 * price["logits"]
    evaluation = 2 * 1000 * 8 * price["evaluated rows"] + 2 * 5000 * price["evaluated edges"]
    assert cost.epoch() == pytest.approx(1e-9 * (47 * step + evaluation))


def test_the_term_makes_batches_as_much_larger_as_fit_lets_them() -> None:
    sizes = Sizes(nodes=1_000_000, edges=10_000_000, features=20, classes=4, nonzeros=20_000_000)
    plain, paper = (
        estimate_batches(sizes, Model(), method, 500, 5000, 9) for method in (Method(), Method.preset("paper"))
    )
    assert 0.9 * COST < max(paper.nodes / plain.nodes, paper.edges / plain.edges) <= COST


def test_of_another_model_only_sizes_are_known() -> None:
    cost = estimate_batches(Sizes(1000, 5000, 20, 4, 20_000), Model("gat", hidden=8), Method(), 10, 100, 5)
    assert cost.nodes > 10
    assert cost.epoch() is None
