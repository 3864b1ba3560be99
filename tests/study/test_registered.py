"""A model and a regularizer that are registered elsewhere: keys, a sweep, a table, and one sentence where unknown."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from propreg.engine.models import MODELS
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Method, Model
from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.progress import SweepProgress, read_recorded
from propreg.store.results import load_results
from propreg.store.run import Cell, Run
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import read_experiment
from propreg.study.tables.rows import table_rows

TEXT = """
[[parts]]
datasets = ["digits"]
models = ["toy"]
methods = ["plain", "agree"]
max_epochs = 3
splits = 2
seeds = 2
"""


@dataclass(frozen=True)
class ToyModel(Model):
    """A GCN with a setting of its own."""

    extra: int = 3


@dataclass(frozen=True)
class ToyMethod(Method):
    """The Laplacian with an option of its own."""

    pull: float = 0.25


@pytest.fixture
def registered() -> Iterator[None]:
    toy = replace(MODELS["gcn"], name="toy", title="Toy", kind=ToyModel, settings=("extra",), dropout=0.25)
    agree = replace(REGULARIZERS["laplacian"], name="agree", title="Agreement", kind=ToyMethod, grid=(0.01, 0.1))
    MODELS["toy"], REGULARIZERS["agree"] = toy, agree
    yield
    del MODELS["toy"], REGULARIZERS["agree"]


@pytest.mark.usefixtures("registered")
def test_settings_of_its_own_are_part_of_the_key_unless_they_are_the_defaults() -> None:
    cell = Cell("digits", "d", model=ToyModel("toy", extra=4), method=ToyMethod("agree", pull=0.5), strength=0.1)
    assert cell.text == (
        '{"dataset":"digits","digest":"d","method":{"name":"agree","pull":0.5},"model":{"extra":4,"name":"toy"},'
        '"strength":0.1}'
    )
    assert Cell.from_text(cell.text) == cell
    usual = replace(cell, model=ToyModel("toy"), method=ToyMethod("agree"))
    assert '"model":{"name":"toy"}' in usual.text
    assert Run(usual, 0, 1).key != Run(cell, 0, 1).key


@pytest.mark.usefixtures("registered")
def test_an_experiment_names_them_trains_them_and_shows_them(tmp_path: Path) -> None:
    experiment, path = read_experiment("mine", TEXT), tmp_path / "store.sqlite"
    assert [line.cells[0].dropout for line in experiment.lines] == [0.25, 0.25]
    with Store(path) as store:
        assert reproduce(cut(experiment.lines), store, lambda: Trainer("cpu")).missing == 0
    assert check_store(path) == (12, [])
    rows = table_rows(experiment, load_results(path))
    assert {(row.model, row.method) for row in rows} == {("toy", "plain"), ("toy", "agree")}
    assert all(row.mean is not None for row in rows)


@pytest.mark.usefixtures("registered")
def test_where_they_are_not_registered_one_sentence_says_so(tmp_path: Path) -> None:
    experiment, path = read_experiment("mine", TEXT), tmp_path / "store.sqlite"
    batches, run = cut(experiment.lines), next(iter(experiment.runs()))
    with Store(path) as store:
        reproduce(batches, store, lambda: Trainer("cpu"))
    names = MODELS.pop("toy"), REGULARIZERS.pop("agree")
    try:
        with pytest.raises(StudyError, match=r"There is no model 'toy'\. .*Known are: gcn, gcn-3, .*appnp"):
            read_experiment("mine", TEXT)
        with pytest.raises(StudyError, match=r"model must be one of .*, got 'toy'"):
            next(Trainer("cpu").train(replace(batches[0], runs=(run,))))
        reading = read_recorded([read_experiment("gcn", TEXT.replace("toy", "gcn").replace('"agree"', ""))], [path])
        assert len(reading.results) == 12
        assert SweepProgress.of([], reading).mean_cost == 0, "its cost is not known here"
    finally:
        MODELS["toy"], REGULARIZERS["agree"] = names
