"""Strengths that were picked, as a list."""

import tomllib

import pytest

from propreg.store.errors import StudyError
from propreg.store.results import Results
from propreg.study.spec.experiment import load_experiment, select_lines
from propreg.study.spec.part import Line
from propreg.study.tables.picked import at_picked, picked_text
from propreg.study.tables.rows import line_rows
from study.sweeping import made_up

SMOKE = load_experiment("digits-smoke")


def _results(lines: tuple[Line, ...]) -> Results:
    results = Results()
    for line in lines:
        for run in line.runs():
            results.take(run.cell.text, [(run.split, run.seed, *vars(made_up(run)).values(), "b")])
    return results


RESULTS = _results(SMOKE.lines)


def _picks(line: Line) -> float | None:
    return line_rows(line, "", RESULTS)[0].strength


def test_one_method_is_toml_that_an_experiment_takes() -> None:
    lines = select_lines(SMOKE, ["method=preg-paper"])
    assert tomllib.loads(picked_text(lines, RESULTS)) == {
        f"{line.dataset}/{line.model}": _picks(line) for line in lines
    }


def test_several_methods_are_told_apart() -> None:
    head, *rows = picked_text(SMOKE.lines, RESULTS).splitlines()
    assert head.split() == ["dataset/model/method", "preset", "picked", "strength"]
    mine = {row.split()[0]: float(row.split()[-1]) for row in rows}
    lines = [line for line in SMOKE.lines if line.method.method != "plain"]
    assert len(mine) == len(rows) == len(lines)
    assert mine == {f"{line.dataset}/{line.model}/{line.method.name}": _picks(line) for line in lines}


def test_sizes_of_the_training_set_are_told_apart() -> None:
    lines = select_lines(load_experiment("fig-training-nodes"), ["model=gcn,method=preg-reference"])
    rows = picked_text(lines, _results(lines)).splitlines()
    assert len(set(rows)) == len(rows) == 1 + len(lines)
    assert "35 training nodes" in rows[1]


def test_runs_at_the_picked_strength_alone() -> None:
    lines = select_lines(SMOKE, ["model=gcn"])
    for before, after in zip(lines, at_picked(lines, RESULTS), strict=True):
        if before.method.method == "plain":
            assert after == before
        else:
            assert [cell.strength for cell in after.cells] == [_picks(before)]


def test_a_strength_that_is_fixed_was_not_picked() -> None:
    lines = select_lines(load_experiment("fig-tsne"))
    results = _results(lines)
    with pytest.raises(StudyError, match="none of these lines has more than one strength to pick from"):
        picked_text(lines, results)
    assert at_picked(lines, results) == lines, "their runs are those at the only strength there is"
    both = (*select_lines(SMOKE, ["model=gcn,method=preg-paper"]), *lines)
    assert picked_text(both, _results(both)).startswith('"digits/gcn" = ')


def test_what_is_not_complete_has_no_pick() -> None:
    lines = select_lines(SMOKE, ["method=preg-paper"])
    with pytest.raises(StudyError, match="No strength is picked yet"):
        picked_text(lines, Results())
    with pytest.raises(StudyError, match="digits/gcn/preg-paper: not all its runs are recorded"):
        at_picked(lines, Results())


def test_what_has_runs_missing_is_named_beside_the_rest() -> None:
    lines = select_lines(SMOKE, ["method=preg-paper"])
    some = _results(lines[:1])
    first, second = lines[0], lines[1]
    said = picked_text(lines, some).splitlines()
    assert said[0].startswith(f'"{first.dataset}/{first.model}" = ')
    assert said[1] == f'# "{second.dataset}/{second.model}": not all runs of preg-paper are recorded'
    assert list(tomllib.loads(picked_text(lines, some))) == [f"{first.dataset}/{first.model}"]
    table = picked_text([*lines, *select_lines(SMOKE, ["method=laplacian-mean"])], some)
    assert table.count("incomplete") == len(table.splitlines()) - 2
