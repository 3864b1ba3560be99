"""Table 3 on the study's page: scores that are no accuracies, in their own units and with their direction."""

import re
from pathlib import Path

import pytest

from propreg.report.study import collect
from propreg.report.study_html import page_of
from propreg.store.results import Results, load_results
from report.looking import Started, looking

pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")
RECORD = Path(__file__).parents[2] / "results"
FIRST = ("ogbg-molesol", "mol-gcn", "preg-reference")


@pytest.fixture(scope="module")
def results() -> Results:
    return load_results(RECORD)


@pytest.fixture(scope="module")
def page(results: Results) -> str:
    return page_of(results)


def test_the_table_names_its_scores_and_has_their_digits(page: str) -> None:
    start = page.index('id="table3"')
    part = page[start : page.index("</section>", start)]
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", part))
    assert "Test RMSE (lower is better) or test ROC-AUC in percent (higher is better): mean" in text
    assert "1.126 ± 0.039" in text
    assert "Accuracy in percent" not in text
    assert " gained against plain" in text


def test_the_scripts_know_the_scores_of_each_line(results: Results) -> None:
    study = collect(results, ["table3", "fig-strength"])
    scores = {line["dataset"]: line.get("score") for line in study.lines}
    assert scores["cora"] is None
    assert scores["ogbg-molesol"] == {
        "name": "RMSE", "digits": 3, "unit": "", "points": "", "sign": -1, "margin": 0.05, "worse": "worse than",
        "better": "better than",
    }  # fmt: skip
    assert (scores["ogbg-molhiv"] or {})["unit"] == " %"
    (mine,) = [each for each in study.lines if (each["dataset"], each["model"], each["method"]) == FIRST]
    grid = study.grids[mine["grids"][0]]
    shown = [100 * score / grid["test_of"] for score in grid["test"]]
    assert sum(shown) / len(shown) == pytest.approx(mine["rows"][0]["mean"])
    assert grid["sum"][0] == pytest.approx(mine["rows"][0]["mean"])


@pytest.mark.slow
def test_a_dialog_shows_the_error_and_not_an_accuracy(started: Started, page: str, tmp_path: Path) -> None:
    file = tmp_path / "index.html"
    file.write_text(page, encoding="utf-8")
    with looking(started, file) as watched:
        row = watched.page.locator('#table3 tr[data-model="mol-gcn"][data-method="preg"][data-pick="validation"]')
        row.locator("button.entry").nth(1).click()
        dialog = watched.page.locator("dialog")
        text = " ".join(dialog.inner_text().split())
        assert "Test RMSE 1.119" in text
        assert "than the plain" in text
        assert "RMSE against the strength μ" in text
        assert "Test accuracy" not in text
        assert "%" not in text.split("The runs")[0].replace("95 %", "").replace("% of the paired", "")
