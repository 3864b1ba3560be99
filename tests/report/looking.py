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
def browser() -> "Iterator[Started]":
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
        yield Started(started)
        started.close()


@dataclass
class Watched:
    """A page and what went wrong on it."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(20_000)
        self.page.on("console", lambda message: self.errors.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        self.page.on("request", lambda request: self.requests.append(request.url))

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
        # All that is wrong, but of what passes one element a rule: describing the thousands takes as long as looking.
        only = "{resultTypes: ['violations']}"
        found: Any = self.page.evaluate(f"(inside) => axe.run(inside || document, {only})", inside)
        assert found["passes"]  # it did look
        return [
            f"{each['impact']}: {each['id']}: {each['help']}: {node['html'][:150]} {node['failureSummary'][:200]}"
            for each in found["violations"]
            for node in each["nodes"][:3]
        ]


@dataclass
class Started:
    """A browser and its windows. A new one takes a process of its own, so one serves all tests with its settings."""

    browser: Browser
    windows: dict[str, Watched] = field(default_factory=dict)

    def window(self, size: tuple[int, int], scheme: Scheme, settings: dict[str, Any]) -> Watched:
        """An empty window."""
        key = repr((size, scheme, settings))
        if key not in self.windows:
            context = self.browser.new_context(
                viewport={"width": size[0], "height": size[1]},
                color_scheme=scheme,
                reduced_motion="reduce",
                is_mobile=size == PHONE,
                has_touch=size == PHONE,
                **settings,
            )
            self.windows[key] = Watched(context.new_page())
        return self.windows[key]

    def close(self, watched: Watched) -> None:
        """Close a window in which something went wrong: the next test gets a new one."""
        self.windows = {key: each for key, each in self.windows.items() if each is not watched}
        watched.page.context.close()


@contextmanager
def looking(
    started: Started, file: Path, size: tuple[int, int] = DESKTOP, scheme: Scheme = "light", **settings: Any
) -> Iterator[Watched]:
    """Open a file; when the block ends, check that nothing went wrong."""
    watched = started.window(size, scheme, settings)
    try:
        watched.page.mouse.move(0, 0)
        watched.errors.clear()
        watched.requests.clear()
        watched.page.goto(file.as_uri())
        yield watched
        watched.check()
        watched.page.evaluate("localStorage.clear()")
        watched.page.goto("about:blank")
    except BaseException:
        started.close(watched)
        raise


def scroll_through(page: Page) -> None:
    """Pass every picture, so that all of them are drawn."""
    height = page.evaluate("document.documentElement.scrollHeight")
    for top in range(0, height, 600):
        page.evaluate("(top) => scrollTo(0, top)", top)
        page.wait_for_timeout(30)
    page.evaluate("scrollTo(0, 0)")
