"""The record against other people's numbers: GCN's of an independent prototype, and Table 2's published ones."""

from functools import cache
from pathlib import Path

import pytest

from propreg.store.results import Results, load_results
from propreg.study.spec.experiment import load_experiment, select_lines
from propreg.study.tables.rows import OWN, table_rows

ROOT = Path(__file__).parents[3]
DATASETS = ("cora", "citeseer", "pubmed")
PLACES = [("plain", "", "none"), ("preg", "reference", "validation"), ("preg", "reference", "test")]
TOO_FAR = pytest.mark.xfail(
    strict=True, reason="71.42 against 70.8: validation picks 0.2, and at 0.1 ours is 70.81; best on test agrees"
)


@cache
def recorded() -> Results:
    return load_results(ROOT / "results")


@pytest.mark.parametrize(
    ("dataset", "place"),
    [
        pytest.param(dataset, place, marks=[TOO_FAR] if (dataset, place) == ("citeseer", 1) else [])
        for dataset in DATASETS
        for place in range(len(PLACES))
    ],
)
def test_the_record_agrees(dataset: str, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from prototype import ALLOWED, EXPECTED

    experiment = load_experiment("table1")
    rows = table_rows(experiment, recorded(), select_lines(experiment, [f"model=gcn,dataset={dataset}"]))
    found = {(r.method, r.preset, r.selection): r.mean for r in rows}
    mine = found[PLACES[place]]
    assert mine is not None
    assert abs(mine - EXPECTED[dataset][place]) <= ALLOWED


Range = tuple[float, float]
# What the methods reach without P-reg, lowest and highest: of their authors, or of the P-reg paper's own runs; and how
# far a mean of ten seeds may lie from it, in points.
PUBLISHED: dict[str, tuple[float, Range, Range, Range]] = {
    "appnp": (1.0, (83.1, 83.1), (72.0, 72.0), (80.1, 80.1)),
    "gmnn": (1.0, (83.2, 83.2), (72.8, 72.8), (81.6, 81.6)),
    "graph-unet": (1.0, (81.3, 81.3), (67.7, 67.7), (77.8, 77.8)),
    "graphmix": (1.0, (83.5, 83.5), (73.8, 73.8), (80.8, 80.8)),
    "gam": (1.0, (84.8, 84.8), (72.2, 72.2), (81.0, 81.0)),
    "grand": (1.0, (85.4, 85.4), (75.4, 75.4), (82.7, 82.7)),
    "gcnii": (1.0, (85.1, 85.5), (71.3, 73.4), (80.2, 80.2)),
    "graphat": (1.5, (82.5, 82.5), (73.5, 73.5), (79.1, 79.1)),
    "o-bvat": (1.5, (83.4, 83.4), (73.8, 73.8), (78.0, 78.0)),
    "s-bvat": (1.5, (83.4, 83.4), (73.8, 73.8), (78.0, 78.0)),
    "deep-appnp": (1.5, (83.8, 83.8), (71.4, 71.4), (79.7, 79.7)),
    "s2gc": (1.5, (83.0, 83.0), (73.6, 73.6), (80.6, 80.6)),
    "nasa": (1.5, (85.1, 85.1), (75.5, 75.5), (80.2, 80.2)),
    "dagnn": (1.5, (84.4, 84.4), (73.3, 73.3), (80.5, 80.5)),
}
NOT_REPRODUCED = {
    ("graphat", "cora"): "three of ten seeds lose a class",
    ("s-bvat", "citeseer"): "one of ten seeds loses a class",
    ("s-bvat", "pubmed"): "76.5 against 78.0; no weights were published for it",
}


@pytest.mark.parametrize(
    ("model", "dataset"),
    [
        pytest.param(*at, marks=[pytest.mark.xfail(strict=True, reason=why)] if (why := NOT_REPRODUCED.get(at)) else [])
        for at in ((model, dataset) for model in PUBLISHED for dataset in DATASETS)
    ],
)
def test_a_method_of_table_2_reaches_what_was_published(model: str, dataset: str) -> None:
    """Plain, by its own rule, where all ten seeds are recorded."""
    experiment = load_experiment("table2")
    lines = [x for x in experiment.lines if (x.model, x.dataset, x.method.method) == (model, dataset, "plain")]
    (row,) = table_rows(experiment, recorded(), lines, OWN)
    if row.mean is None:
        pytest.skip(row.verdict)
    allowed, cora, citeseer, pubmed = PUBLISHED[model]
    low, high = {"cora": cora, "citeseer": citeseer, "pubmed": pubmed}[dataset]
    assert low - allowed <= row.mean <= high + allowed
