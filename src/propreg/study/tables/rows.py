"""The rows of a table: for each line the strength picked on validation, and the one best on test beside it.

Only complete lines have numbers: picking from a part of the grid would be a different choice.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from propreg.data.benchmarks.catalog import MOLECULE_SETS
from propreg.engine.spec import CORRECTED
from propreg.fitting.picking import Select, class_frequencies, picking_score
from propreg.statistics import Difference, Runs, paired, summarize
from propreg.store.results import Accuracies, Results
from propreg.store.run import Cell
from propreg.study.spec.experiment import Experiment
from propreg.study.spec.paper import MARGIN, paper_gain, paper_number, verdict
from propreg.study.spec.part import Line
from propreg.study.spec.unfold import grown


@dataclass(frozen=True)
class Scale:
    """How tables show a score.

    Args:
        metric: Its name in the store.
        title: What people call it.
        factor: What it is multiplied by: 100 for percent.
        digits: Decimals.
        sign: 1 if higher is better, −1 if lower.
        margin: The difference to the paper's number that counts as none.
    """

    metric: str
    title: str
    factor: float
    digits: int
    sign: int
    margin: float


SCALES = {
    "accuracy": Scale("accuracy", "test accuracy in percent", 100, 2, 1, MARGIN),
    "rocauc": Scale("rocauc", "test ROC-AUC in percent (higher is better)", 100, 2, 1, MARGIN),
    "rmse": Scale("rmse", "test RMSE (lower is better)", 1, 3, -1, 0.05),
}


def scale_of(dataset: str) -> Scale:
    """The scale of a dataset's scores.

    Example:
        >>> scale_of("cora").metric, scale_of("ogbg-molesol").sign
        ('accuracy', -1)
    """
    return SCALES[MOLECULE_SETS[dataset].metric] if dataset in MOLECULE_SETS else SCALES["accuracy"]


PICKED = {"none": "", "validation": "picked on validation", "test": "best on test", "fixed": "fixed"}
"""The ways of picking a strength, in the order of a table's rows, in words."""


@dataclass(frozen=True)
class Row:
    """One cell of a table; accuracies in percent, other scores as :data:`SCALES` has them. What is unknown is None.

    ``selection`` is how the strength was picked: ``"validation"``, ``"test"`` (best on test, as the paper's numbers
    seem to be), ``"fixed"`` if the line has only one, or ``"none"`` for the plain model. ``low`` … ``high`` is a 95 %
    interval of the mean; ``difference`` and ``p_value`` are against the plain model on the same splits and seeds; of
    a plain model whose predictions are corrected, against these as they were.
    ``verdict`` is against the paper's number, ``gain_verdict`` against the paper's difference to its plain model, where
    it prints both; of an incomplete line ``verdict`` counts the recorded runs. ``won`` is the share
    of runs better than the plain one of the same split and seed, ``failed`` the number of runs whose loss became NaN;
    they count with their best epoch before. ``at_end`` marks the smallest or largest strength of the grid.
    ``against_plain`` is the whole paired difference, positive where the method is better.
    """

    model: str
    dataset: str
    method: str
    preset: str
    selection: str
    strength: float | None = None
    runs: int = 0
    mean: float | None = None
    std: float | None = None
    low: float | None = None
    high: float | None = None
    difference: float | None = None
    p_value: float | None = None
    paper_mean: float | None = None
    paper_std: float | None = None
    verdict: str = ""
    gain_verdict: str = ""
    won: float | None = None
    failed: int = 0
    at_end: bool = False
    against_plain: Difference | None = None

    @property
    def digits(self) -> int:
        """The decimals of its scores."""
        return scale_of(self.dataset).digits

    @property
    def mark(self) -> str:
        """A star behind a strength beyond which a better one may lie."""
        return "*" * self.at_end


COLUMNS = tuple(each.name for each in fields(Row))[:-4]
"""The columns of the CSV, which scripts rely on."""


def decimals(value: float | None, places: int = 2, sign: bool = False) -> str:
    """A number for people; rounded in two steps, so that the last bit cannot decide how a half is rounded.

    Example:
        >>> decimals(1.005), decimals(None), decimals(0.5, 1, sign=True), decimals(-0.04, 1, sign=True)
        ('1.00', '', '+0.5', '0.0')
    """
    if value is None:
        return ""
    text = f"{round(value, 9):{'+' if sign else ''}.{places}f}"
    return text if float(text) else text.lstrip("+-")


def signed(value: float | None, places: int = 1) -> str:
    """A difference for people, with a minus that is as wide as a plus.

    Example:
        >>> signed(-1.25), signed(0.5), signed(-0.04)
        ('−1.2', '+0.5', '0.0')
    """
    return decimals(value, places, sign=True).replace("-", "−")


def mean_std(mean: float | None, std: float | None, places: int = 2) -> str:
    """Mean ± standard deviation, empty if there is none."""
    return "" if mean is None else f"{decimals(mean, places)} ± {decimals(std, places)}"


OWN = "own"


def table_rows(
    experiment: Experiment,
    results: Results,
    lines: Iterable[Line] | None = None,
    rule: str = "",
    select: Select = "accuracy",
) -> list[Row]:
    """The rows of an experiment's lines, in their order.

    ``rule`` names the selection rule whose epoch counts, ``"own"`` for the one that each model was published with;
    without it that of the runs' protocol. ``select`` names what strengths are picked by, see
    :mod:`propreg.fitting.picking`.
    """
    chosen = experiment.lines if lines is None else lines
    return [row for line in chosen for row in line_rows(line, experiment.paper, results, rule, select)]


def engine_note(lines: Iterable[Line], results: Results) -> str:
    """A sentence on runs that another version of the engine trained than their plain runs; empty if there are none."""
    pairs = [(cell, cell.plain, line.splits, line.seeds) for line in lines for cell in line.cells if cell != cell.plain]
    others, known = results.count_other_engines(pairs)
    if not others:
        return ""
    return (
        f"Engines: {others:,} of the {known:,} runs whose engine is recorded were trained by another engine version "
        "than the plain run that they are compared with; a part of the difference may come from the engine."
    )


def line_rows(line: Line, paper: str, results: Results, rule: str = "", select: Select = "accuracy") -> list[Row]:
    """A row for the plain model or a fixed strength, two for a grid: picked on validation, and best on test."""
    rule = rule_of(line, rule)
    line, found = scored(line, results, rule)
    sign = scale_of(line.dataset).sign
    complete = [each for each in found if each is not None]
    alone = "none" if line.method.method == "plain" else "fixed" if len(line.cells) == 1 else ""
    if len(complete) < len(found):
        return [_incomplete(line, paper, results, alone or "validation", rule)]
    if alone:
        return [_row(line, paper, results, alone, 0, complete, rule)]
    by_val, by_test = ([sign * float(getattr(each, part).mean()) for each in complete] for part in ("val", "test"))
    scores = by_val if select == "accuracy" else picking_scores(line, results, select, rule)
    if scores is None:
        return [replace(_incomplete(line, paper, results, "validation"), verdict=UNMEASURED)]
    return [
        _row(line, paper, results, "validation", pick(scores), complete, rule),
        _row(line, paper, results, "test", pick(by_test), complete, rule),
    ]


UNMEASURED = "incomplete: recorded without --measures"


def picking_scores(line: Line, results: Results, select: Select, rule: str = "") -> list[float] | None:
    """The mean score of each strength by which one is picked; None if a run, also a plain one, has no measures.

    The class frequencies that ``"reweighted"`` needs are estimated on each split from the plain model's predictions of
    its test nodes.
    """
    plain = results.measures(line.cells[0].plain, line.splits, line.seeds, rule)
    found = [results.measures(cell, line.splits, line.seeds, rule) for cell in line.cells]
    complete = [each for each in found if each is not None]
    if plain is None or len(complete) < len(found):
        return None
    weights = [class_frequencies([run.val for run in of], [run.test.predicted for run in of]) for of in plain]
    return [
        float(np.mean([picking_score(select, run.val, w) for w, of in zip(weights, each, strict=True) for run in of]))
        for each in complete
    ]


def rule_of(line: Line, rule: str) -> str:
    """The name of a rule on a line: of ``"own"`` that of the line's model, empty for the protocol's."""
    return line.own_rule if rule == OWN else rule


def scored(line: Line, results: Results, rule: str = "") -> tuple[Line, list[Accuracies | None]]:
    """A line and its cells' scores; strengths beyond its grid are left out until all their runs are recorded."""
    line = grown(line, results)
    found = [scores_of(line, cell, results, rule) for cell in line.cells]
    grid = tuple(cell for cell in line.cells if cell.strength not in line.beyond)
    if None in found[len(grid) :]:
        return replace(line, cells=grid), found[: len(grid)]
    return line, found


def scores_of(line: Line, cell: Cell, results: Results, rule: str) -> Accuracies | None:
    """The scores of a cell on the scale of its table, at the epoch that a rule reports."""
    scale = scale_of(line.dataset)
    if scale.metric == "accuracy" and not rule:
        return results.accuracies(cell, line.splits, line.seeds)
    found = results.scores(cell, line.splits, line.seeds, scale.metric, rule)
    return None if found is None else Accuracies(scale.factor * found.val, scale.factor * found.test)


def pick(means: Iterable[float]) -> int:
    """The index of the largest mean; of equals the first, which is the smallest strength.

    Example:
        >>> pick([0.5, 0.7, 0.7 + 1e-15])
        1
    """
    return int(np.argmax(np.round(list(means), 9)))  # rounded: a tie is a tie on every machine


def row_of(line: Line, selection: str, test: Runs | None, apart: Difference | None, **more: Any) -> Row:
    """The row of a line: its scores, and their difference to the plain model, as far as they are known."""
    name = (line.model, line.dataset, line.method.method, line.preset, selection)
    scores = {} if test is None else vars(summarize(test))
    gain: dict[str, Any] = {}
    if apart is not None:
        gain = {"difference": scale_of(line.dataset).sign * apart.mean, "p_value": apart.p_value, "won": apart.won}
    return Row(*name, **{**scores, **gain, "against_plain": apart, **more})


def _row(
    line: Line, paper: str, results: Results, selection: str, at: int, accuracies: list[Accuracies], rule: str
) -> Row:
    cell, test, scale = line.cells[at], accuracies[at].test, scale_of(line.dataset)
    base = None
    if selection != "none":
        base = scores_of(line, cell.plain, results, rule)
    elif rule == CORRECTED:
        base = scores_of(line, cell, results, "")
    mean, std = _paper(line, paper)
    gain, on_gain = paper_gain(paper, line.model, line.method.name, line.dataset), ""
    if selection != "none" and base is not None and gain is not None:
        on_gain = verdict(scale.sign * (test - base.test), scale.sign * gain, scale.margin)
    return row_of(
        line,
        selection,
        test,
        None if base is None else paired(scale.sign * test, scale.sign * base.test),
        strength=cell.strength,
        paper_mean=mean,
        paper_std=std,
        verdict="" if mean is None else verdict(test, mean, scale.margin),
        gain_verdict=on_gain,
        failed=results.failed(cell, line.splits, line.seeds),
        at_end=len(line.cells) > 1 and at in (0, len(line.cells) - 1),
    )


def _incomplete(line: Line, paper: str, results: Results, selection: str, rule: str = "") -> Row:
    have = sum(results.count(cell, line.splits, line.seeds) for cell in line.cells)
    of = len(line.cells) * len(line.splits) * len(line.seeds)
    mean, std = _paper(line, paper)
    missing = f"incomplete: {f'{have} of {of} runs' if have < of or not rule else f'recorded without {rule}'}"
    return row_of(line, selection, None, None, runs=have, paper_mean=mean, paper_std=std, verdict=missing)


def _paper(line: Line, paper: str) -> tuple[float, float] | tuple[None, None]:
    return paper_number(paper, line.model, line.method.name, line.dataset) or (None, None)
