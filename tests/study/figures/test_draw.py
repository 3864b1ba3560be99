"""Pictures: the same bytes each time, every format, and nothing missing that is not said."""

import itertools
import subprocess
import sys
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Sheet
from matplotlib.text import Text

from propreg.data.errors import DataError
from propreg.store.errors import StudyError
from propreg.store.results import Results
from propreg.study.figures.build import figure_data, figure_names
from propreg.study.figures.drawing.marks import move_apart
from propreg.study.figures.drawing.save import our_settings, render, save_figure
from propreg.study.figures.drawing.sheet import draw
from propreg.study.figures.drawing.style import LOOKS
from propreg.study.figures.parts import Figure, Level, Panel, Series
from study.figures.made_up import Case, recorded
from study.figures.test_tsne import made_up_record

STARTS = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}


def _accuracy(case: Case) -> float:
    return 75 + case.run.split + 3 * case.mu * (1.2 - case.mu) + case.cell.unmask


@cache
def _figure(name: str, dataset: str | None = None) -> Figure:
    measures = {"omega": 1.0, "length": 2.0}
    runs = recorded({"overview": "table1"}.get(name, name), _accuracy, measures=lambda _: measures, only=_gcn)
    return figure_data(name, runs, dataset=dataset, tsne=made_up_record() if name == "fig-tsne" else None)


def _gcn(case: Case) -> bool:
    return case.line.model.startswith("gcn") and case.method != "laplacian-sum"


def _drawn(figure: Figure) -> Sheet:
    """The sheet, with every word in its place."""
    with our_settings():
        sheet = draw(figure)
        sheet.draw_without_rendering()
    return sheet


def _words(sheet: Sheet) -> str:
    return "\n".join(text.get_text() for text in sheet.findobj(Text) if isinstance(text, Text))


@pytest.mark.parametrize("name", figure_names())
def test_twice_the_same_svg(name: str) -> None:
    figure = _figure(name)
    first = render(figure, ".svg")
    assert first == render(figure, ".svg")
    assert b"<dc:date>" not in first
    assert figure.title.encode() in first


@pytest.mark.parametrize("suffix", STARTS)
def test_every_format_is_the_same_twice_and_has_no_date(suffix: str, tmp_path: Path) -> None:
    figure = _figure("fig-mask")
    for name in ("a", "b"):
        save_figure(figure, tmp_path / f"{name}{suffix.upper()}")
    first, second = (tmp_path / f"{name}{suffix.upper()}" for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(STARTS[suffix])
    assert b"CreationDate" not in first.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [first.name, second.name], "nothing half written"


def test_another_process_makes_the_same_bytes() -> None:
    code = (
        "import hashlib; from propreg.store.results import Results; "
        "from propreg.study.figures.build import figure_data; from propreg.study.figures.drawing.save import render; "
        "print(hashlib.sha256(render(figure_data('fig-mask', Results()), '.svg')).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_the_users_settings_change_nothing_and_stay() -> None:
    figure = _figure("overview")
    before = render(figure, ".svg")
    with mpl.rc_context({"font.size": 20, "axes.grid": False, "svg.hashsalt": "other"}):
        assert render(figure, ".svg") == before
        assert mpl.rcParams["font.size"] == 20


@pytest.mark.parametrize("name", figure_names())
def test_what_is_missing_is_said_in_the_picture(name: str) -> None:
    figure = figure_data(name, Results())
    assert figure.missing
    words = _words(draw(figure)).replace("\n", " ")
    for line in figure.missing:
        assert line in words


def test_an_empty_panel_says_why() -> None:
    sheet = draw(_figure("fig-training-nodes"))
    assert "GAT: 0 of 3,575 runs recorded" in _words(sheet)
    assert "P-reg (official-code form)" in _words(sheet)


def test_a_series_without_runs_is_called_so_in_the_legend() -> None:
    words = _words(draw(_figure("fig-strength")))
    assert "Laplacian (sum): not recorded" in words
    assert "Laplacian (mean)\n" in words


def test_lines_break_at_gaps_and_lonely_places_have_bars() -> None:
    series = Series(
        "gcn", "GCN", (0.0, 1.0, 2.0, 3.0), (1.0, None, 2.0, 3.0), (0.5, None, 1.5, 2.5), (1.5, None, 2.5, 3.5)
    )
    (axes,) = draw(Figure("n", "t", "", "", "", "", (), (Panel("p", "x", "y", (series,)),))).axes
    bar, line = (np.asarray(each.get_ydata()) for each in axes.lines)
    assert list(bar) == [0.5, 1.5]
    np.testing.assert_array_equal(line, [1.0, np.nan, 2.0, 3.0])


def test_values_below_the_view_are_marked_at_its_edge() -> None:
    series = Series("gcn", "GCN", (0.0, 1.0), (80.0, 20.0), (79.0, 19.0), (81.0, 21.0))
    (axes,) = draw(Figure("n", "t", "", "", "", "", (), (Panel("p", "x", "y", (series,), y_view=(70.0, 90.0)),))).axes
    assert axes.get_ylim() == (70.0, 90.0)
    np.testing.assert_array_equal(axes.lines[-1].get_xydata(), [[1.0, 70.0]])


def test_names_of_levels_do_not_overlap() -> None:
    levels = tuple(Level("plain", f"level {i}", 50.0 + i / 1000) for i in range(4))
    series = Series("gcn", "GCN", (0.0, 1.0), (0.0, 100.0))
    sheet = _drawn(Figure("n", "t", "", "", "", "", (), (Panel("p", "x", "y", (series,), levels),)))
    texts = [text for text in sheet.findobj(Text) if isinstance(text, Text) and text.get_text().startswith("level")]
    boxes = [Text.get_window_extent(text) for text in texts]  # of the words alone, without the line to them
    assert len(boxes) == 4
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


@pytest.mark.parametrize("places", [[], [0.5], [0.1, 0.2, 0.9], [0.5] * 5, [0.1, 0.11, 0.12, 0.2, 0.21]])
def test_spread_keeps_order_gap_and_middle(places: list[float]) -> None:
    moved = move_apart(places, 0.05)
    assert all(b - a >= 0.05 - 1e-9 for a, b in itertools.pairwise(moved))
    assert sum(moved) == pytest.approx(sum(places))


def test_looks_differ_without_color() -> None:
    """What one panel shows together has different marks or dashes, not only colors."""
    for group in (
        ("plain", "preg-reference", "preg-paper"),
        ("preg-reference", "preg-paper", "laplacian-mean", "laplacian-sum", "laplacian-official"),
        ("preg-reference", "preg-paper", "label_smoothing", "confidence_penalty-paper", "laplacian-mean"),
        ("gcn", "gat"),
        ("depth-2", "depth-3", "depth-4"),
    ):
        marks = [(LOOKS[key].mark, LOOKS[key].hollow) for key in group]
        assert len(set(marks)) == len(group)
        assert len({LOOKS[key].color for key in group}) == len(group)


@pytest.mark.parametrize("name", [*figure_names(), "fig-depth:all"])
def test_no_word_leaves_the_sheet(name: str) -> None:
    plain, _, dataset = name.partition(":")
    sheet = _drawn(_figure(plain, dataset or None))
    axis = [each for axes in sheet.axes for each in (axes.xaxis, axes.yaxis) if axes.axison]
    numbers = {id(text) for each in axis for text in each.get_ticklabels(which="both")}  # also those out of view
    pixels = FigureCanvasAgg(sheet).get_renderer()
    boxes = [(each.get_tightbbox(pixels), "an axis") for each in axis]
    boxes += [
        (text.get_window_extent(), text.get_text())
        for text in sheet.findobj(Text)
        if isinstance(text, Text) and text.get_text() and text.get_visible() and id(text) not in numbers
    ]
    for box, words in boxes:
        if box is not None:
            assert min(box.x0, box.y0) >= -1, words
            assert box.x1 <= sheet.bbox.x1 + 1, words
            assert box.y1 <= sheet.bbox.y1 + 1, words


def test_bad_places_are_one_sentence(tmp_path: Path) -> None:
    figure = _figure("overview")
    with pytest.raises(StudyError, match=r"ends in \.svg, \.png or \.pdf, got '\.jpg'"):
        save_figure(figure, tmp_path / "a.jpg")
    with pytest.raises(StudyError, match=r"ends in \.svg, \.png or \.pdf, got 'picture' without a suffix"):
        save_figure(figure, tmp_path / "picture")
    with pytest.raises(StudyError, match=r"There is no folder .*nowhere: create it"):
        save_figure(figure, tmp_path / "nowhere" / "a.svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        save_figure(figure, tmp_path / "folder.svg")
