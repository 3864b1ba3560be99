"""Provenance: who trained the runs of a store or an export, session by session, and under which conditions.

A session is a call of the trainer: where, with what and for how long, and the batches it trained, so that a run can be
traced by its batch. Sessions of an earlier propreg do not name batches. The file beside an export holds the same notes.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import propreg.engine
from propreg.names import listed
from propreg.store.export import read_sidecar, record_files
from propreg.store.results import Exported, Recorded
from propreg.store.run import Record, RunId
from propreg.store.sqlite import is_store
from propreg.store.store import Store

Note = dict[str, Any]
Counts = dict[int, Counter[str]]
"""Runs by session and batch."""
PROCESSOR = "processor"
_COUNTS = ("runs", "runs_of_session", "batches")


def provenance(store: Store, wanted: Set[RunId] | None = None) -> list[Note]:
    """Each session that trained runs of a store, also the sessions of imported runs, once.

    ``runs`` counts the wanted ones. If a session trained more, ``runs_of_session`` counts them all, as its seconds are
    for all of them. If it is unknown how many of the wanted runs are its own, ``runs`` is left out.

    Args:
        store: The store.
        wanted: Only sessions of these runs; all if left out.
    """
    with store.snapshot():
        every, chosen = _counts(store, wanted)
        sessions = store.numbered_sessions()
    unsigned = any("taken_from" in note and not note.get("made_by") for note in sessions.values())
    found: list[Note] = []
    imported = _Imported(is_whole=every == chosen)
    for number, note in sessions.items():
        makers = note.pop("made_by", [])
        if makers and not every[number] and not unsigned:
            continue  # it imported only runs that were known already, with their sessions
        if makers:
            imported.add(makers, every[number], chosen[number])
        elif chosen[number]:
            found.append(_counted(note, chosen[number].total(), chosen[number]))
    found += imported.notes(known={_identity(note) for note in found})
    return sorted(found, key=lambda note: str(note.get("started", "")))


def made_by(path: Path) -> list[Note]:
    """Who trained the runs of an export or a store, as far as that is known."""
    if is_store(path):
        with Store(path, "read") as store:
            return provenance(store)
    return read_sidecar(path)


def sessions_of(recorded: Recorded, record: Record) -> list[Note]:
    """The session that wrote a run, or else all that may have trained it.

    Imported runs are traced by their batch. Sessions of an earlier propreg name no batches: if those that do have not
    trained all runs of their batches, any of the others may have.
    """
    if isinstance(recorded, Exported):
        notes = [note for file in record_files(recorded.path) for note in made_by(file)]
    else:
        wrote = _session_that_wrote(recorded, record.run.key)
        if "made_by" not in wrote:
            return [wrote]
        imported = wrote["made_by"]  # notes of others may hold anything
        notes = [note for note in imported if isinstance(note, dict)] if isinstance(imported, list) else []
    nameless = [note for note in notes if not isinstance(note.get("batches"), list)]
    named = [note for note in notes if isinstance(note.get("batches"), list)]
    mine = [note for note in named if record.batch in note["batches"]]
    if not nameless or (mine and _trained_all(recorded, mine, named)):
        return mine
    return [*mine, *nameless]


@dataclass(frozen=True)
class Conditions:
    """How the conditions of a recorded run compare with today's: if they are the same, bits are equal.

    Args:
        differs: What has changed, in words.
        untold: What was not noted.
        mixed: What is as today in some of the sessions that may have trained the run, and not in others.
    """

    differs: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    mixed: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether everything is known and equal."""
        return not (self.differs or self.untold or self.mixed)

    def sentence(self) -> str:
        """What to expect of a training in the same batch."""
        if self.differs:
            return f"Equal bits were not expected: {'; '.join(self.differs)}."
        if not self.same:
            not_known = {
                "not recorded": self.untold,
                "not the same in all sessions that may have trained it": self.mixed,
            }
            why = "; ".join(f"{what}: {listed(names)}" for what, names in not_known.items() if names)
            return f"Equal bits are expected if this is the same machine and code; {why}."
        return "Equal bits were expected: the batch, the device, the versions and the engine are as recorded."


def compare_conditions(today: dict[str, Any], sessions: Iterable[dict[str, Any]]) -> Conditions:
    """Compare today's conditions, see ``Trainer.about``, with those of all sessions that may have trained a run.

    Example:
        >>> today = {"device": "cuda: H200", "torch": "2.11"}
        >>> compare_conditions(today, [{"device": "cuda: H200", "torch": "2.11", "runs": 3}]).same
        True
        >>> compare_conditions(today, [{"device": "cuda: H200", "torch": "2.10"}]).differs
        ('torch was 2.10 and is 2.11',)
        >>> compare_conditions(today, [{"device": "cuda: H200"}]).untold
        ('torch',)
    """
    noted = list(sessions)
    differs, untold, mixed = list[str](), list[str](), list[str]()
    for name, now in today.items():
        then = [session.get(name) for session in noted]
        if then and all(value == now for value in then):
            continue
        if then and now not in then and None not in then:
            differs.append(f"{name} was {' or '.join(sorted({str(value) for value in then}))} and is {now}")
        else:
            (mixed if then and None not in then else untold).append(name)
    if str(today.get("device", "")).startswith("cpu") and PROCESSOR not in today:
        untold.append(PROCESSOR)  # "cpu: x86_64" is the name of many devices
    return Conditions(tuple(differs), tuple(untold), tuple(mixed))


def engine_digest(folder: Path | None = None) -> str:
    """Which code trained: 16 hexadecimal digits of the names and contents of the engine's Python files.

    Args:
        folder: The folder; the installed engine's if left out.

    Example:
        >>> len(engine_digest())
        16
    """
    root = folder or Path(propreg.engine.__file__).parent
    found = hashlib.sha256()
    for name, file in sorted((file.relative_to(root).as_posix(), file) for file in root.rglob("*.py")):
        content = file.read_bytes()
        found.update(f"{name}\n{len(content)}\n".encode() + content)  # with lengths, no two folders give the same bytes
    return found.hexdigest()[:16]


def _counts(store: Store, wanted: Set[RunId] | None) -> tuple[Counts, Counts]:
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
class _Imported:
    """Sessions that were imported with their runs; which of them trained which run is known by its batch only.

    ``named`` are the sessions that name their batches, ``unnamed`` the others, with all runs and the chosen ones of the
    imports that they were part of.
    """

    is_whole: bool
    every: Counter[str] = field(default_factory=Counter)
    chosen: Counter[str] = field(default_factory=Counter)
    named: dict[str, Note] = field(default_factory=dict)
    unnamed: dict[str, tuple[Note, Counter[str], Counter[str]]] = field(default_factory=dict)

    def add(self, makers: list[Note], every: Counter[str], chosen: Counter[str]) -> None:
        """Add the sessions of runs that were imported together."""
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
        """The sessions that trained chosen runs and are not known yet."""
        sharing = Counter(batch for note in self.named.values() for batch in _batches(note) or [])
        found = [
            self._share(note, sharing)
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
                rest = {name: value for name, value in note.items() if name != "runs"}
                found.append(rest | {"runs_of_session": _had(note)})
        return found

    def _share(self, note: Note, sharing: Counter[str]) -> Note:
        """A session's note with its share of the chosen runs: those of its batches, if no other session has them."""
        batches, had = _batches(note) or [], _number(note, "runs")
        mine = [batch for batch in batches if self.chosen[batch]]
        runs = sum(self.chosen[batch] for batch in mine)
        if had is not None and all(self.chosen[batch] == self.every[batch] for batch in batches):
            return _counted(note, min(runs, had), mine)
        if had is None or runs > had or any(sharing[batch] > 1 for batch in mine):
            return _counted(note, None, mine)
        return _counted(note, runs, mine)


def _counted(note: Note, runs: int | None, batches: Iterable[str]) -> Note:
    """The note with this many runs, None if unknown; how many the session had is kept."""
    had = _had(note)
    kept = {name: value for name, value in note.items() if name not in _COUNTS} | {"batches": sorted(batches)}
    if runs is not None:
        kept["runs"] = runs
    return kept if runs == had or had is None else kept | {"runs_of_session": had}


def _joined(one: Note, two: Note) -> Note:
    """A session that was imported twice, each time with some of its runs."""
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
    """What tells a session from others; one with a beginning is the same whichever of its runs are meant."""
    left_out = _COUNTS if "started" in note and "batches" in note else ()
    return json.dumps({name: value for name, value in note.items() if name not in left_out}, sort_keys=True)


def _batches(note: Note) -> list[str] | None:
    """The batches that a session names; None if it names none, as in an earlier propreg."""
    named = note.get("batches")
    return named if isinstance(named, list) and all(isinstance(each, str) for each in named) else None


def _trained_all(recorded: Recorded, mine: list[Note], named: list[Note]) -> bool:
    """Whether sessions, with those that share batches with them, have as many runs as the batches hold."""
    batches, group = set[str](), list[Note]()
    while len(group) < len(grown := [n for n in named if n in mine or batches.intersection(n["batches"])]):
        group, batches = grown, {batch for note in grown for batch in note["batches"]}
    runs = [note.get("runs") for note in group]
    return sum(n for n in runs if isinstance(n, int)) >= recorded.count_in(batches)


def _session_that_wrote(store: Store, key: str) -> Note:
    """The note of the session that wrote a run into a store; empty if it cannot be read."""
    with store.reading():
        row = store.db.execute("SELECT info FROM sessions JOIN runs ON session = id WHERE key = ?", (key,)).fetchone()
    with suppress(ValueError, TypeError):
        found = json.loads(row[0])
        return found if isinstance(found, dict) else {}
    return {}
