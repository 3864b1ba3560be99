"""Who may have trained a run, by what sessions noted."""

import json
from pathlib import Path
from typing import Any

import pytest

from propreg.store.export import sidecar, write_export
from propreg.store.merge import take_into
from propreg.store.provenance import sessions_of
from propreg.store.results import Exported
from propreg.store.run import Record
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from study.sweeping import MadeUp, batches, made_up

FIRST, SECOND = batches()[:2]
NAMELESS = {"device": "old", "runs": 15, "started": "2026-01-01T00:00:00Z"}


def record(batch: Any = FIRST) -> Record:
    return Record(batch.runs[0], made_up(batch.runs[0]), batch.id)


def export(folder: Path, notes: list[dict[str, Any]]) -> Exported:
    """Both batches, made by these."""
    folder.mkdir()
    with Store(folder / "made.sqlite") as store:
        reproduce([FIRST, SECOND], store, MadeUp)
        write_export(folder / "runs.jsonl", store.rows())
    sidecar(folder / "runs.jsonl").write_text(json.dumps(notes))
    return Exported(folder / "runs.jsonl")


def session(name: str, runs: int, *named: Any) -> dict[str, Any]:
    return {"device": name, "runs": runs, "batches": [batch.id for batch in named]}


def test_the_session_that_wrote_a_run_made_it(tmp_path: Path) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        for batch in (FIRST, SECOND):
            store.add(record(batch), store.begin_session({"device": batch.id}))
        assert [sessions_of(store, record(batch)) for batch in (FIRST, SECOND)] == [
            [{"device": FIRST.id}], [{"device": SECOND.id}]
        ]  # fmt: skip


def test_runs_from_elsewhere_are_traced_by_their_batch(tmp_path: Path) -> None:
    mine, other = session("mine", 20, FIRST), session("other", 20, SECOND)
    exported = export(tmp_path / "a", [mine, other, NAMELESS])
    assert sessions_of(exported, record()) == [mine]
    take_into(tmp_path / "b.sqlite", tmp_path / "a" / "runs.jsonl")
    with Store(tmp_path / "b.sqlite", "read") as store:
        assert sessions_of(store, record(SECOND)) == [other]


def test_a_session_that_trained_a_part_leaves_the_rest_to_those_that_name_no_batch(tmp_path: Path) -> None:
    """The batch was begun by a session of an earlier propreg."""
    mine, other = session("mine", 5, FIRST), session("other", 20, SECOND)
    exported = export(tmp_path / "a", [mine, other, NAMELESS])
    assert sessions_of(exported, record()) == [mine, NAMELESS]
    assert sessions_of(exported, record(SECOND)) == [other]
    assert sessions_of(export(tmp_path / "b", [mine, other]), record()) == [mine], "nobody else can be meant"
    assert sessions_of(export(tmp_path / "c", [NAMELESS]), record()) == [NAMELESS]


def test_sessions_that_share_a_batch_are_counted_together(tmp_path: Path) -> None:
    one, two = session("one", 25, FIRST, SECOND), session("two", 15, SECOND)
    exported = export(tmp_path / "a", [one, two, NAMELESS])
    assert sessions_of(exported, record()) == [one]
    assert sessions_of(exported, record(SECOND)) == [one, two]
    fewer = export(tmp_path / "b", [one, session("two", 14, SECOND), NAMELESS])
    assert sessions_of(fewer, record()) == [one, NAMELESS]


@pytest.mark.parametrize("note", [5, "text", None, [1, "two"]])
def test_notes_of_others_may_hold_anything(tmp_path: Path, note: object) -> None:
    with Store(tmp_path / "store.sqlite") as store:
        store.add(record(), store.begin_session({"made_by": note}))
        assert sessions_of(store, record()) == []
