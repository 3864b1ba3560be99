"""The folder of a run: claimed by one process, written beside its place, and put there by one rename.

While a run trains, ``.NAME.claim`` lies beside its folder, locked, and ``.NAME.draft``, which becomes the folder. A
killed process leaves both: its lock is gone with it, and the next run of that name removes them. A folder that cannot
be renamed (a mount point, the current folder, one in a folder that is not writable) has them inside, and gets the
files one by one, the record last; after a kill in between, the next run of that name first moves the rest.

``.NAME.training``, in the same place, keeps finished trainings (see :mod:`propreg.fitting.kept`) until the run is
whole: what ``--resume`` goes on from after a kill, an error or Ctrl-C.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from propreg.data.errors import DataError
from propreg.jsonio import atomic_write
from propreg.running.record import read_record

MODEL = "model.safetensors"
RECORD, PAGE = "run.json", "index.html"
PREDICTIONS = "predictions.csv"
FILES = (RECORD, PAGE, "runs.csv", PREDICTIONS, MODEL)
FIGURES = "figures"
_INSIDE = ".propreg"
_LIST = ".files"


class Saved(Protocol):
    """A trained result."""

    @property
    def finished(self) -> bool: ...
    def save(self, path: Path, /) -> None: ...


class Written(Protocol):
    """What the files of a run are made of: the comparison on a graph's nodes, or on molecules."""

    @property
    def record(self) -> Mapping[str, Any]: ...
    @property
    def result(self) -> Saved: ...
    @property
    def kept(self) -> tuple[Path, ...]: ...
    def runs(self) -> str: ...
    def predictions(self) -> str: ...


@dataclass(frozen=True)
class Claim:
    """A folder's name that this process alone may use, until :meth:`publish` or :meth:`give_up`.

    Attributes:
        folder: The folder, as it was asked for.
        draft: Where the run is written.
    """

    folder: Path
    draft: Path
    _real: Path
    _file: Path
    _handle: int

    def finish(
        self,
        run: Written,
        page: Callable[[Mapping[str, Any]], tuple[str, Mapping[str, str]]],
        tell: Callable[[Path | None], None],
    ) -> Path | None:
        """Write a run, put it in its place, and end the claim.

        Args:
            run: The comparison.
            page: Makes the page and its figures of the record. Numbers and model are written first: a page that cannot
                be made must not lose them.
            tell: Called with the folder, or None, even if writing failed: a closed pipe must not lose the trained
                model, nor a full disk the printed result.

        Returns:
            As :meth:`publish`. Of a run that is finished the kept trainings are removed.
        """
        folder, whole = None, False
        try:
            try:
                write_texts(self.draft, run.record, run.runs(), run.predictions())
                run.result.save(self.draft / MODEL)
                write_page(self.draft, *page(run.record))
                whole = True
            finally:
                folder = self.publish(whole=whole)
            for kept in run.kept if run.result.finished else ():
                self.forget(kept)
        finally:
            tell(folder)
        return folder

    def publish(self, *, whole: bool = True) -> Path | None:
        """Put the draft in its place, and end the claim.

        Args:
            whole: False if writing failed: the files written so far are kept, but never replace an older run.

        Returns:
            The folder; another one if the claimed one must stay as it is; None if the draft holds no record.
        """
        if not (self.draft / RECORD).exists():
            self.give_up()
            return None
        with _sentence(self.folder, "cannot be written"):
            try:
                if not _is_free(self._real) and not (whole and _holds_a_run(self._real)):
                    return self._elsewhere()
                if self._inside:
                    self._move_files()
                elif _is_free(self._real):
                    with suppress(FileNotFoundError):
                        self._real.rmdir()
                    self.draft.rename(self._real)
                else:
                    self._swap()
            finally:
                self._release()
        return self.folder

    @property
    def training(self) -> Path:
        """The folder that keeps finished trainings."""
        return self._file.with_suffix(".training")

    def forget(self, kept: Path) -> None:
        """Remove the trainings of a run that is whole; those of other settings stay."""
        shutil.rmtree(kept, ignore_errors=True)
        with suppress(OSError):  # others are there, or none ever was
            self.training.rmdir()

    def give_up(self) -> None:
        """Remove the draft, and end the claim."""
        shutil.rmtree(self.draft, ignore_errors=True)
        self._release()

    @property
    def _inside(self) -> bool:
        return self._file.parent == self._real

    @property
    def _old(self) -> Path:
        return self.draft.with_suffix(".old")

    def _elsewhere(self) -> Path | None:
        other = claim(self.folder)
        other.draft.rmdir()
        shutil.move(self.draft, other.draft)
        return other.publish()

    def _swap(self) -> None:
        """Two renames, and back if the second fails; after a kill between them the next claim puts the old run back."""
        self._real.rename(self._old)
        try:
            self.draft.rename(self._real)
        except BaseException:
            self._old.rename(self._real)
            raise
        self._drop_old()

    def _drop_old(self) -> None:
        """Remove the run that was replaced, but nothing that propreg did not write."""
        _remove_run(self._old)
        for kept in self._old.iterdir():
            inside = self._real / kept.name
            for each in kept.iterdir() if kept.name == FIGURES and inside.is_dir() else [kept]:
                each.rename(inside / each.name if each != kept else inside)
        shutil.rmtree(self._old)

    @property
    def _ready(self) -> Path:
        return self.draft.with_suffix(".ready")

    def _move_files(self) -> None:
        paths = [path.relative_to(self.draft).as_posix() for path in self.draft.rglob("*") if path.is_file()]
        _write(self.draft / _LIST, json.dumps(paths))
        self.draft.rename(self._ready)  # from here on the new run is certain
        self._end_moving()

    def _end_moving(self) -> None:
        """Move the files that are still in the ready folder, and remove those of the old run."""
        names = json.loads((self._ready / _LIST).read_text(encoding="utf-8"))
        (self._real / FIGURES).mkdir(exist_ok=True)
        for name in sorted(names, key=lambda name: name == RECORD):
            if (self._ready / name).exists():
                (self._ready / name).replace(self._real / name)
        _remove_run(self._real, keep=names)
        with suppress(OSError):
            (self._real / FIGURES).rmdir()  # if the run has none
        shutil.rmtree(self._ready)

    def _recover(self) -> None:
        """End what a killed process began."""
        shutil.rmtree(self.draft, ignore_errors=True)
        if (self._ready / _LIST).exists():
            self._end_moving()
        shutil.rmtree(self._ready, ignore_errors=True)
        if self._old.exists():
            if self._real.exists():
                self._drop_old()
            else:
                self._old.rename(self._real)

    def _release(self) -> None:
        with suppress(OSError):
            self._file.unlink()
        with suppress(OSError):
            os.close(self._handle)


def claim(wanted: Path, *, replace: bool = False) -> Claim:
    """Claim a folder before the training: no other run takes its name, and a wrong path shows early.

    Args:
        wanted: The folder; if it exists and is not empty, or another run writes it, a number is added to its name.
        replace: Use the folder itself; it must then be empty or hold a run, which stays until the new one is written.

    Raises:
        DataError: If it cannot be made, another process writes it, or ``replace`` would overwrite what propreg did not
            write.
    """
    with _sentence(wanted, "cannot be made"):
        for number in range(1, 10_000):
            named = wanted if wanted.name else wanted.resolve()
            folder = wanted if number == 1 else named.with_name(f"{named.name}-{number}")
            claimed = _claimed(folder, replace=replace)
            if claimed is not None:
                return claimed
    raise DataError(f"{wanted}: ten thousand runs have this name: choose another name with -o.")


def claim_again(wanted: Path) -> Claim:
    """Claim the folder of a run that was interrupted or killed; what it has written there is replaced at the end.

    Raises:
        DataError: If it holds a run that is finished, another process writes it, or no training is kept.
    """
    whole = all((wanted / name).exists() for name in (RECORD, PAGE))
    if whole and read_record(wanted / RECORD).get("finished") is not False:
        raise DataError(f"{wanted}: holds a run that is finished: leave --resume out, or name another one with -o.")
    claimed = claim(wanted, replace=True)
    if any(claimed.training.glob("*/*")):
        return claimed
    claimed.give_up()
    others = sorted(claimed.training.parent.glob(f"{claimed.training.stem}-*.training"))
    names = " or ".join(f"-o {wanted.with_name(other.stem.removeprefix('.'))}" for other in others)
    fix = f"name its folder, {names}" if others else "leave --resume out"
    raise DataError(f"{wanted}: no finished training is kept for it, so there is nothing to resume: {fix}.")


def write_texts(folder: Path, record: Mapping[str, Any], runs: str, predictions: str = "") -> None:
    """Write the record, the runs and the predictions."""
    _write(folder / RECORD, json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
    _write(folder / "runs.csv", runs)
    if predictions:
        _write(folder / PREDICTIONS, predictions)


def write_page(folder: Path, page: str, figures: Mapping[str, str]) -> None:
    """Write the page and its figures."""
    (folder / FIGURES).mkdir(exist_ok=True)
    for name, svg in figures.items():
        _write(folder / FIGURES / name, svg)
    _write(folder / PAGE, page)


def _claimed(folder: Path, *, replace: bool) -> Claim | None:
    """The folder, claimed; None if it is in use."""
    real = folder.resolve()  # of a link the target is replaced, not the link
    if not _is_free(real):
        if not replace:
            return None
        _must_be_a_run(real, folder)
    with suppress(FileExistsError):  # if it is no folder, what follows says so
        real.parent.mkdir(parents=True, exist_ok=True)
    inside = real.is_dir() and (real.is_mount() or real == Path.cwd() or not os.access(real.parent, os.W_OK))
    place, name = (real, _INSIDE) if inside else (real.parent, f".{real.name}")
    handle = _lock(place / f"{name}.claim")
    if handle is None:
        if replace:
            raise DataError(f"{folder}: another propreg run is writing it: let it finish, or choose another with -o.")
        return None
    claimed = Claim(folder, place / f"{name}.draft", real, place / f"{name}.claim", handle)
    try:
        claimed._recover()
        if not _is_free(real):  # another run may have finished since
            if not replace:
                claimed._release()
                return None
            _must_be_a_run(real, folder)
        claimed.draft.mkdir()
    except BaseException:
        claimed.give_up()
        raise
    return claimed


def _lock(file: Path) -> int | None:
    """A descriptor of the file, locked until it is closed or the process ends; None if another one has it."""
    while True:
        made = True
        try:
            handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            made = False
            try:
                handle = os.open(file, os.O_RDWR)
            except FileNotFoundError:
                continue  # released in between
        locked = _locked(handle)
        if locked is None and made:
            return handle  # the file alone is the lock, and a killed process leaves it
        with suppress(FileNotFoundError):
            if locked and os.path.samestat(os.fstat(handle), file.stat()):
                return handle
        os.close(handle)
        if not locked:
            return None


def _locked(handle: int) -> bool | None:
    """Whether the file is now locked; None where files cannot be."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_free(folder: Path) -> bool:
    if not folder.exists():
        return True
    return folder.is_dir() and all(path.name.startswith(f"{_INSIDE}.") for path in folder.iterdir())


def _holds_a_run(folder: Path) -> bool:
    with suppress(DataError):
        read_record(folder / RECORD)
        return True
    return False


def _must_be_a_run(folder: Path, name: Path) -> None:
    if not folder.is_dir():
        raise DataError(f"{name}: is not a folder: choose another with -o.")
    if not _holds_a_run(folder):
        raise DataError(f"{name}: holds something that propreg did not write: choose another folder.")


def _remove_run(folder: Path, keep: Collection[str] = ()) -> None:
    """Remove the files of a run, the record first: what is left is then no run."""
    for name in FILES:
        if name not in keep:
            (folder / name).unlink(missing_ok=True)
    for old in (folder / FIGURES).glob("*.svg"):
        if old.relative_to(folder).as_posix() not in keep:
            old.unlink()
    with suppress(OSError):
        (folder / FIGURES).rmdir()  # if nothing else is in it


@contextmanager
def _sentence(folder: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(f"{folder}: {what}: {error.strerror or error}; choose another with -o.") from error


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
