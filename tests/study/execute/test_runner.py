"""The runner: what is missing, whole batches, clean stops."""

import signal
import time
from pathlib import Path

import pytest

from propreg.store.leases import claim
from propreg.store.locks import Worker
from propreg.store.run import Record
from propreg.store.store import Store
from propreg.study.execute.runner import Progress, Stop, reproduce
from propreg.study.spec.batches import longest_first
from study.sweeping import MadeUp, batches, exported, made_up


def test_a_sweep_stores_everything_once(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        trainer, told = MadeUp(), list[str]()
        report = reproduce(batches(), store, lambda: trainer, tell=lambda progress: told.append(progress.event))
        assert (report.stored, report.missing, report.reason, trainer.trained) == (200, 0, "done", 200)
        assert told[0] == "start"
        assert told.count("batch done") == 10
        again = reproduce(batches(), store, lambda: pytest.fail("nothing is left to train"))
        assert (again.stored, again.missing) == (0, 0)


def test_an_unfinished_batch_is_trained_whole(tmp_path: Path) -> None:
    batch = batches()[3]
    with Store(tmp_path / "store.sqlite") as store:
        for run in batch.runs[:-1]:
            store.add(Record(run, made_up(run), batch.id), store.begin_session({}))
        trainer = MadeUp()
        report = reproduce([batch], store, lambda: trainer)
        assert (report.stored, trainer.trained) == (1, len(batch.runs))
        assert trainer.known == {run.key for run in batch.runs[:-1]}


def test_a_batch_of_another_worker_is_left_out(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        claim(store, batches()[0].id, Worker("another-host", 1, ""))
        report = reproduce(batches(), store, MadeUp)
        assert (report.stored, report.missing, report.reason) == (180, 20, "some batches left out")
        assert report.skipped == ["digits gcn plain: another process is training it"]


def test_the_time_limit_stops_inside_a_batch(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        started = time.monotonic()
        report = reproduce(batches(), store, lambda: MadeUp(pause=0.02), Stop(0.3))
        assert time.monotonic() - started < 5
        assert report.reason == "time limit"
        assert 0 < report.stored < 200
        assert report.missing == 200 - report.stored
        assert store.db.execute("SELECT count(*) FROM leases").fetchone() == (0,), "leases are given back"


def test_ctrl_c_keeps_what_is_done_and_another_call_goes_on(tmp_path: Path) -> None:
    path, stop = tmp_path / "store.sqlite", Stop()

    def interrupt(progress: Progress) -> None:
        if progress.done == 33:
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with Store(path) as store:
        with stop.on_signals():
            report = reproduce(batches(), store, MadeUp, stop, interrupt)
        assert (report.stored, report.reason) == (33, "interrupted")
        assert signal.getsignal(signal.SIGINT) is before
        reproduce(batches(), store, MadeUp)
    with Store(tmp_path / "other.sqlite") as other:
        reproduce(batches(), other, MadeUp)
    assert exported(path) == exported(tmp_path / "other.sqlite")


class HalfABatch(Stop):
    """After the first batch, half the time that it took is always left."""

    seconds = float("inf")

    def left(self) -> float:
        """Never up."""
        return self.seconds

    def listen(self, progress: Progress) -> None:
        """Take the first batch's time."""
        if progress.event == "batch done" and self.seconds == float("inf"):
            self.seconds = progress.seconds / 2


def test_a_batch_that_would_not_end_in_time_is_left_out(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        stop = HalfABatch()
        report = reproduce(batches(), store, lambda: MadeUp(pause=0.01), stop, stop.listen)
        assert report.stored == 120, "one batch of GCN runs, and all those of the far cheaper MLP"
        assert report.skipped == [
            f"digits gcn {method}: would not end before the time limit"
            for method in ("laplacian-mean", "plain", "preg-paper", "preg-paper")
        ]


def test_sessions_say_who_and_how_long(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        reproduce(batches(), store, MadeUp)
        (session,) = store.sessions()
        assert session["runs"] == 200
        assert session["device"] == "none"
        assert session["seconds"] >= 0


def test_runs_that_others_trained_meanwhile_are_counted(tmp_path: Path) -> None:
    path, told = tmp_path / "store.sqlite", list[int]()

    def tell(progress: Progress) -> None:
        if progress.event == "batch done" and not told:
            with Store(path) as other:  # the batch that comes last here
                reproduce([longest_first(batches())[-1]], other, MadeUp)
        told.append(progress.done)

    with Store(path) as store:
        reproduce(batches(), store, MadeUp, tell=tell)
    assert told[-1] == 200
