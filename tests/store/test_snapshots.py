"""What a command reads of a store is of one moment, although others write to it between any two statements."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.integrity import check_store
from propreg.store.merge import take_into
from propreg.store.provenance import provenance
from propreg.store.run import Record
from propreg.store.store import Store
from study.sweeping import batches, made_up

RUNS = [(batch, run) for batch in batches() for run in batch.runs]


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store to which a session and a run of it are added before each statement of whoever reads it."""
    path, opening, left = tmp_path / "busy.sqlite", Store.__init__, list(RUNS)

    def write() -> None:
        batch, run = left.pop()
        with Store(path) as store:
            store.add(Record(run, made_up(run), batch.id), store.begin_session({"started": str(len(left))}))

    def watched(self: Store, file: Any, mode: str = "write") -> None:
        opening(self, file, mode)
        if mode == "read" and self.path == path:
            self.db.set_trace_callback(lambda _: write())

    write()
    monkeypatch.setattr(Store, "__init__", watched)
    return path


def test_a_check_raises_no_false_alarm(busy: Path) -> None:
    first, second = check_store(busy), check_store(busy)
    assert first.wrong == second.wrong == []
    assert second.runs > first.runs > 1, "nobody wrote meanwhile"


def test_sessions_fit_the_runs(busy: Path) -> None:
    with Store(busy, "read") as store, store.snapshot():
        keys = store.keys()
        notes = provenance(store)
    assert sum(note["runs"] for note in notes) == len(notes) == len(keys)
    with Store(busy, "read") as store:
        assert len(provenance(store)) > len(notes), "nobody wrote meanwhile"


def test_an_export_fits_the_file_beside_it(tmp_path: Path, busy: Path) -> None:
    done = CliRunner().invoke(app, ["store", "export", str(tmp_path / "runs.jsonl"), "--store", str(busy)])
    assert done.exit_code == 0, done.output
    runs = sum(len(json.loads(line)["runs"]) for line in (tmp_path / "runs.jsonl").read_text().splitlines()[1:-1])
    notes = json.loads((tmp_path / "runs.provenance.json").read_text())
    assert runs == sum(note["runs"] for note in notes) > 1


def test_a_merge_takes_the_makers_of_what_it_takes(tmp_path: Path, busy: Path) -> None:
    with Store(tmp_path / "mine.sqlite") as store:
        added = take_into(store.path, busy).added
        (session,) = store.sessions()
    assert sum(note["runs"] for note in session["made_by"]) == added > 1
