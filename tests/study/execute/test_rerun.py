"""Training a stored run again."""

import json
import random
from collections.abc import Callable, Iterator, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from propreg.cli.retraining import first_line
from propreg.engine.training.batches import CPU_GROUP
from propreg.store.batch import Batch
from propreg.store.errors import StudyError
from propreg.store.export import sidecar, write_export
from propreg.store.provenance import provenance
from propreg.store.results import Exported, open_recorded
from propreg.store.rows import Row
from propreg.store.run import Record
from propreg.store.store import Store
from propreg.study.execute.rerun import Step, rerun
from propreg.study.execute.runner import reproduce
from propreg.study.execute.trainer import Trainer
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import load_experiment, select_lines
from study.sweeping import MadeUp, batches, exported, made_up


def test_a_real_run_is_the_same_to_the_last_node(tmp_path: Path) -> None:
    path, trainer = tmp_path / "store.sqlite", Trainer("cpu")
    batch = batches()[5]
    with Store(path) as store:
        reproduce([batch], store, lambda: trainer)
        before = exported(path)
        found = rerun(store, batch.runs[7].key[:20], trainer)
        assert found.in_batch
        assert found.equal
        assert found.passed
        assert "the same to the last node" in found.sentence()
        assert rerun(store, batch.runs[7].key, trainer, alone=True).passed
    assert exported(path) == before


class Shifted(MadeUp):
    """Other results than those stored, on another device unless that is named."""

    def __init__(self, by: int, device: str = "another") -> None:
        super().__init__()
        self.by, self.device, self.sizes = by, device, list[int]()

    def about(self) -> dict[str, Any]:
        """Where the results come from."""
        return {"device": self.device}

    def train(
        self, batch: Batch, stop: Callable[[], bool] = lambda: False, known: Set[str] = frozenset()
    ) -> Iterator[Record]:
        """Some nodes more or less."""
        self.sizes.append(len(batch.runs))
        for record in super().train(batch, stop, known):
            yield replace(record, outcome=replace(record.outcome, test=record.outcome.test + self.by))


@pytest.mark.parametrize(("by", "passed"), [(1, True), (10_000, False)])
def test_a_difference_is_judged_by_the_seeds(tmp_path: Path, by: int, passed: bool) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        reproduce(batches(), store, MadeUp)
        shifted = Shifted(by)
        found = rerun(store, batches()[0].runs[0].key, cast(Any, shifted))
        assert (found.equal, found.passed, shifted.sizes) == (False, passed, [20])
        assert ("within" if passed else "beyond") in found.sentence()
        assert found.as_json()["difference"] == pytest.approx(by / 1000)
        assert found.sentence().endswith("Equal bits were not expected: device was none and is another.")


def test_where_nothing_has_changed_only_the_same_bits_pass(tmp_path: Path) -> None:
    key = batches()[0].runs[0].key
    with Store(tmp_path / "store.sqlite") as store:
        reproduce(batches(), store, MadeUp)
        assert rerun(store, key, cast(Any, Shifted(0, "none"))).passed
        found = rerun(store, key, cast(Any, Shifted(1, "none")))
        assert (found.equal_expected, found.passed, found.as_json()["equal_expected"]) == (True, False, True)
        assert "not the same, +0.10 points on test. Equal bits were expected" in found.sentence()
        alone = rerun(store, key, cast(Any, Shifted(1, "none")), alone=True)
        assert (alone.equal_expected, alone.passed) == (False, True), "in other company rounding may differ"


@pytest.mark.parametrize("by", [-900, 900])
def test_a_record_that_is_far_off_is_no_excuse_for_itself(tmp_path: Path, by: int) -> None:
    """Among five seeds one value alone is at most 2.24 of their standard deviations away, whatever it is."""
    batch = batches()[0]
    wanted = batch.runs[2]
    family = [run for run in batch.runs if (run.cell, run.split) == (wanted.cell, wanted.split)]
    with Store(tmp_path / "store.sqlite") as store:
        session = store.begin_session({})
        for i, run in enumerate(family):
            good = replace(made_up(run), test=500 + i)
            store.add(Record(run, replace(good, test=500 + by // 2) if run is wanted else good, batch.id), session)
        assert len(family) > 2
        assert not rerun(store, wanted.key, cast(Any, Fixed(500)), alone=True).passed
        assert rerun(store, family[0].key, cast(Any, Fixed(501)), alone=True).passed


class Fixed(MadeUp):
    """The same result for all."""

    def __init__(self, test: int) -> None:
        super().__init__()
        self.test = test

    def train(self, batch: Batch, stop: Callable[[], bool], known: Set[str] = frozenset()) -> Iterator[Record]:
        """So many nodes right."""
        for record in super().train(batch, stop, known):
            yield replace(record, outcome=replace(record.outcome, test=self.test))


def test_on_a_cpu_only_its_own_program_is_trained_again(tmp_path: Path) -> None:
    batch, steps = batches()[5], list[Step]()
    with Store(tmp_path / "store.sqlite") as store:
        reproduce([batch], store, lambda: Trainer("cpu"))
        assert rerun(store, batch.runs[7].key, Trainer("cpu"), tell=steps.append).equal
    assert steps[-1].done <= CPU_GROUP < len(batch.runs)


def test_an_imported_run_finds_its_batch_by_the_experiments(tmp_path: Path) -> None:
    batch = random.Random(1).choice(batches())
    with Store(tmp_path / "store.sqlite") as store:
        store.add(Record(batch.runs[0], made_up(batch.runs[0]), batch.id), store.begin_session({}))
        shifted = Shifted(1)
        found = rerun(store, batch.runs[0].key, cast(Any, shifted))
        assert (found.in_batch, shifted.sizes) == (True, [20])
        assert not found.passed, "there is no other seed to judge by"
        assert "fewer than two other seeds" in found.sentence()
        store.add(Record(batch.runs[1], made_up(batch.runs[1]), "elsewhere"), 1)
        assert not rerun(store, batch.runs[1].key, cast(Any, Shifted(0))).in_batch


def test_a_run_of_a_part_of_the_seeds_finds_its_batch(tmp_path: Path) -> None:
    """As propreg reproduce --seeds 0,2 cut it; the export names no members, nor does a store that imported it."""
    part = cut(select_lines(load_experiment("digits-smoke"), seeds=[0, 2]))
    assert not {batch.id for batch in part} & {batch.id for batch in batches()}
    with Store(tmp_path / "first.sqlite") as store:
        reproduce(part, store, MadeUp)
        write_export(tmp_path / "runs.jsonl.gz", store.rows())
    with Store(tmp_path / "second.sqlite") as store:
        for batch in part:
            for run in batch.runs:
                store.add(Record(run, made_up(run), batch.id), store.begin_session({}))
        for recorded in (Exported(tmp_path / "runs.jsonl.gz"), store):
            shifted = Shifted(1)
            assert rerun(recorded, part[1].runs[3].key, cast(Any, shifted)).in_batch
            assert shifted.sizes == [len(part[1].runs)]


def test_exports_are_as_good_as_a_store(tmp_path: Path) -> None:
    run = batches()[0].runs[3]
    with Store(tmp_path / "store.sqlite") as store:
        reproduce(batches(), store, MadeUp)
        write_export(tmp_path / "runs.jsonl.gz", store.rows())
        sidecar(tmp_path / "runs.jsonl.gz").write_text(json.dumps(provenance(store)))
        before = rerun(store, run.key, cast(Any, Shifted(1)))
    for place in (tmp_path / "runs.jsonl.gz", tmp_path):
        shifted = Shifted(1)
        found = rerun(Exported(place), run.key[:20], cast(Any, shifted))
        assert found == before
        assert shifted.sizes == [20]
        assert not rerun(Exported(place), run.key, cast(Any, Shifted(1, "none"))).passed, "the batch's session is known"
    with pytest.raises(StudyError, match="has no run whose key begins with 'xyz'"):
        Exported(tmp_path).find("xyz")
    with pytest.raises(StudyError, match="has more than one run whose key begins with ''"):
        Exported(tmp_path).find("")


def test_the_first_place_that_has_the_run_is_read(tmp_path: Path) -> None:
    store, folder = tmp_path / "store.sqlite", tmp_path / "results"
    (first, second), places = batches()[0].runs[:2], [folder, store]
    with Store(store) as opened:
        session = opened.begin_session({})
        for run in (first, second):
            opened.add(Record(run, made_up(run), "b"), session)
    folder.mkdir()
    write_export(
        folder / "runs.jsonl.gz",
        [row for row in rows_of(store) if (row[1], row[2]) == (first.split, first.seed) and row[0] == first.cell.text],
    )
    with open_recorded(first.key, places) as found:
        assert isinstance(found, Exported)
    with open_recorded(second.key[:20], places) as found:
        assert isinstance(found, Store)
    with open_recorded(second.key, [store]) as found:
        assert isinstance(found, Store)
    with pytest.raises(StudyError, match=r"Neither .*results nor .*store.sqlite has a run whose key begins with 'xyz'"):
        open_recorded("xyz", places)
    with pytest.raises(StudyError, match="results has no run whose key"):
        open_recorded(second.key, [folder])
    with pytest.raises(StudyError, match=r"store.sqlite has more than one run whose key begins with ''"):
        open_recorded("", [store])
    with pytest.raises(StudyError, match=r"There is no .*nowhere: name a store with --store"):
        open_recorded(first.key, [tmp_path / "nowhere"])


def rows_of(store: Path) -> list[Row]:
    with Store(store, "read") as opened:
        return list(opened.rows())


def test_every_epoch_and_run_is_told(tmp_path: Path) -> None:
    steps: list[Step] = []
    batch = batches()[0]
    with Store(tmp_path / "store.sqlite") as store:
        reproduce([batch], store, MadeUp)
        rerun(store, batch.runs[0].key, lambda: Trainer("cpu"), tell=steps.append)
    assert (steps[0].runs, steps[0].done, steps[0].epochs) == (20, 0, 0)
    assert [step.epochs for step in steps] == list(range(len(steps)))
    assert len(steps) > 10
    assert steps[-1].done > 0
    assert first_line(steps[0], alone=False).startswith(
        "Training it in its batch of 20 runs, on a CPU only with the runs"
    )
    assert first_line(Step(in_batch=True, runs=1), alone=False) == "Training the run, which was a batch of its own."
    assert "the batch that it was trained in is not known" in first_line(Step(in_batch=False, runs=1), alone=False)


def test_an_unknown_key_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store, pytest.raises(StudyError, match="has no run whose key begins"):
        rerun(store, "abc", Trainer("cpu"))
