"""What a place of the study's page opens: its numbers in words, the curve against μ, and the runs."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from propreg.store.run import Run
from propreg.study.spec.experiment import load_experiment
from report.looking import Started, looking


@pytest.fixture
def page(started: Started, study_file: Path) -> Iterator[Page]:
    with looking(started, study_file) as watched:
        yield watched.page


def test_a_cell_opens_its_runs_with_the_keyboard(page: Page) -> None:
    cell = page.locator("#table1 tr[data-method=preg][data-pick=validation] td button").first
    cell.focus()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog")
    expect(dialog.locator("h2")).to_have_text("GCN with P-reg (official-code form) on Cora")
    expect(dialog.locator(".facts")).to_contain_text("μ = 0.4")
    expect(dialog).to_contain_text(": significantly better. It is better in")
    (line,) = [
        each
        for each in load_experiment("table1").lines
        if (each.dataset, each.model, each.method.name) == ("cora", "gcn", "preg-reference")
    ]
    runs = dialog.locator("tbody tr")
    expect(runs).to_have_count(25)
    place = [mu.strength for mu in line.cells].index(0.4)
    key = Run(line.cells[place], 0, 1).key
    second = runs.nth(1)
    assert second.locator("code").get_attribute("title") == key
    assert second.locator("th").inner_text() == "0"
    assert second.locator("td").first.inner_text() == "1"
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert page.evaluate("document.activeElement.dataset.line") == cell.get_attribute("data-line")


def test_a_dialog_says_what_its_units_are_and_what_is_asked_of_them(page: Page) -> None:
    for section, units in (("table1", "5 splits"), ("table-standard-gcn-gat", "10 seeds")):
        page.locator(f"#{section} tr[data-method=preg][data-pick=validation] td button").first.click()
        words = page.locator("dialog .body")
        expect(words).to_contain_text(re.compile(rf"paired t test over the {units} gives p = 0\.\d\d\d\."))
        expect(words).to_contain_text(
            "A difference is significant if p < 0.05, that is if its 95 % interval excludes 0"
        )
        expect(words).to_contain_text("Its gain over the plain model, against the gain that the paper prints: ")
        assert "optimistic" not in words.inner_text()
        page.keyboard.press("Escape")


def test_a_dialog_of_what_is_best_on_test_says_that_it_flatters(page: Page) -> None:
    page.locator("#filter-pick").select_option("test")
    page.locator("#table1 tr[data-method=preg][data-pick=test] td button").first.click()
    expect(page.locator("dialog .body")).to_contain_text("picked on the test accuracy that is shown here")


def test_the_curve_marks_both_picks_and_gives_values(page: Page) -> None:
    page.locator("#table1 tr[data-method=preg][data-pick=validation] td button").first.click()
    dialog = page.locator("dialog")
    expect(dialog.locator(".plot svg")).to_be_visible()
    marks = dialog.locator(".plot .mark").all_text_contents()
    assert marks[0] == "picked on validation: μ = 0.4"
    assert len(marks) <= 2
    expect(dialog.locator(".band").first).to_be_attached()
    plot = dialog.locator(".plot")
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(dialog.locator(".readout")).to_contain_text(re.compile(r"strength μ 0\.1.* to .*"))
    page.keyboard.press("ArrowDown")
    expect(dialog.locator(".readout")).to_contain_text("validation accuracy")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(dialog.locator("#which-mu")).to_have_value("19")
    expect(dialog.locator("caption").last).to_contain_text("at μ = 1")


def test_runs_sort_inside_the_dialog(page: Page) -> None:
    page.locator(".square").first.click()
    head = page.locator("dialog th", has_text="test %")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    column = page.locator("dialog tbody tr td:nth-child(4)").all_inner_texts()
    assert [float(each) for each in column] == sorted(map(float, column), reverse=True)
    expect(page.locator("dialog [role=status]")).to_have_text("Sorted by test %, descending.")


def test_what_is_missing_says_so_in_its_dialog(page: Page) -> None:
    page.locator("#table1 tr[data-model=gat] td button").first.click()
    dialog = page.locator("dialog")
    expect(dialog).to_contain_text("0 of 25 runs are recorded")
    expect(dialog.locator("code").last).to_contain_text("propreg reproduce table1 --only dataset=cora,model=gat")
    page.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_without_a_decompressor_the_tables_stay_and_the_reason_is_said(started: Started, study_file: Path) -> None:
    with looking(started, study_file) as watched:
        watched.page.evaluate("delete window.DecompressionStream")
        watched.page.locator(".square").first.click()
        expect(watched.page.locator("dialog")).to_contain_text("a browser from 2023 or later can")
