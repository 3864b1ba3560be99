"""The site builds without a warning, all its links lead somewhere, and it asks the network for nothing."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

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
    """As ``make docs`` does it, without running the pages' blocks: other tests do."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-E", "-q", "-D", "show_outputs=0", "-b", "html"]
    folders = ["-d", str(target / "trees"), str(ROOT / "docs"), str(target / "html")]
    calm = {**os.environ, "PYTHONWARNINGS": "default"}  # Python's, which are not Sphinx's
    done = subprocess.run([*command, *folders], capture_output=True, text=True, env=calm, check=False)
    assert done.returncode == 0, done.stderr
    return target / "html"


@pytest.mark.slow
def test_the_site(tmp_path: Path, texts: dict[str, str]) -> None:
    """One test, so that the site is built once, however tests are spread over workers."""
    site = build(tmp_path)
    pages = {file: Page(file) for file in site.rglob("*.html")}
    assert {f"{Path(name).stem}.html" for name in texts} <= {file.name for file in site.glob("*.html")}
    every_internal_link_leads_somewhere(site, pages)
    nothing_is_loaded_from_the_network(site, pages)
    substitutions_and_formulas_are_replaced(site)
    every_picture_has_words(pages)
    the_command_line_is_in_it(site)


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
