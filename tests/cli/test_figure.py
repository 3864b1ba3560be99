"""``propreg figure`` and ``propreg tsne``: files, captions, one sentence for what a user can mend, light imports."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.export import write_export
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.figures.tsne_record import write_tsne
from study.figures.test_tsne import made_up_record
from study.sweeping import MadeUp, batches

runner = CliRunner()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of exports with made-up runs of one figure."""
    folder = tmp_path_factory.mktemp("results")
    with Store(folder / "store.sqlite") as store:
        reproduce(batches("fig-training-nodes"), store, MadeUp)
        write_export(folder / "runs.jsonl.gz", store.rows())
    return folder


def begun(path: Path, *names: str) -> Path:
    """A store with one run of each experiment."""
    with Store(path) as store:
        session = store.begin_session({})
        for name in names:
            store.add(next(MadeUp().train(batches(name)[0], lambda: False)), session)
    return path


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_a_figure_is_written_and_its_caption_printed(results: Path, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"a.{suffix}"
    done = runner.invoke(app, ["figure", "fig-training-nodes", "-o", str(file), "--results", str(results)])
    assert done.exit_code == 0, done.output
    assert file.stat().st_size > 5000
    assert done.stdout.startswith("Test accuracy on Cora against the number of training nodes (35 to 1,200)")
    assert "Missing" not in done.stdout


def test_the_same_from_a_store_and_from_a_folder(results: Path, tmp_path: Path) -> None:
    for name, place in (("a", results), ("b", results / "store.sqlite"), ("c", results / "runs.jsonl.gz")):
        arguments = ["figure", "fig-training-nodes", "-o", str(tmp_path / f"{name}.svg"), "--results", str(place)]
        assert runner.invoke(app, arguments).exit_code == 0
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_what_is_missing_is_printed(tmp_path: Path) -> None:
    """Also where one run of thousands is there."""
    file, store = tmp_path / "a.svg", begun(tmp_path / "a.sqlite", "fig-mask")
    done = runner.invoke(app, ["figure", "fig-mask", "-o", str(file), "--results", str(store)])
    assert done.exit_code == 0, done.output
    assert "GAT: 0 of 1,925 runs recorded" in done.stdout
    assert file.stat().st_size > 5000


def test_outputs_lie_with_the_runs(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "runs.jsonl.gz").write_bytes((results / "runs.jsonl.gz").read_bytes())
    arguments = ["figure", "fig-tsne", "-o", str(tmp_path / "a.svg"), "--results"]
    alone = runner.invoke(app, [*arguments, str(begun(tmp_path / "a.sqlite", "fig-tsne"))])
    assert "the record of outputs is missing" in alone.stdout
    write_tsne(folder / "tsne.json.gz", made_up_record())
    for place in (folder, folder / "runs.jsonl.gz"):
        done = runner.invoke(app, [*arguments, str(place)])
        assert done.exit_code == 0, done.output
        assert re.search(r"GCN +0\.01 ", done.stdout)
    (folder / "tsne.json.gz").write_bytes(b"\x1f\x8b broken")
    done = runner.invoke(app, [*arguments, str(folder)])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "tsne.json.gz is damaged" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fig-3", "-o", "a.svg"], "There is no figure 'fig-3'."),
        (["table1", "-o", "none/a.svg"], "There is no folder none: create it"),
        (["table1", "-o", "a.svg", "--results", "nowhere"], "There are no results at nowhere"),
        (["fig-mask", "-o", "a.svg", "--dataset", "cora", "--results", "."], "holds no exported runs"),
    ],
)
def test_one_sentence_and_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = runner.invoke(app, ["figure", *arguments])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1), done.output
    assert says in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_wrong_suffix_is_a_wrong_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = runner.invoke(app, ["figure", "table1", "-o", "a.gif"])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "A figure's file ends in .svg, .png or .pdf, got '.gif'." in done.stderr


def test_a_dataset_belongs_to_the_figure_of_depth(results: Path, tmp_path: Path) -> None:
    arguments = ["-o", str(tmp_path / "a.svg"), "--results", str(results), "--dataset"]
    assert "Only fig-depth takes a dataset" in runner.invoke(app, ["figure", "fig-mask", *arguments, "cora"]).stderr
    assert "no dataset of fig-depth 'coral'" in runner.invoke(app, ["figure", "fig-depth", *arguments, "coral"]).stderr
    assert "with dataset=photo" in runner.invoke(app, ["figure", "fig-depth", *arguments, "photo"]).stderr
    assert not list(tmp_path.iterdir())


def test_tsne_says_where_it_cannot_write_before_it_trains(tmp_path: Path) -> None:
    done = runner.invoke(app, ["tsne", "-o", str(tmp_path / "none" / "a.json.gz"), "--device", "cpu"])
    assert done.exit_code == 1
    assert "There is no folder" in done.stderr
    (tmp_path / "runs.jsonl.gz").write_bytes(b"precious")
    for name, says in (
        ("runs.jsonl.gz", "was not written by propreg tsne and is kept"),
        ("", "is a folder: name"),
    ):
        done = runner.invoke(app, ["tsne", "-o", str(tmp_path / name), "--device", "cpu"])
        assert (done.exit_code, says in done.stderr) == (1, True)
    assert (tmp_path / "runs.jsonl.gz").read_bytes() == b"precious"


def _modules(code: str) -> set[str]:
    out = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    ).stdout
    return set(out.splitlines()[-1].split())


def test_a_figure_imports_neither_torch_nor_scipy(results: Path, tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "runs.jsonl.gz").write_bytes((results / "runs.jsonl.gz").read_bytes())
    with Store(begun(tmp_path / "a.sqlite", "table1", "fig-mask", "fig-strength", "fig-depth"), "read") as store:
        write_export(tmp_path / "r" / "more.jsonl.gz", store.rows())
    write_tsne(tmp_path / "r" / "tsne.json.gz", made_up_record())
    code = f"""
from typer.testing import CliRunner
from propreg.cli.app import app
from propreg.study.figures.build import figure_names
for name in figure_names():
    arguments = ["figure", name, "-o", {str(tmp_path / "a.svg")!r}, "--results", {str(tmp_path / "r")!r}]
    assert CliRunner().invoke(app, arguments).exit_code == 0"""
    found = _modules(code)
    assert "matplotlib" in found
    assert not found & {"torch", "scipy", "sklearn", "torch_geometric", "matplotlib.pyplot"}


def test_the_data_of_figures_imports_no_matplotlib() -> None:
    found = _modules("""
from propreg.study.figures.build import figure_data, figure_names
from propreg.store.results import Results
for name in figure_names():
    figure_data(name, Results()).as_dict()""")
    assert not found & {"torch", "scipy", "sklearn", "matplotlib"}


def test_without_matplotlib_the_sentence_names_the_command(results: Path, tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["matplotlib"] = None
from typer.testing import CliRunner
from propreg.cli.app import app
arguments = ["figure", "fig-training-nodes", "-o", {str(tmp_path / "a.svg")!r}, "--results", {str(results)!r}]
done = CliRunner().invoke(app, arguments)
print(done.exit_code, done.stderr)"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "1 Figures need Matplotlib: run pip install 'propreg[report]'.\n\n"
    assert not list(tmp_path.iterdir())
