"""The pictures of the site: what they are drawn from, and what the theory page says of them."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from building.picture_words import depth_words, depths, fig_depth, omega_words
from building.pictures import RECORDED, without_empty
from figures import equal_rows, fractional_depth, mu_curves, one_node, strong_mu
from figures.fractional_depth import LAYERS, PHIS, SPLITS, STRENGTHS, spread
from propreg.study.figures.build import figure_data
from propreg.study.figures.save import save_figure
from propreg.study.results import Results
from reference import softmax


def test_one_node_by_hand() -> None:
    """φ at node 0, from the definition: the mean of its four neighbours' logits."""
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
        unlabelled = [node for node in range(2 * size) if node not in strong_mu.LABELLED]
        assert np.abs(weak[unlabelled] - 0.5).max() < 0.1
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
    assert "rises" in omega_words()
    assert "between 2 and 3 layers" in depth_words()


def test_curves_of_mu_are_drawn_for_every_complete_line(results: Results) -> None:
    found = mu_curves.data(results)
    sheet = mu_curves.draw(found)
    lines = [str(line.get_gid()) for axes in sheet.axes for line in axes.get_lines() if line.get_gid()]
    assert sorted(lines) == sorted(each.line.model for mine in found.values() for each in mine)
    assert lines


def test_a_picture_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        fractional_depth.make(tmp_path / name)
        one_node.make(tmp_path / name)
    for file in ("fractional_depth.svg", "one_node.svg"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
        assert b"<dc:date>" not in (tmp_path / "a" / file).read_bytes()


def test_figures_leave_out_what_is_not_recorded(tmp_path: Path, results: Results) -> None:
    """The picture of a figure without any run is not shown, and the page says so."""
    assert "_made/" not in fig_depth(Results())
    assert "0 of 1,150" in fig_depth(Results())
    recorded = figure_data("fig-training-nodes", results)
    kept = without_empty(recorded)
    assert 0 < len(kept.panels) <= len(recorded.panels)
    assert not any(panel.empty for panel in kept.panels)
    assert kept.missing == recorded.missing
    save_figure(kept, tmp_path / "kept.svg")


def test_every_picture_of_a_page_is_made_and_described(texts: dict[str, str], docs: Path, results: Results) -> None:
    made = {f"_made/{name}.svg" for name in (*RECORDED, "mu_curves")}
    made |= {
        f"_made/{own.__name__.rpartition('.')[2]}.svg" for own in (one_node, equal_rows, strong_mu, fractional_depth)
    }
    shown = set()
    for text in texts.values():
        for file, alt in re.findall(r"```\{image\} (\S+)\n:alt: (.*)\n", text):
            assert len(alt.split()) > 8, file
            shown.add(file)
    shown |= set(re.findall(r"!\[[^\]]+\]\((\S+)\)", fig_depth(results))) | {"_made/fig-depth.svg"}
    assert {file for file in shown if file.startswith("_made/")} == made
    assert all((docs / file).exists() for file in shown - made)


def test_the_diagram_is_whole(docs: Path) -> None:
    svg = "{http://www.w3.org/2000/svg}"
    top = ET.parse(docs / "figures/engine.svg").getroot()
    assert top.find(f"{svg}title") is not None
    assert top.find(f"{svg}desc") is not None
    width, height = (float(each) for each in top.attrib["viewBox"].split()[2:])
    for text in top.iter(f"{svg}text"):
        assert 0 < float(text.attrib["x"]) < width
        assert 0 < float(text.attrib["y"]) < height
