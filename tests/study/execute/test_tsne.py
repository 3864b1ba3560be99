"""Making the record of outputs: real trainings on the digits, whose numbers agree with what training reports."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from propreg.store.errors import StudyError
from propreg.study.execute import tsne
from propreg.study.execute.trainer import Trainer
from propreg.study.execute.tsne import make_tsne
from propreg.study.figures.tsne_record import TsneRecord, read_tsne, write_tsne
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import load_experiment, read_experiment
from propreg.study.spec.part import Line

TINY = """
[[parts]]
datasets = ["digits"]
models = ["gcn"]
methods = ["plain", "preg-paper"]
strengths = [0.5]
measure = "distance"
max_epochs = 15
splits = 1
seeds = 2
"""


@pytest.fixture(scope="module")
def lines() -> tuple[Line, ...]:
    return read_experiment("tiny", TINY).lines


def _quick(z: Any) -> Any:
    """The first two outputs: a t-SNE of the digits takes ten seconds."""
    return np.round(z[:, :2], 2)


@pytest.fixture
def record(lines: tuple[Line, ...], monkeypatch: pytest.MonkeyPatch) -> TsneRecord:
    monkeypatch.setattr(tsne, "_flat", _quick)
    return make_tsne(Trainer("cpu"), lines)


def test_numbers_are_those_that_training_reports(lines: tuple[Line, ...], record: TsneRecord) -> None:
    trained = {each.run.key: each.outcome for batch in cut(lines) for each in Trainer("cpu").train(batch)}
    assert [cloud.method for cloud in record.clouds] == ["plain", "preg-paper"]
    for cloud in record.clouds:
        assert [run.seed for run in cloud.runs] == [0, 1]
        for run in cloud.runs:
            out = trained[run.key]
            assert (run.test, run.test_of, run.epoch) == (out.test, out.test_of, out.epoch)
            assert out.measured == pytest.approx({"omega": run.omega, "length": run.length}, rel=1e-5)


def test_the_record_is_of_the_digits(record: TsneRecord) -> None:
    assert (record.dataset, record.model, record.split, len(record.labels)) == ("digits", "gcn", 0, 1797)
    assert set(record.labels) == set(range(10))
    assert [len(cloud.xy) for cloud in record.clouds] == [1797, 1797]
    assert record.clouds[1].strength == 0.5
    assert set(record.versions) == {"numpy", "propreg", "scikit-learn", "torch"}


def test_a_second_making_is_the_same_bytes(lines: tuple[Line, ...], record: TsneRecord, tmp_path: Path) -> None:
    said: list[str] = []
    again = make_tsne(Trainer("cpu"), lines, said.append)
    write_tsne(tmp_path / "a.json.gz", record)
    write_tsne(tmp_path / "b.json.gz", again)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert read_tsne(tmp_path / "a.json.gz") == record
    assert said == [
        "training plain: 2 runs",
        "laying out plain",
        "training preg-paper: 2 runs",
        "laying out preg-paper",
    ]


def test_a_layout_keeps_groups_together_and_is_the_same_twice() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(4), 40)
    z = 10 * np.eye(6)[groups] + rng.standard_normal((160, 6))
    flat = tsne._flat(z)
    assert np.array_equal(flat, tsne._flat(z))
    assert np.array_equal(flat, np.round(flat, 2))
    apart = ((flat[:, None] - flat[None]) ** 2).sum(axis=2) + np.diag(np.full(160, np.inf))
    assert (groups[apart.argmin(axis=1)] == groups).mean() > 0.98


def test_the_recorded_picture_is_of_the_runs_of_the_experiment() -> None:
    path = Path(__file__).parents[3] / "results" / "tsne.json.gz"
    if not path.exists():
        pytest.skip("results/tsne.json.gz is not there")
    found = read_tsne(path)
    lines = load_experiment("fig-tsne").lines
    assert [cloud.method for cloud in found.clouds] == [line.method.name for line in lines]
    for cloud, line in zip(found.clouds, lines, strict=True):
        assert [run.key for run in cloud.runs] == [run.key for run in line.runs()]
    assert len(found.labels) == 3327


def test_outputs_of_another_epoch_are_refused(lines: tuple[Line, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsne, "AGREES", -1)
    with pytest.raises(StudyError, match="not of the reported epoch"):
        make_tsne(Trainer("cpu"), lines[:1])


def test_outputs_that_are_not_finite_are_refused(lines: tuple[Line, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    from propreg.study.execute import trainer as training

    whole = training.logits
    monkeypatch.setattr(training, "logits", lambda *given: whole(*given) * float("nan"))
    with pytest.raises(StudyError, match="not finite"):
        make_tsne(Trainer("cpu"), lines[:1])
