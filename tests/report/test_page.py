"""The frame of both pages: self-contained, locked, whole."""

import base64
import hashlib
import re
from importlib import resources
from pathlib import Path

import pytest

from propreg.report import run_page
from propreg.report.page import STYLES, THEME
from propreg.report.run_html import SCRIPTS as RUN_SCRIPTS
from propreg.report.study_html import SCRIPTS as STUDY_SCRIPTS
from report.reading import read
from report.samples import run_record

STATIC = resources.files("propreg.report").joinpath("static")


@pytest.fixture(scope="module", params=["study", "run"])
def page(request: pytest.FixtureRequest, study_html: str) -> str:
    return study_html if request.param == "study" else run_page(run_record())


def test_scripts_and_style_are_allowed_by_their_hash_and_nothing_else_is(page: str) -> None:
    reading = read(page)
    (policy,) = [each.attributes["content"] for each in reading.all("meta") if "http-equiv" in each.attributes]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    inlined = [each for each in reading.elements if each.tag in ("script", "style") and "type" not in each.attributes]
    assert [each.tag for each in inlined] == ["style", "script", "script"]
    for each in inlined:
        digest = base64.b64encode(hashlib.sha256(each.text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_nothing_is_asked_of_the_network(page: str) -> None:
    reading = read(page)
    for each in reading.elements:
        for name in ("src", "srcset", "href", "action", "poster", "data", "background"):
            assert each.attributes.get(name, "#").startswith(("#", "data:,")), each
        # Attributes that the policy would forbid: they would only be there by mistake.
        assert not any(name.startswith("on") or name == "style" for name in each.attributes), each
    style = "".join(each.text for each in reading.all("style"))
    assert "url(" not in style
    assert "@import" not in style


def test_ids_are_unique_and_references_find_them(page: str) -> None:
    reading = read(page)
    ids = [each.attributes["id"] for each in reading.elements if "id" in each.attributes]
    assert len(ids) == len(set(ids))
    for each in reading.elements:
        for name in ("aria-labelledby", "for"):
            if name in each.attributes:
                assert each.attributes[name] in ids
        if each.attributes.get("href", "").startswith("#"):
            assert each.attributes["href"][1:] in ids


def test_every_file_of_the_page_is_used_and_cannot_end_its_element() -> None:
    names = {*STYLES, THEME, *RUN_SCRIPTS, *STUDY_SCRIPTS}
    assert {file.name for file in STATIC.iterdir()} == names
    for name in names:
        text = STATIC.joinpath(name).read_text(encoding="utf-8")
        assert not re.search(r"</\s*(script|style)|<!--", text, re.IGNORECASE)


@pytest.mark.parametrize("name", sorted({THEME, *RUN_SCRIPTS, *STUDY_SCRIPTS}))
def test_text_never_becomes_markup_in_scripts(name: str) -> None:
    text = STATIC.joinpath(name).read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|fetch\(", text)


def test_templates_switch_no_escaping_off() -> None:
    for file in resources.files("propreg.report").joinpath("templates").iterdir():
        text = file.read_text(encoding="utf-8")
        assert "|safe" not in text.replace(" ", "")
        assert "autoescape" not in text


def test_the_page_is_the_same_every_time() -> None:
    assert run_page(run_record()) == run_page(run_record())


def test_files_are_short_enough_to_read() -> None:
    root = Path(str(STATIC)).parent
    for file in [*root.rglob("*.py"), *root.rglob("*.js"), *root.rglob("*.css"), *root.rglob("*.html")]:
        assert len(file.read_text(encoding="utf-8").splitlines()) <= 300, file
