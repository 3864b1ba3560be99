"""A progress bar for people: quiet where there is no terminal."""

from types import TracebackType
from typing import Any

from propreg.engine.spec import Result


class Progress:
    """Counts finished runs and shows the best validation accuracy so far."""

    def __init__(self, total: int, wanted: bool | None) -> None:
        self.best = 0.0
        self._bar: Any = None
        if wanted is False:
            return
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Rich
        except ModuleNotFoundError:
            return
        console = Console(stderr=True)
        if wanted or console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Rich(*columns, console=console)
            self._task = self._bar.add_task("training", total=total)

    def __enter__(self) -> "Progress":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, result: Result) -> None:
        """One run more."""
        self.best = max(self.best, result.val)
        if self._bar is not None:
            text = f"training (test {result.test:.1%}, best validation {self.best:.1%})"
            self._bar.update(self._task, advance=1, description=text)
