"""``propreg report``: what it writes, what it refuses, and what it does not import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.export import write_export
from report.samples import run_record


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(run_record()))
    return folder


def test_a_run_from_its_folder_and_from_its_file(run_folder: Path, tmp_path: Path) -> None:
    pages: list[str] = []
    for source in (run_folder, run_folder / "run.json"):
        target = tmp_path / f"out-{len(pages)}"
        result = CliRunner().invoke(app, ["report", str(source), "-o", str(target)])
        assert result.exit_code == 0, result.output
        assert str(target / "index.html") in result.stdout
        assert [file.name for file in target.iterdir()] == ["index.html"]
        pages.append((target / "index.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    assert "my graph" in pages[0]


@pytest.mark.parametrize("name", ["page.html", "sub/page.htm", "PAGE.HTML"])
def test_an_output_that_is_a_page_is_that_file(run_folder: Path, tmp_path: Path, name: str) -> None:
    target = tmp_path / "out" / name
    for _ in range(2):  # our own page is replaced
        result = CliRunner().invoke(app, ["report", str(run_folder), "-o", str(target)])
        assert result.exit_code == 0, result.output
    assert [file for file in (tmp_path / "out").rglob("*") if file.is_file()] == [target]
    assert "my graph" in target.read_text(encoding="utf-8")
    assert str(target) in result.stdout


def test_a_page_that_cannot_be_written_is_told(run_folder: Path, tmp_path: Path) -> None:
    mine, folder = tmp_path / "mine.html", tmp_path / "folder.html"
    mine.write_text("<h1>mine</h1>")
    folder.mkdir()
    for target, says in ((mine, "was not written by propreg and is kept"), (folder, "is a folder, not a page")):
        result = CliRunner().invoke(app, ["report", str(run_folder), "-o", str(target)])
        assert result.exit_code == 1
        assert f"{target} {says}" in result.output
    assert mine.read_text() == "<h1>mine</h1>"
    assert not list(folder.iterdir())


def test_the_study_from_results(tmp_path: Path) -> None:
    write_export(tmp_path / "runs.jsonl.gz", [])
    arguments = ["report", "--results", str(tmp_path), "-o", str(tmp_path / "out")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert CliRunner().invoke(app, [*arguments, "--study"]).exit_code == 0  # our own page is replaced
    assert "the study" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")


def test_somebody_elses_page_stays(run_folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "site"
    target.mkdir()
    (target / "index.html").write_text("<h1>mine</h1>")
    result = CliRunner().invoke(app, ["report", str(run_folder), "-o", str(target)])
    assert result.exit_code == 1
    assert "was not written by propreg and is kept" in result.output
    assert (target / "index.html").read_text() == "<h1>mine</h1>"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "There is no run at nowhere"),
        (["--results", "nowhere"], "There are no results at nowhere"),
        (["run/index.html"], "run/index.html is a page, not a record: give the folder of the run, or the run.json in"),
        (["damaged"], "is not valid JSON"),
        (["wrong"], "The record's mus should"),
        (["run", "-o", "run/run.json"], "is not a folder: choose another with -o"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    arguments: list[str], says: str, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in (("damaged", '{"format"'), ("wrong", json.dumps(run_record() | {"mus": []}))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(text)
    result = CliRunner().invoke(app, ["report", *arguments])
    assert result.exit_code == 1, result.output
    assert says in result.output
    assert len(result.output.strip().splitlines()) == 1
    assert run_folder.exists()


@pytest.mark.parametrize("option", [["--results", "x"], ["--study"]])
def test_an_option_of_the_study_with_a_run_is_a_wrong_command_line(run_folder: Path, option: list[str]) -> None:
    result = CliRunner().invoke(app, ["report", str(run_folder), *option])
    assert result.exit_code == 2
    assert f"{option[0]} is for the study's page" in result.output


def test_the_page_is_opened_when_asked(run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    CliRunner().invoke(app, ["report", str(run_folder), "-o", str(tmp_path / "out"), "--open"])
    assert opened == [(tmp_path / "out" / "index.html").as_uri()]


@pytest.mark.parametrize("source", [["--results", "results"], ["run"]], ids=["study", "run"])
def test_reading_records_imports_nothing_heavy(source: list[str], run_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    write_export(tmp_path / "results" / "runs.jsonl", [])
    code = (
        "import sys\n"
        "from typer.testing import CliRunner\n"
        "from propreg.cli.app import app\n"
        f"result = CliRunner().invoke(app, ['report', *{source!r}, '-o', 'out'])\n"
        "assert result.exit_code == 0, result.output\n"
        "heavy = {'torch', 'torch_geometric', 'scipy', 'sklearn', 'matplotlib', 'triton'}\n"
        "print(*sorted(heavy & {name.split('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
    assert run_folder.exists()
