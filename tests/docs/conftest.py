"""The documentation's folders, and its pages."""

from pathlib import Path

import pytest

from propreg.store.results import Results, load_results

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def docs() -> Path:
    return ROOT / "docs"


@pytest.fixture(scope="session")
def results() -> Results:
    return load_results(ROOT / "results")


@pytest.fixture(scope="session")
def texts(docs: Path) -> dict[str, str]:
    """The Markdown of each page, by file name."""
    return {page.name: page.read_text(encoding="utf-8") for page in sorted(docs.glob("*.md"))}
