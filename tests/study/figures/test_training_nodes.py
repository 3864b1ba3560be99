"""Figure 2a from runs whose numbers are known."""

import math

import pytest

from propreg.statistics import summarize
from propreg.store.results import Results
from propreg.study.figures.build import figure_data
from propreg.study.spec.experiment import load_experiment
from study.figures.made_up import Case, listed_rows, recorded

NAME = "fig-training-nodes"


def _accuracy(case: Case) -> float:
    """10 points for each doubling; P-reg adds 5 at μ = 0.4, less elsewhere."""
    plain = 10 * math.log2((case.cell.train_nodes or 0) / 35) + 20 + case.run.split + 0.1 * case.run.seed
    return plain + (5 - abs(case.mu - 0.4) if case.mu else 0)


@pytest.fixture(scope="module")
def results() -> Results:
    return recorded(NAME, _accuracy)


def test_means_and_intervals_are_those_of_the_statistics(results: Results) -> None:
    panel = figure_data(NAME, results).panels[0]
    plain = panel.series[0]
    assert plain.x == (35, 70, 140, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1200)
    assert (plain.runs[0], plain.of) == (25, 25)
    line = load_experiment(NAME).lines[0]
    found = results.accuracies(line.cells[0], line.splits, line.seeds)
    assert found is not None
    expected = summarize(found.test)
    assert (plain.y[0], plain.low[0], plain.high[0]) == pytest.approx((expected.mean, expected.low, expected.high))
    assert plain.y[2] == pytest.approx(10 * 2 + 20 + 2 + 0.2)


def test_the_strength_is_picked_on_validation_not_on_test() -> None:
    def val(case: Case) -> float:
        return 50 + 10 * (case.mu == 0.8)

    panel = figure_data(NAME, recorded(NAME, _accuracy, val=val)).panels[0]
    preg = panel.series[1]
    assert set(preg.notes) == {"μ = 0.8"}
    assert preg.y[0] == pytest.approx(20 + 2 + 0.2 + 5 - 0.4)


def test_what_preg_adds_stands_below(results: Results) -> None:
    figure = figure_data(NAME, results)
    assert (len(figure.panels), figure.columns) == (4, 2)
    below = figure.panels[3]
    assert below.title == "GAT: what P-reg adds"
    assert [each.key for each in below.series] == ["preg-reference", "preg-paper"]
    assert below.series[0].y == pytest.approx([5.0] * 13), "the splits' own differences cancel"
    assert below.series[0].low == pytest.approx([5.0] * 13)
    assert below.y_view == (-3.0, 5.5)


def test_the_numbers_behind_it(results: Results) -> None:
    figure = figure_data(NAME, results)
    rows = listed_rows(figure)
    assert rows["plain GCN"][0] == "22.2 % (35 nodes)"
    assert rows["plain GCN"][2] == "12 of 12"
    fewest, most, worth = rows["GCN + P-reg (official-code form)"]
    assert (fewest, most) == ("+5.0 (+2.1 to +7.9), 35 nodes", "+5.0 (+2.1 to +7.9), 1,200 nodes")
    assert "picked on validation at each size, from μ = 0.2 … 1 (5 values)" in figure.about
    # Five points are half a doubling: 140 · √2 = 198, read off a straight line between 140 and 200.
    at = 140 + 60 * 5 / (10 * math.log2(200 / 140))
    assert worth == f"about {at:.0f}"


def test_a_falling_curve_is_not_what_the_paper_says() -> None:
    figure = figure_data(NAME, recorded(NAME, lambda case: 90 - (case.cell.train_nodes or 0) / 100))
    assert listed_rows(figure)["plain GCN"][2] == "0 of 12"


def test_what_takes_away_is_said_so() -> None:
    figure = figure_data(NAME, recorded(NAME, lambda case: 60 + case.run.split - (17.1 if case.mu else 0)))
    fewest, _, _ = listed_rows(figure)["GCN + P-reg (official-code form)"]
    assert fewest == "−17.1 (−26.9 to −7.3), 35 nodes"


def test_the_papers_numbers_stand_at_the_public_split(results: Results) -> None:
    series = {each.key: each for each in figure_data(NAME, results).panels[1].series}
    assert (series["paper:plain"].x, series["paper:plain"].y) == ((140.0,), (83.2,))
    assert series["paper:preg-reference"].y == (83.89,)


def test_a_missing_run_leaves_a_gap_and_is_said() -> None:
    lost = recorded(
        NAME,
        _accuracy,
        only=lambda case: (
            not (case.line.model == "gcn" and case.cell.train_nodes == 300 and case.mu == 0.2 and case.run.seed == 0)
        ),
    )
    figure = figure_data(NAME, lost)
    plain, reference, paper = figure.panels[0].series[:3]
    assert None not in plain.y
    assert [x for x, y in zip(reference.x, reference.y, strict=True) if y is None] == [300]
    assert reference.missing == "P-reg (official-code form): 1,620 of 1,625 runs recorded"
    assert figure.missing == (
        "GCN: P-reg (official-code form) 1,620 of 1,625, P-reg (paper form) 1,620 of 1,625 runs recorded",
    )
    assert paper.y[4] is None


def test_a_model_without_runs_has_an_empty_panel() -> None:
    figure = figure_data(NAME, recorded(NAME, _accuracy, only=lambda case: case.line.model == "gcn"))
    assert figure.panels[1].empty == "GAT: 0 of 3,575 runs recorded"
    assert figure.missing == ("GAT: 0 of 3,575 runs recorded",)
    assert "plain GAT" not in listed_rows(figure)
