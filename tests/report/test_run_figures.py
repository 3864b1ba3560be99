"""The pictures of a run: named, whole, and the same bytes every time."""

from xml.etree import ElementTree

import pytest
from sklearn.metrics import f1_score, recall_score

from propreg.report import run_figures
from propreg.report.run_numbers import numbers_of
from propreg.report.run_pictures import run_pictures
from propreg.report.run_record import read_run
from propreg.statistics import summarize
from propreg.study.figures.parts import number
from report.samples import run_record


def test_five_pictures_and_the_same_bytes_every_time() -> None:
    first, second = run_figures(run_record()), run_figures(run_record())
    assert first == second
    assert list(first) == [
        f"{name}.svg" for name in ("accuracy-against-mu", "paired-differences", "training", "classes", "map")
    ]
    for svg in first.values():
        assert str(ElementTree.fromstring(svg).tag).endswith("svg")


def test_points_are_the_means_with_their_intervals() -> None:
    run = read_run(run_record())
    pictures = run_pictures(run, numbers_of(run))
    curve = pictures["accuracy-against-mu"].panels[0]
    found = summarize(run.test[2])
    assert curve.series[0].x == curve.series[1].x == (0.0, 0.1, 0.5, 1.0)
    assert (curve.series[0].y[2], curve.series[0].low[2], curve.series[0].high[2]) == tuple(
        float(f"{value:.9g}") for value in (found.mean, found.low, found.high)
    )
    assert [(level.axis, level.value) for level in curve.levels] == [("y", 81.1), ("x", 0.5)]
    differences = pictures["paired-differences"].panels[0]
    assert differences.series[1].x == (4.0, 4.0, 4.0)
    assert len(differences.series[0].x) == 6
    assert differences.y_names == ("split 0", "split 1", "split 2")


def test_the_plain_model_is_a_point_of_validation_and_of_test() -> None:
    """Validation at 0 is what the other strengths have to beat: without it the choice cannot be seen."""
    run = read_run(run_record(mu=0.0))
    curve = run_pictures(run, numbers_of(run))["accuracy-against-mu"].panels[0]
    assert (curve.series[0].x[0], curve.series[0].y[0]) == (0.0, number(run.test[0].mean()))
    assert (curve.series[1].x[0], curve.series[1].y[0]) == (0.0, number(run.val[0].mean()))
    assert curve.notes == ("picked on validation: μ = 0, the plain model",)
    assert run.val[0].mean() != run.test[0].mean()


def test_one_run_has_no_band() -> None:
    one = [[[0.8]], [[0.9]]]
    record = run_record(mus=[0.0, 0.5], splits=["0"], seeds=1, val=one, test=one, epochs=[[[9]], [[9]]])
    run = read_run(record)
    curve = run_pictures(run, numbers_of(run))["accuracy-against-mu"].panels[0]
    assert (curve.series[0].y, curve.series[0].low, curve.series[0].high) == ((80.0, 90.0), (None, None), (None, None))
    assert curve.levels[0].low is None
    assert len(run_figures(record)) == 5


def test_one_split_is_shown_by_seed() -> None:
    record = run_record(splits=["public"])
    for name in ("val", "test", "epochs"):
        record[name] = [splits[:1] for splits in record[name]]
    run = read_run(record)
    assert run_pictures(run, numbers_of(run))["paired-differences"].panels[0].y_names == ("seed 0", "seed 1")


def test_what_cannot_be_drawn_says_so() -> None:
    nothing = [[[None, None]] * 3] * 4
    record = run_record(test=nothing, val=nothing, histories={"plain": [], "chosen": []}, confusion=None, map=None)
    run = read_run(record)
    for figure in run_pictures(run, numbers_of(run)).values():
        assert all(panel.empty for panel in figure.panels)
    assert len(run_figures(record)) == 3


def test_small_strengths_are_drawn_on_a_logarithmic_axis() -> None:
    run = read_run(run_record(mus=[0.0, 1e-5, 1e-3, 1.0], mu=1e-3))
    panel = run_pictures(run, numbers_of(run))["accuracy-against-mu"].panels[0]
    assert (panel.x_scale, panel.x_view) == ("log", None)
    assert panel.series[0].x == (1e-5, 1e-3, 1.0)
    across = {level.label: level.value for level in panel.levels if level.axis == "y"}
    assert across == {"plain, test": number(run.test[0].mean()), "plain, validation": number(run.val[0].mean())}


def test_recall_and_f1_are_those_of_scikit_learn() -> None:
    run = read_run(run_record())
    recall, f1 = run_pictures(run, numbers_of(run))["classes"].panels
    for i, name in enumerate(("plain", "chosen")):
        table = run_record()["confusion"][name]
        true = [a for a, row in enumerate(table) for n in row for _ in range(n)]
        predicted = [b for row in table for b, n in enumerate(row) for _ in range(n)]
        for panel, score in ((recall, recall_score), (f1, f1_score)):
            assert panel.series[i].x == pytest.approx(100 * score(true, predicted, average=None))


def test_the_map_has_a_dot_for_each_node() -> None:
    run = read_run(run_record())
    (panel,) = run_pictures(run, numbers_of(run))["map"].panels
    assert {series.key: len(series.x) for series in panel.series} == {"both": 2, "neither": 1, "broken": 1, "fixed": 1}
    assert panel.series[-1].notes == ("n2: dogs; plain cats, regularized dogs",)
