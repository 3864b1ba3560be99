"""The methods of Table 2 by validation accuracy: the best ones are trained with more seeds, in ``table2-100-seeds``."""

from collections.abc import Sequence

from propreg.names import model_title
from propreg.store.results import Results
from propreg.study.spec.experiment import Experiment
from propreg.study.spec.part import Line
from propreg.study.tables.rows import decimals, scored
from propreg.study.tables.text import Listing

NAME, BEST = "table2", 5
TITLE = (
    "Mean validation accuracy over the graphs in percent, with P-reg where that is better on validation. "
    f"table2-100-seeds trains the first {BEST} with 100 seeds"
)


def by_validation(lines: Sequence[Line], results: Results) -> list[tuple[str, float]]:
    """Models and their mean validation accuracy over the datasets, the best first; of the models that are complete.

    On each dataset it is that of the best cell: plain, or with the picked strength.
    """
    found: dict[str, dict[str, float]] = {}
    missing = set()
    for line in lines:
        _, scores = scored(line, results)
        vals = [float(each.val.mean()) for each in scores if each is not None]
        if len(vals) < len(scores):
            missing.add(line.model)
            continue
        known = found.setdefault(line.model, {})
        known[line.dataset] = max(*vals, known.get(line.dataset, 0.0))
    means = [(model, sum(by.values()) / len(by)) for model, by in found.items() if model not in missing]
    return sorted(means, key=lambda each: -round(each[1], 9))


def listings(experiment: Experiment, lines: Sequence[Line], results: Results) -> list[Listing]:
    """The ranking below the whole Table 2; none for other tables, or a part of it."""
    if experiment.name != NAME or len(lines) < len(experiment.lines):
        return []
    rows = [(model_title(model), decimals(mean)) for model, mean in by_validation(lines, results)]
    return [Listing(TITLE, ("", "validation"), tuple(rows))] if rows else []
