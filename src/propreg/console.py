"""Terminal output: progress, durations, wrapped text. rich is optional."""

import contextlib
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal

WIDTH = 80  # longer lines are hard to read
EVERY = 60.0  # seconds between two lines of progress
_CLEAR = "\r\x1b[K"

Shown = Literal["lines"] | bool | None
Advance = Callable[[int, int | None], None]
"""Takes the bytes done and, where it is known, their final number."""


class Progress:
    """Counts what is finished, on standard error.

    Args:
        total: The number of items.
        unit: The plural of an item.
        shown: False is silent, True shows a bar, None shows it on a terminal only, and ``"lines"`` is None with a line
            a minute where there is no terminal. Without rich, lines replace the bar.
    """

    def __init__(self, total: int, unit: str, shown: Shown) -> None:
        self._total, self._done, self._unit = total, 0, unit
        self._start = self._last = time.monotonic()
        self._lines, self._bar = shown == "lines", None
        if shown is False or sys.stderr is None:  # standard error was closed before Python began
            return
        try:
            self._bar = _rich_bar(total, unit, forced=shown is True)
        except ModuleNotFoundError:
            self._lines |= shown is True or sys.stderr.isatty()

    def __enter__(self) -> "Progress":
        if self._bar is not None:
            with unread():
                self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            with unread():
                self._bar.stop()

    def advance(self, about: str = "") -> None:
        """One item more; ``about`` is shown behind the counts."""
        self._done += 1
        if self._bar is not None:
            with unread():
                self._bar.update(self._bar.task_ids[0], advance=1, description=about)
        elif self._lines and (now := time.monotonic()) - self._last >= EVERY:
            self._last = now
            left = (now - self._start) / self._done * (self._total - self._done)
            self.say(f"{self._done:,} of {self._total:,} {self._unit}, {duration_range(left, left)} left{about}")

    def say(self, line: str) -> None:
        """A line above the bar, or in its place; nothing where progress is not shown."""
        with unread():
            if self._bar is not None:
                self._bar.console.print(line, highlight=False, markup=False)
            elif self._lines:
                print(line, file=sys.stderr, flush=True)


def _rich_bar(total: int, unit: str, *, forced: bool) -> Any:
    """A bar of rich; None if there is no terminal, unless forced."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Rich

    console = Console(stderr=True)
    # rich takes FORCE_COLOR and TTY_COMPATIBLE for a terminal too: a log would fill with escape codes.
    if not (forced or (console.is_terminal and console.file.isatty())):
        return None
    columns = (
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TextColumn(f"{unit},"),
        TimeRemainingColumn(compact=True),
        TextColumn("left{task.description}"),
    )
    # Runs finish in groups: a short averaging window would make the time left jump.
    bar = Rich(*columns, console=console, speed_estimate_period=300.0)
    bar.add_task("", total=total)
    return bar


@contextmanager
def download_bar(title: str) -> Iterator[Advance]:
    """Show a bar on standard error while the block runs; silent without a terminal or rich.

    Example:
        >>> with download_bar("cora.npz") as advance:
        ...     advance(10, 100)
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
        from rich.progress import Progress as Rich
    except ModuleNotFoundError:
        yield lambda _done, _total: None
        return
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Rich(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


class StatusLine:
    """A line on standard error that is written over; cleared at the end of the block.

    ``TERM=dumb`` cannot write over a line, nor can a file: there :meth:`update` does nothing.
    """

    def __init__(self, text: str = "") -> None:
        self.shown = False
        self.can_rewrite = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        if text:
            self.update(text)

    def update(self, text: str) -> None:
        """Replace the line."""
        if self.can_rewrite:
            self.shown = True
            sys.stderr.write(_CLEAR + text)
            sys.stderr.flush()

    def clear(self) -> None:
        """Leave the line empty."""
        if self.shown:
            self.update("")
            self.shown = False

    def __enter__(self) -> "StatusLine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()


def unread() -> "contextlib.suppress":
    """Suppress errors of writing: a closed pipe or a full disk must not end a training."""
    return contextlib.suppress(OSError, ValueError)


def duration(seconds: float) -> str:
    """A duration in words.

    Example:
        >>> duration(40), duration(400), duration(8000)
        ('40 s', '7 min', '2.2 h')
    """
    size, unit = _unit(seconds)
    return f"{seconds / size:.1f} h" if unit == "h" else f"{seconds / size:.0f} {unit}"


def duration_range(least: float, most: float) -> str:
    """Two durations in words.

    Example:
        >>> duration_range(30, 40), duration_range(50, 400), duration_range(7000, 8000), duration_range(0, 2)
        ('about 40 s', '1 to 7 min', 'about 2.2 h', 'about 5 s')
    """
    size, unit = _unit(most)
    if unit == "s":
        return f"about {max(5, 5 * round(most / 5))} s"
    low, high = (f"{s / size:.1f}" if unit == "h" else f"{max(round(s / size), 1)}" for s in (least, most))
    return f"about {high} {unit}" if least > 0.7 * most else f"{low} to {high} {unit}"


def _unit(seconds: float) -> tuple[float, str]:
    return (3600.0, "h") if seconds >= 5400 else (60.0, "min") if seconds >= 90 else (1.0, "s")


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun.

    Example:
        >>> counted(1, "edge"), counted(1200, "edge"), counted(0, "class", "classes")
        ('1 edge', '1,200 edges', '0 classes')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def printable(text: str) -> str:
    """Text from a user's file without control characters, which would move the cursor or change colors.

    Example:
        >>> printable("a\\x1b[31mb")
        'a?[31mb'
    """
    return "".join(c if c.isprintable() else "?" for c in text)


def width() -> int:
    """The terminal's width or ``COLUMNS``, at most 80."""
    return max(30, min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns))


def wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of at most :func:`width` columns."""
    return textwrap.wrap(text, width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table with the names on the left; if it is too wide, each row's name stands above its cells.

    Example:
        >>> print(*columns([("", "test", "runs"), ("GCN", "81.5 %", "10")]), sep="\\n")
                test   runs
        GCN   81.5 %     10
    """
    names, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    gap = next((gap for gap in ("   ", "  ") if names + sum(widths) + len(gap) * len(widths) <= width()), "")
    for name, *cells in rows:
        line = (gap or "   ").join(cell.rjust(wide) for cell, wide in zip(cells, widths, strict=True)).rstrip()
        if name and not gap:
            yield name
        yield f"{name.ljust(names)}{gap}{line}" if gap else f"  {line}"
