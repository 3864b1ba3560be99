"""Tables on a terminal: whole where they fit, else narrower lines, with what is left out said."""

import re

import pytest

from propreg.study.spec.experiment import load_experiment
from propreg.study.tables.rows import Row
from propreg.study.tables.text import DROPPED_FIRST, HEAD, NOTES, to_terminal, to_text

TABLE = load_experiment("table1")
PLAIN = Row(
    "gcn", "cora", "plain", "", "none", 0.0, 25, 79.93, 1.1, 79.25, 80.82, None, None, 79.47, 0.89, "reproduced"
)
PICKED = Row(
    *("gcn", "cora", "confidence_penalty", "official sign", "validation", 0.45, 25, 82.72, 1.09, 81.86, 83.57),
    *(2.79, 0.0625, 82.83, 1.16, "inconclusive", "reproduced", 1.0, 3),
)
BEST = Row(**(vars(PICKED) | {"selection": "test", "strength": 0.5, "mean": 83.25, "failed": 0}))
LITTLE = Row(
    *("gat", "cora", "preg", "paper", "validation", None, 7, None, None, None, None, None, None, 82.83, 1.16),
    "incomplete: 7 of 500 runs",
)
UNJUDGED = {"verdict": "", "gain_verdict": ""}
ROWS = [PLAIN, PICKED, BEST, LITTLE]
WIDEST = max(map(len, to_text(TABLE, ROWS).removesuffix("\n".join(NOTES) + "\n").splitlines()))
NARROWEST = len("    validation  7 of 500 runs  inconclusive (3 NaN)")


def tables(text: str) -> list[str]:
    """The lines of a text above its notes."""
    return text.partition("\nMean ±")[0].splitlines()


def columns(text: str) -> list[str]:
    return re.split(r" {2,}", next(line for line in tables(text) if line.startswith("    picked on")).strip())


def unwrapped(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [WIDEST, WIDEST + 40])
def test_where_it_fits_the_table_is_what_a_pipe_gets(width: int) -> None:
    found = to_terminal(TABLE, ROWS, width)
    assert tables(found) == tables(to_text(TABLE, ROWS))
    assert unwrapped(found) == unwrapped(to_text(TABLE, ROWS))


def test_no_line_is_wider_than_the_terminal() -> None:
    for width in range(NARROWEST, WIDEST):
        found = to_terminal(TABLE, ROWS, width)
        assert max(map(len, found.splitlines())) <= width
        assert unwrapped(" ".join(NOTES)) in unwrapped(found)


def test_columns_go_in_their_order_and_are_named() -> None:
    seen = []
    for width in range(WIDEST - 1, NARROWEST - 1, -1):
        text = to_terminal(TABLE, ROWS, width)
        shown = columns(text)
        gone = [name for name in HEAD[1:] if name not in shown]
        assert set(gone) == set(DROPPED_FIRST[: len(gone)])
        said = f"Left out to fit {width} columns: {', '.join(gone)}. For all, end the command with | less -S"
        assert (said in unwrapped(text)) == bool(gone)
        assert ("Left out" in text) == bool(gone)
        seen.append(len(gone))
    assert seen == sorted(seen)
    assert set(seen) == set(range(len(DROPPED_FIRST) + 1))


def test_eighty_columns() -> None:
    text = to_terminal(TABLE, ROWS, 80)
    assert tables(text) == [
        "Table 1: accuracy with P-reg and other regularizers, random splits",
        "",
        "gcn on cora",
        "    picked on   strength  accuracy       difference  verdict",
        "  plain",
        "                          79.93 ± 1.10               reproduced",
        "  confidence penalty (official sign)",
        "    validation  0.45      82.72 ± 1.09   +2.79       inconclusive (3 NaN)",
        "    test        0.5       83.25 ± 1.09   +2.79       inconclusive",
        "",
        "gat on cora",
        "    picked on   strength  accuracy       difference  verdict",
        "  P-reg (paper form)",
        "    validation            7 of 500 runs              incomplete",
    ]


def test_a_fixed_strength_says_so() -> None:
    text = to_terminal(TABLE, [Row(**(vars(PICKED) | {"selection": "fixed", "failed": 0}))], 80)
    assert "    fixed      0.45      82.72 ± 1.09  +2.79       82.83 ± 1.16  inconclusive" in tables(text)


def test_columns_without_a_word_are_not_missed() -> None:
    """An experiment that the paper has no numbers of has no verdicts either."""
    rows = [Row(**(vars(row) | {"paper_mean": None, "paper_std": None, **UNJUDGED})) for row in (PLAIN, BEST)]
    text = to_terminal(TABLE, rows, 100)
    assert columns(text) == ["picked on", "strength", "accuracy", "95 % interval", "difference", "p", "won"]
    assert "Left out" not in text


def test_a_model_on_a_dataset_has_one_block_though_an_experiment_comes_back_to_it() -> None:
    for width in (80, 1000):
        text = to_terminal(TABLE, [PLAIN, LITTLE, BEST], width)
        assert text.count("gcn on cora\n") == text.count("gat on cora\n") == 1
        assert text.index("P-reg (paper form)") > text.index("confidence penalty")
    wide = to_text(TABLE, [Row(**(vars(row) | {"paper_mean": None, **UNJUDGED})) for row in (PLAIN, BEST)])
    assert " won\n" in wide, "nothing stands in the columns after it"


def test_an_end_of_the_grid_is_marked() -> None:
    assert "  0.5*  " in to_text(TABLE, [Row(**(vars(BEST) | {"at_end": True}))])
    assert "0.5*" not in to_text(TABLE, [BEST])
