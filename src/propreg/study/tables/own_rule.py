"""The second selection rule of a table: what each model's own reports, beside the common one of the experiment."""

from collections.abc import Sequence

from propreg.names import dataset_title, method_title, model_title
from propreg.store.results import Results
from propreg.study.spec.experiment import Experiment
from propreg.study.spec.part import Line
from propreg.study.tables.pivot import brief, pivot
from propreg.study.tables.rows import OWN, table_rows
from propreg.study.tables.text import Listing

TITLE = (
    "By each model's own rule, where that is another one: strengths are picked by it, too. "
    "propreg table NAME --rule own has its whole table"
)


def listings(experiment: Experiment, lines: Sequence[Line], results: Results) -> list[Listing]:
    """Means by the models' own rules, datasets side by side; none where no model has another rule than the table's."""
    other = [line for line in lines if line.own_rule and line.own_rule != line.cells[0].protocol.rule]
    found = pivot([row for row in table_rows(experiment, results, other, OWN) if row.selection != "test"])
    rows = tuple(
        (_title(row.model, row.method, row.preset), *(brief(cell, signed=False) for cell in row.cells))
        for row in found.rows
    )
    return [Listing(TITLE, ("", *map(dataset_title, found.datasets)), rows)] if rows else []


def _title(model: str, method: str, preset: str) -> str:
    return model_title(model) + (f" + {method_title(method, preset)}" if method != "plain" else "")
