"""What a result shows of itself: a data frame, a picture, the page of ``propreg run``."""

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fitting.own_modules import DATA, GRAPH, QUICK, Base
from fitting.test_tasks import LABELS, NUMBERS, data
from propreg.fitting.fit import fit
from propreg.fitting.result import FitResult
from propreg.report import run_page
from propreg.running.compare import record_of
from report.reading import read

pandas = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def result() -> FitResult:
    return fit(DATA, models=["gcn", "mlp"], **{**QUICK, "mu": [0.1, 0.5]})


def test_a_frame_has_a_row_for_each_run(result: FitResult) -> None:
    frame = result.to_frame()
    assert list(frame.columns) == [
        "model", "method", "mu", "split", "seed", "validation", "test", "epoch", "epochs", "failed",
        "test_accuracy", "test_balanced_accuracy", "test_macro_f1", "test_roc_auc", "test_nll", "test_brier",
        "test_ece",
    ]  # fmt: skip
    assert len(frame) == 2 * 3 * 1 * 2
    board = result.leaderboard
    assert board is not None
    for name, one in board.results.items():
        mine = frame[frame.model == name]
        means = mine.groupby("mu").test.mean()
        np.testing.assert_allclose(means, one.test.mean(axis=(1, 2)))
        np.testing.assert_array_equal(mine.epoch, [run.epoch for run in one.runs])
    alone = board.results["mlp"].to_frame()
    assert set(alone.model) == {"mlp"}
    assert len(alone) == 6


def test_without_pandas_it_is_one_sentence(result: FitResult, monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")
        return ordinary(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"^to_frame needs pandas: run pip install pandas\.$"):
        result.to_frame()


def test_the_page_has_the_numbers_and_the_leaderboard(result: FitResult, tmp_path: Path) -> None:
    result.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    text = read(page).text
    assert "Models compared" in text
    board = result.leaderboard
    assert board is not None
    for row in board.rows():
        assert row.title in text
        assert f"{100 * row.test.mean:.2f}" in text
    assert "--lr 0.01" in text
    assert "--model gcn,mlp" in text
    assert "models=['gcn', 'mlp']" in text
    alone = board.results["mlp"]
    alone.report(tmp_path / "page.html")
    assert "Models compared" not in read((tmp_path / "page.html").read_text(encoding="utf-8")).text


def test_the_picture_is_that_of_the_page(result: FitResult, tmp_path: Path) -> None:
    sheet: Any = result.plot(tmp_path / "mu.svg")
    (axes,) = sheet.axes
    assert axes.get_xlabel() == "strength μ"
    points = [np.asarray(line.get_xydata()) for line in axes.lines]
    expected = np.stack([result.mus, 100 * result.test.mean(axis=(1, 2))], axis=1)
    assert any(each.shape == expected.shape and np.allclose(each, expected) for each in points)
    assert (tmp_path / "mu.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("task", "y", "shown"), [("regression", NUMBERS, "test R²"), ("multilabel", LABELS, "test ROC-AUC")]
)
def test_other_tasks_have_a_page(task: Any, y: Any, shown: str) -> None:
    found = fit(data(y), "mlp", task=task, **QUICK)
    record = record_of(found)
    text = read(run_page(record)).text
    assert shown in text
    assert "propreg run" not in text.partition("Recipe")[2], "the terminal trains on classes"
    assert record["confusion"] is None
    assert record["graph"]["homophily"] is None


def test_a_model_of_your_own_has_a_page() -> None:
    text = read(run_page(record_of(fit(GRAPH, Base, **QUICK)))).text
    assert "Plain Base" in text
    assert "model=Base" in text
    assert "propreg run --" not in text
