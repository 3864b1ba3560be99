"""Every metric of a fit, against scikit-learn on the predictions of its runs; as table, frame, text and page."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss, roc_auc_score

from communities import communities
from fitting.own_modules import DATA, GRAPH, QUICK, SPLIT, Base
from fitting.test_tasks import NUMBERS, data
from propreg.data.graph import Split
from propreg.fitting.fit import fit
from propreg.fitting.metric_table import metric_runs
from propreg.fitting.result import FitResult
from propreg.metrics import METRICS
from propreg.report import run_page
from propreg.report.run_record import read_run
from propreg.running.compare import record_of
from report.reading import read

MORE: dict[str, Any] = {**QUICK, "mu": [0.1, 0.5]}


@pytest.fixture(scope="module")
def result() -> FitResult:
    return fit(DATA, "gcn", **MORE)


def test_metrics_of_a_run_are_scikit_learns(result: FitResult) -> None:
    p, run = result.predict_proba()[SPLIT.test], result.best_run
    y, at = GRAPH.y[SPLIT.test], (result.mus.index(run.replica.strength), 0, run.replica.seed)
    found = {name: metric_runs(result, name)[at] for name in METRICS}
    guess, one_hot = p.argmax(1), np.eye(3)[y]
    assert found["accuracy"] == pytest.approx(result.test[at])
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, guess))
    assert found["macro_f1"] == pytest.approx(f1_score(y, guess, average="macro"))
    assert found["nll"] == pytest.approx(log_loss(y, p, labels=range(3)), rel=1e-4)
    assert found["brier"] == pytest.approx(((p - one_hot) ** 2).sum(1).mean(), rel=1e-4)
    sure, right = p.max(1), guess == y
    bins = np.minimum((sure * 15).astype(int), 14)
    gaps = [abs((right[bins == k] - sure[bins == k]).sum()) for k in range(15)]
    assert found["ece"] == pytest.approx(sum(gaps) / len(y), rel=1e-4, abs=1e-6)
    assert np.isnan(found["roc_auc"]), "there are three classes"


@pytest.mark.parametrize("model", ["gcn", "correct-smooth", "label-propagation", "grand", Base])
def test_accuracies_are_counted_twice_and_agree(model: Any) -> None:
    found = fit(DATA, model, **{**MORE, "mu": 0.0} if model == "label-propagation" else MORE)
    np.testing.assert_allclose(metric_runs(found, "accuracy"), found.test, atol=1e-12)


def test_means_and_gains_are_of_the_same_runs_as_the_verdict(result: FitResult) -> None:
    found = result.metrics()
    assert set(found) == set(METRICS) - {"roc_auc"}
    compared = found["accuracy"].mu
    assert compared == result.mu or not result.mu
    place = result.mus.index(compared)
    for name, pair in found.items():
        runs, sign = metric_runs(result, name), 1 if METRICS[name].direction == "higher" else -1
        assert pair.plain.mean == pytest.approx(runs[0].mean())
        assert pair.other.mean == pytest.approx(runs[place].mean())
        assert pair.difference.mean == pytest.approx(sign * (runs[place] - runs[0]).mean())
    assert found["accuracy"].difference.mean == pytest.approx(result.against_plain(compared).mean)


def test_of_two_classes_there_is_roc_auc() -> None:
    graph = communities(classes=2)
    third = np.arange(graph.num_nodes) % 3
    split = Split(third == 0, third == 1, third == 2)
    found = fit(graph, "gcn", splits=[split], **QUICK)
    run = found.best_run
    at = found.mus.index(run.replica.strength), 0, run.replica.seed
    expected = roc_auc_score(graph.y[split.test], found.predict_proba()[split.test, 1])
    assert metric_runs(found, "roc_auc")[at] == pytest.approx(expected, abs=1e-6)
    assert "ROC-AUC" in found.metrics_report()


def test_folds_are_compared_at_their_own_strengths() -> None:
    found = fit(communities(same=0.7), "gcn", test="cv", splits=4, **MORE)
    pairs = found.metrics()
    expected = found.judging.nested and found.mu
    assert expected, "the strength was picked, so the folds pick their own"
    rows = [int(np.round(found.val[:, s].mean(axis=1), 12).argmax()) for s in range(4)]
    mine = np.stack([metric_runs(found, "nll")[row, s] for s, row in enumerate(rows)])
    assert pairs["nll"].other.mean == pytest.approx(mine.mean())
    assert "per fold" in found.metrics_report()


def test_the_report_in_words(result: FitResult) -> None:
    head, *rows, about = result.metrics_report().splitlines()
    pairs = result.metrics()
    assert head.split()[:3] == ["test", "plain", "P-reg"]
    assert [row[:18].strip() for row in rows] == [METRICS[name].title for name in pairs]
    nll = next(row for row in rows if row.startswith("NLL"))
    assert nll[18:].split()[:2] == [f"{each.mean:.3f}" for each in (pairs["nll"].plain, pairs["nll"].other)]
    assert "15 bins of equal width" in about
    with pytest.raises(ValueError, match=r"^the metrics are of classes, but the task is regression"):
        fit(data(NUMBERS), "gcn", task="regression", **QUICK).metrics_report()


def test_a_frame_has_the_metrics_of_each_run(result: FitResult) -> None:
    pytest.importorskip("pandas")
    frame = result.to_frame()
    np.testing.assert_allclose(frame.test_accuracy, frame.test)
    first = result.runs[0].reports[0].measures
    assert first is not None
    assert frame.test_ece[0] == METRICS["ece"].compute(first.test)


def test_the_record_and_the_page_have_the_metrics(result: FitResult, tmp_path: Path) -> None:
    record = json.loads(json.dumps(record_of(result)))
    read_back = {metric.name: pair for metric, pair in read_run(record).metrics}
    pairs = result.metrics()
    assert read_back == pairs
    text = read(run_page(record)).text
    assert "Other metrics" in text
    assert f"{pairs['macro_f1'].plain.mean:.4f}" in text
    assert "Other metrics" not in read(run_page({**record, "metrics": {}})).text
    older = {name: value for name, value in record.items() if name != "metrics"}
    assert read_run(older).metrics == ()
    for wrong in ([1], {"nll": 5}, {"nll": {**record["metrics"]["nll"], "mu": 7.0}}):
        with pytest.raises(ValueError, match=r"run\.json|metrics|verdict"):
            read_run({**record, "metrics": wrong})
    result.report(tmp_path / "page.html")
    assert "Other metrics" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_the_page_says_what_the_strength_was_picked_by() -> None:
    picked = record_of(fit(DATA, "gcn", select="balanced", **MORE))
    assert picked["settings"]["select"] == "balanced"
    assert "mu was picked by balanced accuracy on validation." in picked["notes"]
    text = read(run_page(picked)).text
    assert "μ was picked by balanced accuracy on validation." in text
    assert "by which μ is chosen" not in text
    assert "--select balanced" in text
    assert "select='balanced'" in text
