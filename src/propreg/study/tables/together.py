"""The cells of P-reg in Table 1 taken together: p-values that hold for all of them at once, by Holm's method."""

from collections.abc import Sequence

from propreg.names import dataset_title, method_title, model_title
from propreg.statistics import SIGNIFICANCE, Difference, holm
from propreg.study.spec.experiment import Experiment
from propreg.study.tables.rows import Row, decimals
from propreg.study.tables.text import Listing

TABLE = "table1"


def together(experiment: Experiment, rows: Sequence[Row], preset: str) -> dict[tuple[str, str], Difference]:
    """P-reg's gains by model and dataset, μ picked on validation; nothing where a cell of Table 1 has none."""
    cells = {(line.model, line.dataset) for line in experiment.lines if line.method.method == "preg"}
    mine = [row for row in rows if (row.method, row.preset, row.selection) == ("preg", preset, "validation")]
    known = {(row.model, row.dataset): row.against_plain for row in mine if row.against_plain is not None}
    if experiment.name != TABLE or len(known) < len(cells):
        return {}
    return dict(zip(known, holm([*known.values()]), strict=True))


def listings(experiment: Experiment, rows: Sequence[Row]) -> list[Listing]:
    """The p-values of each form of P-reg, as far as all of its cells are recorded; none for other tables."""
    found = []
    for preset in dict.fromkeys(row.preset for row in rows if row.method == "preg"):
        if not (gains := together(experiment, rows, preset)):
            continue
        datasets = list(dict.fromkeys(dataset for _, dataset in gains))
        models = dict.fromkeys(model for model, _ in gains)
        title = (
            f"{method_title('preg', preset)}: p of its gains by Holm's method, for all {len(gains)} cells together; "
            f"{sum(each.p_value < SIGNIFICANCE for each in gains.values())} are below {SIGNIFICANCE:g}"
        )
        body = [(model_title(m), *(decimals(gains[m, d].p_value, 3) for d in datasets)) for m in models]
        found.append(Listing(title, ("", *map(dataset_title, datasets)), tuple(body)))
    return found
