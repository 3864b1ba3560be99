"""A table's rows as text: for pipes (the same bytes on every machine), for a terminal's width, and as CSV."""

import csv
import io
import itertools
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from propreg.names import method_title
from propreg.study.spec.experiment import Experiment
from propreg.study.spec.paper import MARGIN
from propreg.study.spec.part import Line
from propreg.study.tables.rows import COLUMNS, PICKED, SCALES, Row, decimals, mean_std, scale_of

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
    "on the gain",
)
DROPPED_FIRST = ("won", "p", "on the gain", "95 % interval", "paper", "strength", "difference")
"""The columns that a narrow terminal drops, in this order; the others always stay."""
INDENT = "    "
DIFFERENCES = (
    "Difference to the plain model on the same splits and seeds; p from a paired t test on the means of splits (on "
    "seeds where there is one split); won: the share of paired runs that are better. A difference is significant if "
    "p < 0.05, that is if its 95 % interval excludes 0. Rows tuned on test are optimistic; ignore their p-values. A "
    "strength picked on validation nodes of the same splits makes p a little too small."
)
NOTES = (
    "Mean ± population standard deviation of test accuracy in percent; 95 % interval of the mean by Student's t on "
    "the means of splits (on seeds where there is one split).",
    "Strengths are picked on mean validation accuracy; the best on test, as the paper's numbers seem to be, is shown "
    "beside it. fixed: the experiment has one strength. *: the smallest or largest strength that was tried; a better "
    "one may lie beyond it.",
    DIFFERENCES,
    f"Verdict: reproduced if the 95 % interval of the difference to the paper lies within ±{MARGIN:g} point, higher or "
    "lower if it does not and excludes 0, else inconclusive; incomplete if runs are missing. On the gain: the "
    "same for the difference to the plain model, ours and the paper's; a regularizer may add less than the margin.",
)


def notes_of(experiment: Experiment) -> tuple[str, ...]:
    """What stands below a table, with the scores of its datasets."""
    scales = dict.fromkeys(scale_of(line.dataset) for line in experiment.lines)
    if all(scale.metric == "accuracy" for scale in scales):
        return NOTES
    titles, margins = " or ".join(scale.title for scale in scales), " or ".join(f"±{s.margin:g}" for s in scales)
    usual = SCALES["accuracy"].title
    return tuple(note.replace(usual, titles).replace(f"±{MARGIN:g} point", margins) for note in NOTES)


@dataclass(frozen=True)
class Listing:
    """A small table of words and numbers under a title; the first column names the row."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def to_csv(rows: Sequence[Row]) -> str:
    """All columns."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        values = dict(vars(row))
        for name in ("mean", "std", "low", "high", "difference", "paper_mean", "paper_std"):
            values[name] = decimals(values[name], row.digits)
        values["strength"] = "" if row.strength is None else f"{row.strength:g}"
        values["p_value"] = decimals(row.p_value, 4)
        writer.writerow([values[name] for name in COLUMNS])
    return out.getvalue()


def to_text(
    experiment: Experiment, rows: Sequence[Row], notes: Sequence[str] = (), listings: Sequence[Listing] = ()
) -> str:
    """A block for each model on each dataset, with everything that the CSV has, then listings and notes."""
    out = [*_full(experiment, rows), *(line for listing in listings for line in listing_text(listing))]
    return "\n".join([*out, *notes_of(experiment), *notes]) + "\n"


def to_terminal(
    experiment: Experiment,
    rows: Sequence[Row],
    width: int,
    notes: Sequence[str] = (),
    listings: Sequence[Listing] = (),
) -> str:
    """:func:`to_text` if its tables fit this width; else methods become headings and columns are dropped."""
    filled = [_filled(note, width) for note in (*notes_of(experiment), *notes)]
    out = _full(experiment, rows)
    if max(map(len, out)) > width:
        out, dropped = _narrow(experiment, rows, width)
        if dropped:
            hint = "For all, end the command with | less -S; for scripts, --format csv."
            filled.append(_filled(f"Left out to fit {width} columns: {', '.join(dropped)}. {hint}", width))
    out += [line for listing in listings for line in listing_text(listing, width)]
    return "\n".join([*out, *filled]) + "\n"


def listing_text(listing: Listing, width: int | None = None) -> list[str]:
    """The lines of a listing, with an empty one at the end; too wide for a terminal, each row becomes a paragraph."""
    table = aligned(listing.head, listing.rows)
    if width is None or max(map(len, table)) <= width:
        return [listing.title, *(f"  {line}".rstrip() for line in table), ""]
    out = textwrap.wrap(listing.title, width)
    for name, *values in listing.rows:
        named = ", ".join(f"{head} {value}" for head, value in zip(listing.head[1:], values, strict=True) if value)
        out += textwrap.wrap(f"{name}: {named}", width, initial_indent="- ", subsequent_indent="  ")
    return [*out, ""]


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows under their head, in columns."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]


def units_phrase(line: Line) -> str:
    """The units of the t test: the line's splits, or its seeds if there is one split.

    Example:
        >>> from propreg.study.spec.experiment import load_experiment
        >>> [units_phrase(load_experiment(name).lines[0]) for name in ("table1", "table-standard-gcn-gat")]
        ['5 splits', '10 seeds']
    """
    return f"{len(line.splits)} splits" if len(line.splits) > 1 else f"{len(line.seeds)} seeds"


def cells(row: Row) -> tuple[str, ...]:
    """A row under :data:`HEAD`."""
    name = method_title(row.method, row.preset)
    paper = mean_std(row.paper_mean, row.paper_std, row.digits)
    if row.mean is None:
        return name, PICKED[row.selection], *[""] * 6, paper, row.verdict, ""
    return (
        name,
        PICKED[row.selection],
        "" if row.selection == "none" else f"{row.strength:g}{row.mark}",
        mean_std(row.mean, row.std, row.digits),
        f"{decimals(row.low, row.digits)} … {decimals(row.high, row.digits)}",
        decimals(row.difference, row.digits, sign=True),
        decimals(row.p_value, 3),
        "" if row.won is None else f"{100 * row.won:.0f} %",
        paper,
        row.verdict if not row.failed else f"{row.verdict} ({row.failed} runs ended in NaN)".strip(),
        row.gain_verdict,
    )


def _blocks(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each model on each dataset, under its title; an experiment may return to one."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(f"{row.model} on {row.dataset}", []).append(row)
    return found


def _full(experiment: Experiment, rows: Sequence[Row]) -> list[str]:
    """The lines of all blocks; columns that are empty everywhere are left out."""
    blocks = {title: [cells(row) for row in members] for title, members in _blocks(rows).items()}
    lines = [line for block in blocks.values() for line in block]
    used = [any(line[i] for line in lines) for i in range(len(HEAD))]
    kept = [tuple(itertools.compress(line, used)) for line in (_head(experiment), *lines)]
    table = iter([f"  {line}".rstrip() for line in aligned(kept[0], kept[1:])])
    out, head = [experiment.title, ""], next(table)
    for title, block in blocks.items():
        out += [title, head, *(next(table) for _ in block), ""]
    return out


def _narrow(experiment: Experiment, rows: Sequence[Row], width: int) -> tuple[list[str], list[str]]:
    """The lines of all blocks in a narrower layout, and the columns that were dropped."""
    blocks = {title: [_short(row) for row in members] for title, members in _blocks(rows).items()}
    lines = [line for block in blocks.values() for line in block]
    used = [name for name in HEAD[1:] if any(line[name] for line in lines)]
    widths = {name: max(len(name), *(len(line[name]) for line in lines)) for name in used}
    for name in DROPPED_FIRST:
        if len(INDENT) + sum(widths.values()) + 2 * (len(widths) - 1) <= width:
            break
        widths.pop(name, None)

    def columns(values: dict[str, str]) -> str:
        return (INDENT + "  ".join(values[name].ljust(size) for name, size in widths.items())).rstrip()

    out = [_filled(experiment.title, width), ""]
    for title, block in blocks.items():
        out += [title, columns(dict(zip(HEAD, _head(experiment), strict=True)))]
        for method, members in itertools.groupby(block, key=lambda line: line["method"]):
            out += [f"  {method}", *map(columns, members)]
        out.append("")
    return out, [name for name in used if name not in widths]


def _short(row: Row) -> dict[str, str]:
    """A row by column, in few words: of an incomplete line, the number of runs is in the place of the accuracy."""
    named = dict(zip(HEAD, cells(row), strict=True))
    named["picked on"] = "" if row.selection == "none" else row.selection
    if row.mean is None:
        named["verdict"], _, named["accuracy"] = row.verdict.partition(": ")
    elif row.failed:
        named["verdict"] = f"{row.verdict} ({row.failed} NaN)".strip()
    return named


def _head(experiment: Experiment) -> tuple[str, ...]:
    """The column heads: a score is not always an accuracy."""
    scored = any(scale_of(line.dataset).metric != "accuracy" for line in experiment.lines)
    return tuple("score" if scored and name == "accuracy" else name for name in HEAD)


def _filled(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_on_hyphens=False)
