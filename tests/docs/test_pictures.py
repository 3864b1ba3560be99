"""The pictures of the site: what they are drawn from, and what the theory page says of them."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from building.pictures import FOLDER, without_empty
from figures import equal_rows, explore, fractional_depth, mu_curves, one_node, strong_mu
from figures.fractional_depth import LAYERS, PHIS, SPLITS, STRENGTHS, depths, spread
from propreg.store.results import Results
from propreg.study.figures.build import figure_data
from propreg.study.figures.drawing.save import save_figure
from reference import softmax


def test_one_node_by_hand() -> None:
    """φ at node 0, from the definition: the mean of its four neighbors' logits."""
    z = one_node.LOGITS.double().numpy()
    mean = z[1:].mean(axis=0)
    p, q = softmax(z[:1])[0], softmax(mean[None])[0]
    found = one_node.data()
    np.testing.assert_allclose(found.average, q, rtol=1e-5)
    by_hand = {
        "cross_entropy": -(p * np.log(q)).sum(),
        "kl": (p * np.log(p / q)).sum(),
        "squared_error": 0.5 * ((mean - z[0]) ** 2).sum(),
    }
    assert found.values == pytest.approx(by_hand, rel=1e-5)


def test_one_node_is_as_the_text_says() -> None:
    rows = np.array(one_node.data().probabilities)
    assert rows.argmax(axis=1).tolist() == [1, 0, 0, 0, 2]
    assert rows[1:].max(axis=1).min() > 0.6


def test_equal_rows_cost_their_entropy_with_cross_entropy_only() -> None:
    values = equal_rows.data().values
    p = np.array(equal_rows.SHARES)
    np.testing.assert_allclose(values["cross_entropy"], -(p * np.log(p) + (1 - p) * np.log(1 - p)), rtol=1e-12)
    for phi in ("kl", "squared_error"):
        np.testing.assert_allclose(values[phi], 0.0, atol=1e-14)


@pytest.mark.slow
def test_a_strong_term_makes_rows_equal_or_sure() -> None:
    """Squared error and KL: all nodes meet; cross entropy: each community sure of its own class."""
    found, size = strong_mu.data(), strong_mu.SIZE
    for phi in ("squared_error", "kl"):
        weak, middle, strong = (np.array(found.probability[phi][i]) for i in (0, 8, -1))
        unlabeled = [node for node in range(2 * size) if node not in strong_mu.LABELED]
        assert np.abs(weak[unlabeled] - 0.5).max() < 0.1
        assert middle[:size].min() > 0.7
        assert middle[size:].max() < 0.3
        assert np.ptp(strong) < 0.02
    sure = np.array(found.probability["cross_entropy"][-1])
    assert sure[:size].min() > 0.99
    assert sure[size:].max() < 0.01


def test_the_depth_record_is_whole() -> None:
    runs = fractional_depth.data()
    places = [("", depth, 0.0) for depth in LAYERS] + [(phi, 2, mu) for phi in PHIS for mu in STRENGTHS]
    assert sorted((run.phi, run.layers, run.mu, run.split) for run in runs) == sorted(
        (*place, split) for place in places for split in range(SPLITS)
    )


def test_the_depth_record_is_what_training_gives() -> None:
    """Two of its runs again; another machine rounds otherwise, so that they need not be equal to the last digit."""
    again = fractional_depth.train((2,), (1.0,), splits=1, epochs=fractional_depth.EPOCHS)
    kept = {(run.phi, run.layers, run.mu, run.split): run for run in fractional_depth.data()}
    assert len(again) == 1 + len(PHIS)
    for run in again:
        before = kept[run.phi, run.layers, run.mu, run.split]
        assert run.omega / run.length == pytest.approx(before.omega / before.length, abs=0.05)
        assert run.omega == pytest.approx(before.omega, rel=0.35)
        assert run.test == pytest.approx(before.test, abs=0.05)


def test_depth_as_the_text_says() -> None:
    """ω follows the outputs' scale; scale-free, cross entropy is a fraction of a layer, and more μ no more of it."""
    runs = fractional_depth.data()
    for phi, rises in (("cross_entropy", True), ("squared_error", False)):
        omegas = [spread(runs, 2, mu, phi, scaled=False).mean for mu in STRENGTHS]
        assert (omegas[-1] > omegas[0]) == rises
        assert all((value > spread(runs, scaled=False).mean) == rises for value in omegas)
        lengths = {mu: np.mean([r.length for r in runs if (r.phi, r.mu) == (phi, mu)]) for mu in STRENGTHS}
        assert (lengths[STRENGTHS[-1]] > lengths[STRENGTHS[0]]) == rises
    sure = list(depths("cross_entropy").values())
    assert all(2 < value < 3 for value in sure)
    assert sure[-1] <= max(sure[:-1])
    assert max(depths("squared_error").values()) < 2


def test_the_graph_to_explore_is_what_training_gives() -> None:
    kept, again = explore.data(), explore.train()
    assert (again.edges, again.classes, again.labeled) == (kept.edges, kept.classes, kept.labeled)
    for mu in kept.strengths[:7]:  # before the fall, which rounding may move by a step
        assert again.accuracy(mu) == pytest.approx(kept.accuracy(mu), abs=0.05)
    assert again.accuracy(kept.strengths[-1]) == pytest.approx(1 / 3)


def test_the_graph_to_explore_is_as_the_text_says() -> None:
    found = explore.data()
    page = (FOLDER.parent / "index.md").read_text(encoding="utf-8")
    best = max(found.accuracy(mu) for mu in found.strengths)
    assert f"gets {found.accuracy(0.0):.0%} of the other" in " ".join(page.split())
    assert f"neighbors that agree, it gets {best:.0%};" in " ".join(page.split())
    assert found.accuracy(0.5) == best
    assert len(set(np.array(found.percent[-1]).argmax(1)[~np.isin(np.arange(60), found.labeled)])) == 1


def test_curves_of_mu_are_drawn_for_every_complete_line(results: Results) -> None:
    found = mu_curves.data(results)
    sheet = mu_curves.draw(found)
    lines = [str(line.get_gid()) for axes in sheet.axes for line in axes.get_lines() if line.get_gid()]
    assert sorted(lines) == sorted(each.line.model for mine in found.values() for each in mine)
    assert lines


def test_a_picture_is_the_same_bytes_each_time() -> None:
    for module in (fractional_depth, one_node):
        drawn = module.picture()
        assert drawn == module.picture()
        assert b"<dc:date>" not in drawn


def test_figures_leave_out_what_is_not_recorded(tmp_path: Path, results: Results) -> None:
    recorded = figure_data("fig-training-nodes", results)
    kept = without_empty(recorded)
    assert 0 < len(kept.panels) <= len(recorded.panels)
    assert not any(panel.empty for panel in kept.panels)
    assert kept.missing == recorded.missing
    save_figure(kept, tmp_path / "kept.svg")


def test_figure_4_as_the_text_says(results: Results) -> None:
    """Its runs are all there; ω rises and scale-free ω falls, with depth and with μ; deeper GCNs are less accurate."""
    figure = figure_data("fig-depth", results)
    assert not figure.missing
    panels = {panel.title: panel for panel in figure.panels}
    for title, sign in (("ω against μ", 1), ("scale-free ω against μ", -1), ("test accuracy against μ", -1)):
        depths = [level.value for level in panels[title].levels if level.source == "ours"]
        assert len(depths) == 3
        assert sorted(depths, reverse=sign < 0) == depths
    for title, sign in (("ω against μ", 1), ("scale-free ω against μ", -1)):
        ends = {s.key: (s.y[0], s.y[-1]) for s in panels[title].series}
        assert {"preg-paper", "preg-reference"} <= set(ends)
        assert all(sign * ((last or 0) - (first or 0)) > 0 for first, last in ends.values())
    for series in panels["test accuracy against μ"].series[:2]:
        y = [value or 0.0 for value in series.y]
        assert y[0] < max(y)
        assert y[-1] < max(y)


def test_figure_2b_as_the_text_says(results: Results) -> None:
    """All nodes beat none with a GCN everywhere, most on Cora, and a tenth of the nodes brings most of it."""
    gains = {}
    for panel in figure_data("fig-mask", results).panels:
        series = next(each for each in panel.series if each.key == "gcn")
        none, tenth, everyone = (dict(zip(series.x, series.y, strict=True))[at] or 0.0 for at in (0.0, 0.1, 1.0))
        gains[panel.title] = (everyone - none, tenth - none)
    assert len(gains) == 7
    assert min(whole for whole, _ in gains.values()) > 0
    assert max(gains, key=lambda name: gains[name][0]) == "Cora"
    assert all(tenth > whole / 2 for name, (whole, tenth) in gains.items() if name != "PubMed")
    (listing,) = figure_data("fig-mask", results).listings
    verdicts = [row[2] for row in listing.rows if row[0].startswith("GCN")]
    assert (len(verdicts), verdicts.count("better")) == (7, 6)


def test_every_picture_of_a_page_is_made_and_described(texts: dict[str, str], docs: Path) -> None:
    shown = set()
    for text in texts.values():
        for alt, file in re.findall(r"!\[([^\]]*)\]\((\S+)\)", text):
            assert len(alt.split()) > 8, file
            assert (docs / file).is_file()
            shown.add(Path(file).name)
    assert shown == {file.name for file in FOLDER.glob("*.svg")}


@pytest.mark.slow
def test_the_picture_of_strong_mu_is_what_is_drawn() -> None:
    assert strong_mu.picture() == (FOLDER / "strong_mu.svg").read_bytes(), "run make pages"


def test_the_diagram_is_whole(docs: Path) -> None:
    svg = "{http://www.w3.org/2000/svg}"
    top = ET.parse(docs / "figures/engine.svg").getroot()
    assert top.find(f"{svg}title") is not None
    assert top.find(f"{svg}desc") is not None
    width, height = (float(each) for each in top.attrib["viewBox"].split()[2:])
    for text in top.iter(f"{svg}text"):
        assert 0 < float(text.attrib["x"]) < width
        assert 0 < float(text.attrib["y"]) < height
