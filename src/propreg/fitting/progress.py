"""A progress bar for people; where there is no terminal, quiet, or a line now and then."""

import contextlib
import sys
import time
from types import TracebackType
from typing import Any, Literal

from propreg.engine.spec import Result
from propreg.fitting.estimate import between

Wanted = Literal["lines"] | bool | None
EVERY = 60.0  # seconds between two lines


class Progress:
    """Counts finished runs; shows the time left and the validation accuracy so far, plain and at the best strength.

    Args:
        total: How many runs there are.
        wanted: False is silent, True shows a bar, None shows it on a terminal only, and ``"lines"`` is None with lines
            in place of the bar where there is no terminal. All of them go to standard error.
    """

    def __init__(self, total: int, wanted: Wanted) -> None:
        self._scores: dict[float, list[float]] = {}
        self._bar: Any = None
        self._total, self._done = total, 0
        self._lines = wanted == "lines"
        self._start = self._last = time.monotonic()
        if wanted is False or sys.stderr is None:  # closed before Python began
            return
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Rich
        except ModuleNotFoundError:
            return
        console = Console(stderr=True)
        # rich also takes FORCE_COLOR and TTY_COMPATIBLE for a terminal: a log would fill with its escape codes.
        if not (wanted is True or (console.is_terminal and console.file.isatty())):
            return
        columns = (
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TextColumn("runs,"),
            # Runs come in groups: a short memory would make the time left jump.
            TimeRemainingColumn(compact=True),
            TextColumn("left{task.description}"),
        )
        self._bar = Rich(*columns, console=console, speed_estimate_period=300.0)
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> "Progress":
        if self._bar is not None:
            with _unread():
                self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            with _unread():
                self._bar.stop()

    def advance(self, result: Result) -> None:
        """One run more."""
        self._done += 1
        if not result.failed:
            self._scores.setdefault(result.replica.strength, []).append(result.val)
        if self._bar is not None:
            with _unread():
                self._bar.update(self._task, advance=1, description=self.so_far())
        elif self._lines and (now := time.monotonic()) - self._last >= EVERY:
            self._last = now
            left = (now - self._start) / self._done * (self._total - self._done)
            self.say(f"{self._done:,} of {self._total:,} runs, {between(left, left)} left{self.so_far()}")

    def say(self, line: str) -> None:
        """A line above the bar, or in its place; nothing where neither is wanted."""
        if self._bar is not None:
            with _unread():
                self._bar.console.print(line, highlight=False, markup=False)
        elif self._lines:
            with _unread():
                print(line, file=sys.stderr, flush=True)

    def so_far(self) -> str:
        """What the finished runs say, for example ``; validation 93.1 %, with mu 0.5 94.0 %``."""
        means = {mu: sum(scores) / len(scores) for mu, scores in self._scores.items()}
        most = max((len(scores) for scores in self._scores.values()), default=0)
        above = [mu for mu in means if mu > 0 and 2 * len(self._scores[mu]) > most]  # not by luck of its first run
        known = [f"{100 * means[0.0]:.1f} %"] if 0.0 in means else []
        if above:
            best = max(above, key=lambda mu: means[mu])
            known.append(f"with mu {best:g} {100 * means[best]:.1f} %")
        return f"; validation {', '.join(known)}" if known else ""


def _unread() -> "contextlib.suppress":
    """Nobody reads what is written any more, or the disk is full: that must not end a training."""
    return contextlib.suppress(OSError, ValueError)
