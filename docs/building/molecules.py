"""Table 3 in the pages: what each form of P-reg gains on molecules, and what a step of it costs."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from building.tables import benchmark, table
from propreg.names import FORMS, dataset_title, model_title
from propreg.store.results import Results
from propreg.study.spec.experiment import load_experiment
from propreg.study.tables.rows import Row, decimals, mean_std, signed, table_rows

COSTS = ("molecule-forms-h200", "molecule-forms-cpu")


@dataclass(frozen=True)
class Cell:
    """The plain model on a dataset, and each form of P-reg that is recorded."""

    dataset: str
    model: str
    plain: Row
    forms: dict[str, Row]


@cache
def cells(results: Results) -> tuple[Cell, ...]:
    """The cells of Table 3 whose plain model is recorded, μ tuned on validation or published."""
    rows = [row for row in table_rows(load_experiment("table3"), results) if row.mean is not None]
    kept = {(row.dataset, row.model, row.preset): row for row in rows if row.selection != "test"}
    found = []
    for (dataset, model, preset), plain in kept.items():
        if not preset:
            forms = {form: kept[dataset, model, form] for form in FORMS if (dataset, model, form) in kept}
            found.append(Cell(dataset, model, plain, forms))
    return tuple(found)


def gains(results: Results) -> str:
    """Each cell: the plain score, and the gain of both forms with its interval."""
    body = []
    for cell in cells(results):
        shown = [_gain(cell.forms[form]) if form in cell.forms else "–" for form in FORMS]
        plain = mean_std(cell.plain.mean, cell.plain.std, cell.plain.digits)
        body.append([f"{model_title(cell.model)}, {dataset_title(cell.dataset)}", plain, *shown])
    return table(["where", "plain", *(f"gain, {title}" for title in FORMS.values())], body)


def _gain(row: Row) -> str:
    """The gain with its interval and strength, in bold if it is significant, whichever sign it has."""
    apart, digits = row.against_plain, row.digits
    if apart is None:
        return "–"
    low, high = (signed(value, digits) for value in (apart.low, apart.high))
    shown = f"{signed(apart.mean, digits)} ({low} to {high}), μ = {decimals(row.strength, 1)}"
    return f"**{shown}**" if apart.verdict in ("better", "worse") else shown


def verdicts(results: Results, form: str) -> Counter[str]:
    """How many cells of a form are better, worse or inconclusive against the plain model."""
    rows = [cell.forms[form] for cell in cells(results) if form in cell.forms]
    return Counter(row.against_plain.verdict for row in rows if row.against_plain is not None)


def costs() -> str:
    """The step of a run in each form, and how many plain steps that is."""
    body = []
    for machine, case, taken in _costs():
        shown = [f"{taken[form][0]:.3g} ms ({taken[form][1]:.2f}×)" for form in FORMS]
        name, _, rest = case.partition(" ")
        size = rest if rest.startswith("of") else f"of 5 layers of 300 {rest}".strip()
        body.append([f"{model_title(name)} {size}", machine, f"{taken['plain'][0]:.3g} ms", *shown])
    return table(["step of one run", "machine", "plain", *FORMS.values()], body)


def ratios(form: str) -> list[float]:
    """The steps of a form over plain ones."""
    return [taken[form][1] for _, _, taken in _costs()]


def _costs() -> Iterator[tuple[str, str, dict[str, tuple[float, float]]]]:
    for name in COSTS:
        machine, records = benchmark(name) or ("", {})
        for case in dict.fromkeys(case for case, _ in records):
            mine = {what.removeprefix("step, "): r for (at, what), r in records.items() if at == case}
            yield machine, case, {form: (float(r["value"]), float(r["ratio"])) for form, r in mine.items()}
