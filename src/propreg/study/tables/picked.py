"""The strengths picked on validation, as a list for people and for experiments."""

from collections.abc import Sequence
from dataclasses import replace

from propreg.fitting.picking import Select
from propreg.store.errors import StudyError
from propreg.store.results import Results
from propreg.study.spec.part import Line
from propreg.study.tables.rows import line_rows


def picked_text(lines: Sequence[Line], results: Results, rule: str = "", select: Select = "accuracy") -> str:
    """The picked strength of each line with a grid; incomplete lines are marked.

    ``rule`` and ``select`` are those of :func:`propreg.study.tables.rows.table_rows`.

    Where each model and dataset has one method, the lines are TOML, ``"cora/gcn" = 0.45``, which an experiment takes as
    its strengths; else they are a table whose first column names the method too.

    Raises:
        StudyError: If nothing was picked, since no line is complete, or none has more than one strength.
    """
    if all(len(line.cells) == 1 for line in lines):
        raise StudyError("Nothing is picked here: none of these lines has more than one strength to pick from.")
    grids = [(line, _strength(line, results, rule, select)) for line in lines if len(line.cells) > 1]
    if all(mu is None for _, mu in grids):
        raise StudyError("No strength is picked yet: none of these lines with a strength has all its runs.")
    places = [f"{line.dataset}/{line.model}" for line, _ in grids]
    if len(set(places)) == len(places):
        return "".join(
            f'"{place}" = {mu:g}  # {line.method.method} {line.preset}'.rstrip() + "\n"
            if mu is not None
            else f'# "{place}": not all runs of {line.method.name} are recorded\n'
            for place, (line, mu) in zip(places, grids, strict=True)
        )
    rows = [("dataset/model/method", "preset", "picked strength")]
    rows += [
        (f"{place}/{line.method.name}", line.preset, "incomplete" if mu is None else f"{mu:g}")
        for place, (line, mu) in zip(places, grids, strict=True)
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return "".join(f"{name:<{widths[0]}}  {preset:<{widths[1]}}  {mu}\n" for name, preset, mu in rows)


def at_picked(lines: Sequence[Line], results: Results, rule: str = "", select: Select = "accuracy") -> tuple[Line, ...]:
    """The same lines with their picked strength alone; lines with one strength, and the plain model, are kept.

    Raises:
        StudyError: If a line is not complete, so that nothing was picked.
    """
    return tuple(_only(line, results, rule, select) for line in lines)


def _only(line: Line, results: Results, rule: str, select: Select) -> Line:
    if len(line.cells) == 1:
        return line
    mu = _strength(line, results, rule, select)
    if mu is None:
        raise StudyError(
            f"No strength is picked for {line.dataset}/{line.model}/{line.method.name}: not all its runs are recorded. "
            "Leave out --picked to list the recorded ones."
        )
    return replace(line, cells=tuple(cell for cell in line.cells if cell.strength == mu))


def _strength(line: Line, results: Results, rule: str, select: Select) -> float | None:
    row = line_rows(line, "", results, rule, select)[0]
    return row.strength if row.selection == "validation" else None
