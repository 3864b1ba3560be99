"""Where a run goes: nothing that is there is touched, unless it holds a run and may be replaced."""

import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from counting import Inputs
from propreg.data.errors import DataError
from propreg.running.folder import Claim, claim, write_page, write_texts
from store_faults import RunOf

RECORD = {"format": "propreg run", "version": 1}


def written(wanted: Path, about: str = "", *, replace: bool = False, whole: bool = True) -> Claim:
    """A claimed folder whose draft holds a run."""
    claimed = claim(wanted, replace=replace)
    write_texts(claimed.draft, RECORD | {"about": about}, about)
    if whole:
        write_page(claimed.draft, about, {f"{about}.svg": "<svg/>"})
    return claimed


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_new_folder_is_made_when_the_run_is_whole(tmp_path: Path) -> None:
    wanted = tmp_path / "deep" / "run"
    claimed = written(wanted, "one")
    assert not wanted.exists()
    assert claimed.publish() == wanted
    assert files(tmp_path) == [f"deep/run/{name}" for name in ("figures/one.svg", "index.html", "run.json", "runs.csv")]
    given_up = claim(tmp_path / "deep" / "other")
    given_up.give_up()
    assert [path.name for path in wanted.parent.iterdir()] == ["run"]


@pytest.mark.parametrize("inside", [False, True])
def test_an_empty_folder_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, inside: bool) -> None:
    wanted = tmp_path / "run"
    wanted.mkdir()
    if inside:
        monkeypatch.chdir(wanted)
    for about in ("one", "two"):
        claimed = written(wanted, about, replace=about == "two")
        assert (claimed.draft.parent == wanted) == inside
        assert claimed.publish() == wanted
        assert files(tmp_path) == [
            f"run/{name}" for name in (f"figures/{about}.svg", "index.html", "run.json", "runs.csv")
        ]


def test_a_claimed_name_is_not_free(tmp_path: Path) -> None:
    first, second = claim(tmp_path / "run"), claim(tmp_path / "run")
    assert (first.folder, second.folder) == (tmp_path / "run", tmp_path / "run-2")
    with pytest.raises(DataError, match="another propreg run is writing it"):
        claim(tmp_path / "run", replace=True)
    first.give_up()
    assert claim(tmp_path / "run", replace=True).folder == tmp_path / "run"


MANY = """
import sys, time
from pathlib import Path
sys.path[:0] = {path!r}
from running.test_folder import written
for number in range(12):
    while time.time() < float(sys.argv[1]) + number / 5:
        pass
    claimed = written(Path(sys.argv[2]) / f"{{number}}", sys.argv[3])
    time.sleep(0.05)
    print(claimed.publish())
"""


def test_runs_at_the_same_time_have_a_folder_each(tmp_path: Path, inputs: Inputs) -> None:
    start = time.time() + 2
    script = MANY.format(path=sys.path)
    crew = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(start), str(tmp_path), who], stdout=subprocess.PIPE, text=True
        )
        for who in "abcd"
    ]
    folders = {who: process.communicate(timeout=60)[0].split() for who, process in zip("abcd", crew, strict=True)}
    assert [process.returncode for process in crew] == [0] * 4
    assert len({folder for each in folders.values() for folder in each}) == 48
    assert len(list(tmp_path.iterdir())) == 48, "nothing else is left"
    inputs(48)
    for who, each in folders.items():
        for folder in map(Path, each):
            assert files(folder) == [f"figures/{who}.svg", "index.html", "run.json", "runs.csv"]
            assert json.loads((folder / "run.json").read_text())["about"] == who
            assert (folder / "index.html").read_text() == (folder / "runs.csv").read_text() == who


KILLED = """
import os, sys
from pathlib import Path
sys.path[:0] = {path!r}
from running.test_folder import written
claimed, renames = written(Path(sys.argv[1]), "new", replace=sys.argv[2] != "draft"), []
def rename(self, target, rename=Path.rename):
    if len(renames) == int(sys.argv[2]):
        os._exit(9)
    renames.append(rename(self, target))
if sys.argv[2] == "draft":
    os._exit(9)
Path.rename = rename
claimed.publish()
"""


@pytest.mark.parametrize(("killed", "keeps"), [("draft", "old"), ("0", "old"), ("1", "old"), ("2", "new")])
def test_a_killed_run_leaves_the_old_one_or_the_new(tmp_path: Path, killed: str, keeps: str) -> None:
    folder = tmp_path / "run"
    written(folder, "old").publish()
    (folder / "notes.txt").write_text("mine")
    wanted = tmp_path / "next" if killed == "draft" else folder
    code = KILLED.format(path=sys.path)
    assert subprocess.run([sys.executable, "-c", code, str(wanted), killed], check=False).returncode == 9
    if killed == "draft":
        assert claim(wanted).folder == wanted
    else:
        claim(folder, replace=True).give_up()
        assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert files(folder) == [f"figures/{keeps}.svg", "index.html", "notes.txt", "run.json", "runs.csv"]
    assert (folder / "runs.csv").read_text() == keeps


def test_a_failed_write_keeps_the_old_run(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    written(folder, "old").publish()
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert claim(folder, replace=True).publish(whole=False) is None, "nothing was written"
    assert written(folder, "new", replace=True, whole=False).publish(whole=False) == tmp_path / "run-2"
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert files(tmp_path / "run-2") == ["run.json", "runs.csv"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run-2"]


def page_of(record: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    return record["about"], {"a.svg": "<svg/>"}


WHOLE = ["figures/a.svg", "index.html", "model.safetensors", "predictions.csv", "run.json", "runs.csv"]


@pytest.mark.parametrize("finished", [True, False])
def test_a_finished_run_needs_its_kept_trainings_no_more(tmp_path: Path, *, finished: bool) -> None:
    claimed, told = claim(tmp_path / "run"), list[Path | None]()
    kept = claimed.training / "mine"
    (claimed.training / "others").mkdir(parents=True)
    kept.mkdir()
    assert claimed.finish(RunOf("new", (kept,), finished), page_of, told.append) == tmp_path / "run"
    assert (files(tmp_path / "run"), told) == (WHOLE, [tmp_path / "run"])
    assert kept.exists() == (not finished)
    assert (claimed.training / "others").exists()


def test_a_page_that_cannot_be_made_loses_no_number(tmp_path: Path) -> None:
    def broken(_: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        raise RuntimeError("no page")

    claimed, told = claim(tmp_path / "run"), list[Path | None]()
    kept = claimed.training / "mine"
    kept.mkdir(parents=True)
    with pytest.raises(RuntimeError, match="no page"):
        claimed.finish(RunOf("new", (kept,)), broken, told.append)
    assert told == [tmp_path / "run"]
    assert files(tmp_path / "run") == ["model.safetensors", "predictions.csv", "run.json", "runs.csv"]
    assert kept.exists(), "the page can still be made from a resumed run"


def test_a_closed_pipe_loses_no_run(tmp_path: Path) -> None:
    def closed(_: Path | None) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        claim(tmp_path / "run").finish(RunOf("new"), page_of, closed)
    assert files(tmp_path / "run") == WHOLE


def test_a_rename_that_fails_puts_the_old_run_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    written(folder, "old").publish()
    claimed = written(folder, "new", replace=True)

    def failing(self: Path, target: Path, rename: Any = Path.rename) -> Path:
        if self == claimed.draft:
            raise OSError(28, "No space left on device")
        found: Path = rename(self, target)
        return found

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        claimed.publish()
    assert (folder / "runs.csv").read_text() == "old"


def test_a_folder_filled_meanwhile_is_left_alone(tmp_path: Path) -> None:
    claimed = written(tmp_path / "run", "one")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("mine")
    assert claimed.publish() == tmp_path / "run-2"
    assert files(tmp_path / "run") == ["thesis.tex"]


def test_of_a_link_the_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk" / "run")
    for about in ("old", "new"):
        assert written(tmp_path / "run", about, replace=True).publish() == tmp_path / "run"
        assert (tmp_path / "disk" / "run" / "runs.csv").read_text() == about
    assert (tmp_path / "run").is_symlink()


def test_a_folder_that_holds_something_gets_a_number(tmp_path: Path) -> None:
    wanted = tmp_path / "run"
    wanted.mkdir()
    (wanted / "thesis.tex").write_text("mine")
    first = claim(wanted)
    assert first.folder == tmp_path / "run-2"
    first.give_up()
    (tmp_path / "run-2").mkdir()
    (tmp_path / "run-2" / "x").touch()
    assert claim(wanted).folder == tmp_path / "run-3"
    assert (wanted / "thesis.tex").read_text() == "mine"


def test_a_file_of_that_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("mine")
    assert claim(tmp_path / "run").folder == tmp_path / "run-2"
    with pytest.raises(DataError, match="is not a folder"):
        claim(tmp_path / "run", replace=True)


def test_only_a_run_is_replaced_and_only_its_own_files(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    written(folder, "old").publish()
    (folder / "notes.txt").write_text("mine")
    (folder / "figures" / "mine.png").write_text("mine")
    assert written(folder, "new", replace=True, whole=False).publish() == folder
    assert files(folder) == ["figures/mine.png", "notes.txt", "run.json", "runs.csv"]
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
