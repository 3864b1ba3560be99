"""Training through the engine: real outcomes, measures, splits, and what does not fit the data."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from propreg.data.mistakes import wrong_edges, wrong_labels
from propreg.devices import DeviceNameError
from propreg.engine.spec import Method, Protocol
from propreg.store.batch import Batch
from propreg.store.errors import Stopped, StudyError
from propreg.store.integrity import check_store
from propreg.store.provenance import engine_digest
from propreg.store.run import Cell, Run, SplitKind, dataset_digest
from propreg.store.store import Store
from propreg.study.execute.trainer import Trainer

DIGITS = Cell("digits", dataset_digest("digits", "pyg"), protocol=Protocol(max_epochs=4))


@pytest.fixture(scope="module")
def trainer() -> Trainer:
    return Trainer("cpu")


def test_outcomes_are_counts_of_the_split(trainer: Trainer) -> None:
    runs = (Run(DIGITS, 0, 0), Run(replace(DIGITS, method=Method("preg"), strength=0.5), 3, 1))
    for run in runs:
        (record,) = trainer.train(Batch("one", (run,)))
        out = record.outcome
        assert record.run is run
        assert (out.val_of, out.test_of, out.epochs) == (300, 1447, 4)
        assert 30 < out.val <= 300
        assert 1 <= out.epoch <= 4


def test_on_a_cpu_only_groups_with_something_missing_are_trained(trainer: Trainer) -> None:
    """Each group is a program of its own: what the others do leaves no trace in its results."""
    batch = Batch("some", tuple(Run(DIGITS, split, seed) for split in range(2) for seed in range(5)))
    whole = {record.run.key: record.outcome for record in trainer.train(batch)}
    known = {run.key for run in batch.runs} - {batch.runs[1].key, batch.runs[9].key}
    again = {record.run.key: record.outcome for record in trainer.train(batch, known=known)}
    assert set(again) == {batch.runs[i].key for i in (0, 1, 2, 3, 8, 9)}
    assert all(whole[key] == outcome for key, outcome in again.items())


def test_p_reg_starts_from_the_plain_runs_weights(trainer: Trainer) -> None:
    """Streams do not depend on the method: a strength too small to matter gives the plain run's result."""
    runs = [DIGITS, replace(DIGITS, method=Method("preg"), strength=1e-12)]
    plain, tiny = (next(trainer.train(Batch("one", (Run(cell, 1, 1),)))).outcome for cell in runs)
    assert plain == tiny


def test_drawn_splits_have_so_many_training_nodes(trainer: Trainer) -> None:
    counts = np.bincount(trainer.problem((Run(DIGITS, 0, 0),)).graph.y)
    kinds: dict[SplitKind, set[int]] = {"random": {4}, "natural": set(range(12))}
    for kind, spread in kinds.items():
        cell = replace(DIGITS, split_kind=kind, per_class=4)
        problem = trainer.problem((Run(cell, 1, 0), Run(replace(cell, per_class=None), 1, 0)))
        few, usual = (problem.splits[name] for name in (f"{kind}/1/4 per class", f"{kind}/1"))
        assert [int(part.sum()) for part in (few.train, usual.train, few.val)] == [40, 200, 300]
        mine = np.bincount(problem.graph.y[few.train], minlength=len(counts))
        assert set(mine.tolist()) <= spread
        assert (len(set(mine.tolist())) > 1) == (kind == "natural")


def test_wrong_edges_and_labels_are_trained_on_and_predictions_judged_by_the_right_ones(trainer: Trainer) -> None:
    clean = trainer.problem((Run(DIGITS, 0, 0),))
    edges = trainer.problem((Run(replace(DIGITS, wrong_edges=0.3), 0, 0),))
    labels = trainer.problem((Run(replace(DIGITS, wrong_labels=0.3), 0, 0),))
    assert np.array_equal(edges.graph.edge_index, wrong_edges(clean.graph.edge_index, clean.num_nodes, 0.3))
    assert not np.array_equal(edges.graph.edge_index, clean.graph.edge_index)
    assert np.array_equal(labels.graph.edge_index, clean.graph.edge_index)
    assert clean.digest == edges.digest == labels.digest, "random streams are those of the graph as it was"
    taught = labels.targets([Run(DIGITS, 0, 0).replica()])
    wrong = wrong_labels(clean.graph.y, 0.3)
    assert np.array_equal(taught.classes[0].numpy(), wrong[taught.nodes[0].numpy()])
    assert np.array_equal(labels.y.numpy(), clean.graph.y)
    assert np.array_equal(labels.splits["official/0"].train, clean.splits["official/0"].train)
    runs = [replace(DIGITS, protocol=Protocol("last", 30), lr=0.1, wrong_labels=share) for share in (0.0, 1.0)]
    right, none = (next(trainer.train(Batch("one", (Run(cell, 0, 0),)))).outcome.test for cell in runs)
    assert right > 1000, "of 1447 test nodes"
    assert none < 145, "no training node has its own class"


def test_distances_are_measured(trainer: Trainer) -> None:
    (record,) = trainer.train(Batch("one", (Run(replace(DIGITS, measure="distance"), 0, 0),)))
    measured = record.outcome.measured
    assert 0 < measured["omega"] < measured["length"] * 2


def test_a_training_stops_when_asked(trainer: Trainer) -> None:
    with pytest.raises(Stopped):
        list(trainer.train(Batch("one", (Run(DIGITS, 0, 0),)), lambda: True))


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        (replace(DIGITS, digest="0" * 64), "but the run names 0000000000000000: remove it"),
        (replace(DIGITS, train_nodes=100), "leave no node free"),
        (replace(DIGITS, dataset="nowhere"), "There is no dataset 'nowhere'"),
    ],
)
def test_what_does_not_fit_the_data_is_refused(trainer: Trainer, cell: Cell, says: str) -> None:
    with pytest.raises(StudyError, match=says):
        list(trainer.train(Batch("one", (Run(cell, 0, 0),))))


def test_a_session_says_which_code_trained(trainer: Trainer) -> None:
    about = trainer.about()
    assert set(about) - {"processor"} == {"device", "python", "torch", "propreg", "engine"}
    assert about["engine"] == engine_digest()


def test_the_engines_digest_changes_with_any_name_or_content(tmp_path: Path) -> None:
    seen = {engine_digest(tmp_path)}

    def changes() -> bool:
        before = len(seen)
        seen.add(engine_digest(tmp_path))
        return len(seen) > before

    (tmp_path / "kernels").mkdir()
    (tmp_path / "a.py").write_text("x = 1\n")
    assert changes()
    (tmp_path / "kernels" / "b.py").write_text("")
    assert changes()
    (tmp_path / "a.py").write_text("x = 2\n")
    assert changes()
    (tmp_path / "a.py").rename(tmp_path / "c.py")
    assert changes()
    (tmp_path / "notes.txt").write_text("no code")
    assert not changes()
    assert all(re.fullmatch("[0-9a-f]{16}", digest) for digest in seen)


def test_devices() -> None:
    with pytest.raises(DeviceNameError, match="device must be"):
        Trainer("gpu5")
    assert Trainer("cpu").about()["device"].startswith("cpu")


def test_measures_and_further_rules_are_recorded_and_change_nothing_else(tmp_path: Path) -> None:
    runs = tuple(Run(DIGITS, 0, seed) for seed in range(3))
    crew = Trainer("cpu")
    plain = {record.run.key: record.outcome for record in crew.train(Batch("plain", runs))}
    asking = Batch("asking", runs, rules=("last",), measures=True)
    with Store(tmp_path / "store.sqlite") as store:
        session = store.begin_session({})
        for record in crew.train(asking):
            assert record.outcome.agrees(plain[record.run.key])
            assert asking.is_complete(record.outcome.reports)
            own, last = record.outcome.all_reports("official")
            assert (own.epoch, own.test) == (record.outcome.epoch, record.outcome.test_score)
            assert (last.rule, last.epoch) == ("last", 4)
            assert own.measures is not None
            assert sum(own.measures.test.right) == record.outcome.test
            store.add(record, session)
    assert check_store(tmp_path / "store.sqlite") == (3, [])
