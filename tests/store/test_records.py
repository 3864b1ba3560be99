"""Which record is read, the folder of exports or the store, by every command that reads one."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.errors import StudyError
from propreg.store.export import write_export
from propreg.store.progress import find_records, need_records, read_recorded
from propreg.store.run import Run
from propreg.store.store import Store
from propreg.study.figures.tsne_record import find_tsne
from propreg.study.spec.experiment import load_experiment
from study.sweeping import batches, fill

RUNS = [run for batch in batches() for run in batch.runs]
EXPERIMENTS = [load_experiment("digits-smoke")]
Here = Callable[[Sequence[Run], Sequence[Run]], None]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """A folder with these runs exported and those in a store."""
    monkeypatch.chdir(tmp_path)

    def make(exported: Sequence[Run], stored: Sequence[Run]) -> None:
        fill(Path("temporary.sqlite"), exported)
        Path("results").mkdir()
        with Store("temporary.sqlite", "read") as store:
            write_export(Path("results/runs.jsonl.gz"), store.rows())
        fill(Path("propreg-study.sqlite"), stored)

    return make


def usual() -> list[Path]:
    return need_records(None, Path("results"), Path("propreg-study.sqlite"))


@pytest.mark.parametrize(
    ("exported", "stored", "read", "remark"),
    [
        (RUNS, RUNS, "results", ""),
        (RUNS[:5], [], "results", ""),
        (RUNS[:5], RUNS[:5], "results", ""),
        (RUNS[:5], RUNS[:4], "results", "which has 5 of these 200 runs; propreg-study.sqlite has 4"),
        (RUNS[:5], RUNS[:6], "propreg-study.sqlite", "Read from propreg-study.sqlite, which has 6 of these 200 runs"),
        ([], RUNS[:1], "propreg-study.sqlite", ""),
    ],
)
def test_the_store_is_read_where_it_has_more(
    here: Here, exported: list[Run], stored: list[Run], read: str, remark: str
) -> None:
    here(exported, stored)
    found = read_recorded(EXPERIMENTS, usual())
    assert found.path == Path(read)
    assert len(found.results) == max(len(exported), len(stored))
    assert remark in found.remark
    assert bool(found.remark) == bool(remark)
    assert {found.path, found.other} == {Path("results"), Path("propreg-study.sqlite")}
    assert found.paths == [found.path, found.other]


def test_only_the_runs_that_are_asked_for_count(here: Here) -> None:
    """A store with another experiment's runs is no reason to leave the folder."""
    here(RUNS[:5], [])
    fill(Path("propreg-study.sqlite"), batches("fig-tsne")[0].runs[:20])
    assert read_recorded(EXPERIMENTS, usual()).path == Path("results")
    assert read_recorded([load_experiment("fig-tsne")], usual()).path == Path("propreg-study.sqlite")


def test_what_is_named_is_read_and_nothing_else(here: Here) -> None:
    here(RUNS[:5], RUNS)
    assert find_records(Path("mine"), Path("results"), Path("propreg-study.sqlite")) == [Path("mine")]
    found = read_recorded(EXPERIMENTS, need_records(Path("results"), Path("results"), Path("propreg-study.sqlite")))
    assert (found.path, len(found.results), found.remark) == (Path("results"), 5, "")


def test_a_folder_of_that_name_without_exports_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()
    Path("results/mine.csv").touch()
    with pytest.raises(StudyError, match="neither a folder results/ with exported runs"):
        usual()
    fill(Path("propreg-study.sqlite"), RUNS[:1])
    assert usual() == [Path("propreg-study.sqlite")]


def test_a_store_that_cannot_be_read_is_told_and_left_out(here: Here) -> None:
    here(RUNS[:5], [])
    Path("propreg-study.sqlite").write_bytes(b"something else, long enough for a header" * 100)
    found = read_recorded(EXPERIMENTS, usual())
    assert (found.path, len(found.results)) == (Path("results"), 5)
    assert found.remark.startswith(
        "Read from results/. The store beside it was left out: propreg-study.sqlite is damaged"
    )
    with pytest.raises(StudyError, match="damaged"):
        read_recorded(EXPERIMENTS, [Path("propreg-study.sqlite")])


def test_commands_say_which_they_read(here: Here) -> None:
    here(RUNS[:5], RUNS[:7])
    says = "Read from propreg-study.sqlite, which has 7 of these 200 runs; results/ has 5: --results results reads"
    table = CliRunner().invoke(app, ["table", "digits-smoke"])
    assert (table.exit_code, len(table.stderr.splitlines())) == (0, 1)
    assert table.stderr.startswith(says)
    status = CliRunner().invoke(app, ["status", "digits-smoke"])
    assert (status.exit_code, status.stderr) == (0, "")
    assert status.stdout.splitlines()[-1].startswith(says)
    both = CliRunner().invoke(app, ["status", "digits-smoke", "--store", "a.sqlite", "--results", "results"])
    assert (both.exit_code, both.stdout) == (2, "")
    assert "--results and --store both name the record to read" in both.stderr


def test_as_many_runs_but_others_are_told_too(here: Here) -> None:
    """Each has what the other lacks: what is named to go on takes the folder's into the store first."""
    here(RUNS[:5], RUNS[5:10])
    found = read_recorded(EXPERIMENTS, usual())
    assert (found.path, found.behind) == (Path("results"), True)
    assert "propreg-study.sqlite has 5: --results" in found.remark
    said = CliRunner().invoke(app, ["status", "digits-smoke", "--only", "model=gcn", "--seeds", "0-1"]).stdout
    assert said.splitlines()[-1].endswith(
        "To go on from it: propreg store import results/runs.jsonl.gz, then propreg reproduce digits-smoke --only "
        "model=gcn --seeds 0-1."
    )


def test_a_whole_record_says_that_there_is_a_store_of_yours(here: Here) -> None:
    here(RUNS, RUNS[:5])
    assert read_recorded(EXPERIMENTS, usual()).remark == (
        "Read from results/, which has 200 of these 200 runs; propreg-study.sqlite has 5: "
        "--results propreg-study.sqlite reads the other."
    )


def test_reproduce_says_that_runs_are_recorded_already(here: Here) -> None:
    here(RUNS[:7], RUNS[:5])
    only = ["--only", "model=mlp-16,method=plain", "--device", "cpu"]
    done = CliRunner().invoke(app, ["reproduce", "digits-smoke", *only])
    assert done.exit_code == 0
    assert "so they are trained again" not in done.stderr, "none of those is asked for"
    Path("propreg-study.sqlite").unlink()
    asked = sum(run.cell.model.name == "gcn" for run in RUNS[:7])
    limit = ["--only", "model=gcn", "--device", "cpu", "--time-limit", "0.001s"]
    done = CliRunner().invoke(app, ["reproduce", "digits-smoke", *limit])
    assert asked > 0
    assert f"results/ has {asked} of these runs, but propreg-study.sqlite does not, " in done.stderr
    assert "stop and run propreg store import results/runs.jsonl.gz first." in done.stderr


def test_what_belongs_to_the_folder_is_found_when_the_store_is_read(here: Here) -> None:
    here(RUNS[:5], RUNS[:6])
    reading = read_recorded(EXPERIMENTS, usual())
    assert find_tsne(reading.paths) is None
    Path("results/tsne.json.gz").write_bytes(b"no record")
    with pytest.raises(StudyError, match=r"tsne\.json\.gz"):
        find_tsne(reading.paths)
    assert find_tsne([Path("propreg-study.sqlite")]) is None


def test_rerun_says_where_it_found_the_run(here: Here) -> None:
    here(RUNS[:5], RUNS[:6])
    again = CliRunner().invoke(app, ["rerun", RUNS[5].key[:20], "--alone", "--device", "cpu"])
    assert again.stderr.splitlines()[0] == "The run is recorded in propreg-study.sqlite."
    again = CliRunner().invoke(app, ["rerun", RUNS[4].key[:20], "--alone", "--device", "cpu"])
    assert again.stderr.splitlines()[0] == "The run is recorded in results."
