"""Where a run goes: nothing that is there is touched, unless it holds a run and may be replaced."""

from pathlib import Path

import pytest

from propreg.data.errors import DataError
from propreg.running.folder import claim, give_up, write_page, write_texts

RECORD = {"format": "propreg run", "version": 1}


def test_a_new_folder_is_made_and_an_empty_one_taken(tmp_path: Path) -> None:
    wanted = tmp_path / "deep" / "run"
    assert claim(wanted) == wanted
    assert wanted.is_dir()
    assert claim(wanted) == wanted, "it is empty"
    give_up(wanted)
    assert not wanted.exists()


def test_a_folder_that_holds_something_gets_a_number(tmp_path: Path) -> None:
    wanted = tmp_path / "run"
    wanted.mkdir()
    (wanted / "thesis.tex").write_text("mine")
    assert claim(wanted) == tmp_path / "run-2"
    (tmp_path / "run-2" / "x").touch()
    assert claim(wanted) == tmp_path / "run-3"
    assert (wanted / "thesis.tex").read_text() == "mine"
    give_up(wanted)
    assert wanted.is_dir(), "it is not empty"


def test_a_file_of_that_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    assert claim(tmp_path / "run") == tmp_path / "run-2"
    with pytest.raises(DataError, match="is no folder"):
        claim(tmp_path / "run", replace=True)


def test_only_a_run_is_replaced_and_only_its_own_files(tmp_path: Path) -> None:
    folder = claim(tmp_path / "run")
    write_texts(folder, RECORD, "old")
    write_page(folder, "<p>old", {"old.svg": "<svg/>"})
    (folder / "notes.txt").write_text("mine")
    assert claim(folder, replace=True) == folder
    write_texts(folder, RECORD, "new")
    assert sorted(p.name for p in folder.rglob("*") if p.is_file()) == ["notes.txt", "run.json", "runs.csv"]
    assert (folder / "runs.csv").read_text() == "new"
    other = tmp_path / "other"
    other.mkdir()
    (other / "run.json").write_text("{}")
    with pytest.raises(DataError, match="holds something that propreg did not write"):
        claim(other, replace=True)
    assert (other / "run.json").read_text() == "{}"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be made"):
        claim(tmp_path / "file" / "run")
