"""Figure 3: pictures from the record of outputs, numbers from the runs where they are recorded."""

from dataclasses import replace

import pytest

from propreg.store.results import Results
from propreg.study.figures.build import figure_data
from propreg.study.figures.tsne_record import Cloud, RunMeasures, TsneRecord
from study.figures.made_up import Case, recorded

METHODS = ("plain", "laplacian-mean", "laplacian-official", "preg-reference", "preg-paper")


def made_up_record(methods: tuple[str, ...] = METHODS) -> TsneRecord:
    """Four nodes of two classes; P-reg has the highest silhouettes and the largest ω."""
    clouds = []
    for i, method in enumerate(methods):
        runs = tuple(
            RunMeasures(s, f"k{s}", 70 + i, 100, 5, 0.1 * i + 0.002 * s, 1.0 + i, 2.0 * (1 + i) ** 2) for s in range(10)
        )
        clouds.append(Cloud(method, 0.5 if i else 0.0, ((0.0, 1.0), (2.0, 3.0), (4.0, 5.0), (6.0, float(i))), runs))
    return TsneRecord("citeseer", "gcn", 0, 30.0, (0, 1, 1, 0), tuple(clouds), {"numpy": "2"})


def test_a_picture_has_the_nodes_of_each_class() -> None:
    figure = figure_data("fig-tsne", Results(), tsne=made_up_record())
    assert [panel.title for panel in figure.panels[:2]] == ["GCN", "GCN + Laplacian (mean)"]
    first, second = figure.panels[1].series
    assert (first.key, first.kind, first.x, first.y) == ("class-0", "cloud", (0.0, 6.0), (1.0, 1.0))
    assert (second.x, second.y) == ((2.0, 4.0), (3.0, 5.0))
    assert figure.panels[3].notes == ("this run: silhouette 0.30, ω / mean ‖z‖ 0.12",)
    assert figure.missing == ()


def test_numbers_come_from_the_record_until_the_runs_are_there() -> None:
    figure = figure_data("fig-tsne", Results(), tsne=made_up_record())
    table = figure.panels[5].table
    assert table[1][0] == "plain"
    assert table[4][1] == "0.31\n0.30–0.31", "0.309 ± 2.262 · 0.0061 / √10"
    assert table[4][4].startswith("73.0\n")
    assert "from these trainings" in figure.marks
    results = recorded("fig-tsne", lambda _: 88.0, measures=lambda case: {"omega": 3.0 + case.mu, "length": 10.0})
    figure = figure_data("fig-tsne", results, tsne=made_up_record())
    assert figure.panels[5].table[4][1:] == ("0.31\n0.30–0.31", "0.35\n0.35–0.35", "3.50\n3.50–3.50", "88.0\n88.0–88.0")
    assert "from the recorded runs" in figure.marks


def test_some_runs_are_not_mixed_with_the_record() -> None:
    half = recorded("fig-tsne", lambda _: 88.0, measures=lambda _: {"omega": 3.0, "length": 10.0}, only=_is_plain)
    figure = figure_data("fig-tsne", half, tsne=made_up_record())
    assert figure.panels[5].table[1][4].startswith("70.0"), "the record's, as for the other methods"


def _is_plain(case: Case) -> bool:
    return case.method == "plain"


def test_the_numbers_behind_it() -> None:
    figure = figure_data("fig-tsne", Results(), tsne=made_up_record())
    silhouettes = {row[0]: row[1].partition("\n")[0] for row in figure.panels[5].table[1:]}
    assert silhouettes["plain"] == "0.01"
    assert max(silhouettes, key=lambda name: float(silhouettes[name])) == "P-reg\n(paper form)"
    assert [row[3].partition("\n")[0] for row in figure.panels[5].table[1:3]] == ["1.00", "2.00"]
    turned = figure_data("fig-tsne", Results(), tsne=made_up_record(METHODS[::-1])).panels[5].table[1:]
    assert max(turned, key=lambda row: float(row[1].partition("\n")[0]))[0] == "plain"


def test_without_a_record_the_picture_says_how_to_make_one() -> None:
    figure = figure_data("fig-tsne", Results())
    assert "propreg tsne -o FOLDER/tsne.json.gz makes it, in the folder of the runs" in figure.panels[0].empty
    assert figure.missing[0].startswith("the record of outputs is missing")
    assert "plain: 0 of 10 runs recorded" in figure.missing


def test_a_method_that_the_record_lacks_is_said() -> None:
    record = made_up_record()
    figure = figure_data("fig-tsne", Results(), tsne=replace(record, clouds=record.clouds[:4]))
    assert figure.panels[4].empty
    assert not figure.panels[3].empty
    assert figure.panels[5].table[5][1:] == ("–", "–", "–", "–")
    with pytest.raises(ValueError, match="zip"):
        figure_data("fig-tsne", Results(), tsne=replace(record, labels=(0, 1)))
