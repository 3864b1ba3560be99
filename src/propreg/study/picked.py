"""The strengths that were picked on validation, as a list for people and for experiments."""

from collections.abc import Sequence
from dataclasses import replace

from propreg.study.errors import StudyError
from propreg.study.experiment import Line
from propreg.study.results import Results
from propreg.study.table import line_rows


def picked_text(lines: Sequence[Line], results: Results) -> str:
    """A line for each complete line that has a strength.

    Where each model and dataset has one method, the lines are TOML, ``"cora/gcn" = 0.45``, which an experiment takes as
    its strengths; else they are a table whose first column names the method too.

    Raises:
        StudyError: If nothing was picked, since no line is complete, or none has more than one strength.
    """
    if all(len(line.cells) == 1 for line in lines):
        raise StudyError("Nothing is picked here: none of these lines has more than one strength to pick from.")
    found = [(line, mu) for line in lines if (mu := _strength(line, results)) is not None]
    if not found:
        raise StudyError("No strength is picked yet: none of these lines with a strength has all its runs.")
    places = [f"{line.dataset}/{line.model}" for line, _ in found]
    if len(set(places)) == len(places):
        return "".join(
            f'"{place}" = {mu:g}  # {line.method.method} {line.preset}'.rstrip() + "\n"
            for place, (line, mu) in zip(places, found, strict=True)
        )
    rows = [("dataset/model/method", "preset", "picked strength")]
    rows += [
        (f"{place}/{line.method.name}", _which(line), f"{mu:g}")
        for place, (line, mu) in zip(places, found, strict=True)
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return "".join(f"{name:<{widths[0]}}  {preset:<{widths[1]}}  {mu}\n" for name, preset, mu in rows)


def at_picked(lines: Sequence[Line], results: Results) -> tuple[Line, ...]:
    """The same lines with their picked strength alone; those with one strength, and the plain model, stay.

    Raises:
        StudyError: If a line is not complete, so that nothing was picked.
    """
    return tuple(_only(line, results) for line in lines)


def _only(line: Line, results: Results) -> Line:
    if len(line.cells) == 1:
        return line
    mu = _strength(line, results)
    if mu is None:
        raise StudyError(
            f"No strength is picked for {line.dataset}/{line.model}/{line.method.name}: not all its runs are recorded. "
            "Leave out --picked to list those that are."
        )
    return replace(line, cells=tuple(cell for cell in line.cells if cell.strength == mu))


def _strength(line: Line, results: Results) -> float | None:
    row = line_rows(line, "", results)[0]
    return row.strength if row.selection == "validation" else None


def _which(line: Line) -> str:
    """The preset, and what else tells lines of one method apart."""
    cell = line.cells[0]
    nodes = "" if cell.train_nodes is None else f"{cell.train_nodes} training nodes"
    share = "" if cell.unmask == 1 else f"α = {cell.unmask:g}"
    return ", ".join(part for part in (line.preset, nodes, share) if part)
