"""run.json: what it holds agrees with the fit it was made from, and reading refuses what is no record."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from communities import communities
from propreg.data.errors import DataError
from propreg.data.splits import random_split
from propreg.engine import train_all
from propreg.running.compare import POINTS, Comparison, compare, thinned, to_csv
from propreg.running.plan import Source, make_plan
from propreg.running.record import read_record

GRAPH = communities()


def source(count: int = 2) -> Source:
    splits = {str(i): random_split(GRAPH.y, 5, 10, i) for i in range(count)}
    return Source("communities", GRAPH, splits, ("A note.",))


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    plan = make_plan(source(), mu=[0.1, 0.5], seeds=2, max_epochs=12, device="cpu")
    return compare(plan, progress=False)


def test_the_record_is_json_and_says_what_was_trained(comparison: Comparison, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(comparison.record, allow_nan=False))
    record = read_record(path)
    assert record == comparison.record
    assert (record["format"], record["version"]) == ("propreg run", 1)
    assert record["graph"]["nodes"] == 120
    assert 0.8 < record["graph"]["homophily"] < 1
    assert (record["model"], record["method"], record["preset"]) == ("gcn", "preg", "paper")
    assert (record["mus"], record["splits"], record["seeds"]) == ([0.0, 0.1, 0.5], ["0", "1"], 2)
    assert record["classes"] == ["0", "1", "2"]
    assert record["settings"]["max_epochs"] == 12
    assert record["notes"][0] == comparison.verdict.sentence
    assert record["notes"][-1] == "A note."
    assert record["finished"] is True
    assert record["mu"] == comparison.result.mu


def test_the_numbers_are_those_of_the_fit(comparison: Comparison) -> None:
    record, result = comparison.record, comparison.result
    np.testing.assert_array_equal(np.array(record["val"]), result.val)
    np.testing.assert_array_equal(np.array(record["test"]), result.test)
    epochs = np.array(record["epochs"])
    for run in result.runs:
        r = run.replica
        assert epochs[result.mus.index(r.strength), int(r.split), r.seed] == run.epochs


def test_the_confusion_adds_up_to_the_accuracies(comparison: Comparison) -> None:
    record, result = comparison.record, comparison.result
    tested = sum(int(split.test.sum()) for split in result.splits.values())
    for which, mu in (("plain", 0.0), ("chosen", result.mu)):
        table = np.array(record["confusion"][which])
        assert table.sum() == 2 * tested
        per_class = sum(2 * np.bincount(GRAPH.y[split.test], minlength=3) for split in result.splits.values())
        np.testing.assert_array_equal(table.sum(axis=1), per_class)
        right = result.test[result.mus.index(mu)].mean(axis=1)
        sizes = np.array([split.test.sum() for split in result.splits.values()])
        assert np.trace(table) == pytest.approx(2 * (right * sizes).sum())


def test_histories_are_of_the_same_runs(comparison: Comparison) -> None:
    histories = comparison.record["histories"]
    assert len(histories["plain"]) == len(histories["chosen"]) == 3
    first = histories["plain"][0]
    run = next(r for r in comparison.result.runs if r.replica.strength == 0)
    assert first["epoch"] == list(range(1, run.epochs + 1))
    np.testing.assert_allclose(first["val"], run.history["val"], atol=1e-6)


def test_long_histories_are_thinned_but_keep_their_ends(comparison: Comparison) -> None:
    run = comparison.result.runs[0]
    run.history.update({key: np.linspace(0, 1, 5000) for key in ("loss", "val", "test")})
    run.history["loss"][-1] = np.inf
    thin = thinned(run.history)
    assert all(len(values) <= POINTS for values in thin.values())
    assert (thin["epoch"][0], thin["epoch"][-1], thin["val"][-1], thin["loss"][-1]) == (1, 5000, 1.0, None)


def test_every_training_is_a_line_of_the_csv(comparison: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(comparison.result))))
    assert len(rows) == 12
    for row, run in zip(rows, comparison.result.runs, strict=True):
        assert (float(row["mu"]), row["split"], int(row["seed"])) == (
            run.replica.strength,
            run.replica.split,
            run.replica.seed,
        )
        assert float(row["test"]) == pytest.approx(100 * run.test, abs=1e-4)


def test_an_interrupted_run_has_holes(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(*arguments: Any) -> Any:
        for number, item in enumerate(train_all(*arguments)):
            if number == 5:
                raise KeyboardInterrupt
            yield item

    monkeypatch.setattr("propreg.fitting.fit.train_all", some)
    plan = make_plan(source(3), mu=[0.5], seeds=1, max_epochs=5, device="cpu")
    record = compare(plan, progress=False).record
    assert record["finished"] is False
    assert sum(value is None for value in np.array(record["val"], object).flat) == 1
    assert any("interrupted: 5 of 6 trainings" in note for note in record["notes"])
    json.dumps(record, allow_nan=False)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[]", "is not a record of a run"),
        ('{"format": "other"}', "is not a record of a run"),
        ('{"format": "propreg run", "version": 2}', "has version 2, not 1: update propreg"),
        ('{"format": "propreg run"}', "has version None"),
        ('{"format": "propreg run", "version": 1, "seconds": 1e999}', "holds a number that is far too large"),
        (f'{{"format": "propreg run", "version": 1, "seconds": {10**400}}}', "holds a number that is far too large"),
        ('{"format": "propreg run", "version": 1, "seconds": NaN}', "holds a number that is far too large"),
    ],
)
def test_what_is_no_record_is_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(content)
    with pytest.raises(DataError, match=says):
        read_record(path)
    with pytest.raises(DataError, match="there is no such file"):
        read_record(tmp_path / "nothing.json")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(DataError, match="is not an ordinary file"):
        read_record(tmp_path / "run.json")


def test_reading_a_record_imports_neither_torch_nor_numpy() -> None:
    code = "import sys, propreg.running.record; print([m for m in ('torch', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
