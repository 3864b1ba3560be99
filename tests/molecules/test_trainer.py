"""Molecule experiments: cells, keys, and records of real trainings."""

import os
from pathlib import Path

import pytest

from propreg.engine.models.molecules import MoleculeModel
from propreg.engine.spec import Method
from propreg.molecules.trainer import form_of
from propreg.store.errors import StudyError
from propreg.store.run import Cell, Run
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import load_experiment, read_experiment, select_lines

SMALL = """
[[parts]]
datasets = ["ogbg-molfreesolv"]
models = ["mol-gcn"]
methods = ["preg-paper"]
strengths = [0.0, 0.5]
split_kind = "scaffold"
splits = 1
seeds = 2
rule = "first_best"
max_epochs = 1
lr = 0.001
"""


def test_table_3_has_the_papers_cells() -> None:
    lines = load_experiment("table3").lines
    assert len(lines) == 60
    assert {len(line.seeds) for line in lines} == {10}
    published = {
        (line.dataset, line.model): line.cells[0].strength for line in lines if line.method.preset == "reference"
    }
    assert published["ogbg-molfreesolv", "mol-gin-virtual"] == 1.0
    assert published["ogbg-molhiv", "mol-gcn"] == 0.1
    assert len(published) == 20


def test_a_cell_is_read_back_from_its_text() -> None:
    for line in select_lines(load_experiment("table3"), ["dataset=ogbg-molesol"]):
        for cell in line.cells:
            again = Cell.from_text(cell.text)
            assert again == cell
            assert isinstance(again.model, MoleculeModel)
            assert Run(again, 0, 3).key == Run(cell, 0, 3).key


def test_forms_are_presets_and_nothing_else() -> None:
    with pytest.raises(StudyError, match="presets 'paper' and 'reference' and no other"):
        form_of(Method("preg", phi="kl"))


def test_molecules_and_their_split_belong_together() -> None:
    with pytest.raises(StudyError, match="molecules have a scaffold split"):
        read_experiment("mine", SMALL.replace("scaffold", "public"))


@pytest.mark.slow
def test_records_of_a_training() -> None:
    if not (Path(os.environ.get("PROPREG_DATA", "")) / "ogbg_molfreesolv.npz").exists():
        pytest.skip("the benchmark files are not there: set PROPREG_DATA to the folder that holds ogbg_molfreesolv.npz")
    batches = cut(read_experiment("mine", SMALL).lines)
    assert [len(batch.runs) for batch in batches] == [2, 2]
    trainer = Trainer("cpu")
    for batch in batches:
        records = list(trainer.train(batch))
        assert {record.run.key for record in records} == {run.key for run in batch.runs}
        for record in records:
            out = record.outcome
            assert (out.metric, out.val_of, out.test_of, out.epoch, out.epochs) == ("rmse", 64, 65, 1, 1)
            assert 3 < out.test < 9
