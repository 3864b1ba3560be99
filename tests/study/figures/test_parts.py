"""The plain data of figures: what JSON knows, and captions that say everything."""

import json

import pytest

from propreg.store.errors import StudyError
from propreg.store.results import Results
from propreg.study.figures.build import figure_data, figure_names
from propreg.study.figures.parts import Figure, Series
from study.figures.made_up import recorded


def test_a_caption_has_all_the_words() -> None:
    figure = Figure("n", "t", "About.", "Marks.", "a claim.", "a finding.", ("GAT: 0 of 5 runs",))
    assert (
        figure.caption
        == "About. Marks. The paper: a claim. The project's record: a finding. Missing: GAT: 0 of 5 runs."
    )
    assert figure.as_dict()["caption"] == figure.caption
    assert Figure("n", "t", "About.", "", "", "", ()).caption == "About."


def test_a_series_is_empty_without_a_whole_place() -> None:
    assert Series("k", "l", (1.0, None), (None, 2.0)).empty
    assert not Series("k", "l", (1.0,), (0.0,)).empty


@pytest.mark.parametrize("name", figure_names())
@pytest.mark.parametrize("full", [False, True])
def test_every_figure_is_json_and_says_what_is_missing(name: str, full: bool) -> None:
    runs = {"overview": "table1"}.get(name, name)
    results = (
        recorded(runs, lambda case: 70.0 + case.run.split, measures=lambda _: {"omega": 1.0, "length": 2.0})
        if full
        else Results()
    )
    figure = figure_data(name, results)
    text = json.dumps(figure.as_dict(), allow_nan=False)
    assert json.loads(text)["name"] == name
    drawn = [series for panel in figure.panels for series in panel.series if not series.key.startswith("paper")]
    if full and name != "fig-tsne":
        assert figure.missing == ()
        assert figure.listings
        assert figure.finding
        assert any(not series.empty for series in drawn)
        assert not any(series.missing for series in drawn)
    if not full:
        assert "0 of" in " ".join(figure.missing)
        assert all(series.empty for series in drawn)
        assert all(panel.empty for panel in figure.panels)
        assert figure.listings == ()
        assert figure.finding == ""


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(StudyError, match=r"no figure 'fig-musk'. Did you mean 'fig-mask'\? Known are: fig-depth, "):
        figure_data("fig-musk", Results())
    with pytest.raises(StudyError, match=r"no dataset of fig-depth 'corra'. Did you mean 'cora'\?"):
        figure_data("fig-depth", Results(), dataset="corra")
    with pytest.raises(StudyError, match="Only fig-depth takes a dataset"):
        figure_data("fig-mask", Results(), dataset="cora")
