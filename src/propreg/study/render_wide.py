"""A table as the paper prints it, datasets side by side: Markdown, LaTeX and HTML."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

from propreg.study.experiment import Experiment
from propreg.study.render import DIFFERENCES, NOTES, PICKED, decimals, spread
from propreg.study.table import Row

SIGNS = {"reproduced": "=", "higher": "↑", "lower": "↓", "cannot tell": "?"}
_LATEX_SIGNS = {"reproduced": "$=$", "higher": r"$\uparrow$", "lower": r"$\downarrow$", "cannot tell": "?"}


@dataclass(frozen=True)
class Wide:
    """A row of the wide table: the model, the method's label, and a place per dataset (None: not in the table)."""

    model: str
    label: str
    places: tuple[Row | None, ...]


def widen(rows: Sequence[Row]) -> tuple[list[str], list[Wide]]:
    """The datasets and the wide rows, both in the order they first come in; an incomplete line has no second row."""
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    wide: dict[tuple[str, ...], dict[str, Row]] = {}
    for row in rows:
        wide.setdefault((row.model, row.method, row.preset, row.selection), {})[row.dataset] = row
    found = []
    for (model, method, preset, selection), members in wide.items():
        how = "μ fixed" if selection == "fixed" else PICKED[selection]
        said = ", ".join(part for part in (preset, how) if part)
        label = f"{method} ({said})" if said else method
        found.append(Wide(model, label, tuple(members.get(name) for name in datasets)))
    order = list(dict.fromkeys(each.model for each in found))
    return datasets, sorted(found, key=lambda each: order.index(each.model))


def to_markdown(experiment: Experiment, rows: Sequence[Row], remarks: Sequence[str] = ()) -> str:
    """For GitHub and the like; the paper's number stands below ours."""
    datasets, wide = widen(rows)
    out = [f"**{experiment.title}**", "", f"| model | method | {' | '.join(datasets)} |"]
    out.append("|---" * (2 + len(datasets)) + "|")
    for each in wide:
        cells = "".join(f" {_marked(place)} |" for place in each.places)
        out.append(f"| {each.model} | {each.label} |{cells}")
    return "\n".join([*out, "", *_legend(), *remarks]) + "\n"


def to_html(experiment: Experiment, rows: Sequence[Row], remarks: Sequence[str] = ()) -> str:
    """A table element and its notes, without styles of its own."""
    datasets, wide = widen(rows)
    out = ["<table>", f"<caption>{html.escape(experiment.title)}</caption>"]
    heads = "".join(f"<th>{html.escape(name)}</th>" for name in ("model", "method", *datasets))
    out.append(f"<thead><tr>{heads}</tr></thead>\n<tbody>")
    for each in wide:
        names = f"<th>{html.escape(each.model)}</th><th>{html.escape(each.label)}</th>"
        cells = "".join(f"<td>{_marked(place)}</td>" for place in each.places)
        out.append(f"<tr>{names}{cells}</tr>")
    notes = "".join(f"<p>{html.escape(note)}</p>\n" for note in (*_legend(), *remarks))
    return "\n".join([*out, "</tbody>", "</table>"]) + "\n" + notes


def to_latex(experiment: Experiment, rows: Sequence[Row], remarks: Sequence[str] = ()) -> str:
    """A table for booktabs: the paper's number in brackets, the 95 % interval and μ in small print below."""
    datasets, wide = widen(rows)
    out = [r"% needs \usepackage{booktabs}", r"\begin{table*}", f"\\caption{{{_tex(experiment.title)}}}", r"\centering"]
    out += [f"\\begin{{tabular}}{{ll{'l' * len(datasets)}}}", r"\toprule"]
    out += [" & ".join(["model", "method", *map(_tex, datasets)]) + r" \\", r"\midrule"]
    for i, each in enumerate(wide):
        if i and each.model != wide[i - 1].model:
            out.append(r"\midrule")
        elif i:
            out.append(r"\addlinespace")
        out.append(" & ".join([_tex(each.model), _tex(each.label), *map(_latex, each.places)]) + r" \\")
        out.append(" & ".join(["", "", *map(_latex_below, each.places)]).lstrip() + r" \\")
    out += [r"\bottomrule", r"\end{tabular}", r"\par\smallskip"]
    out.append(f"\\parbox{{\\linewidth}}{{\\scriptsize {_latex_legend(remarks)}}}")
    return "\n".join([*out, r"\end{table*}"]) + "\n"


def _marked(row: Row | None) -> str:
    if row is None:
        return ""
    paper = f"<br>paper {spread(row.paper_mean, row.paper_std)}" if row.paper_mean is not None else ""
    if row.mean is None:
        return row.verdict + paper
    interval = f"{decimals(row.low)} … {decimals(row.high)}"
    strength = "" if row.selection == "none" else f", μ {row.strength:g}{row.mark}"
    return f"{spread(row.mean, row.std)} {SIGNS.get(row.verdict, '')}".rstrip() + f"<br>{interval}{strength}{paper}"


def _latex(row: Row | None) -> str:
    if row is None:
        return ""
    paper = "" if row.paper_mean is None else f" {{\\scriptsize ({decimals(row.paper_mean)})}}"
    if row.mean is None:
        return r"\emph{incomplete}" + paper
    return f"${decimals(row.mean)}\\pm{decimals(row.std)}${paper} {_LATEX_SIGNS.get(row.verdict, '')}".rstrip()


def _latex_below(row: Row | None) -> str:
    """The second line of a place: the interval and the strength, or how many runs there are."""
    if row is None:
        return ""
    if row.mean is None:
        return f"{{\\scriptsize {_tex(row.verdict.partition(': ')[2])}}}"
    strength = "" if row.selection == "none" else f", $\\mu={_latex_number(row.strength or 0.0)}{row.mark}$"
    return f"{{\\scriptsize {decimals(row.low)}--{decimals(row.high)}{strength}}}"


def _latex_number(value: float) -> str:
    digits, power, exponent = f"{value:g}".partition("e")
    return digits if not power else f"{digits}\\cdot10^{{{int(exponent)}}}".removeprefix("1\\cdot")


def _latex_legend(remarks: Sequence[str]) -> str:
    signs = ", ".join(f"{sign} {word}" for word, sign in _LATEX_SIGNS.items())
    said = (
        "Mean ± population standard deviation of test accuracy in per cent, the paper's mean in brackets; below them "
        "the 95 % interval of the mean and the strength μ, with * if it is the smallest or largest that was tried. "
        "Verdicts on the paper's mean:"
    )
    return " ".join([f"{_tex(said)} {signs}.", *map(_tex, remarks)])


def _legend() -> list[str]:
    signs = ", ".join(f"{sign} {word}" for word, sign in SIGNS.items())
    return [*(note for note in NOTES if note is not DIFFERENCES), f"Signs: {signs}."]  # which are not shown here


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
    "…": r"\dots{}",
    "×": r"$\times$",
    "φ": r"$\phi$",
    "Â": r"$\hat{A}$",
    "μ": r"$\mu$",
    "α": r"$\alpha$",
    "ω": r"$\omega$",
}


def _tex(text: str) -> str:
    return "".join(_WRITTEN.get(letter, letter) for letter in text)
