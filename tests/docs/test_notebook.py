"""The tutorial's notebook: the page's own text, code that compiles, and cells that run from top to bottom."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from building.blocks import find_blocks
from building.following import run_command
from building.notebook import code_of, notebook

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
FILE = ROOT / "docs" / "tutorial.ipynb"


def cells(kind: str) -> list[str]:
    """The sources of its cells."""
    book = json.loads(FILE.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == kind]


def test_it_is_the_page() -> None:
    assert FILE.read_text(encoding="utf-8") == notebook(PAGE), "run make pages"
    assert cells("code") == [code_of(block) for block in find_blocks(PAGE)]


def test_it_is_what_jupyter_reads() -> None:
    book = json.loads(FILE.read_text(encoding="utf-8"))
    assert (book["nbformat"], book["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    for cell in book["cells"]:
        assert set(cell) - {"id"} == (
            {"cell_type", "metadata", "source"}
            if cell["cell_type"] == "markdown"
            else {"cell_type", "metadata", "source", "execution_count", "outputs"}
        )
    text = "".join(cells("markdown"))
    assert "<!--" not in text
    assert "```python" not in text


@pytest.mark.slow
def test_its_cells_run_from_top_to_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Jupyter would: one namespace, and a line that begins with ! goes to the shell."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for source in cells("code"):
        if source.startswith("!"):
            for line in source.splitlines():
                run_command(shlex.join(shlex.split(line.removeprefix("!"))), "tutorial.ipynb")
        else:
            exec(compile(source, "tutorial.ipynb", "exec"), names)
    assert os.path.exists("my-predictions.csv")
    assert len(names["rows"]) == 599
    assert names["right"] > 450
    assert not names["harmed"].helps
