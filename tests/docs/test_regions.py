"""What is computed in the pages is what the record gives: regions, the output of commands that only read, pictures."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from building import tables
from building.blocks import Block, find_blocks, outputs, with_outputs
from building.following import follow
from building.pictures import FOLDER, pictures
from building.regions import filled
from building.tables import TABLES, region
from propreg.names import DATASETS
from propreg.store.results import Results

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
READING = ("table", "figure", "status")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_regions_are_what_the_record_gives(page: Path, results: Results) -> None:
    text = page.read_text(encoding="utf-8")
    assert filled(text, lambda name: region(name, results)) == text, "run make pages"


def test_every_table_is_on_a_page() -> None:
    marks = {name for page in PAGES for name in re.findall(r"<!-- begin: (.+?) -->", page.read_text(encoding="utf-8"))}
    assert {name for name in marks if not name.startswith("api ")} == {*TABLES, "output"}


def test_a_number_that_was_typed_is_found(results: Results) -> None:
    text = (ROOT / "docs" / "study.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| GCN + P-reg | "))
    assert filled(text.replace(row, row.replace("8", "9")), lambda name: region(name, results)) == text


@pytest.mark.parametrize("mark", ["<!-- begin: engine -->", "<!-- end: engine -->"])
def test_missing_marks_are_reported(mark: str) -> None:
    text = (ROOT / "docs" / "engine.md").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="The region 'engine' needs one begin mark"):
        filled(text.replace(mark, ""), str)


def test_what_is_not_recorded_is_a_dash() -> None:
    nothing = Results()
    assert region("picked", nothing).count("–") == len(DATASETS) * 3
    assert region("few labels", nothing).count("–") == 2 * 5
    assert region("accuracies", nothing).count("| – ") == len(DATASETS) * 3 * 3
    assert region("formula changes", nothing) == region("training changes", nothing) == "–"
    for name in ("forms", "disagreements", "choices of μ"):
        assert len(region(name, nothing).splitlines()) == 2, name


def test_learned_strengths_are_read_from_the_records_of_all_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "benchmarks").mkdir()
    for machine, case, test in (("h200-photo", "photo", 92.345), ("cpu", "cora", 80.0), ("h200-cs", "cs", 91.0)):
        found = [("plain: test", test), ("plain: μ", 0.0), ("grid of 8: test", test + 1), ("grid of 8: μ", 0.5)]
        records = [{"case": case, "metric": metric, "value": value} for metric, value in found]
        text = json.dumps({"machine": machine, "records": records})
        (tmp_path / "benchmarks" / f"learned-mu-{machine}.json").write_text(text)
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    rows = tables.learned(Results()).splitlines()[2:]
    assert rows == [
        "| Cora | 80.0 | 81.0 (μ = 0.5) |",
        "| CS | 91.0 | 92.0 (μ = 0.5) |",
        "| Photo | 92.3 | 93.3 (μ = 0.5) |",
    ]


def only_reads(block: Block) -> bool:
    """Whether a block prints the same on every machine, and needs no block before it."""
    commands = [command.split() for command in block.commands] if block.language == "sh" else []
    stores = any(word in ("--store", "--results") for command in commands for word in command)
    return bool(commands) and not stores and all(command[1] in READING for command in commands)


def test_output_of_commands_that_read_the_record(tmp_path: Path) -> None:
    page = ROOT / "docs" / "study.md"
    text = page.read_text(encoding="utf-8")
    printed = follow(page, tmp_path, ROOT / "results", only_reads)
    assert len(printed) >= 4
    assert with_outputs(text, printed) == text, "run make pages"


def test_output_follows_its_block_and_nothing_else() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        shown = {block.after for block in find_blocks(text)}
        begins = [number for number, line in enumerate(text.splitlines(), 1) if line == "<!-- begin: output -->"]
        assert len(begins) == len(outputs(text))
        assert set(begins) <= shown, page.name


def test_pictures_are_those_that_are_drawn(results: Results) -> None:
    for name, drawn in pictures(results, slow=False):
        assert drawn == (FOLDER / name).read_bytes(), f"{name}: run make pages"


def test_reading_the_record_loads_no_torch() -> None:
    code = (
        "import sys; from pathlib import Path; from building.regions import filled; from building.tables import region;"
        "from propreg.store.results import load_results; found = load_results(Path('results'));"
        "filled(Path('README.md').read_text(), lambda name: region(name, found)); print('torch' in sys.modules)"
    )
    path = os.pathsep.join(str(ROOT / folder) for folder in ("src", "docs"))
    command = [sys.executable, "-c", code]
    calm = {"PYTHONPATH": path, "PATH": ""}
    done = subprocess.run(command, cwd=ROOT, env=calm, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
