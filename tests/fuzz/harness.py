"""Feeds damaged files to a reader, and says what broke."""

import resource
import signal
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from damaged_files import rewrite
from fuzz.targets import TARGETS, content
from propreg.data.errors import DataError
from propreg.store.errors import StudyError

CORPUS = Path(__file__).parent / "corpus"
SECONDS = 10.0
"""What no file of a few kilobytes may take; most take milliseconds."""
MEMORY = 1 << 30
LONGEST = 1000


class TooSlowError(BaseException):
    """A reader that does not end."""


@dataclass
class Found:
    """What became of the inputs of one target: read, refused in a sentence, or broken, with the inputs and reasons."""

    read: int = 0
    refused: int = 0
    broken: list[tuple[str, bytes, str]] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        """All of them."""
        return self.read + self.refused + len(self.broken)


class Reader:
    """One target with its honest files in a folder."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.target, self.found = name, TARGETS[name], Found()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.paths, self.read = self.target.make(folder)
            self.files = {path.name: path for path in self.paths}
            self.honest = {name: path.read_bytes() for name, path in self.files.items()}
            self.expected = content(self.read())

    def attempt(self, file: str, data: bytes) -> str:
        """Read ``data`` in place of an honest file; returns what broke, or nothing."""
        rewrite(self.files[file], data)
        why = ""
        try:
            with warnings.catch_warnings(), limits():
                warnings.simplefilter("ignore")
                value = self.read()
            if self.target.exact and content(value) != self.expected:
                why = "other content was accepted"
            self.found.read += not why
        except (DataError, StudyError) as error:
            text = str(error)
            why = "" if text.isprintable() and 0 < len(text) < LONGEST else f"no sentence: {ascii(text)[:200]}"
            self.found.refused += not why
        except (Exception, TooSlowError) as error:
            why = f"{type(error).__name__}: {ascii(str(error))[:200]}"
        finally:
            rewrite(self.files[file], self.honest[file])
        if why:
            self.found.broken.append((file, data, why))
        return why

    def corpus(self) -> Iterator[tuple[str, Path]]:
        """The files that broke something once, with the names that they stand in for."""
        for file in self.files:
            for path in sorted((CORPUS / self.name / file).glob("*")):
                yield file, path

    def mutate(self, number: int) -> tuple[str, bytes]:
        """The ``number``-th damaged file; equal numbers give equal bytes."""
        random = Random(zlib.crc32(self.name.encode()) + number)
        file = random.choice(sorted(self.files))
        data = self.honest[file]
        for _ in range(random.choice([1, 1, 1, 2, 4])):
            data = self._damaged(data, number, random) if data else data
        return file, data

    def _damaged(self, data: bytes, number: int, random: Random) -> bytes:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self.target.damages[number % len(self.target.damages)](data, random)
        except Exception:  # what is broken already need not be an archive any more
            return data[: random.randrange(len(data))]


@contextmanager
def limits() -> Iterator[None]:
    """End a reader that takes too long, and raise for one that takes too much memory."""

    def end(_: int, __: FrameType | None) -> None:
        raise TooSlowError(f"it takes more than {SECONDS:.0f} s")

    before, most = signal.signal(signal.SIGALRM, end), _most_memory()
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    if _most_memory() > most + MEMORY:
        raise MemoryError(f"it takes more than {MEMORY >> 20} MiB")


def _most_memory() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def fuzz(reader: Reader, *, count: int | None = None, seconds: float | None = None, first: int = 0) -> Found:
    """Try the corpus, then so many damaged files, or for so long."""
    for file, path in reader.corpus():
        reader.attempt(file, path.read_bytes())
    until, number = time.monotonic() + (seconds or 0), first
    while number < first + count if count is not None else time.monotonic() < until:
        reader.attempt(*reader.mutate(number))
        number += 1
    return reader.found


def keep(reader: Reader) -> list[Path]:
    """Put what broke into the corpus, where every test run tries it again."""
    written = []
    for file, data, _ in reader.found.broken:
        path = CORPUS / reader.name / file / f"{zlib.crc32(data):08x}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written.append(path)
    return written


def guided(reader: Reader, arguments: list[str]) -> None:
    """Let atheris, where it is installed, choose inputs by the code that they reach. It does not return."""
    import importlib

    atheris: Any = importlib.import_module("atheris")
    file = sorted(reader.files)[0]

    def one(data: bytes) -> None:
        if why := reader.attempt(file, data):
            raise RuntimeError(why)

    folder = CORPUS / reader.name / file
    folder.mkdir(parents=True, exist_ok=True)
    atheris.instrument_all()
    atheris.Setup([reader.name, *arguments, str(folder)], one)
    atheris.Fuzz()
