"""``propreg run --live``: the page while it trains, and the same run as without it."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from communities import communities
from propreg.cli.app import app
from propreg.data.own.npz import write_graph
from propreg.engine import train_all
from propreg.report.live import Live

QUICK = ["--mu", "0.5", "--splits", "2", "--seeds", "1", "--max-epochs", "4", "--device", "cpu"]


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser would get after each training, and at the end."""
    monkeypatch.chdir(tmp_path)
    write_graph("mine.npz", communities(nodes=200))
    found: list[str] = []
    update, end = Live.update, Live.end

    def look(live: Live) -> None:
        with urlopen(live.url, timeout=10) as answer:
            found.append(answer.read().decode())

    def updated(live: Live, so_far: Callable[[], Mapping[str, Any]]) -> None:
        live._in_thread = False
        live._next = 0.0
        update(live, so_far)
        look(live)

    def ended(live: Live, page: str) -> None:
        end(live, page)
        look(live)

    monkeypatch.setattr(Live, "update", updated)
    monkeypatch.setattr(Live, "end", ended)
    return found


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["run", "--graph", "mine.npz", *QUICK, *arguments])


def counts(pages: list[str]) -> list[list[str]]:
    return [re.findall(r"Training: (\d+ of \d+) are finished", page) for page in pages]


def test_the_page_fills_and_the_folder_has_the_last_one(pages: list[str]) -> None:
    done = run("--live", "-o", "live")
    assert done.exit_code == 0, done.output
    assert re.search(r"^Live: http://127\.0\.0\.1:\d+/ \(Ctrl-C stops\)$", done.stdout, re.M)
    assert counts(pages) == [["1 of 4"], ["2 of 4"], ["3 of 4"], ["4 of 4"], []]
    assert pages[-1] == Path("live/index.html").read_text()
    alone = run("-o", "alone")
    assert "Live:" not in alone.stdout
    assert len(pages) == 5
    assert Path("live/runs.csv").read_text() == Path("alone/runs.csv").read_text()
    records = [json.loads(Path(folder, "run.json").read_text()) for folder in ("live", "alone")]
    assert [each.pop("seconds") > 0 for each in records] == [True, True]
    assert records[0] == records[1]


def test_an_interrupted_run_ends_with_its_page_and_goes_on_later(
    pages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def some(*arguments: Any) -> Any:
        for number, item in enumerate(train_all(*arguments)):
            if number == 3:
                raise KeyboardInterrupt
            yield item

    with monkeypatch.context() as patched:
        patched.setattr("propreg.fitting.fit.train_all", some)
        done = run("--live")
    assert done.exit_code == 130
    assert counts(pages) == [["1 of 4"], ["2 of 4"], ["3 of 4"], []]
    assert "This run was interrupted: 3 of 4 trainings are finished" in pages[-1]
    pages.clear()
    again = run("--live", "--resume")
    assert again.exit_code == 0, again.output
    assert counts(pages) == [["4 of 4"], []]


def test_a_page_that_fails_loses_nothing(pages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> str:
        raise RuntimeError("no page")

    monkeypatch.setattr("propreg.report.live.run_page", broken)
    done = run("--live")
    assert done.exit_code == 0
    assert done.stderr == "The live page could not be made (no page): the training continues.\n"
    assert counts(pages) == [[]] * 5
    assert pages[-1] == Path("propreg-run/index.html").read_text()


def test_an_interruption_at_once_leaves_nothing(pages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("propreg.fitting.fit.train_all", none)
    done = run("--live")
    assert (done.exit_code, done.stderr, pages) == (130, "Interrupted.\n", [])
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["mine.npz"]


def test_it_is_not_for_molecules(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "--molecules", str(tmp_path / "mine.csv"), "--live"])
    assert done.exit_code == 2
    assert "--live is not for molecules: leave it out." in " ".join(done.stderr.replace("│", " ").split())
