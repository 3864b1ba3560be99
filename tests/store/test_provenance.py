"""Who trained what: sessions with their batches, also of a part of a store, and after a way through other stores."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.batch import Batch
from propreg.store.export import sidecar, write_export
from propreg.store.merge import take_into
from propreg.store.progress import Pace, pace_of
from propreg.store.provenance import made_by, provenance
from propreg.store.run import Record
from propreg.store.store import Store
from propreg.study.execute.runner import Stop, reproduce
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import load_experiment, select_lines
from study.sweeping import MadeUp, batches, made_up

BATCHES = batches()
OLD = {"device": "cuda: A", "propreg": "0.1.0", "python": "3.12.3", "seconds": 20.0, "torch": "2.11.0"}
OLD_NOTES = [
    {**OLD, "started": "2026-01-01T00:00:00Z", "runs": 40},
    {**OLD, "started": "2026-01-02T00:00:00Z", "runs": 20},
]
Places = set[tuple[str, int, int]]


def places(*chosen: Batch) -> Places:
    return {(run.cell.text, run.split, run.seed) for batch in chosen for run in batch.runs}


def ids(*chosen: Batch) -> list[str]:
    return sorted(batch.id for batch in chosen)


def trained(path: Path, *sessions: list[Batch]) -> Path:
    """A store in which each session trained these batches."""
    with Store(path) as store:
        for each in sessions:
            reproduce(each, store, MadeUp)
    return path


def export(store: Path, to: Path, wanted: Places | None = None) -> Path:
    """As the command does it."""
    with Store(store, "read") as opened:
        write_export(to, [row for row in opened.rows() if wanted is None or row[:3] in wanted])
        sidecar(to).write_text(json.dumps(provenance(opened, wanted)))
    return to


def old_export(to: Path, *chosen: Batch) -> Path:
    """As an earlier propreg did it: sessions name no batches."""
    with Store(to.with_suffix(".sqlite")) as store:
        number = store.begin_session({})
        for record in (Record(run, made_up(run), batch.id) for batch in chosen for run in batch.runs):
            store.add(record, number)
        write_export(to, store.rows())
    sidecar(to).write_text(json.dumps(OLD_NOTES))
    return to


def taken(path: Path, *sources: Path) -> Path:
    with Store(path) as store:
        for source in sources:
            take_into(store.path, source)
    return path


def notes(store: Path, *chosen: Batch) -> list[dict[str, Any]]:
    with Store(store, "read") as opened:
        return provenance(opened, places(*chosen) if chosen else None)


def counts(found: list[dict[str, Any]]) -> list[tuple[int | None, int | None, list[str]]]:
    return [(note.get("runs"), note.get("runs_of_session"), note["batches"]) for note in found]


def test_a_session_names_its_batches_and_each_is_another(tmp_path: Path) -> None:
    store = trained(tmp_path / "a.sqlite", BATCHES[:3], BATCHES[3:5])
    first, second = notes(store)
    assert counts([first, second]) == [(60, None, ids(*BATCHES[:3])), (40, None, ids(*BATCHES[3:5]))]
    assert first["session"] != second["session"]
    assert all(re.fullmatch("[0-9a-f]{8}", note["session"]) for note in (first, second))


def test_a_part_has_only_its_sessions_and_says_what_their_seconds_are_of(tmp_path: Path) -> None:
    store = trained(tmp_path / "a.sqlite", BATCHES[:3], BATCHES[3:5])
    assert counts(notes(store, BATCHES[0])) == [(20, 60, ids(BATCHES[0]))]
    assert counts(notes(store, *BATCHES[2:5])) == [(20, 60, ids(BATCHES[2])), (40, None, ids(*BATCHES[3:5]))]
    assert notes(store, BATCHES[9]) == []


def test_the_pace_of_a_part_is_that_of_its_sessions(tmp_path: Path) -> None:
    """A tenth of a session's runs took a tenth of its time; a session of other runs says nothing."""
    store = tmp_path / "a.sqlite"
    trained(store, BATCHES[:2], BATCHES[2:])
    with Store(store) as opened:
        opened.end_session(1, {"seconds": 400.0})
        opened.end_session(2, {"seconds": 1.6})
    assert pace_of(notes(store, *BATCHES[:2])) == Pace(10.0, "none")
    assert pace_of(notes(store, BATCHES[0])) == Pace(10.0, "none")
    mean = pace_of(notes(store, BATCHES[0], BATCHES[5]))
    assert mean is not None
    assert mean.seconds_per_run == pytest.approx((20 * 10 + 20 * 0.01) / 40)


def test_the_command_exports_the_provenance_of_what_it_exports(tmp_path: Path) -> None:
    """A store of two experiments, of which one is exported: `status` of the export has that one's pace."""
    store, file = tmp_path / "a.sqlite", tmp_path / "results" / "runs.jsonl.gz"
    file.parent.mkdir()
    tsne = cut(load_experiment("fig-tsne").lines)
    trained(store, BATCHES, tsne)
    with Store(store) as opened:
        opened.end_session(1, {"seconds": 100.0})
        opened.end_session(2, {"seconds": 5000.0})
    arguments = ["store", "export", str(file), "--store", str(store), "--experiment", "digits-smoke"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    (note,) = made_by(file)
    assert (note["runs"], note["batches"]) == (200, ids(*BATCHES))
    assert "runs_of_session" not in note
    assert pace_of([note]) == Pace(0.5, "none")


def test_what_went_through_another_store_keeps_its_sessions(tmp_path: Path) -> None:
    mine = trained(tmp_path / "a.sqlite", BATCHES[:3], BATCHES[3:5])
    copy = taken(tmp_path / "b.sqlite", export(mine, tmp_path / "a.jsonl"))
    assert notes(copy) == notes(mine)
    assert notes(copy, *BATCHES[2:4]) == notes(mine, *BATCHES[2:4])
    assert notes(taken(tmp_path / "c.sqlite", copy)) == notes(mine)


def test_two_parts_of_a_session_are_put_together(tmp_path: Path) -> None:
    mine = trained(tmp_path / "a.sqlite", BATCHES[:4])
    parts = [export(mine, tmp_path / f"{i}.jsonl", places(BATCHES[i])) for i in range(3)]
    both = taken(tmp_path / "b.sqlite", *parts[:2])
    assert counts(notes(both)) == [(40, 80, ids(*BATCHES[:2]))]
    again = taken(tmp_path / "c.sqlite", parts[0], both, parts[2], mine)
    assert notes(again) == notes(mine)


def test_a_session_that_comes_home_is_named_once(tmp_path: Path) -> None:
    mine = trained(tmp_path / "a.sqlite", BATCHES[:3])
    before = notes(mine)
    there = taken(tmp_path / "b.sqlite", export(mine, tmp_path / "a.jsonl"))
    assert notes(taken(mine, there)) == before


def test_a_batch_of_two_sessions_is_claimed_by_neither(tmp_path: Path) -> None:
    """The first session was stopped inside a batch, the second ended it."""
    stop = Stop()

    def interrupt(progress: Any) -> None:
        if progress.done == 7:
            stop.asked.set()

    mine = tmp_path / "a.sqlite"
    with Store(mine) as store:
        reproduce(BATCHES[:1], store, MadeUp, stop, interrupt)
        reproduce(BATCHES[:3], store, MadeUp)
    shared = BATCHES[0].id
    assert counts(notes(mine)) == [(7, None, [shared]), (53, None, ids(*BATCHES[:3]))]
    copy = taken(tmp_path / "b.sqlite", export(mine, tmp_path / "a.jsonl"))
    assert counts(notes(copy)) == counts(notes(mine)), "all of it is there, so that the counts hold"
    assert counts(notes(copy, BATCHES[1])) == [(20, 53, ids(BATCHES[1]))]
    assert counts(notes(copy, *BATCHES[:2])) == [(7, None, [shared]), (None, 53, ids(*BATCHES[:2]))]
    assert pace_of(note | {"seconds": 7.0} for note in notes(copy, *BATCHES[:2])) == Pace(1.0, "none")


def test_old_sessions_keep_their_counts_where_all_runs_are_exported(tmp_path: Path) -> None:
    old = old_export(tmp_path / "old.jsonl", *BATCHES[:3])
    store = taken(tmp_path / "a.sqlite", old)
    assert notes(store) == OLD_NOTES
    trained(store, BATCHES[3:5])
    *before, mine = notes(store)
    assert before == OLD_NOTES
    assert (mine["runs"], mine["batches"]) == (40, ids(*BATCHES[3:5]))
    assert notes(store, *BATCHES[:4])[:2] == OLD_NOTES, "all of the import is there"


def test_old_sessions_do_not_claim_a_part(tmp_path: Path) -> None:
    store = taken(tmp_path / "a.sqlite", old_export(tmp_path / "old.jsonl", *BATCHES[:3]))
    trained(store, BATCHES[3:5])
    found = notes(store, BATCHES[0])
    assert [note.get("runs") for note in found] == [None, None]
    assert [note["runs_of_session"] for note in found] == [40, 20]
    assert pace_of(found) is None
    assert len(notes(store, BATCHES[3])) == 1, "a part of which they trained nothing does not name them"


def test_an_old_note_of_a_session_that_is_known_is_left_out(tmp_path: Path) -> None:
    mine = trained(tmp_path / "a.sqlite", BATCHES[:3])
    file = export(mine, tmp_path / "a.jsonl")
    sidecar(file).write_text(json.dumps([{k: v for k, v in note.items() if k != "batches"} for note in notes(mine)]))
    before = notes(mine)
    assert notes(taken(mine, file)) == before


def test_runs_without_a_note_are_those_of_a_file(tmp_path: Path) -> None:
    file = old_export(tmp_path / "old.jsonl", *BATCHES[:2])
    sidecar(file).unlink()
    store = taken(tmp_path / "a.sqlite", file)
    assert notes(store) == [{"taken_from": "old.jsonl", "runs": 40, "batches": ids(*BATCHES[:2])}]
    assert counts(notes(store, BATCHES[1])) == [(20, 40, ids(BATCHES[1]))]
    # Who made them is known as soon as it comes, although their runs are there already.
    sidecar(file).write_text(json.dumps(OLD_NOTES))
    assert notes(taken(store, file))[1:] == OLD_NOTES


@pytest.mark.parametrize(
    "note",
    [{"runs": "many", "batches": ["x"]}, {"runs": None, "batches": 7}, {"started": 3, "batches": [3], "runs": 1}],
)
def test_notes_of_others_may_hold_anything(tmp_path: Path, note: dict[str, Any]) -> None:
    file = old_export(tmp_path / "old.jsonl", *BATCHES[:1])
    sidecar(file).write_text(json.dumps([note, note | {"batches": ids(BATCHES[0])}]))
    store = taken(tmp_path / "a.sqlite", file)
    for found in (notes(store), notes(store, BATCHES[0]), notes(store, BATCHES[1])):
        pace_of(found)


def test_two_equal_sweeps_export_the_same_bytes(tmp_path: Path) -> None:
    """Trained for real: which code, which session and when stand beside the runs, and never in them."""
    lines = select_lines(load_experiment("digits-smoke"), ["model=mlp-16,method=plain"], [0])
    (batch,) = cut(replace(line, splits=line.splits[:3]) for line in lines)
    files = []
    for name in ("one", "two"):
        from propreg.study.execute.trainer import Trainer

        with Store(tmp_path / f"{name}.sqlite") as store:
            reproduce([batch], store, lambda: Trainer("cpu"))
        files.append(tmp_path / f"{name}.jsonl.gz")
        arguments = ["store", "export", str(files[-1]), "--store", str(tmp_path / f"{name}.sqlite")]
        assert CliRunner().invoke(app, arguments).exit_code == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    ((one,), (two,)) = map(made_by, files)
    assert one["engine"] == two["engine"]
    assert re.fullmatch("[0-9a-f]{16}", one["engine"])
    assert one["batches"] == two["batches"] == [batch.id]


def test_a_file_whose_runs_are_all_known_brings_no_session(tmp_path: Path) -> None:
    """The same runs, trained twice: whoever came first made those that are there."""
    first, second = (trained(tmp_path / name, BATCHES[:2]) for name in ("a.sqlite", "b.sqlite"))
    both = taken(tmp_path / "both.sqlite", first, second)
    assert [note["session"] for note in notes(both)] == [note["session"] for note in notes(first)]
    assert sum(note["runs"] for note in notes(both)) == 40
