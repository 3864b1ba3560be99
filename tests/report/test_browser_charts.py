"""Charts in a browser: lines where their values are, one shape for a series everywhere, axes written alike."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from propreg.report import study_html
from propreg.store.results import Results
from propreg.study.figures.parts import Figure, Panel, Series
from report.looking import PHONE, Started, looking, scroll_through

MUS = (0.0, 0.25, 0.5, 0.75, 1.0)
FALLING = (80.0, 82.0, 60.0, 14.0, 78.0)  # leaves the axis and comes back
RISING = (79.0, 80.0, 95.0, 81.0, 70.0)
VIEW = (76.0, 84.0)
SHAPED = "[data-shape]:not([data-shape=up]):not([data-shape=down])"
# What a mark looks like, wherever it stands and however large it is.
OUTLINE = """(mark) => {
    const box = mark.getBBox();
    const share = (text) => (text.match(/-?[\\d.]+/g) || []).map((v, i) =>
        Math.round(((Number(v) - (i % 2 ? box.y : box.x)) / (i % 2 ? box.height : box.width)) * 20) / 20);
    return `${mark.tagName} ${mark.getAttribute('class')} ${mark.textContent} ${share(mark.getAttribute('d') || '')}`;
}"""


def around(values: tuple[float, ...], room: float) -> dict[str, Any]:
    return {"low": tuple(v - room for v in values), "high": tuple(v + room for v in values)}


def panels() -> tuple[Panel, ...]:
    """Two series that leave the axis, unknown ones in another order, and logarithmic axes, wide and narrow."""
    falling = Series("laplacian-sum", "falling", MUS, FALLING, **around(FALLING, 1.0))
    rising = Series("preg-paper", "rising", MUS, RISING, **around(RISING, 2.0))
    sunk = Series("plain", "sunk", MUS, (80.0, 80.0, 60.0, 70.0, 80.0))
    crossed = Series("gat", "both measured", MUS, RISING, **around(RISING, 3.0), x_low=MUS, x_high=MUS)
    mine, yours = (Series(name, name, MUS, FALLING) for name in ("mine", "constructor"))
    wide = Series("laplacian-mean", "wide", (1e-9, 1e-6, 1e-3, 1.0), (77.0, 78.0, 79.0, 80.0))
    narrow = Series("laplacian-mean", "wide", (0.01, 0.1, 1.0, 10.0), (77.0, 78.0, 79.0, 80.0))

    def panel(title: str, *series: Series, **settings: Any) -> Panel:
        return Panel(title, "μ", "accuracy", series, **({"x_view": (0.0, 1.0), "y_view": VIEW} | settings))

    log: dict[str, Any] = {"x_scale": "log", "x_view": None}
    return (
        panel("outside", falling, rising, sunk),
        panel("both", crossed),
        panel("unknown", mine, yours),
        panel("turned", yours, falling, mine),
        panel("wide", wide, **log),
        panel("narrow", narrow, **log),
    )


@pytest.fixture(scope="module")
def charts_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    figure = Figure("fig-mask", "t", "a", "m", "c", "f", (), panels(), columns=2)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study_html, "pictures", lambda *_: {"fig-mask": [study_html.packed_figure(figure, "", None)]})
        html = study_html.page_of(Results())
    file = tmp_path_factory.mktemp("charts") / "index.html"
    file.write_text(html, encoding="utf-8")
    return file


@pytest.fixture
def page(started: Started, charts_file: Path) -> Iterator[Page]:
    with looking(started, charts_file) as watched:
        watched.page.locator("#fig-mask").scroll_into_view_if_needed()
        expect(watched.page.locator("#fig-mask .plot svg")).to_have_count(len(panels()))
        yield watched.page


def plot(page: Page, title: str) -> Locator:
    return page.locator("#fig-mask .panel", has=page.get_by_role("heading", name=title, exact=True)).locator(".plot")


def height_of(chart: Locator) -> Any:
    """The scale, from the labels of the axis: a function from a value to its place in pixels."""
    ticks = chart.locator("text.tick[text-anchor=end]").evaluate_all(
        "(all) => all.map((e) => [Number(e.textContent), Number(e.getAttribute('y')) - 4])"
    )
    (a, at_a), (b, at_b) = ticks[0], ticks[-1]
    return lambda value: at_a + (value - a) / (b - a) * (at_b - at_a)


def heights(chart: Locator, key: str, kind: str) -> list[float]:
    drawn = chart.locator(f".series[data-key={key}] path.{kind}").get_attribute("d")
    assert drawn is not None
    return [float(pair.split()[1]) for pair in drawn.strip("MZ").split("L")]


def test_lines_and_bands_are_drawn_where_their_values_are(page: Page) -> None:
    chart = plot(page, "outside")
    y = height_of(chart)
    for key, values, room in (("laplacian-sum", FALLING, 1.0), ("preg-paper", RISING, 2.0)):
        assert heights(chart, key, "line") == pytest.approx([y(v) for v in values], abs=0.1)
        both = [y(v + room) for v in values] + [y(v - room) for v in reversed(values)]
        assert heights(chart, key, "band") == pytest.approx(both, abs=0.1)


def test_what_lies_outside_is_cut_off_at_the_axis(page: Page) -> None:
    chart = plot(page, "outside")
    chart.scroll_into_view_if_needed()
    y, box = height_of(chart), chart.bounding_box()
    assert box is not None
    (left, right) = chart.locator("line.axis").evaluate("(e) => [e.x1.baseVal.value, e.x2.baseVal.value]")

    def there(mu: float, value: float) -> list[str]:
        place = [box["x"] + left + mu * (right - left), box["y"] + y(value)]
        found: list[str] = page.evaluate(
            """([x, y]) => document.elementsFromPoint(x, y).filter((e) => e.matches('path.line, path.band'))
            .map((e) => e.closest('[data-key]').dataset.key + ' ' + e.classList[0])""",
            place,
        )
        return found

    # From 82 at 0.25 straight toward 60 at 0.5: at 0.3 it is at 77.6, well inside.
    assert "laplacian-sum line" in there(0.3, 77.6)
    assert "laplacian-sum band" in there(0.3, 78.2)
    assert not there(0.75, 76.05), "a line along the edge would say that the value is there"
    assert not there(0.35, 73.2)
    assert not there(0.45, 92.0)


def test_only_points_outside_have_an_arrow_and_none_hides_another(page: Page) -> None:
    chart = plot(page, "outside")
    y = height_of(chart)

    def marks(key: str) -> list[str]:
        shapes = chart.locator(f".series[data-key={key}] [data-shape]")
        found: list[str] = shapes.evaluate_all("(all) => all.map((e) => e.dataset.shape)")
        return found

    assert marks("laplacian-sum") == ["cross", "cross", "down", "down", "cross"]
    assert marks("preg-paper") == ["square", "square", "up", "square", "down"]
    assert marks("plain") == ["ring", "ring", "down", "down", "ring"]
    places = chart.locator("[data-shape=down], [data-shape=up]").evaluate_all(
        "(all) => all.map((e) => { const b = e.getBBox(); return [b.x, b.y, b.y + b.height]; })"
    )
    assert len({(round(x), round(top)) for x, top, _ in places}) == len(places) == 6
    assert all(y(VIEW[1]) - 1 <= top and bottom <= y(VIEW[0]) + 1 for _, top, bottom in places)


def test_a_point_outside_gives_its_value(page: Page) -> None:
    chart = plot(page, "outside")
    chart.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#fig-mask .readout").first).to_contain_text("μ 0.75, accuracy 14.00 (13.00 to 15.00)")


def test_where_both_are_measured_there_are_bars_and_no_band(page: Page) -> None:
    assert plot(page, "both").locator("path.band").count() == 0
    assert plot(page, "both").locator("line.bar").count() == 2 * len(MUS)


def outlines(within: Locator) -> set[str]:
    return set(within.evaluate_all(f"(all) => all.map({OUTLINE})"))


def shapes_of(page: Page, figure: str) -> dict[str, set[str]]:
    """How each series of a figure is marked, in its panels and in the legend."""
    charts = page.locator(f"#{figure} .charts")
    keys = charts.locator("button[data-key]").evaluate_all("(all) => all.map((e) => e.dataset.key)")
    return {
        key: outlines(charts.locator(f".series[data-key='{key}'] {SHAPED}, button[data-key='{key}'] {SHAPED}"))
        for key in keys
    }


def test_series_without_a_look_of_their_own_keep_theirs_in_all_panels(page: Page) -> None:
    found = shapes_of(page, "fig-mask")
    assert {"mine", "constructor"} <= set(found)
    assert [len(each) for each in found.values()] == [1] * len(found)
    assert len({*found["mine"], *found["constructor"], *found["laplacian-sum"]}) == 3


def test_a_series_has_one_shape_of_its_own_in_panels_and_legend(started: Started, study_file: Path) -> None:
    with looking(started, study_file) as watched:
        page = watched.page
        scroll_through(page)
        for figure in ("table1", "fig-strength", "fig-depth", "fig-mask"):
            expect(page.locator(f"#{figure} .plot svg").first).to_be_visible()
            found = shapes_of(page, figure)
            assert [len(each) for each in found.values()] == [1] * len(found), figure
            ours = [next(iter(each)) for key, each in found.items() if not key.startswith("paper")]
            assert len(set(ours)) == len(ours) > 0, figure


def test_labels_of_a_logarithmic_axis_are_written_alike(page: Page) -> None:
    def across(title: str) -> list[str]:
        return plot(page, title).locator("text.tick[text-anchor=middle]").all_text_contents()

    assert len(across("wide")) > 2
    assert all(re.fullmatch("10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", each) for each in across("wide")), across("wide")
    assert across("narrow") == ["0.01", "0.1", "1", "10"]


def test_an_axis_has_ticks_enough_to_read_it_on_a_phone(started: Started, charts_file: Path) -> None:
    with looking(started, charts_file, PHONE) as watched:
        watched.page.locator("#fig-mask").scroll_into_view_if_needed()
        chart = plot(watched.page, "outside")
        expect(chart.locator("svg")).to_be_visible()
        assert chart.locator("text.tick[text-anchor=end]").count() >= 3


@pytest.fixture
def study(started: Started, study_file: Path) -> Iterator[Page]:
    with looking(started, study_file) as watched:
        yield watched.page


def test_nodes_of_the_cloud_are_named_on_hover(study: Page) -> None:
    study.locator("#fig-tsne .charts").scroll_into_view_if_needed()
    plot = study.locator("#fig-tsne .plot").first
    plot.scroll_into_view_if_needed()
    expect(plot.locator("svg")).to_be_visible()
    box = plot.bounding_box()
    assert box is not None
    words = ""
    for share in (0.15, 0.5, 0.85):
        study.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        words += study.locator("#fig-tsne .tip").first.inner_text()
    assert re.search(r"node \d+\s*class [012]", words)


def test_series_can_be_hidden(study: Page) -> None:
    study.locator("#fig-strength .charts").scroll_into_view_if_needed()
    expect(study.locator("#fig-strength .plot svg").first).to_be_visible()
    button = study.locator("#fig-strength .legend button").first
    before = study.locator("#fig-strength .panel >> nth=0").locator(".series").count()
    button.click()
    assert button.get_attribute("aria-pressed") == "false"
    assert study.locator("#fig-strength .panel >> nth=0").locator(".series").count() == before - 1
