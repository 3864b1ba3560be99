"""Every number that ``propreg table`` prints, against the exported lines worked out in plain Python."""

import csv
import io
import re
from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import t
from typer.testing import CliRunner

from propreg.cli.app import app
from study.plain_tables import ROOT, Line, Record, plain_runs, read_lines, scale_of, t_quantile, t_within, work_out

pytestmark = pytest.mark.slow
TABLES = ("table1", "table-phi", "table-standard-gcn-gat", "table2", "table3")
SCORES = ("mean", "std", "low", "high", "difference", "paper_mean", "paper_std")
NAMES = ("model", "dataset", "method", "preset", "selection", "strength", "runs")
COMPARED = (*NAMES, *SCORES, "p_value", "verdict", "gain_verdict")


@pytest.fixture(scope="module")
def record() -> Record:
    return Record(read_lines())


@pytest.fixture(scope="module")
def printed() -> dict[str, list[dict[str, str]]]:
    return {name: list(csv.DictReader(io.StringIO(_command(name, "--format", "csv")))) for name in TABLES}


@pytest.fixture(scope="module")
def worked_out(record: Record) -> dict[str, list[Line]]:
    return {name: work_out(record, name) for name in TABLES}


def _command(name: str, *options: str) -> str:
    done = CliRunner().invoke(app, ["table", name, "--results", str(ROOT / "results"), *options])
    assert done.exit_code == 0
    return done.stdout


def wrong(row: dict[str, str], mine: Line) -> list[str]:
    """The columns of a printed row that are not those worked out, to the printed digits."""
    digits = dict.fromkeys(SCORES, scale_of(mine["dataset"]).digits) | {"p_value": 4}
    return [
        f"{name} {row[name]!r}, not {mine.get(name)}"
        for name in COMPARED
        if not (
            _rounds_to(mine.get(name), row[name], digits[name])
            if name in digits
            else _is_strength(mine.get(name), row[name])
            if name == "strength"
            else row[name] == str(mine.get(name))
        )
    ]


def _rounds_to(value: Any, text: str, digits: int) -> bool:
    """A half may be rounded up or down."""
    if value is None or not text:
        return value is None and not text
    near = abs(Fraction(text) - Fraction(value)) <= Fraction(1, 2 * 10**digits) + Fraction(1, 10**9)
    return near and len(text.partition(".")[2]) == digits


def _is_strength(value: float | None, text: str) -> bool:
    return text == "" if value is None else text != "" and float(text) == value


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_of_a_table(
    name: str, worked_out: dict[str, list[Line]], printed: dict[str, list[dict[str, str]]]
) -> None:
    mine = worked_out[name]
    assert len(mine) == len(printed[name]) > 0
    assert printed[name][0].keys() == {*COMPARED}, "a new column is worked out here, too"
    found = [
        f"{row['model']} on {row['dataset']}, {row['method']} {row['preset']}, {row['selection']}: {each}"
        for row, expected in zip(printed[name], mine, strict=True)
        for each in wrong(row, expected)
    ]
    assert found == []


@pytest.mark.parametrize("name", TABLES)
def test_shares_won(name: str, worked_out: dict[str, list[Line]]) -> None:
    """They are in the long text alone, whose blocks are a model on a dataset."""
    blocks: dict[tuple[str, str], list[Line]] = {}
    for row in worked_out[name]:
        blocks.setdefault((row["model"], row["dataset"]), []).append(row)
    mine = [row["won"] for rows in blocks.values() for row in rows if "won" in row]
    shown = re.findall(r"^  \S.*  (\d+) %(?! interval)", _command(name, "--long"), re.MULTILINE)
    assert len(shown) == len(mine) > 0
    assert all(abs(100 * a - int(b)) <= Fraction(1, 2) for a, b in zip(mine, shown, strict=True))


PLACES = [
    ("table1", "cora", "gcn"),
    ("table1", "photo", "mlp"),
    ("table-phi", "physics", "gat"),
    ("table-standard-gcn-gat", "citeseer", "gat"),
    ("table2", "pubmed", "appnp"),
    ("table3", "ogbg-molesol", "mol-gin"),
]


@pytest.mark.parametrize(("name", "dataset", "model"), PLACES)
def test_another_number_in_one_run_is_seen(
    name: str, dataset: str, model: str, record: Record, printed: dict[str, list[dict[str, str]]]
) -> None:
    """In each run of the plain model in turn, a twentieth of what it has right more, or of its error."""
    theirs = [row for row in printed[name] if (row["dataset"], row["model"]) == (dataset, model)]
    for row in plain_runs(record, name, dataset, model):
        before = row[4]
        row[4] = before + before // 20 if isinstance(before, int) else 1.05 * before
        try:
            mine = work_out(record, name, (dataset, model))
        finally:
            row[4] = before
        columns = [wrong(shown, expected) for shown, expected in zip(theirs, mine, strict=True)]
        assert any(each.startswith("mean ") for each in columns[0])
        assert all(any(each.startswith("difference ") for each in others) for others in columns[1:])
    mine = work_out(record, name, (dataset, model))
    assert not any(wrong(shown, expected) for shown, expected in zip(theirs, mine, strict=True))


@pytest.mark.parametrize("degrees", [1, 2, 4, 5, 9, 20, 45])
def test_students_t_is_scipys(degrees: int) -> None:
    for at in (0.1, 1.0, 2.5, 10.0):
        assert t_within(at, degrees) == pytest.approx(1 - 2 * t.sf(at, degrees), rel=1e-12)
    assert t_quantile(degrees) == pytest.approx(t.ppf(0.975, degrees), rel=1e-12)
