"""The study's page in a browser: sort, filter, click and keys work, axe finds nothing, nothing leaves the page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from report.looking import DESKTOP, PHONE, Scheme, Started, Watched, looking, scroll_through


@pytest.fixture
def watched(started: Started, study_file: Path) -> Iterator[Watched]:
    with looking(started, study_file) as found:
        yield found


@pytest.fixture
def page(watched: Watched) -> Page:
    return watched.page


def shown(page: Page, selector: str) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(f"{selector} >> visible=true").all_inner_texts()]


def test_every_picture_is_drawn(page: Page) -> None:
    scroll_through(page)
    for name in ("table1", "fig-mask", "fig-strength", "fig-tsne", "fig-depth"):
        expect(page.locator(f"#{name} .plot svg").first).to_be_visible()
    assert page.locator("#fig-tsne .cloud").count() == 5 * 3


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_link_leads_to_its_section_past_pictures_not_drawn_yet(
    started: Started, study_file: Path, size: tuple[int, int]
) -> None:
    with looking(started, study_file, size) as watched:
        watched.page.locator('nav a[href="#ablation"]').click()
        watched.page.wait_for_timeout(2000)  # pictures near the section are drawn, and must not push it away
        top = watched.page.evaluate("document.getElementById('ablation').getBoundingClientRect().top")
        assert 0 <= top < 200


def test_on_a_wide_screen_the_contents_stand_beside_the_text_and_follow_it(started: Started, study_file: Path) -> None:
    with looking(started, study_file, (1500, 900)) as watched:
        nav, text = (watched.page.locator(each).bounding_box() for each in ("nav ul", "#overview"))
        assert nav is not None
        assert text is not None
        assert nav["x"] + nav["width"] <= text["x"]
        current = watched.page.locator("nav a[aria-current]")
        expect(current).to_have_text("Overview")
        watched.page.evaluate("document.getElementById('ablation').scrollIntoView()")
        expect(current).to_have_text("Ablation")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_axe_finds_nothing(started: Started, study_file: Path, size: tuple[int, int], scheme: Scheme) -> None:
    with looking(started, study_file, size, scheme) as watched:
        scroll_through(watched.page)
        # Places of all kinds, but not a thousand of each.
        watched.page.locator("#filter-dataset").select_option("cora")
        watched.page.locator("#filter-method").select_option("preg")
        watched.page.locator("#filter-pick").select_option("")
        assert watched.axe() == []
        watched.page.locator(".square").first.click()
        expect(watched.page.locator("dialog .facts")).to_be_visible()
        assert watched.axe("dialog") == []


@pytest.mark.slow
def test_axe_finds_nothing_in_lists_and_tables_of_pictures(watched: Watched) -> None:
    page = watched.page
    page.locator("#filter-method").select_option("laplacian")
    page.locator("#filter-dataset").select_option("cora")
    page.locator("#table1 .switch label", has_text="as a list").click()
    page.locator("#fig-mask .charts").scroll_into_view_if_needed()
    page.locator("#fig-mask .charts details.numbers summary").click()
    page.locator("#fig-mask details[data-list] summary").click()
    expect(page.locator("#table1 table.list")).to_be_visible()
    assert watched.axe("#table1") == []
    page.locator("#filter-method").select_option("plain")
    expect(page.locator("#fig-mask table.list")).to_be_visible()
    assert watched.axe("#fig-mask") == []


def test_nothing_sticks_out_on_a_phone(started: Started, study_file: Path) -> None:
    with looking(started, study_file, PHONE) as watched:
        scroll_through(watched.page)
        assert watched.page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
        watched.page.locator("#table1 .entry").first.tap()
        expect(watched.page.locator("dialog .facts")).to_be_visible()
        assert watched.page.evaluate("document.querySelector('dialog').scrollWidth") <= PHONE[0]


def test_columns_sort_and_say_so(page: Page) -> None:
    head = page.locator("#table1 th[data-dataset=cora]")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    cells = "#table1 table.wide tbody tr:not([hidden]) td:nth-child(2)"
    values = [
        float(value) for value in page.locator(cells).evaluate_all("(all) => all.map((e) => e.dataset.sort)") if value
    ]
    assert values == sorted(values, reverse=True)
    assert len(set(values)) > 3
    expect(page.locator("#said")).to_have_text("Sorted by Cora, descending.")
    page.keyboard.press("Enter")  # the button still has the focus
    assert head.get_attribute("aria-sort") == "ascending"
    again = page.locator(cells).evaluate_all("(all) => all.map((e) => e.dataset.sort)")
    assert [float(value) for value in again if value] == sorted(values)
    assert again[-1] == ""  # what is missing stays last
    assert page.locator("#table1 th[aria-sort]").count() == 1


def test_filters_choose_columns_and_rows(page: Page) -> None:
    def rows() -> list[str]:
        return shown(page, "#table1 table.wide tbody tr th")

    everything = len(rows())
    assert shown(page, "#table1 thead th")[1:3] == ["Cora", "CiteSeer"]
    page.locator("#filter-model").select_option("gcn")
    assert 0 < len(rows()) < everything
    assert all(row.startswith("GCN") for row in rows())
    page.locator("#filter-method").select_option("preg")
    assert rows() == ["GCN P-reg (official-code form)", "GCN P-reg (paper form)"]
    page.locator("#filter-pick").select_option("")
    assert [row for row in rows() if row.endswith("best on test")] == rows()[1::2]
    page.locator("#filter-dataset").select_option("citeseer")
    assert shown(page, "#table1 thead th")[1:] == ["CiteSeer"]
    expect(page.locator("#said")).to_have_text(re.compile(r"\d+ rows shown\."))
    # No table of the standard split has Photo.
    page.locator("#filter-dataset").select_option("photo")
    expect(page.locator("#table-standard-gcn-gat .nothing").first).to_be_visible()
    page.get_by_role("button", name="Reset").click()
    expect(page.locator("#filters button")).to_be_disabled()
    assert len(rows()) == everything


def test_a_fixed_strength_is_shown_once_whatever_is_chosen(page: Page) -> None:
    # By keyboard: pictures above it are drawn late, so that a click may miss.
    page.locator("#fig-tsne details[data-list] summary").press("Enter")
    expect(page.locator("#fig-tsne table.list")).to_be_visible()
    for pick in ("validation", "test", ""):
        page.locator("#filter-pick").select_option(pick)
        listed = shown(page, "#fig-tsne table.list tbody tr")
        assert [row.split(" GCN ")[0] for row in listed] == [
            "plain",
            "Laplacian (mean)",
            "Laplacian (official-code form)",
            "P-reg (official-code form)",
            "P-reg (paper form)",
        ]
        assert [" 0.5 fixed " in row for row in listed] == [False, True, True, True, True]
    page.locator("#fig-tsne table.list .place").nth(3).click()
    expect(page.locator("dialog .facts")).to_contain_text("μ = 0.5")
    expect(page.locator("dialog tbody tr")).to_have_count(10)
    assert shown(page, "dialog h3") == ["The runs"], "one strength is no curve"
    assert page.locator("dialog option").all_inner_texts() == ["μ = 0.5"]


def test_a_table_becomes_a_list_that_sorts_by_every_number(page: Page) -> None:
    page.locator("#table1 .switch label", has_text="as a list").click()
    table = page.locator("#table1 table.list")
    expect(table).to_be_visible()
    expect(page.locator("#table1 table.wide")).to_be_hidden()
    head = table.locator("th", has_text="against plain")
    head.get_by_role("button").click()
    cells = table.locator("tbody tr:not([hidden]) td:nth-child(10)").evaluate_all(
        "(all) => all.map((e) => e.dataset.sort)"
    )
    values = [float(each) for each in cells if each]
    assert values == sorted(values, reverse=True)
    assert values[0] > 3


def test_the_other_presets_matrix_is_shown_when_asked(page: Page) -> None:
    page.locator("label", has_text="paper form").click()
    expect(page.locator("[data-shown-by=matrix][data-value=paper]")).to_be_visible()
    expect(page.locator("[data-shown-by=matrix][data-value=reference]")).to_be_hidden()


def test_another_dataset_of_figure_four(page: Page) -> None:
    page.locator("#fig-depth").scroll_into_view_if_needed()
    expect(page.locator("#fig-depth .plot svg").first).to_be_visible()
    page.locator("#which-fig-depth").select_option(label="Photo")
    expect(page.locator("#fig-depth .plot")).to_have_count(0)
    expect(page.locator("#fig-depth .found")).to_contain_text("Photo")


def test_the_theme_is_switched_and_remembered(started: Started, study_file: Path) -> None:
    with looking(started, study_file, scheme="light") as watched:
        page = watched.page
        color = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(color)
        button = page.get_by_role("button", name="Dark")
        assert button.get_attribute("aria-pressed") == "false"
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        dark = page.evaluate(color)
        assert dark != light
        watched.requests.clear()
        page.reload()
        assert page.evaluate(color) == dark
    with looking(started, study_file, scheme="dark") as watched:
        assert watched.page.evaluate(color) == dark


def test_the_skip_link_comes_first_and_the_focus_is_seen(page: Page) -> None:
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.locator(".square").first.focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_without_scripts_the_tables_are_there(started: Started, study_file: Path) -> None:
    with looking(started, study_file, java_script_enabled=False) as watched:
        expect(watched.page.locator("#table1 table.wide")).to_be_visible()
        expect(watched.page.locator("#table1 .charts")).to_contain_text("JavaScript")


@pytest.mark.slow
def test_variants_are_shown_on_request(watched: Watched) -> None:
    rows = watched.page.locator('table.wide[data-section="table1"] tbody tr:not([hidden])')
    few = rows.count()
    watched.page.locator("#filter-variants").select_option("")
    assert rows.count() == few / 6 * 9
    watched.page.locator("#filters button[type=reset]").click()
    expect(rows).to_have_count(few)
