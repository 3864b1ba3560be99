"""What broke a reader once, and some new damage to each kind of file; ``make fuzz`` goes on for longer."""

import sys
from pathlib import Path

import pytest

from counting import Inputs

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the limits of time and memory are those of Unix")
if sys.platform != "win32":
    from fuzz.harness import CORPUS, Reader, fuzz
    from fuzz.targets import TARGETS

FEW, MANY = 40, 1500
SLOW = {"run-record": 5}
"""Readers that take a tenth of a second: a page is made of what is read."""


def check(name: str, folder: Path, count: int, inputs: Inputs) -> None:
    reader = Reader(name, folder)
    found = fuzz(reader, count=count)
    inputs(found.inputs)
    assert [why for _, _, why in found.broken] == []
    assert found.refused > count // 4


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files(name: str, tmp_path: Path, inputs: Inputs) -> None:
    check(name, tmp_path, FEW // SLOW.get(name, 1), inputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_many_damaged_files(name: str, tmp_path: Path, inputs: Inputs) -> None:
    check(name, tmp_path, MANY // SLOW.get(name, 1), inputs)


def test_the_corpus_is_of_files_that_are_read() -> None:
    for folder in CORPUS.iterdir():
        assert folder.name in TARGETS
        assert all(path.is_file() for path in folder.glob("*/*"))


def test_the_harness_sees_what_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that accepts other content, one that raises anything, one that never ends."""
    reader = Reader("export", tmp_path)
    honest, (file,) = reader.read, reader.files
    monkeypatch.setattr("fuzz.harness.SECONDS", 0.2)

    def forever() -> None:
        while True:
            pass

    def fails() -> None:
        raise KeyError("x")

    for read, why in ((lambda: 5, "other content was accepted"), (fails, "KeyError"), (forever, "TooSlow")):
        reader.read = read
        assert why in reader.attempt(file, b"x")
    reader.read = honest
    assert reader.attempt(file, b"x") == ""
