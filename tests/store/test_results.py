"""Runs are read when someone asks for their cell: what is damaged must be told all the same."""

import json
from pathlib import Path

import pytest

from hand_written import write_lines
from propreg.store.errors import StudyError
from propreg.store.export import export_files
from propreg.store.results import load_results
from propreg.store.run import Cell, Run

CELL = Cell("digits", "0" * 64)
ROW = [0, 0, 90, 100, 800, 1000, 12, 40, None, None, "b"]


def line(runs: str, cell: str = CELL.text) -> tuple[str, str]:
    return cell, runs


def test_a_cell_in_two_files_is_one(tmp_path: Path) -> None:
    """Equal results of a run are fine, whichever batch they were trained in."""
    write_lines(tmp_path / "a.jsonl", line(json.dumps([ROW])))
    write_lines(tmp_path / "b.jsonl", line(json.dumps([[*ROW[:-1], "c"], [0, 1, 1, *ROW[3:]]])))
    results = load_results(tmp_path)
    assert len(results) == 2
    first, second = results.outcome(CELL, 0, 0), results.outcome(CELL, 0, 1)
    assert first is not None
    assert second is not None
    assert (first.val, second.val) == (90, 1)


@pytest.mark.parametrize("changed", range(2, 10), ids=lambda column: f"column {column}")
def test_two_results_of_a_run_are_told_whenever_its_cell_is_asked_for(tmp_path: Path, changed: int) -> None:
    other = [*ROW]
    other[changed] = '{"omega":1}' if changed == 9 else {3: 101, 5: 1001}.get(changed, 13)
    write_lines(tmp_path / "a.jsonl", line(json.dumps([ROW])))
    write_lines(tmp_path / "b.jsonl", line(json.dumps([[0, 1, *ROW[2:]], other])))
    quiet = Cell("digits", "1" * 64)
    write_lines(tmp_path / "c.jsonl", line(json.dumps([ROW]), quiet.text))
    results = load_results(tmp_path)
    assert results.outcome(quiet, 0, 0) is not None, "a cell that nobody asked for stops nothing"
    for _ in range(2):
        with pytest.raises(StudyError, match=r"a.jsonl and .*b.jsonl have two different results of run") as caught:
            results.outcome(CELL, 0, 0)
        assert Run(CELL, 0, 0).key[:16] in str(caught.value)


def test_two_results_of_a_run_in_one_file_are_told(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", line(json.dumps([ROW, [0, 0, 1, *ROW[3:]]])))
    with pytest.raises(StudyError, match=r"a.jsonl has two different results of run"):
        len(load_results(path))


def test_spaces_in_a_cell_do_not_lose_it(tmp_path: Path) -> None:
    spaced = json.dumps(json.loads(CELL.text))
    assert spaced != CELL.text
    assert (
        load_results(write_lines(tmp_path / "a.jsonl", line(json.dumps([ROW]), spaced))).outcome(CELL, 0, 0) is not None
    )


@pytest.mark.parametrize("cell", ['{"dataset";"digits"}', '{"dataset":"digits"', ""])
def test_a_damaged_cell_is_told_at_once(cell: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", line(json.dumps([ROW]), cell))
    with pytest.raises(StudyError, match="damaged"):
        load_results(path)


@pytest.mark.parametrize(
    "runs", ["null", "5", "[[0]]", "[0]", "{}", "[[0,0,", "[" * 100_000, f"[[{'9' * 5000}]]"], ids=lambda text: text[:8]
)
def test_damaged_runs_are_told_whenever_they_are_asked_for(runs: str, tmp_path: Path) -> None:
    results = load_results(write_lines(tmp_path / "a.jsonl", line(runs)))
    for _ in range(2):
        with pytest.raises(StudyError, match="damaged"):
            results.outcome(CELL, 0, 0)


def test_hidden_files_and_copies_are_no_exports(tmp_path: Path) -> None:
    """A kill while an export is written leaves the first of them, some systems make the second."""
    whole = [write_lines(tmp_path / name, line(json.dumps([ROW]))) for name in ("b.jsonl.gz", "a.jsonl")]
    for name in (".runs.jsonl.gz.0123456789ab.tmp", "._a.jsonl", ".a.jsonl.gz", "a.jsonl~", "a.jsonl.orig"):
        (tmp_path / name).write_bytes(b"\x00\x05\x16\x07 half of it")
    assert export_files(tmp_path) == sorted(whole)
    assert len(load_results(tmp_path)) == 1
    assert export_files(tmp_path / "nowhere") == []
