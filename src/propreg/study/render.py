"""A table's rows as text for a terminal, and as CSV. The same rows are the same bytes on every machine."""

import csv
import io
from collections.abc import Iterable, Sequence

from propreg.study.experiment import Experiment
from propreg.study.paper import MARGIN
from propreg.study.table import COLUMNS, Row

HEAD = (
    "method",
    "picked on",
    "strength",
    "accuracy",
    "95 % interval",
    "difference",
    "p",
    "won",
    "paper",
    "verdict",
)
PICKED = {
    "none": "",
    "validation": "picked on validation",
    "test": "best on test",
    "fixed": "fixed",
}
DIFFERENCES = (
    "Difference to the plain model on the same splits and seeds; p by an exact sign-flip test over splits (over seeds "
    "where there is one split), which with five splits cannot go below 1/16; won: the share of paired runs that are "
    "better. Better or worse can be told only where the interval of the difference leaves out 0 and p is at most 1/16, "
    "which five splits give where all of them agree. Of a row that is best on test neither can be trusted: it was "
    "chosen by that test accuracy."
)
NOTES = (
    "mean ± population standard deviation of test accuracy in per cent; 95 % interval of the mean by a bootstrap over "
    "splits (over seeds where there is one split).",
    "With five splits such an interval is somewhat narrow: it covers nearer 85 % than 95 % of the time if splits were "
    "normal.",
    "Strengths are picked on mean validation accuracy; best on test, as the paper's numbers seem to be, stands beside. "
    "Where an experiment has one strength only, it is fixed: nothing was picked. *: the smallest or largest that was "
    "tried, beyond which there may be a better one.",
    DIFFERENCES,
    f"Verdict: reproduced where the difference to the paper is surely within ±{MARGIN:g} point, higher or lower where "
    "it is not and is surely not 0, else cannot tell; incomplete where runs are missing. A method may add less than "
    "that margin: an accuracy that is reproduced is not yet a gain that is.",
)


def decimals(value: float | None, places: int = 2, sign: bool = False) -> str:
    """A number for people; rounded in two steps, so that a last bit cannot turn a half up here and down there.

    Example:
        >>> decimals(1.005), decimals(None), decimals(0.5, 1, sign=True), decimals(-0.04, 1, sign=True)
        ('1.00', '', '+0.5', '0.0')
    """
    if value is None:
        return ""
    text = f"{round(value, 9):{'+' if sign else ''}.{places}f}"
    return text if float(text) else text.lstrip("+-")


def to_csv(rows: Sequence[Row]) -> str:
    """All columns."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        values = dict(vars(row))
        for name in ("mean", "std", "low", "high", "difference", "paper_mean", "paper_std"):
            values[name] = decimals(values[name])
        values["strength"] = "" if row.strength is None else f"{row.strength:g}"
        values["p_value"] = decimals(row.p_value, 4)
        writer.writerow([values[name] for name in COLUMNS])
    return out.getvalue()


def to_text(experiment: Experiment, rows: Sequence[Row], remarks: Sequence[str] = ()) -> str:
    """Blocks of a model on a dataset, with all that the CSV has; columns in which nothing stands are left out.

    ``remarks`` come below the notes that all tables have.
    """
    found = {title: [cells(row) for row in members] for title, members in blocks(rows).items()}
    every = [line for lines in found.values() for line in lines]
    there = [i for i in range(len(HEAD)) if any(line[i] for line in every)]
    widths = {i: max(len(line[i]) for line in [HEAD, *every]) for i in there}
    out = [experiment.title, ""]
    for title, lines in found.items():
        out.append(title)
        padded = [[line[i].ljust(width) for i, width in widths.items()] for line in [HEAD, *lines]]
        out += [("  " + "  ".join(line)).rstrip() for line in padded]
        out.append("")
    return "\n".join([*out, *NOTES, *remarks]) + "\n"


def blocks(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each model on each dataset, under its title; an experiment may come back to one."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(f"{row.model} on {row.dataset}", []).append(row)
    return found


def cells(row: Row) -> tuple[str, ...]:
    """A row under :data:`HEAD`."""
    name = row.method if not row.preset else f"{row.method} ({row.preset})"
    if row.mean is None:
        return (name, PICKED[row.selection], "", "", "", "", "", "", spread(row.paper_mean, row.paper_std), row.verdict)
    return (
        name,
        PICKED[row.selection],
        "" if row.selection == "none" else f"{row.strength:g}{row.mark}",
        spread(row.mean, row.std),
        f"{decimals(row.low)} … {decimals(row.high)}",
        decimals(row.difference, sign=True),
        decimals(row.p_value, 3),
        "" if row.won is None else f"{100 * row.won:.0f} %",
        spread(row.paper_mean, row.paper_std),
        row.verdict if not row.failed else f"{row.verdict} ({row.failed} runs ended in NaN)".strip(),
    )


def spread(mean: float | None, std: float | None) -> str:
    """Mean ± standard deviation, empty where there is none."""
    return "" if mean is None else f"{decimals(mean)} ± {decimals(std)}"
