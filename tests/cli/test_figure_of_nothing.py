"""``propreg figure`` without a run: no picture, and one sentence with the command that trains what it shows."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.export import write_export
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from study.sweeping import MadeUp, batches

STORE = "propreg-study.sqlite"
DRAWS = "trains them, and then propreg figure {} -o a.svg --results propreg-study.sqlite draws it.\n"


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of an experiment that no figure shows, as exports and as stores."""
    monkeypatch.chdir(tmp_path)
    Path("r").mkdir()
    with Store("r/a.sqlite") as store:
        reproduce(batches("digits-smoke")[:1], store, MadeUp)
        write_export(Path("r/runs.jsonl.gz"), store.rows())
    Path(STORE).write_bytes(Path("r/a.sqlite").read_bytes())


@pytest.mark.usefixtures("_here")
@pytest.mark.parametrize(
    ("name", "place", "says"),
    [
        ("fig-mask", "r", f"r has no run of fig-mask: propreg reproduce fig-mask {DRAWS.format('fig-mask')}"),
        (
            "overview",
            "r/runs.jsonl.gz",
            f"r/runs.jsonl.gz has no run of table1: propreg reproduce table1 {DRAWS.format('overview')}",
        ),
        (
            "table1",
            "r/a.sqlite",
            "r/a.sqlite has no run of table1: propreg reproduce table1 --store r/a.sqlite trains them.\n",
        ),
        ("table1", STORE, f"{STORE} has no run of table1: propreg reproduce table1 trains them.\n"),
        ("fig-tsne", "r", "r has no record of fig-tsne: propreg tsne -o r/tsne.json.gz trains and records it.\n"),
        (
            "fig-depth",
            "r",
            "r has no run of fig-depth with dataset=cora: propreg reproduce fig-depth --only dataset=cora "
            + DRAWS.format("fig-depth"),
        ),
    ],
)
def test_nothing_is_written_and_the_command_is_named(name: str, place: str, says: str) -> None:
    done = CliRunner().invoke(app, ["figure", name, "-o", "a.svg", "--results", place])
    assert (done.exit_code, done.stderr, done.stdout) == (1, says, "")
    assert not Path("a.svg").exists()


@pytest.mark.usefixtures("_here")
def test_another_dataset_of_the_figure_of_depth_is_named() -> None:
    for dataset, says in (("Photo", "--only dataset=photo trains"), ("all", "reproduce fig-depth trains")):
        done = CliRunner().invoke(app, ["figure", "fig-depth", "-o", "a.svg", "--results", "r", "--dataset", dataset])
        assert done.exit_code == 1
        assert says in done.stderr
