"""``propreg figure NAME``, as the README writes it: without the name of a file."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app

RESULTS = Path(__file__).parents[2] / "results"


def test_a_figure_goes_into_a_file_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["figure", "overview", "--results", str(RESULTS)])
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith("Written to overview.svg.\n")
    assert [file.name for file in tmp_path.iterdir()] == ["overview.svg"]
    assert (tmp_path / "overview.svg").read_text(encoding="utf-8").startswith("<?xml")


def test_a_wrong_name_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["figure", "../overveiw", "--results", str(RESULTS)])
    assert done.exit_code == 1
    assert "There is no figure '../overveiw'" in done.stderr
    assert not list(tmp_path.iterdir())
