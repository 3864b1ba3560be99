"""A page in a real browser: opened from a file, watched for errors and requests, checked by axe."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DESKTOP, PHONE = (1280, 860), (390, 844)
Scheme = Literal["light", "dark"]


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium, or a skipped test that says why."""
    path = os.environ.get("PROPREG_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("there is no browser: apt-get install chromium, or name one in PROPREG_BROWSER")
    with sync_playwright() as playwright:
        try:
            # As root, which CI is, Chromium has no sandbox to offer.
            started = playwright.chromium.launch(
                executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"] if os.geteuid() == 0 else []
            )
        except Error as error:
            pytest.skip(f"{path} does not start: {str(error).splitlines()[0]}")
        yield started
        started.close()


@dataclass
class Watched:
    """A page and what went wrong on it."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Nothing was said on the console, nothing asked of the network, nothing ran that should not."""
        assert self.errors == []
        assert [url for url in self.requests if not url.startswith("data:,")] == [self.page.url.partition("#")[0]]
        assert self.page.evaluate("performance.getEntriesByType('resource').map((each) => each.name)") == []
        assert self.page.evaluate("window.pwned === undefined")

    def axe(self, inside: str | None = None) -> list[str]:
        """What axe-core finds, one line each."""
        script = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
        self.page.evaluate(script)
        found: Any = self.page.evaluate("(inside) => axe.run(inside || document)", inside)
        assert found["passes"]  # it did look
        return [
            f"{each['impact']}: {each['id']}: {each['help']}: {node['html'][:150]} {node['failureSummary'][:200]}"
            for each in found["violations"]
            for node in each["nodes"][:3]
        ]


@contextmanager
def looking(
    started: Browser, file: Path, size: tuple[int, int] = DESKTOP, scheme: Scheme = "light", **settings: Any
) -> Iterator[Watched]:
    """Open a file; when the block ends, check that nothing went wrong."""
    context = started.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        reduced_motion="reduce",
        is_mobile=size == PHONE,
        has_touch=size == PHONE,
        **settings,
    )
    try:
        page = context.new_page()
        page.set_default_timeout(20_000)
        watched = Watched(page)
        page.on("console", lambda message: watched.errors.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: watched.errors.append(str(error)))
        page.on("dialog", lambda dialog: watched.errors.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: watched.requests.append(request.url))
        page.goto(file.as_uri())
        yield watched
        watched.check()
    finally:
        context.close()


def scroll_through(page: Page) -> None:
    """Pass every picture, so that all of them are drawn."""
    height = page.evaluate("document.documentElement.scrollHeight")
    for top in range(0, height, 600):
        page.evaluate("(top) => scrollTo(0, top)", top)
        page.wait_for_timeout(30)
    page.evaluate("scrollTo(0, 0)")
