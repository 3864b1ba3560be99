"""Strengths beyond a grid: for lines whose largest is picked, in batches of their own, counted once recorded."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.store.errors import StudyError
from propreg.store.results import Results, load_results
from propreg.study.spec.batches import cut
from propreg.study.spec.experiment import Experiment, load_experiment, read_experiment, select_lines
from propreg.study.spec.part import Line
from propreg.study.spec.unfold import grown, unfolded
from propreg.study.tables.rows import line_rows

RESULTS = Path(__file__).parents[3] / "results"
GRID = """
[[parts]]
datasets = ["digits"]
models = ["gcn"]
methods = ["plain", "preg-paper"]
strengths = [0.1, 0.5]
beyond = [2.0, 1.0]
split_kind = "random"
splits = 1
seeds = 2
rule = "last"
max_epochs = 3
"""


def experiment(text: str = GRID) -> Experiment:
    return read_experiment("small", text)


def recorded(line: Line, val: dict[float, int]) -> Results:
    """Both seeds of these strengths, so many validation nodes of a thousand right, and twice as many test nodes."""
    results = Results()
    for cell in (replace(line.cells[-1], strength=mu) if mu else line.cells[-1].plain for mu in val):
        right = val[cell.strength]
        runs = [[0, seed, right + seed, 1000, 2 * right, 1000, 1, 1, None, None, ""] for seed in (0, 1)]
        results.take(cell.text, runs)
    return results


def strengths(line: Line) -> list[float]:
    return [cell.strength for cell in line.cells]


def test_they_come_where_the_largest_of_the_grid_is_picked() -> None:
    plain, line = experiment().lines
    assert (plain.beyond, plain.unfolds) == ((), False)
    assert strengths(line) == [0.1, 0.5]
    for val, mine in (
        ({}, [0.1, 0.5]),
        ({0.5: 300}, [0.1, 0.5]),  # 0.1 is not recorded: nothing is picked
        ({0.1: 300, 0.5: 300}, [0.1, 0.5]),  # of equal ones the smaller is picked
        ({0.1: 300, 0.5: 301}, [0.1, 0.5, 1.0, 2.0]),
    ):
        found = grown(line, recorded(line, val))
        assert strengths(found) == mine
        assert grown(found, recorded(line, val)) == found


def test_a_row_is_as_without_them_until_all_their_runs_are_recorded() -> None:
    _, line = experiment().lines
    grid = {0.0: 200, 0.1: 300, 0.5: 310}
    without = line_rows(replace(line, beyond=()), "", recorded(line, grid))
    assert without[0].strength == 0.5
    assert without[0].mark == "*"
    assert line_rows(line, "", recorded(line, grid)) == without
    assert line_rows(line, "", recorded(line, grid | {1.0: 400})) == without
    picked, best = line_rows(line, "", recorded(line, grid | {1.0: 400, 2.0: 320}))
    assert (picked.strength, picked.mean, picked.mark, picked.runs) == (1.0, 80.0, "", 2)
    assert best.strength == 1.0


def test_batches_of_the_grid_stay_what_they_were() -> None:
    mine = experiment()
    before = cut(mine.lines)
    after = cut(unfolded(mine, recorded(mine.lines[1], {0.1: 300, 0.5: 301})).lines)
    assert [batch.id for batch in after[: len(before)]] == [batch.id for batch in before]
    assert [[run.cell.strength for run in batch.runs] for batch in after[len(before) :]] == [[1.0, 1.0, 2.0, 2.0]]


def test_a_part_of_the_seeds_does_not_pick() -> None:
    mine = experiment()
    (line,) = select_lines(mine, ["method=preg"], seeds=[0])
    assert grown(line, recorded(line, {0.1: 300, 0.5: 301})) == line


def test_the_command_trains_them_once_the_grid_is_recorded(tmp_path: Path) -> None:
    """Smoothing helps a GCN of few epochs on the digits: 5 is picked, and 10 is trained in the same call."""
    store, file = tmp_path / "store.sqlite", tmp_path / "my.toml"
    text = GRID.replace("preg-paper", "laplacian-mean").replace("max_epochs = 3", "max_epochs = 20")
    file.write_text(text.replace("[0.1, 0.5]", "[0.001, 5.0]").replace("[2.0, 1.0]", "[10.0]"))
    done = CliRunner().invoke(app, ["reproduce", str(file), "--store", str(store), "--device", "cpu"])
    assert done.exit_code == 0, done.output
    results = load_results(store)
    trained = [cell["strength"] for text, *_ in results.runs() if "strength" in (cell := json.loads(text))]
    assert sorted(trained) == [0.001, 0.001, 5.0, 5.0, 10.0, 10.0]
    shown = CliRunner().invoke(app, ["table", str(file), "--runs", "digits/gcn/laplacian", "--results", str(store)])
    assert [row.split(",")[2] for row in shown.output.splitlines()[1:]] == ["0.001"] * 2 + ["5"] * 2 + ["10"] * 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("beyond = [2.0, 1.0]", "beyond = [0.3]", "beyond needs a grid of strengths and larger ones"),
        ("strengths = [0.1, 0.5]", "strengths = [0.5]", "beyond needs a grid of strengths"),
        ('"plain", ', "", "beyond is for accuracies"),
    ],
)
def test_a_wrong_one_is_refused(old: str, new: str, words: str) -> None:
    with pytest.raises(StudyError, match=words):
        experiment(GRID.replace("digits", "ogbg-molesol" if "accuracies" in words else "digits").replace(old, new))


def test_of_table_2_they_come_by_either_rule_that_it_is_shown_by() -> None:
    """By the record as it is: further cells may reach the largest strength, these keep theirs."""
    found = unfolded(load_experiment("table2"), load_results(RESULTS)).lines
    places = {(line.model, line.dataset) for line in found if line.cells[-1].strength == 2.0}
    by_common = {("appnp", "cora"), ("appnp", "citeseer"), ("deep-appnp", "cora"), ("deep-appnp", "citeseer")}
    by_common |= {("dagnn", "cora"), ("gmnn", "citeseer")}
    assert places >= by_common | {("dagnn", "citeseer")}, "the last by DAGNN's own rule"
