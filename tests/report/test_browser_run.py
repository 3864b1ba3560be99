"""A run's page in a browser, with calm names and with hostile ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from propreg.report import run_page
from report.looking import DESKTOP, PHONE, Scheme, Started, Watched, looking, scroll_through
from report.samples import HOSTILE, hostile_record, run_record


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
        assert watched.page.locator(".plot svg").count() == 5
        assert watched.page.evaluate("document.documentElement.scrollWidth") == size[0]
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


@pytest.mark.slow
@pytest.mark.parametrize("width", [DESKTOP[0], PHONE[0]], ids=["desktop", "phone"])
def test_hostile_names_stay_names(started: Started, tmp_path: Path, width: int) -> None:
    for number, text in enumerate(HOSTILE):
        path = tmp_path / f"{number}.html"
        path.write_text(run_page(hostile_record(text)), encoding="utf-8")
        with looking(started, path, (width, 9000)) as watched:  # so high that every picture is drawn at once
            page = watched.page
            page.locator("#training .plot svg").last.wait_for()
            page.locator("#which-mu").select_option("0")
            page.locator("#splits details.numbers summary").click()
            assert page.locator(".plot svg").count() == 5
            assert page.locator("img, main script, textarea").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth") == width, text[:40]
