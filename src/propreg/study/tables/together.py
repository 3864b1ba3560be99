"""The cells of P-reg in Table 1 taken together: p-values that hold for all of them at once, by Holm's method."""

from collections.abc import Sequence

from propreg.names import dataset_title, method_title, model_title
from propreg.statistics import SIGNIFICANCE, holm
from propreg.study.spec.experiment import Experiment
from propreg.study.tables.rows import Row, decimals
from propreg.study.tables.text import Listing


def listings(experiment: Experiment, rows: Sequence[Row]) -> list[Listing]:
    """The p-values of each form of P-reg, as far as all of its cells are recorded; none for other tables."""
    found, preg = [], [row for row in rows if (row.method, row.selection) == ("preg", "validation")]
    cells = {(line.model, line.dataset) for line in experiment.lines if line.method.method == "preg"}
    for preset in dict.fromkeys(row.preset for row in preg):
        apart = {(r.model, r.dataset): r.against_plain for r in preg if r.preset == preset and r.against_plain}
        if experiment.name != "table1" or len(apart) < len(cells):
            continue
        p = dict(zip(apart, (each.p_value for each in holm([*apart.values()])), strict=True))
        datasets = dict.fromkeys(dataset for _, dataset in p)
        title = (
            f"{method_title('preg', preset)}: p of its gains by Holm's method, for all {len(p)} cells together; "
            f"{sum(each < SIGNIFICANCE for each in p.values())} are below {SIGNIFICANCE:g}"
        )
        models = dict.fromkeys(model for model, _ in p)
        body = [(model_title(m), *(decimals(p[m, d], 3) for d in datasets)) for m in models]
        found.append(Listing(title, ("", *map(dataset_title, datasets)), tuple(body)))
    return found
