"""Tables side by side: the order of their rows, and what compiling their LaTeX needs (nothing here compiles it)."""

import re

import pytest

from propreg.store.results import Results
from propreg.study.spec.experiment import Experiment, load_experiment
from propreg.study.spec.part import Line
from propreg.study.tables.pivot import Gap, pivot, to_latex, to_markdown
from propreg.study.tables.rows import Row, table_rows
from study.sweeping import made_up

ROW = Row(
    *("gcn", "cora", "preg", "reference", "validation", 0.45, 25, 82.72, 1.09, 81.86, 83.57, 2.79, 0.0625),
    *(82.83, 1.16, "reproduced"),
)


def _made_up(lines: tuple[Line, ...]) -> Results:
    """Of every third line the last run is missing."""
    results = Results()
    for number, line in enumerate(lines):
        runs = list(line.runs())
        for run in runs[: -1 if number % 3 == 2 else None]:
            results.take(run.cell.text, [(run.split, run.seed, *vars(made_up(run)).values(), "b")])
    return results


def _rows(experiment: Experiment) -> list[Row]:
    return table_rows(experiment, _made_up(experiment.lines))


def _changed(**changes: object) -> str:
    """The lines of the table's body for a row like the one above."""
    text = to_latex(load_experiment("table1"), [Row(**(vars(ROW) | changes))])
    return text.partition("\\midrule\n")[2].partition("\\bottomrule")[0]


@pytest.mark.parametrize("name", ["table1", "table-phi", "ablation", "fig-mask", "fig-tsne", "fig-depth"])
def test_what_a_compiler_needs_is_so(name: str) -> None:
    experiment = load_experiment(name)
    rows = _rows(experiment)
    text = to_latex(experiment, rows)
    assert text.isascii()
    assert text.splitlines()[0] == r"% needs \usepackage{booktabs}"
    begun, ended = (re.findall(rf"\\{word}{{(.+?)}}", text) for word in ("begin", "end"))
    assert begun == ended[::-1] == ["table*", "tabular"]
    for line in text.splitlines()[1:]:
        bare = re.sub(r"\\[%&_#${}]", "", line)
        assert bare.count("{") == bare.count("}")
        assert bare.count("$") % 2 == 0
        assert "%" not in bare
        outside = re.sub(r"\$[^$]*\$", "", bare)
        assert not set("_^#~") & set(outside)
    columns = 2 + len({row.dataset for row in rows})
    assert f"\\begin{{tabular}}{{{'l' * columns}}}" in text
    body = text.partition("\\toprule\n")[2].partition("\\bottomrule")[0].splitlines()
    cells = [line for line in body if line not in (r"\midrule", r"\addlinespace")]
    assert all(line.endswith(r" \\") and len(re.findall(r"(?<!\\)&", line)) == columns - 1 for line in cells)
    assert len(cells) % 2 == 1, "a head, then two lines each"


def test_a_place_has_its_interval_and_its_strength_below() -> None:
    assert _changed().splitlines() == [
        r"gcn & P-reg (official-code form, picked on validation) & $82.72\pm1.09$ {\scriptsize (82.83)} $=$ \\",
        r"&  & {\scriptsize 81.86--83.57, $\mu=0.45$} \\",
    ]


def test_the_plain_model_has_no_strength_and_what_is_incomplete_no_interval() -> None:
    plain = _changed(method="plain", preset="", selection="none", strength=0.0)
    assert r"&  & {\scriptsize 81.86--83.57} \\" in plain
    little = _changed(strength=None, mean=None, std=None, low=None, high=None, verdict="incomplete: 7 of 500 runs")
    assert r"& \emph{incomplete} {\scriptsize (82.83)} \\" in little
    assert r"&  & {\scriptsize 7 of 500 runs} \\" in little


@pytest.mark.parametrize(
    ("strength", "shown"), [(1.0, "1"), (1e-5, "10^{-5}"), (3e-5, r"3\cdot10^{-5}"), (0.0003, "0.0003")]
)
def test_small_strengths_are_powers_of_ten(strength: float, shown: str) -> None:
    assert f"$\\mu={shown}$" in _changed(strength=strength)


def test_labels_cannot_become_commands() -> None:
    assert r"P-reg (a\_b \& 5 \% \#1 \$x\$ \{\textbackslash{}\}, picked" in _changed(preset=r"a_b & 5 % #1 $x$ {\}")


def test_the_signs_are_explained() -> None:
    text = to_latex(load_experiment("table1"), [ROW])
    assert r"$=$ reproduced, $\uparrow$ higher, $\downarrow$ lower, ? inconclusive." in text
    assert r"the 95 \% interval of the mean and the strength $\mu$" in text


def test_rows_keep_their_order_where_the_first_dataset_lacks_runs() -> None:
    """Its best-on-test row is met last, after other methods; it must still be below its own method's."""
    nothing = dict.fromkeys(("mean", "std", "low", "high", "difference", "p_value", "strength"))
    cora = Row(**(vars(ROW) | nothing | {"verdict": "incomplete: 7 of 500 runs"}))
    picked = Row(**(vars(ROW) | {"dataset": "citeseer"}))
    best = Row(**(vars(picked) | {"selection": "test"}))
    other = Row(**(vars(ROW) | {"preset": "paper"}))
    fixed = Row(**(vars(ROW) | {"selection": "fixed", "dataset": "pubmed"}))
    assert [row.cells for row in pivot([cora, fixed]).rows] == [(cora, Gap.NOT_ASKED), (Gap.NOT_ASKED, fixed)]
    table = pivot([cora, other, picked, best])
    assert [(row.preset, row.selection) for row in table.rows] == [
        ("reference", "validation"),
        ("reference", "test"),
        ("paper", "validation"),
    ]
    assert table.datasets == ("cora", "citeseer")
    assert [row.cells for row in table.rows] == [(cora, picked), (Gap.MISSING, best), (other, Gap.NOT_ASKED)]
    lines = to_markdown(load_experiment("table1"), [cora, other, picked, best]).splitlines()
    labels = [line.split(" | ")[1] for line in lines if line.startswith("| gcn")]
    assert labels == [
        "P-reg (official-code form, picked on validation)",
        "P-reg (official-code form, best on test)",
        "P-reg (paper form, picked on validation)",
    ]
