"""Figure 2c: who is ahead of whom, from runs whose numbers are known."""

import math

import pytest

from propreg.study.figures.build import figure_data
from propreg.study.figures.parts import Figure
from propreg.study.spec.presets import named_grid
from study.figures.made_up import Case, listed_rows, recorded

NAME = "fig-strength"


def _accuracy(case: Case) -> float:
    """P-reg adds 3 at μ = 0.6; the Laplacian adds 1 at its best, as a mean 0.001, and falls to chance beyond 0.1."""
    mu, name = case.mu, case.method
    if name == "plain":
        return 80.0 + case.run.split
    if name.startswith("preg"):
        return 80.0 + case.run.split + 3 - 2 * abs(mu - 0.6)
    return 80.0 + case.run.split + (1 - 0.1 * abs(math.log10(mu) + 3) if mu < 0.1 else -40 * mu)


@pytest.fixture(scope="module")
def figure() -> Figure:
    return figure_data(NAME, recorded(NAME, _accuracy))


def test_the_left_panels_show_the_papers_range_from_the_plain_model_on(figure: Figure) -> None:
    assert [panel.title.split(":")[0] for panel in figure.panels] == ["GCN", "GCN", "GAT", "GAT"]
    left, right = figure.panels[:2]
    assert (left.x_scale, right.x_scale) == ("linear", "log")
    for series in left.series:
        assert series.x == (0.0, *named_grid("preg"))
        assert series.y[0] == pytest.approx(82.0)
    assert [series.key for series in right.series] == ["laplacian-mean", "laplacian-sum", "laplacian-official"]
    assert right.series[0].x[0] == 1e-5
    assert right.series[1].x[0] == 1e-9
    assert all(x is not None and x > 0 for series in right.series for x in series.x)


def test_the_view_keeps_what_is_far_below_out_but_not_the_curves(figure: Figure) -> None:
    view = figure.panels[0].y_view
    assert view is not None
    assert view[0] == pytest.approx(82.0 - 4.0)
    tops = [high for panel in figure.panels[:2] for series in panel.series for high in series.high if high is not None]
    assert max(tops) < view[1]
    assert min(y for y in figure.panels[0].series[2].y if y is not None) < view[0]


def test_levels_are_ours_and_the_papers(figure: Figure) -> None:
    levels = {(level.source, level.label): level.value for level in figure.panels[0].levels}
    assert levels["ours", "plain GCN"] == pytest.approx(82.0)
    assert levels["paper", "paper, P-reg"] == 82.83
    assert levels["paper", "paper, Laplacian"] == 79.41
    own = {level.label: level.value for level in figure.panels[3].levels}
    assert own["P-reg (official-code form), μ 0.6"] == pytest.approx(85.0)


def test_the_dispute_is_answered(figure: Figure) -> None:
    rows = listed_rows(figure)
    three, one = "+3.0 (+1.3 to +4.7)", "+1.0 (+0.4 to +1.6)"
    assert rows["GAT + P-reg (official-code form)"] == ("0.6", three, "better", "0 of 20", "", "")
    assert rows["GAT + Laplacian (mean)"][:4] == ("0.001", one, "better", "19 of 20")
    assert rows["GAT + Laplacian (official-code form)"][4:] == ("+2.0 (+0.9 to +3.1)", "+20.7 (+8.9 to +32.5)")


def test_a_laplacian_that_helps_is_not_what_the_paper_says(figure: Figure) -> None:
    assert listed_rows(figure)["GCN + Laplacian (mean)"][2] == "better"


def test_a_collapse_below_the_axis_is_said() -> None:
    def collapsing(case: Case) -> float:
        return _accuracy(case) - (20.0 if case.method == "preg-reference" and case.mu >= 0.9 else 0.0)

    figure = figure_data(NAME, recorded(NAME, collapsing))
    words = "P-reg (official-code form) falls to 64.2 % at μ = 1 and lies below the axis (▾) at μ = 0.9, 0.95, 1"
    assert figure.panels[0].notes[0] == words
    assert figure.panels[1].notes == ()


def test_a_laplacian_below_the_axis_is_said(figure: Figure) -> None:
    words = "Laplacian (mean) falls to 42.0 % at μ = 1 and lies below the axis (▾) at μ = 0.15 … 1 (18 values)"
    assert words in figure.panels[0].notes


def test_without_the_laplacian_nothing_is_said_of_it() -> None:
    figure = figure_data(NAME, recorded(NAME, _accuracy, only=lambda case: case.line.method.method != "laplacian"))
    assert not any("Laplacian" in name for name in listed_rows(figure))
    assert figure.panels[1].empty == "GCN: 0 of 2,050 runs recorded"
    assert "Laplacian (sum) 0 of 750" in figure.missing[0]
