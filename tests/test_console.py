"""Terminal output: without rich, without a terminal, and wrapped to it."""

import sys

import pytest

from propreg import console
from propreg.console import Progress, StatusLine, columns, download_bar, wrapped


@pytest.fixture
def no_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(console, "EVERY", 0.0)


@pytest.mark.usefixtures("no_rich")
@pytest.mark.parametrize(("shown", "lines"), [(True, 2), ("lines", 2), (None, 0), (False, 0)])
def test_without_rich_lines_replace_the_bar(
    shown: console.Shown, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with Progress(2, "runs", shown) as bar:
        bar.advance("; validation 90.0 %")
        bar.advance()
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", lines)
    if lines:
        assert said.err.startswith("1 of 2 runs, about 5 s left; validation 90.0 %\n")


@pytest.mark.usefixtures("no_rich")
def test_a_terminal_without_rich_gets_lines(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with Progress(1, "runs", None) as bar, download_bar("file") as advance:
        bar.advance()
        advance(1, 2)
    assert capfd.readouterr().err == "1 of 1 runs, about 5 s left\n"


def test_a_status_line_is_for_terminals_that_can_write_over_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with StatusLine("loading"):
        pass
    assert capfd.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    with StatusLine("loading"):
        pass
    assert capfd.readouterr().err == ""
    monkeypatch.setenv("TERM", "xterm")
    with StatusLine("loading") as line:
        line.update("loaded")
    assert capfd.readouterr().err == "\r\x1b[Kloading\r\x1b[Kloaded\r\x1b[K"
    with StatusLine():
        pass
    assert capfd.readouterr().err == "", "nothing was shown, so nothing is cleared"


def test_text_is_wrapped_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "word " * 100
    for terminal, widest in (("200", 79), ("60", 59), ("5", 29)):
        monkeypatch.setenv("COLUMNS", terminal)
        assert max(map(len, wrapped(words))) == widest
        assert all(line.startswith("  ") for line in wrapped(words, "  ")[1:])


def test_a_table_that_is_too_wide_has_smaller_gaps_and_then_names_above_its_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [("", "validation", "test"), ("1  GCN", "92.35 %", "–"), ("2  a longer name", "7.10 %", "6.00 %")]
    for terminal, expected in (
        (80, ["                   validation     test", "1  GCN                92.35 %        –"]),
        (37, ["                  validation    test", "1  GCN               92.35 %       –"]),
        (35, ["  validation     test", "1  GCN", "     92.35 %        –"]),
    ):
        monkeypatch.setenv("COLUMNS", str(terminal))
        lines = list(columns(rows))
        assert lines[: len(expected)] == expected
        assert max(map(len, lines)) <= terminal
