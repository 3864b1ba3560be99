"""A run's page in a browser, with calm names and with hostile ones."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import expect

from propreg.report import run_page
from propreg.report.live import Live
from propreg.running.compare import numbers
from report.looking import DESKTOP, PHONE, Scheme, Started, Watched, looking, scroll_through
from report.samples import HOSTILE, graphs_record, hostile_record, run_record


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "index.html"
    path.write_text(run_page(run_record()), encoding="utf-8")
    return path


@pytest.fixture
def watched(started: Started, file: Path) -> Iterator[Watched]:
    with looking(started, file) as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing(started: Started, file: Path, size: tuple[int, int], scheme: Scheme) -> None:
    with looking(started, file, size, scheme) as watched:
        scroll_through(watched.page)
        assert watched.page.locator(".plot svg").count() == 8
        assert watched.page.evaluate("document.documentElement.scrollWidth") == size[0]
        assert watched.axe() == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing_on_a_page_of_graphs(started: Started, tmp_path: Path, size: tuple[int, int]) -> None:
    path = tmp_path / "graphs.html"
    path.write_text(run_page(graphs_record()), encoding="utf-8")
    with looking(started, path, size, "dark") as watched:
        scroll_through(watched.page)
        assert watched.page.evaluate("document.documentElement.scrollWidth") == size[0]
        assert watched.page.locator("#targets table").count() == 2
        assert watched.axe() == []


def test_runs_of_another_strength_are_listed_and_sorted(watched: Watched) -> None:
    page = watched.page
    expect(page.locator("#which-mu")).to_have_value("2")
    expect(page.locator("#run-table caption")).to_have_text("6 of 6 runs finished at μ = 0.5")
    page.locator("#which-mu").select_option("3")
    expect(page.locator("#run-table caption")).to_have_text("6 of 6 runs finished at μ = 1")
    head = page.locator("#run-table th", has_text="test %")
    head.get_by_role("button").click()
    column = page.locator("#run-table tbody tr td:nth-child(4)").all_inner_texts()
    assert [float(each) for each in column] == sorted(map(float, column), reverse=True)
    assert page.locator("#run-table tbody tr td:nth-child(5)").first.inner_text() == "−1.00"


def test_points_give_their_values(watched: Watched) -> None:
    plot = watched.page.locator("#strength .plot")
    plot.scroll_into_view_if_needed()
    plot.focus()
    watched.page.keyboard.press("ArrowRight")
    expect(watched.page.locator("#strength .readout")).to_contain_text("strength μ 0, accuracy in % 81.10")
    watched.page.keyboard.press("ArrowRight")
    watched.page.keyboard.press("ArrowRight")
    expect(watched.page.locator("#strength .readout")).to_contain_text("accuracy in % 85.10")
    expect(watched.page.locator("#strength .readout")).to_contain_text("6 of 6 runs")
    watched.page.keyboard.press("Escape")
    expect(watched.page.locator("#strength .tip")).to_be_hidden()


def test_differences_are_named_by_split(watched: Watched) -> None:
    plot = watched.page.locator("#splits .plot")
    plot.scroll_into_view_if_needed()
    plot.focus()
    watched.page.keyboard.press("ArrowRight")
    expect(watched.page.locator("#splits .readout")).to_contain_text("split 0: 4.000")


def test_pictures_are_tables_too(watched: Watched) -> None:
    page = watched.page
    page.locator("#strength").scroll_into_view_if_needed()
    page.locator("#strength details.numbers summary").click()
    expect(page.locator("#strength details tbody tr")).to_have_count(8)  # four strengths, test and validation


def test_a_point_says_what_other_lines_have_there(watched: Watched) -> None:
    page = watched.page
    page.locator("#strength .plot").scroll_into_view_if_needed()
    page.locator("#strength .plot").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#strength .readout")).to_contain_text("test accuracy")
    expect(page.locator("#strength .readout")).to_contain_text("validation accuracy: 82.10")
    assert page.locator("#strength .crosshair").count() == 1
    page.keyboard.press("Escape")
    assert page.locator("#strength .crosshair").count() == 0


def test_a_dot_of_the_map_says_what_became_of_its_node(watched: Watched) -> None:
    page = watched.page
    page.locator("#nodes .charts").scroll_into_view_if_needed()
    page.locator("#nodes .plot svg").wait_for()
    page.locator("#nodes .plot").focus()
    page.keyboard.press("ArrowDown")
    said = set()
    for _ in range(4):
        said.add(page.locator("#nodes .readout").inner_text())
        page.keyboard.press("ArrowDown")
    assert "fixed: right with the regularizer only (1), n2: dogs; plain cats, regularized dogs" in said
    expect(page.locator("#nodes .legend button")).to_have_count(4)


@pytest.mark.parametrize("kind", ["SVG", "PNG", "CSV"])
def test_pictures_are_saved_as_files(watched: Watched, kind: str) -> None:
    page = watched.page
    page.locator("#strength .takeaway").scroll_into_view_if_needed()
    with page.expect_download() as started:
        page.locator("#strength .takeaway").get_by_role("button", name=kind).click()
    assert started.value.suggested_filename == f"accuracy-against-mu.{kind.lower()}"
    content = started.value.path().read_bytes()
    if kind == "SVG":
        root = ElementTree.fromstring(content)
        strokes = {each.get("style", "") for each in root.iter() if each.tag.endswith("path")}
        assert all("stroke: " in style and "fill: " in style for style in strokes), "there is no style sheet outside"
        assert any("stroke: rgb" in style for style in strokes)
    elif kind == "PNG":
        assert content.startswith(b"\x89PNG")
        assert len(content) > 5000
    else:
        rows = list(csv.DictReader(content.decode().splitlines()))
        assert [row["x"] for row in rows if row["series"] == "test accuracy"] == ["0", "0.1", "0.5", "1"]
        assert float(next(row["y"] for row in rows if row["x"] == "0.5")) == pytest.approx(85.1)


def test_a_recipe_is_copied_whole(watched: Watched) -> None:
    page = watched.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = page.locator("#recipe .copy-frame").last
    block.scroll_into_view_if_needed()
    block.get_by_role("button", name="Copy").click()
    expect(block.get_by_role("button")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == block.locator("pre").inner_text()


def test_a_section_has_an_address(watched: Watched) -> None:
    link = watched.page.get_by_role("link", name="Link to: Training curves")
    link.focus()
    watched.page.keyboard.press("Enter")
    expect(watched.page).to_have_url(re.compile("#training$"))


@pytest.mark.slow
@pytest.mark.parametrize("width", [DESKTOP[0], PHONE[0]], ids=["desktop", "phone"])
def test_hostile_names_stay_names(started: Started, tmp_path: Path, width: int) -> None:
    for number, text in enumerate(HOSTILE):
        path = tmp_path / f"{number}.html"
        path.write_text(run_page(hostile_record(text)), encoding="utf-8")
        with looking(started, path, (width, 9000)) as watched:  # so high that every picture is drawn at once
            page = watched.page
            page.locator("#nodes .plot svg").last.wait_for()
            page.locator("#which-mu").select_option("0")
            page.locator("#splits details.numbers summary").click()
            assert page.locator(".plot svg").count() == 10
            assert page.locator("img, main script, textarea").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth") == width, text[:40]


@pytest.mark.slow
def test_a_page_of_a_run_that_trains_loads_itself_again_until_it_is_paused(started: Started) -> None:
    def training(done: int) -> dict[str, Any]:
        test = np.array(run_record()["test"])
        test.reshape(-1)[done:] = np.nan
        return run_record(finished=False, training=True, test=numbers(test))

    watched = started.window(DESKTOP, "light", {})
    page = watched.page
    with Live(str, in_thread=False) as live:
        page.goto(live.url)
        expect(page.locator("body")).to_contain_text("No training is finished yet")
        live.update(lambda: training(20))
        expect(page.locator("#answer")).to_contain_text("Training: 20 of 24 are finished")
        watched.errors.clear()  # the text before the first page names no icon, so that the browser asks for one
        watched.requests.clear()
        assert watched.axe() == []
        button = page.get_by_role("button", name="Pause updates")
        button.click()
        live.update(lambda: training(22))
        live.make()
        page.wait_for_timeout(2500)
        expect(page.locator("#answer")).to_contain_text("Training: 20 of 24 are finished")
        page.get_by_role("button", name="Resume updates").click()
        expect(page.locator("#answer")).to_contain_text("Training: 22 of 24 are finished")
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Resume updates")).to_be_visible()
        page.get_by_role("button", name="Resume updates").click()
        live.end(run_page(run_record()))
        expect(page.get_by_role("button", name="updates")).to_have_count(0)
        expect(page.locator("#answer")).not_to_contain_text("Training:")
    assert watched.errors == []
    assert {*watched.requests} <= {live.url, "data:,"}
    page.goto("about:blank")
