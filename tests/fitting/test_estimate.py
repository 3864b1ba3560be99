"""How long it takes: said once, from the first epochs, with a quicker setting where it is long."""

from typing import Any

import pytest

from communities import communities
from propreg import console
from propreg.fitting.fit import fit
from propreg.fitting.progress import Estimate, Progress


class Clock:
    """Moves by a step whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = -step, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def said(groups: int, epochs: tuple[int, int], step: float, count: int = 50) -> list[str]:
    lines: list[str] = []
    estimate = Estimate(groups, epochs, lines.append, "Quicker: --seeds 1", Clock(step))
    assert not any(estimate.epoch() for _ in range(count)), "it is no reason to stop"
    return lines


def test_it_is_said_once_and_counts_all_groups() -> None:
    """An epoch a second, 10 groups of 100 to 1,000 epochs: 1,000 to 10,000 seconds, less the five that are over."""
    lines = ["Time left: 0.3 to 2.8 h, depending on how early trainings stop.", "Quicker: --seeds 1"]
    assert said(10, (100, 1000), 1.0) == lines


def test_a_short_training_gets_no_advice_and_a_very_short_one_no_line() -> None:
    assert said(1, (20, 30), 1.0) == ["Time left: about 25 s, depending on how early trainings stop."]
    assert said(1, (20, 30), 0.01) == []


def test_slow_epochs_are_timed_a_few_times_first() -> None:
    assert said(1, (100, 100), 60.0, count=3) == []
    assert said(1, (100, 100), 60.0, count=4)[0] == "Time left: about 1.6 h, depending on how early trainings stop."


def quick(**options: Any) -> None:
    wanted: dict[str, Any] = {"splits": 3, "seeds": 2, "train_per_class": 5, "val_per_class": 10, "max_epochs": 40}
    fit(communities(), mu=[0.1, 0.5], **{**wanted, **options})


def test_lines_are_for_those_who_asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where there is no terminal, and on standard error, so that a pipe stays clean."""
    monkeypatch.setattr("propreg.fitting.progress.FIRST_SECONDS", 0.0)
    monkeypatch.setattr("propreg.fitting.progress.LONG", -1.0)
    quick(progress="lines")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("Time left: about ")
    assert shown.err.endswith("For a quick first look: --splits 2 --seeds 1 --mu 0.3\n")
    assert shown.err.count("\n") == 2
    for silent in (None, False):
        quick(progress=silent)
        assert capsys.readouterr().err == ""


def test_a_long_run_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(console, "EVERY", 0.0)
    quick(progress="lines")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 18
    assert lines[5].startswith("6 of 18 runs, about ")


def test_a_closed_standard_error_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, _: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    bar = Progress(1, "lines")
    monkeypatch.setattr("sys.stderr", Closed())
    bar.say("It takes long.")
