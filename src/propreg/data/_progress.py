"""A progress bar for downloads, on a terminal only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[int, int | None], None]
"""Takes the bytes done and, where it is known, their final number."""


def _silent(_done: int, _total: int | None) -> None:
    pass


@contextmanager
def progress_bar(title: str) -> Iterator[Advance]:
    """Show a bar on standard error while the block runs; silent where that is no terminal, or without rich.

    Example:
        >>> with progress_bar("cora.npz") as advance:
        ...     advance(10, 100)
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
    except ModuleNotFoundError:
        yield _silent
        return
    if not sys.stderr.isatty():
        yield _silent
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
