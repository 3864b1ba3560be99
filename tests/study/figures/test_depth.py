"""Figure 4 from runs whose ω is known."""

import pytest

from propreg.study.figures.build import figure_data
from propreg.study.figures.parts import Figure
from study.figures.made_up import Case, listed_rows, recorded

NAME = "fig-depth"


def _accuracy(case: Case) -> float:
    return 80 + case.run.split - 2 * (case.cell.model.layers - 2) + 4 * case.mu * (1.4 - case.mu)


def _measures(case: Case) -> dict[str, float]:
    """ω grows with μ, and the outputs grow faster: ω over their length falls; both fall with depth."""
    deeper = case.cell.model.layers - 2
    return {"omega": 2.0 - 0.5 * deeper + case.mu, "length": (2.0 - 0.5 * deeper + case.mu) / _free(deeper, case.mu)}


def _free(deeper: float, mu: float) -> float:
    """Scale-free ω: 0.6, 0.5, 0.3 with 2, 3, 4 layers, and 0.6 … 0.4 with μ."""
    return {0: 0.6, 1: 0.5, 2: 0.3}[int(deeper)] - 0.2 * mu


@pytest.fixture(scope="module")
def figure() -> Figure:
    return figure_data(NAME, recorded(NAME, _accuracy, measures=_measures))


def test_the_panels_of_one_dataset(figure: Figure) -> None:
    titles = [panel.title for panel in figure.panels]
    assert titles == [
        "ω against μ",
        "scale-free ω against μ",
        "test accuracy against μ",
        "accuracy against ω",
        "accuracy against scale-free ω",
        "depth that a μ is worth",
    ]
    assert "reported epoch" in figure.panels[0].y_label
    omega, free, accuracy = figure.panels[:3]
    assert omega.series[0].x == (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
    assert omega.series[0].y == pytest.approx([2 + mu / 10 for mu in range(11)])
    assert free.series[0].y == pytest.approx([0.6 - 0.02 * mu for mu in range(11)])
    assert {level.label: level.value for level in free.levels} == pytest.approx(
        {"2 layers": 0.6, "3 layers": 0.5, "4 layers": 0.3}
    )
    assert accuracy.levels[-1].label == "paper: best at μ = 0.7"
    assert (accuracy.levels[-1].value, accuracy.levels[-1].axis) == (0.7, "x")


def test_accuracy_against_distance_has_both_coordinates(figure: Figure) -> None:
    path = figure.panels[4].series[0]
    assert path.x == figure.panels[1].series[0].y
    assert path.y == figure.panels[2].series[0].y
    assert path.x_low == figure.panels[1].series[0].low
    assert path.notes[3] == "μ = 0.3"
    digits = [series for series in figure.panels[4].series if series.key == "depth-3"]
    assert (digits[0].x, digits[0].kind) == ((0.5,), "points")


def test_the_depth_that_a_strength_is_worth(figure: Figure) -> None:
    worth = figure.panels[5].series[0]
    assert worth.y == pytest.approx([2 + 0.2 * mu for mu in range(6)] + [3 + 0.1 * mu for mu in range(1, 6)])
    assert figure.panels[5].notes == ()


def test_the_numbers_behind_it(figure: Figure) -> None:
    rows = listed_rows(figure)
    assert rows["Cora: ω"] == ("2", "1.5", "1", "2", "0", "2")
    assert rows["Cora: scale-free ω"] == ("0.6", "0.5", "0.3", "2", "0", "2")
    preg = "Cora, P-reg (official-code form)"
    assert rows[f"{preg}: ω"] == ("2 (μ = 0)", "3 (μ = 1)", "0", "10", "10", "rises")
    assert rows[f"{preg}: scale-free ω"] == ("0.6 (μ = 0)", "0.4 (μ = 1)", "10", "0", "10", "falls")
    mu, accuracy, gain, rise, after, fall, layers = rows[preg]
    assert (mu, accuracy, gain, rise) == ("0.7", "84.0 %", "+2.0 (+0.8 to +3.1)", "better")
    assert (after, fall, layers) == ("−0.4 (−0.6 to −0.2)", "worse", "3.2")


@pytest.mark.parametrize(
    ("rises", "falls", "verdicts"),
    [
        (2.0, 2.0, ("better", "worse")),
        (2.0, 0.0, ("better", "inconclusive")),
        (0.0, 2.0, ("inconclusive", "worse")),
        (0.0, 0.0, ("inconclusive", "inconclusive")),
    ],
)
def test_what_the_intervals_do_not_say_is_not_said(rises: float, falls: float, verdicts: tuple[str, str]) -> None:
    """The mean is best in the middle each time, by points or by less than splits differ."""

    def accuracy(case: Case) -> float:
        apart = 0.8 * case.mu * (2, -1, -1, 1, -1)[case.run.split]
        before, after = max(0.5 - case.mu, 0), max(case.mu - 0.5, 0)
        return 80 + apart - (2 * rises + 0.3) * before - (2 * falls + 0.3) * after

    row = listed_rows(figure_data(NAME, recorded(NAME, accuracy, measures=_measures)))[
        "Cora, P-reg (official-code form)"
    ]
    assert (row[3], row[5]) == verdicts
    assert row[0] == "0.5"


@pytest.mark.parametrize(
    ("apart", "row"),
    [(0.0, ("2", "2", "1", "1", "0", "2")), (0.5, ("2", "2.5", "1", "1", "1", "2"))],
)
def test_depths_that_splits_do_not_agree_on(apart: float, row: tuple[str, ...]) -> None:
    """ω of 3 layers is that of 2 and more, give or take what splits differ by."""

    def measures(case: Case) -> dict[str, float]:
        if case.cell.model.layers != 3:
            return _measures(case)
        return {"omega": 2.0 + apart + 0.1 * (case.run.split - 2), "length": 1.0}

    figure = figure_data(NAME, recorded(NAME, _accuracy, measures=measures))
    assert listed_rows(figure)["Cora: ω"] == row


def test_a_depth_that_is_not_recorded_is_a_gap() -> None:
    two = recorded(NAME, _accuracy, measures=_measures, only=lambda case: case.line.model != "gcn-4")
    assert listed_rows(figure_data(NAME, two))["Cora: ω"] == ("2", "1.5", "", "1", "0", "1")


def test_other_datasets_one_by_one_or_all() -> None:
    results = recorded(NAME, _accuracy, measures=_measures, only=lambda case: case.line.dataset != "photo")
    assert "PubMed: ω" in listed_rows(figure_data(NAME, results, dataset="PubMed"))
    every = figure_data(NAME, results, dataset="all")
    assert (len(every.panels), every.columns) == (21, 7)
    assert [panel.title for panel in every.panels[:2]] == ["Cora", "CiteSeer"]
    assert every.panels[6].empty == "Photo: 0 of 1,150 runs recorded"
    assert every.missing == ("Photo: 0 of 1,150 runs recorded",)


def test_runs_without_a_distance_still_have_an_accuracy() -> None:
    """A run that ended in NaN has no ω."""

    def measures(case: Case) -> dict[str, float]:
        return {} if case.mu == 0.5 and case.run.seed == 3 else _measures(case)

    figure = figure_data(NAME, recorded(NAME, _accuracy, measures=measures))
    omega, accuracy = figure.panels[0].series[0], figure.panels[2].series[0]
    assert [x for x, y in zip(omega.x, omega.y, strict=True) if y is None] == [0.5]
    assert None not in accuracy.y
    assert figure.panels[5].notes[0].startswith("P-reg (official-code form): defined up to μ = 0.4, beyond which")


def test_nothing_recorded_of_the_levels_is_said_in_the_panel() -> None:
    only_preg = recorded(NAME, _accuracy, measures=_measures, only=lambda case: case.method != "plain")
    worth = figure_data(NAME, only_preg).panels[5]
    assert "the levels of deeper GCNs are not recorded" in worth.empty
