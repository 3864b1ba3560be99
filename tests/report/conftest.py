"""The made-up study's page, and a browser to look at it, where there is one."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from propreg.report.study_html import page_of
from report.samples import made_up, made_up_tsne, study_lines

if TYPE_CHECKING:
    from report.looking import Started


@pytest.fixture(scope="session")
def study_html() -> str:
    """The page of the made-up study."""
    return page_of(made_up(study_lines()), None, made_up_tsne())


@pytest.fixture(scope="session")
def study_file(study_html: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as a file."""
    file = tmp_path_factory.mktemp("study") / "index.html"
    file.write_text(study_html, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def started() -> "Iterator[Started]":
    """A browser for the tests of a module; no longer, since it brings an event loop that other tests would meet."""
    from report.looking import browser

    with browser() as found:
        yield found
