"""Run with ``store/faults.c`` preloaded: each call of a scenario that changes a file fails once, or kills the process.

Each point is met by a process of its own, forked from this one, on a fresh copy of the old state. Afterwards the state
must be the old or the new one, whole; what says that it succeeded must have, and the same again must end in the new
one.
"""

import ctypes
import gzip
import json
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.data.formats.safetensors import read_safetensors, write_safetensors
from propreg.data.graph import Split
from propreg.engine.spec import Replica, Result
from propreg.fitting.kept import KeptRuns
from propreg.running.folder import MODEL, PREDICTIONS, claim
from propreg.running.record import read_record
from propreg.store import locks
from propreg.store.batch import Batch
from propreg.store.export import read_export, sidecar, write_export
from propreg.store.integrity import check_store
from propreg.store.run import Record
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from study.sweeping import MadeUp, batches, made_up

T = TypeVar("T")
KINDS = {"fails": 1, "kills": 2, "tears": 3}
RUNS = batches()[0].runs
SMALL = [Batch("one", RUNS[:3]), Batch("two", RUNS[3:5])]
SUCCEEDED, REFUSED = 0, 3
"""How a child ends: the command is done, or an error is one sentence. Anything else but the kill is a bug."""


@dataclass(frozen=True)
class Scenario:
    """What is done to a folder.

    Args:
        prepare: Make the old state.
        act: Do it; returns whether it succeeded.
        state: What the folder holds; raises if that is not whole.
        between: Whether a state between the old and the new one is whole too.
    """

    prepare: Callable[[Path], object]
    act: Callable[[Path], bool]
    state: Callable[[Path], Any]
    between: Callable[[Any, Any, Any], bool] = lambda found, old, new: found in (old, new)


def propreg(*arguments: object) -> bool:
    """Run a command; True if it succeeded, and an error if it failed with more than a sentence."""
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    if done.exit_code not in (0, 1) or (done.exception and not isinstance(done.exception, SystemExit)):
        raise RuntimeError(f"{arguments}: {done.output} {done.exception!r}")
    if done.exit_code == 1 and ("propreg failed" in done.output or len(done.stderr.splitlines()) != 1):
        raise RuntimeError(f"{arguments}: {done.output}")
    return done.exit_code == 0


def rows_of(path: Path) -> Any:
    """The rows of a store that is whole; none where there is no store."""
    if not path.exists():
        return frozenset()
    checked = check_store(path)
    if checked.wrong:
        raise RuntimeError(f"{path.name} is not whole: {checked.wrong}")
    with Store(path, "read") as store:
        return frozenset(store.rows())


def fill(path: Path, first: int, last: int) -> None:
    with Store(path) as store:
        session = store.begin_session({"started": "then"})
        for run in RUNS[first:last]:
            store.add(Record(run, made_up(run), "b"), session)


def export_of(path: Path, first: int, last: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "a.sqlite", first, last)
        with Store(Path(folder) / "a.sqlite", "read") as store:
            write_export(path, store.rows())


def store_and_export(folder: Path) -> None:
    fill(folder / "s.sqlite", 0, 4)
    export_of(folder / "r.jsonl.gz", 3, 12)


def store_and_old_export(folder: Path) -> None:
    fill(folder / "s.sqlite", 0, 9)
    export_of(folder / "r.jsonl.gz", 0, 3)
    sidecar(folder / "r.jsonl.gz").write_text("[]\n")


def exported(folder: Path) -> Any:
    file = folder / "r.jsonl.gz"
    notes = json.loads(sidecar(file).read_text())
    if rows_of(folder / "s.sqlite") is None or not isinstance(notes, list):
        raise RuntimeError("the provenance is not whole")
    list(read_export(file))
    return gzip.decompress(file.read_bytes())


def damaged(folder: Path) -> None:
    fill(folder / "s.sqlite", 0, 6)
    with Store(folder / "s.sqlite") as store, store.transaction():
        store.db.execute("UPDATE runs SET test = test - 1 WHERE seed = 0")


def train(folder: Path) -> bool:
    with Store(folder / "s.sqlite") as store:
        return reproduce(SMALL, store, MadeUp).missing == 0


def take_on_network(folder: Path) -> bool:
    mounts = folder.with_name("mounts")
    mounts.write_text(f"1 1 0:1 / {folder} rw - nfs4 host:/x rw\n")
    locks.MOUNTS = mounts
    return propreg("store", "import", folder / "r.jsonl.gz", "--store", folder / "s.sqlite")


@dataclass(frozen=True)
class RunOf:
    """A run without a training."""

    about: str
    kept: tuple[Path, ...] = ()
    finished: bool = True

    @property
    def record(self) -> dict[str, Any]:
        return {"format": "propreg run", "version": 1, "about": self.about}

    @property
    def result(self) -> "RunOf":
        return self

    def runs(self) -> str:
        return self.about

    def predictions(self) -> str:
        return self.about

    def save(self, path: Path) -> None:
        write_safetensors(path, {"w": np.ones(3)}, {"about": self.about})


def write_run(folder: Path, about: str) -> bool:
    """As ``propreg run`` does, on the nodes of a graph or on molecules."""
    claimed = claim(folder / "run", replace=True)
    return claimed.finish(RunOf(about), lambda _: (about, {f"{about}.svg": about}), lambda _: None) == folder / "run"


def old_run(folder: Path) -> None:
    write_run(folder, "old")
    for place in ("run/notes.txt", "mine"):
        (folder / place).write_text("mine")


def run_of(folder: Path) -> Any:
    """What a run is about and how many of its files are there; raises if they are of two runs, or something is lost."""
    claim(folder / "run", replace=True).give_up()  # ends what a killed process began
    found = None
    for place in sorted(folder.glob("run*")):
        files = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()} - {"notes.txt"}
        if not files:
            continue
        about = str(read_record(place / "run.json")["about"])
        texts = {name: (place / name).read_text() for name in files - {"run.json", MODEL}}
        if MODEL in files:
            texts[MODEL] = read_safetensors(place / MODEL)[1]["about"]
        known = {"run.json", "runs.csv", PREDICTIONS, "index.html", MODEL, f"figures/{about}.svg"}
        if not files <= known or not {*texts.values()} <= {about}:
            raise RuntimeError(f"{place.name} holds {texts} of {about}")
        found = (about, len(files)) if place.name == "run" else found
    if (folder / "mine").exists() and (folder / "run" / "notes.txt").read_text() != "mine":
        raise RuntimeError("a file of the user's is gone")
    return found


def part_of_new(found: Any, old: Any, new: Any) -> bool:
    """If a write fails and there is no older run, what was written before is published."""
    return found in (old, new) or (old is None and bool(found[0] == new[0]))


def inside(act: Callable[[Path], T]) -> Callable[[Path], T]:
    """In the folder itself, which can then not be renamed."""

    def acting(folder: Path) -> T:
        os.chdir(folder / "run")
        try:
            return act(folder)
        finally:
            os.chdir(folder.parent)

    return acting


RESULTS = [
    Result(Replica(seed), 0.5, 0.25, 3, 4, None, {"loss": np.arange(4.0)}, {"w": torch.full((9,), float(seed))})
    for seed in range(5)
]


def kept_runs(folder: Path) -> KeptRuns:
    every = np.ones(3, bool)
    return KeptRuns(folder / "runs", {"settings": 1}, {"0": Split(every, ~every, ~every)})


def keep(folder: Path, results: list[Result]) -> bool:
    kept = kept_runs(folder)
    for result in results:
        kept.keep(result)
    return all(kept.find(result.replica) is not None for result in results)


def found_runs(folder: Path) -> Any:
    """The seeds of runs that are whole and right; a damaged one is an error."""
    kept, found = kept_runs(folder), set()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for result in RESULTS:
            run = kept.find(result.replica)
            if run is not None and (run != result or not torch.equal(run.weights["w"], result.weights["w"])):
                raise RuntimeError("another run was read")
            found |= set() if run is None else {run.replica.seed}
    return frozenset(found)


def subset(found: Any, old: Any, new: Any) -> bool:
    """A sweep stores run by run."""
    return bool(old <= found <= new)


SCENARIOS = {
    "import": Scenario(
        store_and_export,
        lambda folder: propreg("store", "import", folder / "r.jsonl.gz", "--store", folder / "s.sqlite"),
        lambda folder: rows_of(folder / "s.sqlite"),
    ),
    "import into a new store": Scenario(
        store_and_export,
        lambda folder: propreg("store", "import", folder / "r.jsonl.gz", "--store", folder / "new.sqlite"),
        lambda folder: rows_of(folder / "new.sqlite"),
    ),
    "import on a network": Scenario(store_and_export, take_on_network, lambda folder: rows_of(folder / "s.sqlite")),
    "export": Scenario(
        store_and_old_export,
        lambda folder: propreg("store", "export", folder / "r.jsonl.gz", "--store", folder / "s.sqlite"),
        exported,
    ),
    "sweep": Scenario(lambda _: None, train, lambda folder: rows_of(folder / "s.sqlite"), subset),
    "remove": Scenario(
        store_and_export,
        lambda folder: propreg("store", "remove", RUNS[1].key, "--store", folder / "s.sqlite"),
        lambda folder: rows_of(folder / "s.sqlite"),
    ),
    "salvage": Scenario(
        damaged,
        lambda folder: propreg("store", "salvage", folder / "s.sqlite", "--store", folder / "new.sqlite"),
        lambda folder: rows_of(folder / "new.sqlite"),
    ),
    "run folder": Scenario(lambda _: None, lambda folder: write_run(folder, "new"), run_of, part_of_new),
    "run folder that is replaced": Scenario(old_run, lambda folder: write_run(folder, "new"), run_of),
    "run folder that cannot be renamed": Scenario(
        old_run, inside(lambda folder: write_run(folder, "new")), inside(run_of)
    ),
    "kept runs": Scenario(
        lambda folder: keep(folder, RESULTS[:2]), lambda folder: keep(folder, RESULTS[1:]), found_runs, subset
    ),
}


def in_child(act: Callable[[], bool], report: Path) -> int:
    """The wait status of a process that acts."""
    child = os.fork()
    if child == 0:
        code = 9
        try:
            code = SUCCEEDED if act() else REFUSED
        except BaseException as error:
            sentence = type(error).__module__.startswith("propreg.") or (isinstance(error, OSError) and error.strerror)
            code = REFUSED if sentence else code
            if not sentence:
                report.write_text(repr(error))
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def sweep(name: str, kind: str) -> dict[str, Any]:
    """Meet each point of a scenario once; returns how many there are, and what broke."""
    scenario, library = SCENARIOS[name], ctypes.CDLL(None)
    broken, point, ends = list[str](), 0, {"succeeded": 0, "refused": 0, "killed": 0}
    with tempfile.TemporaryDirectory() as top:
        first, folder, report = Path(top) / "first", Path(top) / "here", Path(top) / "report"
        first.mkdir()
        scenario.prepare(first)
        old = scenario.state(first)
        shutil.copytree(first, folder)
        if not scenario.act(folder):
            raise RuntimeError(f"{name} fails without a fault")
        new = scenario.state(folder)
        while True:
            point += 1
            shutil.rmtree(folder)
            shutil.copytree(first, folder)

            def act(at: int = point) -> bool:
                library.faults_arm(str(folder).encode(), ctypes.c_long(at), KINDS[kind])
                try:
                    done = scenario.act(folder)
                finally:
                    reached = library.faults_calls() >= at
                    library.faults_disarm()
                    if not reached:
                        report.write_text("not reached")
                return done

            report.unlink(missing_ok=True)
            status = in_child(act, report)
            said = report.read_text() if report.exists() else ""
            if said == "not reached":
                break
            killed, code = os.WIFSIGNALED(status), os.waitstatus_to_exitcode(status)
            ends["killed" if killed else "succeeded" if code == SUCCEEDED else "refused"] += 1
            try:
                if said or (not killed and code not in (SUCCEEDED, REFUSED)):
                    raise RuntimeError(f"ended with {code}: {said}")
                found = scenario.state(folder)
                if not scenario.between(found, old, new):
                    raise RuntimeError("the state is neither the old nor the new one")
                if code == SUCCEEDED and found != new:
                    raise RuntimeError("it said that it succeeded, and did not")
                if name == "salvage":  # only into a store that is not there yet
                    (folder / "new.sqlite").unlink(missing_ok=True)
                if found != new or name == "salvage":
                    status = in_child(lambda: scenario.act(folder), report)
                    if status or scenario.state(folder) != new:
                        raise RuntimeError(f"the same again does not end in the new state ({status})")
            except Exception as error:
                broken.append(f"{name}, point {point}, {kind}: {error}")
    return {"points": point - 1, "ends": ends, "broken": broken}


if __name__ == "__main__":
    print(json.dumps(sweep(sys.argv[1], sys.argv[2])))
