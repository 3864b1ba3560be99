"""Where a run is written: a folder that is there is left alone, unless it holds a run and may be replaced."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from propreg.data._atomic import atomic_write
from propreg.data.errors import DataError
from propreg.running.record import read_record

DEFAULT = Path("propreg-run")
FILES = ("index.html", "runs.csv", "model.npz", "run.json")
FIGURES = "figures"


def claim(wanted: Path, *, replace: bool = False) -> Path:
    """Make the folder, so that nothing else takes its name and a full disk or a wrong path shows before the training.

    Args:
        wanted: The folder; where it exists and is not empty, the next free number is added to its name.
        replace: Take the folder itself; it must then be empty or hold a run.

    Raises:
        DataError: If it cannot be made, or ``replace`` would touch what propreg did not write.
    """
    try:
        for number in range(1, 10_000):
            folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
            if not folder.exists():
                folder.mkdir(parents=True)
                return folder
            if folder.is_dir() and not any(folder.iterdir()):
                return folder
            if replace:
                _must_be_a_run(folder)
                return folder
    except OSError as error:
        raise DataError(f"{wanted}: cannot be made: {error.strerror or error}; choose another with -o.") from error
    raise DataError(f"{wanted}: ten thousand runs of this name are there: choose another name with -o.")


def give_up(folder: Path) -> None:
    """Remove a folder that was claimed and stayed empty."""
    try:
        folder.rmdir()
    except OSError:
        return  # it holds an older run


def write_texts(folder: Path, record: Mapping[str, Any], runs: str) -> None:
    """The record and the runs. What an older run left is removed first: files of two runs must not lie side by side."""
    for name in FILES:
        (folder / name).unlink(missing_ok=True)
    for old in (folder / FIGURES).glob("*.svg"):
        old.unlink()
    _write(folder / "run.json", json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False) + "\n")
    _write(folder / "runs.csv", runs)


def write_page(folder: Path, page: str, figures: Mapping[str, str]) -> None:
    """The page and its figures."""
    (folder / FIGURES).mkdir(exist_ok=True)
    for name, svg in figures.items():
        _write(folder / FIGURES / name, svg)
    _write(folder / "index.html", page)


def _must_be_a_run(folder: Path) -> None:
    if not folder.is_dir():
        raise DataError(f"{folder}: is there and is no folder: choose another with -o.")
    try:
        read_record(folder / "run.json")
    except DataError as error:
        raise DataError(f"{folder}: holds something that propreg did not write: choose another folder.") from error


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
