"""The findings in captions are written by people: here the project's record is held against each of them."""

import re
from pathlib import Path

import pytest

from propreg.store.results import Results, load_results
from propreg.study.figures.build import figure_data, figure_names
from propreg.study.figures.parts import Figure
from propreg.study.figures.tsne_record import find_tsne
from study.figures.made_up import listed_rows

RECORD = Path(__file__).parents[3] / "results"
DATASETS = ("Cora", "CiteSeer", "PubMed", "CS", "Physics", "Computers", "Photo")


@pytest.fixture(scope="module")
def results() -> Results:
    return load_results(RECORD)


def _figure(name: str, results: Results, dataset: str | None = None) -> Figure:
    return figure_data(name, results, dataset=dataset, tsne=find_tsne([RECORD]) if name == "fig-tsne" else None)


def _points(text: str) -> float:
    """The mean in front of an interval."""
    return float(text.partition(" ")[0].replace("−", "-"))


@pytest.mark.parametrize("name", figure_names())
def test_every_figure_of_the_record_has_a_finding(name: str, results: Results) -> None:
    assert _figure(name, results).finding
    assert figure_data(name, Results()).finding == "", "nothing is found in nothing"


def test_overview(results: Results) -> None:
    figure = _figure("overview", results)
    rows = listed_rows(figure)
    words = {5: "on five", 6: "on six", 7: "on all"}
    for model in ("GCN", "GAT", "MLP"):
        mine = [row for name, row in rows.items() if name.startswith(f"{model}, ")]
        gains = sorted(_points(gain) for gain, _ in mine)
        better = [verdict for _, verdict in mine].count("better")
        span = f"{gains[0]} to {gains[-1]}"
        said = re.search(rf"{span}(?: points)? to an? {model}, significantly (on \w+)", figure.finding)
        assert said, (model, gains, figure.finding)
        assert said[1] == words[better]


def test_table1(results: Results) -> None:
    rows = listed_rows(_figure("table1", results))
    for model, better, ahead, differs in (("GCN", "6", "7", "–"), ("GAT", "6", "6", "–"), ("MLP", "7", "7", "–")):
        assert rows[f"{model} + P-reg (official-code form)"][1:] == (better, "0", "7")
        won, significantly, of, paper = rows[model]
        assert (won, of, paper) == (ahead, "7", differs)
        assert int(significantly) < 5
    behind = _figure("table1", results).panels[1].series
    row = list(DATASETS).index("PubMed")
    preg = behind[0].x[row]
    assert preg is not None
    assert max(x for each in behind[2:5] if (x := each.x[row]) is not None) > preg


def test_training_nodes(results: Results) -> None:
    rows = listed_rows(_figure("fig-training-nodes", results))
    assert {rows[f"plain {model}"][2] for model in ("GCN", "GAT")} == {"12 of 12"}
    preg = [values for name, values in rows.items() if "P-reg" in name]
    fewest, most = sorted(_points(each[0]) for each in preg), [abs(_points(each[1])) for each in preg]
    assert (round(fewest[0]), round(fewest[-1]), max(most)) == (-17, -6, 0.1)
    worth = sorted(int(each[2].removeprefix("about ")) for each in preg)
    assert (worth[0], worth[-1]) == (180, 196)


def test_mask(results: Results) -> None:
    rows = listed_rows(_figure("fig-mask", results))
    for model in ("GCN", "GAT"):
        mine = [values for name, values in rows.items() if name.startswith(model)]
        assert min(_points(gain) for gain, _, _ in mine) > 0
        assert [verdict for _, verdict, _ in mine].count("better") == 6
        assert min(float(share.removesuffix(" %")) for _, _, share in mine if share) > 60


def test_strength(results: Results) -> None:
    rows = listed_rows(_figure("fig-strength", results))
    preg = sorted(_points(values[1]) for name, values in rows.items() if "P-reg" in name)
    assert (preg[0], preg[-1]) == (2.6, 2.9)
    laplacian = [values for name, values in rows.items() if "Laplacian" in name]
    assert {verdict for _, _, verdict, *_ in laplacian} == {"inconclusive"}
    assert min(_points(values[5]) for values in laplacian) == 4.5


def test_depth(results: Results) -> None:
    rows = listed_rows(_figure("fig-depth", results, "all"))
    assert {rows[f"{name}: ω"][3:] for name in DATASETS} == {("0", "2", "2")}
    falls = [name for name in DATASETS if rows[f"{name}: scale-free ω"][3:] == ("2", "0", "2")]
    assert falls == ["Cora", "Computers", "Photo"]
    assert {rows[f"{name}: scale-free ω"][4] for name in DATASETS} == {"0"}
    curves = [f"{name}, P-reg ({form})" for name in DATASETS for form in ("official-code form", "paper form")]
    ends = [rows[f"{curve}: scale-free ω"][-1] for curve in curves]
    assert (ends.count("falls"), ends.count("inconclusive")) == (13, 1)
    assert sum(float(rows[curve][0]) < 1 for curve in curves) == 11
    official, paper = (rows[f"Cora, P-reg ({form})"] for form in ("official-code form", "paper form"))
    assert (official[0], official[-1], paper[0], paper[-1]) == ("0.5", "3.3", "0.4", "3.2")


def test_tsne(results: Results) -> None:
    table = _figure("fig-tsne", results).panels[5].table
    rows = {row[0].replace("\n", " "): [float(cell.partition("\n")[0]) for cell in row[1:]] for row in table[1:]}
    ordered = sorted(rows, key=lambda name: rows[name][0])
    assert {*ordered[-2:]} == {"P-reg (official-code form)", "P-reg (paper form)"}
    assert {*sorted(rows, key=lambda name: rows[name][1])[:2]} == {"P-reg (official-code form)", "P-reg (paper form)"}
    assert rows["P-reg (paper form)"][2] > rows["plain"][2] > rows["Laplacian (mean)"][2], (
        "ω follows the outputs' length"
    )
