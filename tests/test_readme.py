"""Every number of the README is what the records give, and its picture is what the command draws."""

import sys
from pathlib import Path

import pytest

from propreg.study.figures.build import figure_data
from propreg.study.figures.save import render
from propreg.study.results import load_results

ROOT = Path(__file__).parents[1]


@pytest.fixture
def readme(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return (ROOT / "README.md").read_text()


def test_numbers_are_those_of_the_records(readme: str) -> None:
    import readme as numbers

    assert numbers.filled(readme) == readme, "run python benchmarks/readme.py"


def test_a_number_that_was_typed_is_found(readme: str) -> None:
    import readme as numbers

    row = next(line for line in readme.splitlines() if line.startswith("| GCN + P-reg | "))
    assert numbers.filled(readme.replace(row, row.replace("8", "9"))) == readme


def test_missing_markers_are_reported(readme: str) -> None:
    import readme as numbers

    with pytest.raises(SystemExit, match="markers of engine once"):
        numbers.filled(readme.replace("<!-- engine -->", ""))


def test_the_picture_is_what_the_command_draws() -> None:
    pytest.importorskip("matplotlib")
    drawn = render(figure_data("overview", load_results(ROOT / "results")), ".svg")
    assert drawn == (ROOT / "docs" / "overview.svg").read_bytes(), "run propreg figure overview -o docs/overview.svg"


def test_reading_the_records_loads_no_torch(readme: str) -> None:
    import subprocess

    code = "import readme, sys; readme.filled(open('README.md').read()); print('torch' in sys.modules)"
    path = {"PYTHONPATH": str(ROOT / "benchmarks"), "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=path, capture_output=True, text=True, check=True)
    assert readme
    assert done.stdout.strip() == "False"
