"""Who trained the runs of a store, session by session: what the file beside an export says.

A session is a call of the trainer: where, with what and for how long, and the batches it trained, so that a run can be
traced by its batch. Sessions of an earlier propreg do not name batches.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Any

from propreg.study.counting import Place
from propreg.study.store import Store

Note = dict[str, Any]
Counts = dict[int, Counter[str]]
"""Runs by session and batch."""
_COUNTS = ("runs", "runs_of_session", "batches")


def provenance(store: Store, wanted: Set[Place] | None = None) -> list[Note]:
    """Each session that trained runs of a store, also those that came with runs from elsewhere, once.

    ``runs`` are those among the wanted ones. Where a session trained more, ``runs_of_session`` says how many: its
    seconds are those of all of them. Where it cannot be told how many of the wanted runs are its own, ``runs`` is left
    out.

    Args:
        store: The store.
        wanted: Only sessions of these runs; all where left out.
    """
    with store.snapshot():
        every, chosen = _counts(store, wanted)
        sessions = store.numbered_sessions()
    unsigned = any("taken_from" in note and not note.get("made_by") for note in sessions.values())
    found: list[Note] = []
    came = _Came(is_whole=every == chosen)
    for number, note in sessions.items():
        makers = note.pop("made_by", [])
        if makers and not every[number] and not unsigned:
            continue  # it brought only runs that were known, from those who made them
        if makers:
            came.add(makers, every[number], chosen[number])
        elif chosen[number]:
            found.append(_counted(note, chosen[number].total(), chosen[number]))
    found += came.notes(known={_identity(note) for note in found})
    return sorted(found, key=lambda note: str(note.get("started", "")))


def _counts(store: Store, wanted: Set[Place] | None) -> tuple[Counts, Counts]:
    """All runs, and the wanted ones."""
    every: Counts = defaultdict(Counter)
    chosen: Counts = defaultdict(Counter)
    with store.reading():
        for session, batch, runs in store.db.execute("SELECT session, batch, count(*) FROM runs GROUP BY 1, 2"):
            every[session][batch] = runs
        if wanted is None:
            return every, every
        rows = store.db.execute("SELECT session, batch, text, split, seed FROM runs JOIN cells ON cells.id = cell")
        for session, batch, *place in rows:
            if tuple(place) in wanted:
                chosen[session][batch] += 1
    return every, chosen


@dataclass
class _Came:
    """Sessions that came with runs from elsewhere; of these runs it is known who came together, not who trained which.

    ``named`` are the sessions that name their batches, ``unnamed`` the others, with all runs and the chosen ones of the
    imports that they came with.
    """

    is_whole: bool
    every: Counter[str] = field(default_factory=Counter)
    chosen: Counter[str] = field(default_factory=Counter)
    named: dict[str, Note] = field(default_factory=dict)
    unnamed: dict[str, tuple[Note, Counter[str], Counter[str]]] = field(default_factory=dict)

    def add(self, makers: list[Note], every: Counter[str], chosen: Counter[str]) -> None:
        """The makers of runs that were taken in together."""
        self.every += every
        self.chosen += chosen
        for note in makers:
            if _batches(note) is not None:
                key = _identity(note)
                self.named[key] = _joined(self.named[key], note) if key in self.named else note
            else:
                here = self.unnamed.setdefault(_identity(note), (note, Counter(), Counter()))
                here[1].update(every)
                here[2].update(chosen)

    def notes(self, known: Set[str]) -> list[Note]:
        """Those that trained chosen runs, but for those that are known already."""
        sharing = Counter(batch for note in self.named.values() for batch in _batches(note) or [])
        found = [
            self._told(note, sharing)
            for identity, note in self.named.items()
            if identity not in known and any(self.chosen[batch] for batch in _batches(note) or [])
        ]
        known = known | self.named.keys()
        for note, every, chosen in self.unnamed.values():
            if _identity(note | {"batches": []}) in known:
                continue
            if every == chosen and (chosen or self.is_whole):
                found.append(note)
            elif chosen:
                untold = {name: value for name, value in note.items() if name != "runs"}
                found.append(untold | {"runs_of_session": _had(note)})
        return found

    def _told(self, note: Note, sharing: Counter[str]) -> Note:
        """How many of the chosen runs a session trained: those of its batches, if no other session shares them."""
        batches, had = _batches(note) or [], _number(note, "runs")
        mine = [batch for batch in batches if self.chosen[batch]]
        runs = sum(self.chosen[batch] for batch in mine)
        if had is not None and all(self.chosen[batch] == self.every[batch] for batch in batches):
            return _counted(note, min(runs, had), mine)
        if had is None or runs > had or any(sharing[batch] > 1 for batch in mine):
            return _counted(note, None, mine)
        return _counted(note, runs, mine)


def _counted(note: Note, runs: int | None, batches: Iterable[str]) -> Note:
    """The note with this many runs, None where that cannot be told; how many the session had is kept."""
    had = _had(note)
    kept = {name: value for name, value in note.items() if name not in _COUNTS} | {"batches": sorted(batches)}
    if runs is not None:
        kept["runs"] = runs
    return kept if runs == had or had is None else kept | {"runs_of_session": had}


def _joined(one: Note, two: Note) -> Note:
    """A session that came twice, each time with some of its runs."""
    had = max(_had(note) or 0 for note in (one, two))
    both = {*(_batches(one) or []), *(_batches(two) or [])}
    return one | {"batches": sorted(both), "runs": had, "runs_of_session": had}


def _had(note: Note) -> int | None:
    """How many runs a session trained in all, as far as its note says."""
    all_of_them = _number(note, "runs_of_session")
    return _number(note, "runs") if all_of_them is None else all_of_them


def _number(note: Note, name: str) -> int | None:
    value = note.get(name)
    return value if type(value) is int else None  # notes of others may hold anything


def _identity(note: Note) -> str:
    """What tells a session from others; one that says when it began is the same whichever of its runs are meant."""
    left_out = _COUNTS if "started" in note and "batches" in note else ()
    return json.dumps({name: value for name, value in note.items() if name not in left_out}, sort_keys=True)


def _batches(note: Note) -> list[str] | None:
    """The batches that a session names; None where it names none, as in an earlier propreg."""
    named = note.get("batches")
    return named if isinstance(named, list) and all(isinstance(each, str) for each in named) else None
