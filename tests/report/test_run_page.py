"""A run's page: the numbers of the statistics, a verdict in words, and what is missing."""

import html
import re
from dataclasses import asdict

import numpy as np
import pytest

from propreg.data.errors import DataError
from propreg.fitting.graphs.result import JUDGED
from propreg.report import run_figures, run_page
from propreg.report.run_numbers import numbers_of
from propreg.report.run_record import read_run
from propreg.statistics import paired, summarize
from report.reading import read
from report.samples import graphs_record, models, run_record


def test_numbers_are_those_of_the_statistics() -> None:
    record = run_record()
    plain, chosen = 100 * np.array(record["test"][0]), 100 * np.array(record["test"][2])
    found = numbers_of(read_run(record))
    for mine, scores in (
        (found.plain, summarize(plain)),
        (found.chosen, summarize(chosen)),
        (found.apart, paired(chosen, plain)),
    ):
        assert vars(mine) == pytest.approx(vars(scores), rel=1e-12)  # the record has fractions
    text = read(run_page(record)).text
    assert f"{summarize(plain).mean:.2f}" in text
    assert f"{paired(chosen, plain).mean:+.2f}" in text


def test_three_splits_are_too_few_to_be_sure() -> None:
    found = numbers_of(read_run(run_record()))
    assert found.apart is not None
    assert found.apart.p_value == 2 / 27, "three equal differences"
    assert found.kind == "inconclusive"
    assert "Inconclusive: no significant effect of P-reg" in read(run_page(run_record())).text


def _on_splits(gain: float, mu: float = 0.5) -> dict[str, object]:
    """Six splits, one seed, and so far apart."""
    test = [[[0.7 + 0.01 * s + (gain if m == 0.5 else 0.0)] for s in range(6)] for m in (0.0, 0.5)]
    return run_record(
        mus=[0.0, 0.5],
        splits=[str(i) for i in range(6)],
        seeds=1,
        val=test,
        test=test,
        epochs=[[[5]] * 6] * 2,
        mu=mu,
        histories={"plain": [], "chosen": []},
        confusion=None,
    )


@pytest.mark.parametrize(
    ("gain", "mu", "says"),
    [
        (0.05, 0.5, "P-reg helps on this graph"),
        (-0.05, 0.5, "P-reg hurts on this graph"),
        (-0.05, 0.0, "P-reg does not help on this graph"),
        (0.05, 0.0, "P-reg was not chosen on this graph"),
        (0.0, 0.5, "Inconclusive: no significant effect of P-reg on this graph"),
    ],
)
def test_verdicts(gain: float, mu: float, says: str) -> None:
    page = run_page(_on_splits(gain, mu))
    reading = read(page)
    (title,) = re.findall(r'<h1 id="answer-title">(.*?)</h1>', page)
    assert re.sub(r"<[^>]*>", "", title) == says
    assert '<span class="whole">P-reg</span>' in title, "no line ends after its hyphen"
    if not mu:
        assert "the plain model was chosen" in reading.text
        assert f"{'−' if gain < 0 else '+'}5.00 points" in reading.text
        assert ("Do not choose by test accuracy" in reading.text) == (gain > 0)


def test_one_pair_of_runs_has_no_interval() -> None:
    one = [[[0.8]], [[0.9]]]
    record = run_record(mus=[0.0, 0.5], splits=["0"], seeds=1, val=one, test=one, epochs=[[[9]], [[9]]])
    text = read(run_page(record)).text
    assert "in one pair of runs, too few for an interval" in text
    assert text.count("one run, too few for an interval") == 2
    assert "one pair of runs, too few for an interval or a test" in text
    assert "90.00 to 90.00" not in text


def test_the_headings_own_note_is_not_said_twice() -> None:
    record = _on_splits(0.05) | {"notes": ["P-reg helps on this graph: +5 points.", "Pixels were divided by 16."]}
    text = read(run_page(record)).text
    assert "P-reg helps on this graph: +5 points." not in text
    assert "Pixels were divided by 16." in text


def test_an_interrupted_run_says_how_far_it_came() -> None:
    record = run_record(finished=False)
    record["test"][3] = [[None, None]] * 3
    record["val"][3] = [[None, None]] * 3
    record["test"][2][2][1] = None
    reading = read(run_page(record))
    assert "17 of 24 trainings are finished" in reading.text
    curve = reading.data("run")["figures"]["accuracy-against-mu"]["panels"][0]["series"][0]
    assert curve["y"][3] is None
    assert curve["runs"] == [6, 6, 5, 0]


def test_nothing_finished_is_said() -> None:
    nothing = [[[None, None]] * 3] * 4
    record = run_record(
        test=nothing, val=nothing, epochs=nothing, finished=False, confusion=None, histories={"plain": [], "chosen": []}
    )
    text = read(run_page(record)).text
    assert "There is no pair of finished runs" in text
    assert "0 of 24 trainings are finished" in text


def test_a_run_of_the_plain_model_alone_has_a_page() -> None:
    record = run_record(mus=[0.0], mu=0.0, val=run_record()["val"][:1], test=run_record()["test"][:1])
    record["epochs"] = record["epochs"][:1]
    assert "There is no pair of finished runs" in read(run_page(record)).text


def words(page: str) -> str:
    """The text of a page, cell by cell."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_targets_of_graphs_are_a_table_with_units_and_what_is_predicted() -> None:
    text = words(run_page(graphs_record()))
    assert "P-reg helps on these graphs" in text
    assert "RMSE is in the target's own units" in text
    assert "log S, mol/l 40 2.1 0.7000 0.6600 +0.0400 +0.0300 to +0.0500 0.031" in text
    assert "mass 3 0.5 no score: the test part has labels of it in no finished pair of runs" in text
    assert "2 graphs of split random-1" in text
    assert "CCO 0.5 → 0.61 ? → 44 c1ccccc1 -2 → 1.25 78 → 80" in text
    assert "predictions.csv, next to this page, has every molecule" in text
    assert "The graphs and the training" in text
    assert "log S" not in read(run_page(run_record())).text


def test_answers_of_graphs_are_in_per_cent() -> None:
    judging = asdict(JUDGED["binary classification"])
    pair = graphs_record()["targets"][0]["pair"]
    target = {"name": "toxic", "labels": 9, "share": 0.25, "pair": pair}
    scores = {name: run_record()[name] for name in ("val", "test")}
    text = words(run_page(graphs_record(judging=judging, targets=[target], **scores)))
    assert "toxic 9 25.0 % 70.00 66.00 +4.00 +3.00 to +5.00 0.031" in text
    assert "given → predicted, the probability of a 1" in text


def test_mistakes_of_many_classes_are_a_list() -> None:
    count = 50
    table = np.full((count, count), 0)
    table[3, 4] = 17
    both = {"plain": table.tolist(), "chosen": (table // 2).tolist()}
    text = read(run_page(run_record(classes=[f"kind {i}" for i in range(count)], confusion=both))).text
    assert "There are 50 classes, too many for a table" in text
    assert "kind 3 kind 4 17 8" in text.replace("kind 3kind 4", "kind 3 kind 4 ").replace("178", "17 8")


@pytest.mark.parametrize(
    ("homophily", "says"),
    [(0.9, "a good hint"), (0.55, "often a wrong one"), (0.2, "may hurt"), (None, "is not known")],
)
def test_neighbors_in_words(homophily: float | None, says: str) -> None:
    record = run_record(graph=run_record()["graph"] | {"homophily": homophily})
    assert says in read(run_page(record)).text


def test_a_very_large_run_keeps_its_page_small() -> None:
    many = [[[0.5] * 300] * 100] * 4
    curve = {"epoch": list(range(1, 50_001)), "loss": [0.5] * 50_000, "val": [0.5] * 50_000, "test": [0.5] * 50_000}
    record = run_record(
        splits=[f"split {i}" for i in range(100)],
        seeds=300,
        val=many,
        test=many,
        epochs=many,
        histories={"plain": [curve] * 3, "chosen": [curve] * 3},
    )
    page = run_page(record)
    assert len(page.encode()) < 1_000_000
    assert "too many to list here" in read(page).text
    training = read(page).data("run")["figures"]["training"]["panels"][0]["series"][0]
    assert (training["x"][0], training["x"][-1], len(training["x"])) == (1.0, 50_000.0, 400)


def test_several_models_are_compared() -> None:
    page = read(run_page(run_record(models=models())))
    for each in ("GCN + P-reg 0.5", "MLP, plain", "85.00", "84.00 to 86.00", "+4.00", "+3.00 to +5.00"):
        assert each in page.text
    alone = run_page(run_record())
    assert "Models compared" not in read(alone).text
    assert "leaderboard" not in run_figures(run_record())
    assert "GCN + P-reg 0.5" in run_figures(run_record(models=models()))["leaderboard.svg"]


@pytest.mark.parametrize("wrong", [{}, [1], [{"title": "a", "test": 3}], [{"title": "a", "gain": {"units": 2}}]])
def test_damaged_models_are_refused(wrong: object) -> None:
    with pytest.raises(DataError, match=r"The record's (models|verdict) should"):
        run_page(run_record(models=wrong or {"a": 1}))


def test_folds_have_strengths_of_their_own() -> None:
    nested = {"score": "accuracy", "part": "test", "nested": True}
    text = read(run_page(run_record(judging=nested))).text
    assert "With P-reg, each fold's own μ" in text
    assert "With each fold's own μ, picked on its validation nodes: " in text
    assert "the numbers beside the picture are at each fold's own strength" in text
    assert "each fold's own" not in read(run_page(run_record())).text
