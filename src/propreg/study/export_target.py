"""Where an export may be written: a new file, or one that was an export before; never over somebody's data."""

import gzip
import json
import shlex
import zlib
from collections.abc import Set
from pathlib import Path

from propreg.study.counting import Place
from propreg.study.errors import StudyError
from propreg.study.exported import HEAD
from propreg.study.files import BESIDE, ENDS, sidecar
from propreg.study.results import load_results

_OTHER = "name another file, for example runs.jsonl.gz"


def check_target(file: Path, store: Path) -> None:
    """Say before any work is done that something would be lost.

    Args:
        file: Where the runs would go.
        store: The store that they come from.

    Raises:
        StudyError: If it is the store, a folder, or a file that is no export; or if that holds of the file beside it.
    """
    if file.is_dir():
        raise StudyError(f"{file} is a folder: name a file in it, for example {file / 'runs.jsonl.gz'}.")
    if file.name.endswith(BESIDE):
        raise StudyError(f"{file} is a name for what lies beside an export: {_OTHER}.")
    if file.exists() and store.exists() and file.samefile(store):
        raise StudyError(f"{file} is the store itself: {_OTHER}.")
    beside = sidecar(file)
    for other in (file.with_name(beside.name.removesuffix(BESIDE) + end) for end in ENDS):
        if other.name != file.name and other.exists():
            raise StudyError(f"{other} has its provenance in {beside}, where that of {file} would go: {_OTHER}.")
    for target, is_ours in ((file, _is_export), (beside, _is_sidecar)):
        if target.exists() and not (target.is_file() and is_ours(target)):
            what = "" if target == file else f", and the provenance of {file} would be written there"
            raise StudyError(f"{target} was not written by propreg store export and stays{what}: {_OTHER}.")


def check_kept(file: Path, places: Set[Place]) -> None:
    """Refuse to write over an export that has runs of its own.

    Args:
        file: Where the runs would go.
        places: The runs that would be in it.

    Raises:
        StudyError: If it has others, or cannot be read.
    """
    if not file.exists():
        return
    lost = sum((text, split, seed) not in places for text, split, seed, *_ in load_results(file).runs())
    if lost:
        raise StudyError(
            f"{file} has {lost:,} runs that would be lost: propreg store import {shlex.quote(str(file))} takes them "
            "into the store first, or --replace lets them go."
        )


def _is_export(file: Path) -> bool:
    size = len(HEAD)
    with file.open("rb") as raw:
        if raw.read(size) == HEAD:
            return True
    try:
        with gzip.open(file) as packed:
            return packed.read(size) == HEAD
    except (OSError, EOFError, zlib.error):
        return False


def _is_sidecar(file: Path) -> bool:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, list) and all(isinstance(note, dict) for note in found)
