"""A table as text for a terminal: where its lines do not fit, methods become headings, and columns are left out."""

import itertools
import textwrap
from collections.abc import Sequence

from propreg.study.experiment import Experiment
from propreg.study.render import HEAD, NOTES, blocks, cells, to_text
from propreg.study.table import Row

GOES_FIRST = ("won", "p", "95 % interval", "paper", "strength", "difference")
"""What is left out where not all columns fit, in this order; the others always stay."""
INDENT = "    "

Named = dict[str, str]
"""A row's cells by column."""


def to_terminal(experiment: Experiment, rows: Sequence[Row], width: int, remarks: Sequence[str] = ()) -> str:
    """What :func:`propreg.study.render.to_text` gives where its tables fit so many columns, else a narrower layout."""
    notes = [_filled(note, width) for note in (*NOTES, *remarks)]
    tables = to_text(experiment, rows).removesuffix("\n".join(NOTES) + "\n")
    if max(map(len, tables.splitlines())) <= width:
        return tables + "\n".join(notes) + "\n"
    found = {title: [_named(row) for row in members] for title, members in blocks(rows).items()}
    named = [line for lines in found.values() for line in lines]
    there = [name for name in HEAD[1:] if any(line[name] for line in named)]
    widths = _fitting({name: max(len(name), *(len(line[name]) for line in named)) for name in there}, width)
    out = [_filled(experiment.title, width), ""]
    for title, block in found.items():
        out += [title, _line({name: name for name in widths}, widths)]
        for method, lines in itertools.groupby(block, key=lambda line: line["method"]):
            out += [f"  {method}", *(_line(line, widths) for line in lines)]
        out.append("")
    if left_out := [name for name in there if name not in widths]:
        said = f"Left out to fit {width} columns: {', '.join(left_out)}."
        notes.append(_filled(f"{said} For all, end the command with | less -S; for scripts, --format csv.", width))
    return "\n".join([*out, *notes]) + "\n"


def _named(row: Row) -> Named:
    """A row in few words: how much there is of an incomplete line stands where its accuracy would."""
    named = dict(zip(HEAD, cells(row), strict=True))
    named["picked on"] = "" if row.selection == "none" else row.selection
    if row.mean is None:
        named["verdict"], _, named["accuracy"] = row.verdict.partition(": ")
    elif row.failed:
        named["verdict"] = f"{row.verdict} ({row.failed} NaN)".strip()
    return named


def _fitting(widths: dict[str, int], width: int) -> dict[str, int]:
    """The columns that stay, with their widths."""
    for name in GOES_FIRST:
        if len(INDENT) + sum(widths.values()) + 2 * (len(widths) - 1) <= width:
            break
        widths = {key: value for key, value in widths.items() if key != name}
    return widths


def _filled(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_on_hyphens=False)


def _line(values: Named, widths: dict[str, int]) -> str:
    return (INDENT + "  ".join(values[name].ljust(width) for name, width in widths.items())).rstrip()
