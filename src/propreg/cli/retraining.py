"""The progress of ``propreg rerun`` on standard error: what is trained, and on a terminal how far."""

import time
from types import TracebackType
from typing import TYPE_CHECKING

import typer

from propreg.console import StatusLine

if TYPE_CHECKING:
    from propreg.study.execute.rerun import Step

OFTEN = 0.2  # seconds between two updates of the line


class Retraining:
    """Shows each step, and clears the line at the end, also after an error."""

    def __init__(self, alone: bool) -> None:
        self.alone, self.last, self.line = alone, 0.0, StatusLine()

    def __call__(self, step: "Step") -> None:
        """Show what is trained, then the progress."""
        if not step.epochs:
            typer.echo(first_line(step, self.alone), err=True)
        elif time.monotonic() - self.last >= OFTEN:
            self.last = time.monotonic()
            self.line.update(f"{step.done} runs done, {step.epochs:,} epochs so far")

    def __enter__(self) -> "Retraining":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.line.clear()


def first_line(step: "Step", alone: bool) -> str:
    """What is about to be trained."""
    if alone:
        return "Training the run alone."
    if not step.in_batch:
        return "Training the run alone: the batch that it was trained in is not known."
    if step.runs == 1:
        return "Training the run, which was a batch of its own."
    return (
        f"Training it in its batch of {step.runs} runs, on a CPU only with the runs that share its program; "
        "--alone trains it by itself, which is quicker."
    )
