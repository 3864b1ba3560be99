"""The site builds without a warning, all its links lead somewhere, and it asks the network for nothing."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from building.site import CONTENTS, for_sphinx, reachable, with_lists

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """The ids, links and loaded files of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.images: list[str | None] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if "id" in found:
            self.ids.add(found["id"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(found["href"])
        if tag in ("script", "img", "iframe") and "src" in found:
            self.loaded.append(found["src"])
        if tag == "img":
            self.images.append(found.get("alt"))


def build(target: Path) -> Path:
    """As ``make docs`` does it."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-E", "-q", "-b", "html"]
    folders = ["-d", str(target / "trees"), str(ROOT / "docs"), str(target / "html")]
    calm = {**os.environ, "PYTHONWARNINGS": "default"}  # Python's, which are not Sphinx's
    done = subprocess.run([*command, *folders], capture_output=True, text=True, env=calm, check=False)
    assert done.returncode == 0, done.stderr
    return target / "html"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("site"))


@pytest.mark.slow
def test_the_site(site: Path, texts: dict[str, str]) -> None:
    """One test for all that needs no browser, so that workers do not build the site for each of them."""
    pages = {file: Page(file) for file in site.rglob("*.html")}
    assert {f"{Path(name).stem}.html" for name in texts} <= {file.name for file in site.glob("*.html")}
    every_internal_link_leads_somewhere(site, pages)
    nothing_is_loaded_from_the_network(site, pages)
    substitutions_and_formulas_are_replaced(site)
    every_picture_has_words(pages)
    the_command_line_is_in_it(site)


@pytest.mark.slow
def test_axe_finds_nothing_serious(site: Path) -> None:
    """Every page in either theme, once as wide as it gets and once on a phone, where tables and pictures scroll."""
    from report.looking import DESKTOP, PHONE, Scheme, browser

    seen: tuple[tuple[tuple[int, int], Scheme], ...] = ((PHONE, "light"), (DESKTOP, "dark"))
    looked = 0
    with browser() as started:
        for size, scheme in seen:
            watched = started.window(size, scheme, {})
            for file in sorted(site.glob("*.html")):
                watched.page.goto(file.as_uri())
                found = [line for line in watched.axe() if line.startswith(("serious", "critical"))]
                assert found == [], f"{file.name}, {size}, {scheme}"
                looked += 1
    assert looked >= 2 * 10


@pytest.mark.slow
def test_the_slider_of_the_front_page_changes_predictions(site: Path) -> None:
    from report.looking import DESKTOP, browser

    with browser() as started:
        page = started.window(DESKTOP, "light", {}).page
        page.goto((site / "index.html").as_uri())
        assert page.locator('img[src$="explore.svg"]').count() == 0  # the slider stands in its place
        told, slider = page.locator(".explore output"), page.locator("#explore-mu")
        assert told.inner_text().startswith("μ = 0: 27 of 45 nodes")
        before = page.locator(".explore circle.unlabeled").evaluate_all("all => all.map((c) => c.style.fill)")
        slider.press("End")
        after = page.locator(".explore circle.unlabeled").evaluate_all("all => all.map((c) => c.style.fill)")
        assert len(set(before)) == 3
        assert len(set(after)) == 1
        assert told.inner_text().startswith("μ = 3: 15 of 45 nodes")


def test_parameters_below_one_another_are_a_list() -> None:
    termless = "<dt><dl>\n<dd><em>z</em>,</dd>\n<dd><em>mu</em>,</dd>\n</dl>\n</dt>"
    assert with_lists(termless) == (
        '<dt><ul class="parameters">\n<li><em>z</em>,</li>\n<li><em>mu</em>,</li>\n</ul>\n</dt>'
    )
    whole = "<dl>\n<dt>term</dt>\n<dd>what it is</dd>\n</dl>"
    assert with_lists(whole) == whole


def test_what_may_scroll_takes_the_focus_and_has_a_name() -> None:
    assert reachable("<pre>x</pre>") == '<pre tabindex="0">x</pre>'
    assert reachable('<p><img alt="x" src="x.svg" /></p>') == (
        '<div tabindex="0" role="group" aria-label="picture" class="picture"><img alt="x" src="x.svg" /></div>'
    )
    assert 'aria-label="table"' in reachable('<div class="table-wrapper colwidths-auto">')
    assert reachable('<div class="table-wrappers">') == '<div class="table-wrappers">'


def test_pages_are_plain_and_sphinx_sees_directives(texts: dict[str, str]) -> None:
    """A forge shows a directive, a substitution or a comment in MyST's syntax as it is written."""
    for name, text in texts.items():
        assert not re.search(r"^(```\{|:::|%|\{\{)", text, re.M), name
        assert "{{" not in text, name
    assert set(CONTENTS) | {"index"} == {Path(name).stem for name in texts}
    assert "```{toctree}" in for_sphinx("index", texts["index.md"])
    assert ".. autofunction:: propreg.preg\n" in for_sphinx("api", texts["api.md"])
    shown = for_sphinx("tutorial", texts["tutorial.md"])
    assert "`````{code-block} text\n:class: printed\n" in shown
    assert "begin: output" not in shown


def test_the_makefile_builds_it_with_warnings_as_errors() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\ndocs: setup\n")[2].partition("\n\n")[0]
    assert "-m sphinx -W" in recipe
    assert "docs docs/_build" in recipe


def every_internal_link_leads_somewhere(site: Path, pages: dict[Path, Page]) -> None:
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            assert target.is_file(), f"{file.name}: {link}"
            assert target.is_relative_to(site), f"{file.name}: {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, f"{file.name}: {link}"


def nothing_is_loaded_from_the_network(site: Path, pages: dict[Path, Page]) -> None:
    for file, page in pages.items():
        for source in page.loaded:
            assert not urlsplit(source).netloc, f"{file.name}: {source}"
            assert (file.parent / urlsplit(source).path).is_file(), f"{file.name}: {source}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", style.read_text(encoding="utf-8")), style.name


def substitutions_and_formulas_are_replaced(site: Path) -> None:
    for file in site.glob("*.html"):
        body = re.sub(r"<pre[^>]*>.*?</pre>", "", file.read_text(encoding="utf-8"), flags=re.S)
        assert "{{" not in body, file.name
        assert "$$" not in body, file.name
    assert (site / "theory.html").read_text(encoding="utf-8").count("<math") > 10


def every_picture_has_words(pages: dict[Path, Page]) -> None:
    found = [alt for page in pages.values() for alt in page.images]
    assert len(found) >= 8
    assert all(found)


def the_command_line_is_in_it(site: Path) -> None:
    text = (site / "cli.html").read_text(encoding="utf-8")
    for part in ("propreg reproduce", "--time-limit", "interrupted (Ctrl-C"):
        assert part in text
