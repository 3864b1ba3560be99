"""A table with datasets side by side, as the paper prints it: plain data, and its Markdown, LaTeX and HTML."""

import html
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from propreg.names import method_title
from propreg.study.spec.experiment import Experiment
from propreg.study.tables.rows import PICKED, Row, decimals, mean_std, scale_of
from propreg.study.tables.text import DIFFERENCES, Listing, notes_of

SIGNS = {"reproduced": "=", "higher": "↑", "lower": "↓", "inconclusive": "?"}
GAP = 2
"""Spaces between the columns of :func:`to_overview`."""
MORE = "--long adds strengths, intervals, paired differences, the paper's numbers, and what is best on test."
_LATEX_SIGNS = {"reproduced": "$=$", "higher": r"$\uparrow$", "lower": r"$\downarrow$", "inconclusive": "?"}


class Gap(Enum):
    """Why a cell of a pivot is empty."""

    NOT_ASKED = "not part of the experiment"
    MISSING = "not all runs are recorded"


@dataclass(frozen=True)
class PivotRow:
    """A model with a method, at one way of picking the strength: a cell for each dataset."""

    model: str
    method: str
    preset: str
    selection: str
    cells: tuple[Row | Gap, ...]

    @property
    def label(self) -> str:
        """The method with its preset and the way of picking."""
        picked = "μ fixed" if self.selection == "fixed" else PICKED[self.selection]
        return method_title(self.method, ", ".join(part for part in (self.preset, picked) if part))


@dataclass(frozen=True)
class Pivot:
    """The whole table."""

    datasets: tuple[str, ...]
    rows: tuple[PivotRow, ...]


def pivot(rows: Sequence[Row]) -> Pivot:
    """Rows side by side: datasets, models and methods in order of first appearance, best on test last.

    An incomplete line has no best-on-test row, so the order must not depend on which dataset comes first with one.
    """
    datasets = tuple(dict.fromkeys(row.dataset for row in rows))
    models = list(dict.fromkeys(row.model for row in rows))
    methods = list(dict.fromkeys((row.model, row.method, row.preset) for row in rows))
    picked = {(row.model, row.method, row.preset, row.dataset) for row in rows if row.selection == "validation"}
    found: dict[tuple[str, str, str, str], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row.model, row.method, row.preset, row.selection), {})[row.dataset] = row
    order = sorted(found, key=lambda key: (models.index(key[0]), methods.index(key[:3]), list(PICKED).index(key[3])))

    def cell(key: tuple[str, str, str, str], dataset: str) -> Row | Gap:
        missing = key[3] == "test" and (*key[:3], dataset) in picked
        return found[key].get(dataset, Gap.MISSING if missing else Gap.NOT_ASKED)

    return Pivot(datasets, tuple(PivotRow(*key, tuple(cell(key, name) for name in datasets)) for key in order))


def to_overview(
    experiment: Experiment, rows: Sequence[Row], width: int | None = None, *, bold: bool = False
) -> list[str]:
    """Datasets side by side, μ picked on validation, as many to a block as fit a terminal; the best mean is bold."""
    table = pivot([row for row in rows if row.selection != "test"])
    best = best_of(table) if bold else set()
    cells = [("method", *table.datasets), *((_indented(row), *map(brief, row.cells)) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    out = [experiment.title, ""]
    for block in _blocks(widths, width):
        out.append(_joined([cells[0][i].ljust(widths[i]) for i in block]))
        for i, row in enumerate(table.rows):
            if i == 0 or row.model != table.rows[i - 1].model:
                out.append(row.model)
            texts = [cells[i + 1][j].ljust(widths[j]) for j in block]
            for k, j in enumerate(block[1:], start=1):
                if row.cells[j - 1] in best:
                    texts[k] = f"\x1b[1m{texts[k]}\x1b[0m"
            out.append(_joined(texts))
        out.append("")
    titles = " or ".join(dict.fromkeys(scale_of(row.dataset).title for row in rows))
    legend = f"Mean ± population standard deviation of {titles}; strengths picked on validation."
    if any(row.paper_mean is not None for row in rows):
        legend += f" Against the paper's mean: {', '.join(f'{sign} {word}' for word, sign in SIGNS.items())}."
    legend += " Bold: the best of a model." if bold else ""
    out += textwrap.wrap(legend, width or sys.maxsize, break_on_hyphens=False)
    out += textwrap.wrap(MORE, width or sys.maxsize, break_on_hyphens=False)
    return out


def best_of(table: Pivot) -> set[Row]:
    """The rows with the best mean of a model on a dataset, the first of several; those best on test do not compete."""
    cells = ([row for row in each if isinstance(row, Row) and row.selection != "test"] for each in _columns(table))
    return {row for each in cells if (row := _best(each)) is not None}


def _best(rows: Iterable[Row]) -> Row | None:
    known = [row for row in rows if row.mean is not None]
    return max(known, key=lambda row: scale_of(row.dataset).sign * (row.mean or 0.0), default=None)


def _columns(table: Pivot) -> list[list[Row | Gap]]:
    """The cells that are compared: those of a model on a dataset."""
    models = dict.fromkeys(row.model for row in table.rows)
    numbers = range(len(table.datasets))
    return [[row.cells[i] for row in table.rows if row.model == model] for model in models for i in numbers]


def _blocks(widths: Sequence[int], width: int | None) -> list[list[int]]:
    """The columns of each block, the first in all."""
    out: list[list[int]] = []
    left = 0
    for i, size in enumerate(widths[1:], start=1):
        if not out or (width is not None and size + GAP > left):
            out.append([0])
            left = (width or 0) - widths[0]
        out[-1].append(i)
        left -= size + GAP
    return out


def _joined(texts: Iterable[str]) -> str:
    return (" " * GAP).join(texts).rstrip()


def _indented(row: PivotRow) -> str:
    return f"  {method_title(row.method, row.preset)}"


def brief(row: Row | Gap, *, signed: bool = True) -> str:
    """Mean and deviation with one digit less than a long table has, and the verdict's sign."""
    if isinstance(row, Gap):
        return "" if row is Gap.NOT_ASKED else "–"
    if row.mean is None:
        return row.verdict.partition(": ")[2] or row.verdict
    sign = SIGNS.get(row.verdict, "") if signed else ""
    return f"{mean_std(row.mean, row.std, row.digits - 1)} {sign}".rstrip()


def to_markdown(
    experiment: Experiment, rows: Sequence[Row], notes: Sequence[str] = (), listings: Sequence[Listing] = ()
) -> str:
    """For GitHub and the like; the paper's number is below ours."""
    table = pivot(rows)
    body = [(row.model, row.label, *map(_marked, row.cells)) for row in table.rows]
    out = [f"**{experiment.title}**", "", *_markdown(("model", "method", *table.datasets), body), ""]
    for listing in listings:
        out += [f"**{listing.title}**", "", *_markdown(listing.head, listing.rows), ""]
    return "\n".join([*out, *_legend(experiment), *notes]) + "\n"


def to_html(
    experiment: Experiment, rows: Sequence[Row], notes: Sequence[str] = (), listings: Sequence[Listing] = ()
) -> str:
    """Table elements and their notes, without styles of their own."""
    table = pivot(rows)
    out = _html(experiment.title, ("model", "method", *table.datasets), 2, [
        (html.escape(row.model), html.escape(row.label), *map(_marked, row.cells)) for row in table.rows
    ])  # fmt: skip
    for listing in listings:
        out += _html(listing.title, listing.head, 1, [tuple(map(html.escape, row)) for row in listing.rows])
    return "\n".join([*out, *(f"<p>{html.escape(note)}</p>" for note in (*_legend(experiment), *notes))]) + "\n"


def to_latex(
    experiment: Experiment, rows: Sequence[Row], notes: Sequence[str] = (), listings: Sequence[Listing] = ()
) -> str:
    """A table for booktabs: the paper's number in brackets, the 95 % interval and μ in small print below."""
    table = pivot(rows)
    body = []
    for i, row in enumerate(table.rows):
        if i:
            body.append(r"\addlinespace" if row.model == table.rows[i - 1].model else r"\midrule")
        body.append(" & ".join([tex(row.model), tex(row.label), *map(_latex, row.cells)]) + r" \\")
        body.append(" & ".join(["", "", *map(_latex_below, row.cells)]).lstrip() + r" \\")
    out = [r"% needs \usepackage{booktabs}", r"\begin{table*}", f"\\caption{{{tex(experiment.title)}}}", r"\centering"]
    out += [*_tabular(("model", "method", *table.datasets), body), r"\par\smallskip"]
    for listing in listings:
        lines = [" & ".join(map(tex, row)) + r" \\" for row in listing.rows]
        out += [tex(listing.title), r"\par\smallskip", *_tabular(listing.head, lines), r"\par\smallskip"]
    out.append(f"\\parbox{{\\linewidth}}{{\\scriptsize {_latex_legend(experiment, notes)}}}")
    return "\n".join([*out, r"\end{table*}"]) + "\n"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["".join(f" {cell} |" for cell in row) for row in (head, *rows)]
    return [f"|{lines[0]}", "|---" * len(head) + "|", *(f"|{line}" for line in lines[1:])]


def _html(title: str, head: Sequence[str], names: int, rows: Sequence[Sequence[str]]) -> list[str]:
    """A table whose first columns are headings; cells are HTML already."""
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    out = ["<table>", f"<caption>{html.escape(title)}</caption>", f"<thead><tr>{heads}</tr></thead>\n<tbody>"]
    for row in rows:
        cells = [f"<th>{cell}</th>" if i < names else f"<td>{cell}</td>" for i, cell in enumerate(row)]
        out.append(f"<tr>{''.join(cells)}</tr>")
    return [*out, "</tbody>", "</table>"]


def _tabular(head: Sequence[str], body: Sequence[str]) -> list[str]:
    columns = "l" * len(head)
    top = [f"\\begin{{tabular}}{{{columns}}}", r"\toprule", " & ".join(map(tex, head)) + r" \\", r"\midrule"]
    return [*top, *body, r"\bottomrule", r"\end{tabular}"]


def _marked(row: Row | Gap) -> str:
    if isinstance(row, Gap):
        return ""
    paper = f"<br>paper {mean_std(row.paper_mean, row.paper_std, row.digits)}" if row.paper_mean is not None else ""
    if row.mean is None:
        return row.verdict + paper
    interval = f"{decimals(row.low, row.digits)} … {decimals(row.high, row.digits)}"
    strength = "" if row.selection == "none" else f", μ {row.strength:g}{row.mark}"
    return (
        f"{mean_std(row.mean, row.std, row.digits)} {SIGNS.get(row.verdict, '')}".rstrip()
        + f"<br>{interval}{strength}{paper}"
    )


def _latex(row: Row | Gap) -> str:
    if isinstance(row, Gap):
        return ""
    paper = "" if row.paper_mean is None else f" {{\\scriptsize ({decimals(row.paper_mean, row.digits)})}}"
    if row.mean is None:
        return r"\emph{incomplete}" + paper
    mean, std = decimals(row.mean, row.digits), decimals(row.std, row.digits)
    return f"${mean}\\pm{std}${paper} {_LATEX_SIGNS.get(row.verdict, '')}".rstrip()


def _latex_below(row: Row | Gap) -> str:
    """The second line of a cell: the interval and the strength, or the number of recorded runs."""
    if isinstance(row, Gap):
        return ""
    if row.mean is None:
        return f"{{\\scriptsize {tex(row.verdict.partition(': ')[2])}}}"
    strength = "" if row.selection == "none" else f", $\\mu={_latex_number(row.strength or 0.0)}{row.mark}$"
    return f"{{\\scriptsize {decimals(row.low, row.digits)}--{decimals(row.high, row.digits)}{strength}}}"


def _latex_number(value: float) -> str:
    digits, power, exponent = f"{value:g}".partition("e")
    return digits if not power else f"{digits}\\cdot10^{{{int(exponent)}}}".removeprefix("1\\cdot")


def _latex_legend(experiment: Experiment, notes: Sequence[str]) -> str:
    signs = ", ".join(f"{sign} {word}" for word, sign in _LATEX_SIGNS.items())
    titles = " or ".join(dict.fromkeys(scale_of(line.dataset).title for line in experiment.lines))
    legend = (
        f"Mean ± population standard deviation of {titles}, the paper's mean in brackets; below, the "
        "95 % interval of the mean and the strength μ, with * if it is the smallest or largest that was tried. "
        "Verdict against the paper's mean:"
    )
    return " ".join([f"{tex(legend)} {signs}.", *map(tex, notes)])


def _legend(experiment: Experiment) -> list[str]:
    signs = ", ".join(f"{sign} {word}" for word, sign in SIGNS.items())
    return [
        *(note for note in notes_of(experiment) if note != DIFFERENCES),
        f"Signs: {signs}.",
    ]  # a pivot has no differences


_WRITTEN = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "#": r"\#",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "≤": r"$\leq$",
    "…": r"\dots{}",
    "×": r"$\times$",
    "φ": r"$\phi$",
    "Â": r"$\hat{A}$",
    "μ": r"$\mu$",
    "α": r"$\alpha$",
    "ω": r"$\omega$",
}


def tex(text: str) -> str:
    """Text for LaTeX."""
    return "".join(_WRITTEN.get(letter, letter) for letter in text)
