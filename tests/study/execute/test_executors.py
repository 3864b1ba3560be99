"""Executors: whatever trains the batches, only the driver writes, and each record the moment it is handed back."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from propreg.store.batch import Batch
from propreg.store.integrity import check_store
from propreg.store.run import Record
from propreg.store.store import Store
from propreg.study.execute.executors import Begun, Event, Failure, Finished, LocalExecutor, Stops
from propreg.study.execute.runner import Progress, Stop, reproduce, run_sweep
from study.sweeping import MadeUp, batches, exported, made_up


class Elsewhere:
    """Trains all batches at the same time, run by run in turn, without a store; some of them fail."""

    def __init__(self, fails: int = 0) -> None:
        self.fails, self.closed, self.handed = fails, False, 0

    def about(self) -> dict[str, Any]:
        """Another machine."""
        return {"device": "elsewhere"}

    def run(self, batches: Sequence[Batch], stop: Stops) -> Generator[Event, None, None]:
        """Round robin; a batch that fails has handed back half of its runs."""
        with ExitStack() as ends:
            ends.callback(setattr, self, "closed", True)
            for batch in batches:
                yield Begun(batch, frozenset())
            for place in range(max(len(batch.runs) for batch in batches)):
                for number, batch in enumerate(batches):
                    if stop():
                        return
                    if number < self.fails and place >= len(batch.runs) // 2:
                        continue
                    if place < len(batch.runs):
                        self.handed += 1
                        yield Record(batch.runs[place], made_up(batch.runs[place]), batch.id)
            for number, batch in enumerate(batches):
                yield Failure(batch, "its worker died") if number < self.fails else Finished(batch, 2.0)


def test_batches_that_are_trained_at_the_same_time_end_in_the_same_bytes(tmp_path: Path) -> None:
    with Store(tmp_path / "a.sqlite") as store:
        told = list[tuple[str, int, int]]()
        report = run_sweep(batches(), store, Elsewhere(), tell=lambda p: told.append((p.event, p.done, p.batches_left)))
        assert (report.stored, report.missing, report.reason) == (200, 0, "done")
        assert store.db.execute("SELECT count(*), sum(seconds) FROM batches").fetchone() == (10, 20.0)
        (session,) = store.sessions()
        assert (session["device"], session["runs"]) == ("elsewhere", 200)
    assert [event for event, *_ in told].count("batch done") == 10
    assert [done for event, done, _ in told if event == "run"] == list(range(1, 201))
    with Store(tmp_path / "b.sqlite") as store:
        reproduce(batches(), store, MadeUp)
    assert exported(tmp_path / "a.sqlite") == exported(tmp_path / "b.sqlite")


def test_the_time_left_is_by_the_clock_where_batches_are_trained_together(tmp_path: Path) -> None:
    """Each of the ten batches says that it took 2 s, and all of them take less than that."""
    left = list[float | None]()
    with Store(tmp_path / "a.sqlite") as store:
        run_sweep(batches(), store, Elsewhere(), tell=lambda p: left.append(p.seconds_left))
    assert left[-1] == 0.0
    assert max(each for each in left if each is not None) < 10.0


def test_what_fails_is_left_out_and_what_it_handed_back_is_kept(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        report = run_sweep(batches(), store, Elsewhere(fails=2))
        assert (report.stored, report.missing, report.reason) == (180, 20, "some batches left out")
        assert [line.split(": ")[1] for line in report.skipped] == ["its worker died"] * 2
        again = reproduce(batches(), store, MadeUp)
        assert (again.stored, again.missing) == (20, 0)


def test_a_record_is_stored_before_the_next_one_is_taken(tmp_path: Path) -> None:
    """So a kill, or here an error, loses at most what has not been handed back."""
    executor = Elsewhere()

    def fail(progress: Progress) -> None:
        if progress.done == 33:
            raise KeyError

    with Store(tmp_path / "store.sqlite") as store:
        with pytest.raises(KeyError):
            run_sweep(batches(), store, executor, tell=fail)
        assert executor.handed == len(store.keys()) == 33
        assert executor.closed, "its workers have to end"
        assert store.sessions()[0]["seconds"] >= 0


def test_stopping_ends_it(tmp_path: Path) -> None:
    stop = Stop()

    def ask(progress: Progress) -> None:
        if progress.done == 50:
            stop.asked.set()

    executor = Elsewhere()
    with Store(tmp_path / "store.sqlite") as store:
        report = run_sweep(batches(), store, executor, stop, ask)
        assert (report.stored, report.missing, report.reason) == (50, 150, "interrupted")
        assert executor.closed


class Measuring(MadeUp):
    """Puts a second rule's report beside what it makes up."""

    def train(self, batch: Batch, stop: Any, known: Any = frozenset()) -> Any:
        """The same outcomes, with a report for each rule that is asked for."""
        for record in super().train(batch, stop, known):
            out = record.outcome
            lines = [f'["{rule}",{out.epoch},{out.val},{out.test}]' for rule in ("official", *batch.rules)]
            yield replace(record, outcome=replace(out, reports=f"[{','.join(lines)}]"))


def test_runs_without_the_reports_that_are_asked_for_are_trained_again(tmp_path: Path) -> None:
    plain = batches()[:2]
    asking = [replace(plain[0], rules=("strict",))]
    with Store(tmp_path / "store.sqlite") as store:
        reproduce(plain, store, MadeUp)
        trainer = Measuring()
        report = reproduce(asking, store, lambda: trainer)
        assert (report.stored, report.missing, report.unequal) == (20, 0, [])
        assert len(store.keys()) == 40
        assert reproduce([*asking, plain[1]], store, lambda: pytest.fail("nothing is left to train")).missing == 0
    assert check_store(tmp_path / "store.sqlite") == (40, [])


def test_a_run_that_comes_out_differently_by_the_same_engine_is_told_and_stays(tmp_path: Path) -> None:
    (batch,) = batches()[:1]
    run = batch.runs[3]
    other = replace(made_up(run), epochs=61)
    with Store(tmp_path / "store.sqlite") as store:
        store.add(Record(run, other, batch.id), store.begin_session({"device": "none"}))
        report = reproduce([replace(batch, rules=("strict",))], store, Measuring)
        assert (report.stored, report.missing, report.unequal) == (19, 1, [run.key])
        assert report.reason == "some runs came out differently"
        assert store.find(run.key).outcome == other


class Resuming(MadeUp):
    """Keeps what it stops in a file."""

    def __init__(self, folder: Path) -> None:
        super().__init__(pause=0.01)
        self.folder = folder

    def kept(self, batch: Batch) -> Any:
        """Where."""
        return self.folder / batch.id


def test_a_batch_that_goes_on_later_is_begun_whatever_time_is_left(tmp_path: Path) -> None:
    few, left_out = batches()[:2], list[list[str]]()
    for trainer in (MadeUp(pause=0.01), Resuming(tmp_path)):
        stop = Stop()
        stop.left = lambda: 1e-9  # type: ignore[method-assign]
        (tmp_path / few[0].id).touch()
        with Store(tmp_path / f"{type(trainer).__name__}.sqlite") as store:
            left_out.append(reproduce(few, store, lambda made=trainer: made, stop).skipped)  # type: ignore[misc]
            (seconds,) = store.db.execute("SELECT seconds FROM batches WHERE id = ?", (few[0].id,)).fetchone()
        assert (seconds is None) == isinstance(trainer, Resuming), "the time of its end is not that of the batch"
    assert [len(each) for each in left_out] == [1, 0]


def test_the_trainer_is_made_when_something_is_trained(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        executor = LocalExecutor(store, lambda: pytest.fail("not yet"))
        assert list(executor.run([], Stop())) == []
