"""Numbers that cannot be are refused wherever runs come from, in one sentence that names the file."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hand_written import write_lines
from propreg.cli.app import app
from propreg.store.errors import StudyError
from propreg.store.export import write_export
from propreg.store.integrity import check_store
from propreg.store.results import load_results
from propreg.store.rows import implausible
from propreg.store.run import Cell
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from study.sweeping import MadeUp, batches

NAMES = ("split", "seed", "val", "val_of", "test", "test_of", "epoch", "epochs", "failed_at", "measures", "batch")
GOOD = dict(zip(NAMES, [0, 1, 90, 100, 800, 1000, 12, 40, None, None, "b"], strict=True))
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"test": 1001}, "more correct predictions than nodes"),
    ({"val": 101}, "more correct predictions than nodes"),
    ({"test": "800"}, "a value that is not a number"),
    ({"seed": "1"}, "a value that is not a number"),
    ({"epoch": 12.5}, "a value that is not a number"),
    ({"val": True}, "a value that is not a number"),
    ({"test_of": None}, "a value that is not a number"),
    ({"failed_at": "3"}, "a value that is not a number"),
    ({"test": -1}, "a number below 0"),
    ({"split": -1}, "a number below 0"),
    ({"failed_at": -1}, "a number below 0"),
    ({"epochs": 10**30}, "a number that is far too large"),
    ({"epoch": 41}, "reports epoch 41 of 40"),
    ({"test": 0, "test_of": 0}, "no validation or no test nodes"),
    ({"batch": 7}, "a batch name that is not text"),
    ({"measures": {"omega": 1}}, "measures that are not numbers by name"),
    ({"measures": "{"}, "measures that are not numbers by name"),
    ({"measures": "[1]"}, "measures that are not numbers by name"),
    ({"measures": '{"omega":NaN}'}, "measures that are not numbers by name"),
    ({"measures": '{"omega":"1"}'}, "measures that are not numbers by name"),
    ({"measures": f'{{"omega":{10**400}}}'}, "measures that are not numbers by name"),
    ({"measures": '{"\ud800":1}'}, "measures that are not numbers by name"),
    ({"batch": "\ud800"}, "a batch name that is not text"),
]
CELL = Cell("digits", "0" * 64)


def _export(path: Path, *rows: dict[str, Any]) -> Path:
    runs = json.dumps([list(row.values()) for row in rows])
    return write_lines(path, (CELL.text, runs))


@pytest.mark.parametrize("change", [{}, {"failed_at": 13, "epoch": 0}, {"measures": '{"omega":0.5,"length":2}'}])
def test_what_can_be_is_read(tmp_path: Path, change: dict[str, Any]) -> None:
    assert implausible(list((GOOD | change).values())) == []
    found = load_results(_export(tmp_path / "a.jsonl", GOOD | change)).outcome(CELL, 0, 1)
    assert found is not None
    assert found.test == 800


@pytest.mark.parametrize(("change", "says"), WRONG, ids=lambda value: str(value)[:30])
def test_what_cannot_be_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    row = GOOD | {"seed": 0}
    path, store = _export(tmp_path / "bad.jsonl", row, GOOD | change), tmp_path / "new.sqlite"
    results = load_results(path)
    with pytest.raises(StudyError, match=f"bad.jsonl is damaged, the run of split .*, seed .*, .*{says}") as caught:
        results.outcome(CELL, 0, 0)
    assert str(caught.value).endswith(": export it again, or take a copy.")
    done = CliRunner().invoke(app, ["store", "import", str(path), "--store", str(store)])
    assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert says in done.stderr
    assert not store.exists(), "all or none of a file, and no store for none"


def test_a_table_of_what_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    """Also where a store holds it: its check says the same of the same run."""
    store = tmp_path / "store.sqlite"
    with Store(store) as opened:
        reproduce(batches(), opened, MadeUp)
        with opened.transaction():
            opened.db.execute("UPDATE runs SET test = test_of + 1 WHERE key = (SELECT min(key) FROM runs)")
    exported = tmp_path / "runs.jsonl.gz"
    with Store(store, "read") as opened:
        write_export(exported, opened.rows())
    for place, mend in ((store, f"propreg store check --store {store}"), (exported, "export it again, or take a copy")):
        done = CliRunner().invoke(app, ["table", "digits-smoke", "--results", str(place)])
        assert (done.exit_code, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
        assert f"{place} is damaged, the run of split" in done.stderr
        assert "has more correct predictions than nodes" in done.stderr
        assert mend in done.stderr
    (wrong,) = check_store(store).wrong
    assert "has more correct predictions than nodes" in wrong
