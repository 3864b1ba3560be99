"""Who may have trained a recorded run, by the notes of sessions."""

import json
from contextlib import suppress
from typing import Any

from propreg.study.record import Record
from propreg.study.recorded import Exported, Recorded
from propreg.study.store import Store

Note = dict[str, Any]


def makers(recorded: Recorded, record: Record) -> list[Note]:
    """The session that wrote a run, or else all that may have trained it.

    Runs that came from elsewhere are traced by their batch. Sessions of an earlier propreg do not name theirs: where
    those that do have not trained all runs of their batches, any of the others may be the one.
    """
    if isinstance(recorded, Exported):
        notes = recorded.sessions()
    else:
        wrote = _session(recorded, record.run.key)
        if "made_by" not in wrote:
            return [wrote]
        came = wrote["made_by"]  # notes of others may hold anything
        notes = [note for note in came if isinstance(note, dict)] if isinstance(came, list) else []
    nameless = [note for note in notes if not isinstance(note.get("batches"), list)]
    named = [note for note in notes if isinstance(note.get("batches"), list)]
    mine = [note for note in named if record.batch in note["batches"]]
    if not nameless or (mine and _trained_all(recorded, mine, named)):
        return mine
    return [*mine, *nameless]


def _trained_all(recorded: Recorded, mine: list[Note], named: list[Note]) -> bool:
    """Whether sessions, with those that share batches with them, have as many runs as these batches hold."""
    batches, group = set[str](), list[Note]()
    while len(group) < len(grown := [n for n in named if n in mine or batches.intersection(n["batches"])]):
        group, batches = grown, {batch for note in grown for batch in note["batches"]}
    runs = [note.get("runs") for note in group]
    return sum(n for n in runs if isinstance(n, int)) >= recorded.count_in(batches)


def _session(store: Store, key: str) -> Note:
    """What the session that wrote a run into a store noted; nothing where that cannot be read."""
    with store.reading():
        row = store.db.execute("SELECT info FROM sessions JOIN runs ON session = id WHERE key = ?", (key,)).fetchone()
    with suppress(ValueError, TypeError):
        found = json.loads(row[0])
        return found if isinstance(found, dict) else {}
    return {}
