"""The record behind figure 3: t-SNE coordinates of a run's outputs, and numbers over seeds, as canonical JSON.

The same trainings give the same bytes: keys are sorted, coordinates have two decimals, there is neither time nor host.
Reading imports neither torch nor scikit-learn.
"""

import gzip
import json
import math
import zlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from propreg.data.errors import DataError
from propreg.data.formats.files import read_bytes
from propreg.jsonio import atomic_write, parse
from propreg.statistics import Runs
from propreg.store.errors import StudyError

FORMAT, VERSION = "propreg tsne", 1
LIMIT = 64_000_000  # bytes, unpacked: a record of all seven datasets would be far below
FILE = "tsne.json.gz"


@dataclass(frozen=True)
class RunMeasures:
    """Measurements of one run's outputs at the reported epoch; ``key`` is the run's."""

    seed: int
    key: str
    test: int
    test_of: int
    epoch: int
    silhouette: float
    omega: float
    length: float

    def value(self, name: str) -> float:
        """One of silhouette, omega, scale-free (ω over the mean length) and accuracy (in per cent)."""
        if name == "accuracy":
            return 100 * self.test / self.test_of
        return self.omega / self.length if name == "scale-free" else float(getattr(self, name))


@dataclass(frozen=True)
class Cloud:
    """One method: the coordinates of each node in the picture of the first seed, and the numbers of all seeds."""

    method: str
    strength: float
    xy: tuple[tuple[float, float], ...]
    runs: tuple[RunMeasures, ...]

    def over_seeds(self, name: str) -> Runs:
        """A number of all seeds, as one split [1, seeds]."""
        return np.array([[run.value(name) for run in self.runs]])


@dataclass(frozen=True)
class TsneRecord:
    """The whole record: ``labels`` are the nodes' classes, ``versions`` those of the packages that computed it."""

    dataset: str
    model: str
    split: int
    perplexity: float
    labels: tuple[int, ...]
    clouds: tuple[Cloud, ...]
    versions: dict[str, str]


def check_tsne_target(path: Path) -> None:
    """Raise before minutes of work if a record could not be written, or would overwrite another file.

    Raises:
        StudyError: If the folder is missing, or the file exists and is no t-SNE record.
    """
    if not path.parent.is_dir():
        raise StudyError(f"There is no folder {path.parent}: create it, or write elsewhere.")
    if path.is_dir():
        raise StudyError(f"{path} is a folder: name a file in it, for example {path / FILE}.")
    if path.exists():
        try:
            _parsed(path)
        except StudyError as error:
            raise StudyError(f"{path} was not written by propreg tsne and is kept: name another file.") from error


def write_tsne(path: Path, record: TsneRecord) -> None:
    """Write a record, whole or not at all; compressed where the name ends in ``.gz``."""
    value = {"format": FORMAT, "version": VERSION, **asdict(record)}
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode() + b"\n"
    with atomic_write(path) as file:
        file.write(gzip.compress(text, compresslevel=9, mtime=0) if path.suffix == ".gz" else text)


def find_tsne(places: Iterable[Path]) -> TsneRecord | None:
    """The record beside the runs, in the first of these folders or beside these files; None if there is none.

    Raises:
        StudyError: If it cannot be read.
    """
    files = ((place if place.is_dir() else place.parent) / FILE for place in places)
    file = next((file for file in files if file.is_file()), None)
    return None if file is None else read_tsne(file)


def read_tsne(path: Path) -> TsneRecord:
    """Read and check a record.

    Raises:
        StudyError: If the file cannot be read, is damaged, or is of a newer format.
    """
    value = _parsed(path)
    try:
        record = TsneRecord(
            dataset=_of(value["dataset"], str),
            model=_of(value["model"], str),
            split=_of(value["split"], int),
            perplexity=_real(value["perplexity"]),
            labels=tuple(_of(each, int) for each in _of(value["labels"], list)),
            clouds=tuple(_cloud(each) for each in _of(value["clouds"], list)),
            versions={_of(k, str): _of(v, str) for k, v in _of(value["versions"], dict).items()},
        )
        for cloud in record.clouds:
            if len(cloud.xy) != len(record.labels) or not cloud.runs:
                raise ValueError(f"{cloud.method} has {len(cloud.xy)} points for {len(record.labels)} labels")
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from error
    return record


def _parsed(path: Path) -> dict[str, Any]:
    try:
        raw = read_bytes(path, LIMIT)
        if raw[:2] == b"\x1f\x8b":
            unpack = zlib.decompressobj(wbits=31)
            raw = unpack.decompress(raw, LIMIT)
            if unpack.unconsumed_tail:
                raise StudyError(f"{path} unpacks to more than {LIMIT // 1_000_000} MB, which no t-SNE record does.")
            if not unpack.eof:
                raise _damaged(path, "it is truncated")
        value = parse(raw)
    except StudyError:
        raise
    except DataError as error:
        why = str(error).removeprefix(f"{path}: ").rstrip(".")
        raise StudyError(f"{path} cannot be read as a t-SNE record ({why}).") from error
    except (zlib.error, ValueError, RecursionError) as error:
        raise _damaged(path, error) from error
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise StudyError(f"{path} is not a t-SNE record: propreg tsne -o {path.name} makes one.")
    version = value.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise StudyError(
            f"{path} has format version {version}, this propreg knows versions up to {VERSION}: "
            "install the newer propreg that wrote it."
        )
    return value


def _damaged(path: Path, why: object) -> StudyError:
    return StudyError(f"{path} is damaged ({str(why)[:100]}): make it again with propreg tsne, or take a copy.")


def _cloud(value: Any) -> Cloud:
    pairs = [(_real(x), _real(y)) for x, y in _of(value["xy"], list)]
    runs = tuple(_numbers(each) for each in _of(value["runs"], list))
    return Cloud(_of(value["method"], str), _real(value["strength"]), tuple(pairs), runs)


def _numbers(value: Any) -> RunMeasures:
    seed, test, test_of, epoch = (_of(value[name], int) for name in ("seed", "test", "test_of", "epoch"))
    silhouette, omega, length = (_real(value[name]) for name in ("silhouette", "omega", "length"))
    if test_of < 1 or length <= 0:
        raise ValueError("a run was tested on no node, or its outputs have no length")
    return RunMeasures(seed, _of(value["key"], str), test, test_of, epoch, silhouette, omega, length)


def _of(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{str(value)[:40]!r} should be of type {kind.__name__}")
    return value


def _real(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{str(value)[:40]!r} should be a finite number")
    return float(value)
