"""How ``propreg rerun`` shows what it does, on standard error: what is trained, and on a terminal how far it is."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

import typer

from propreg.cli.changing_line import CLEAR, can_change

if TYPE_CHECKING:
    from propreg.study.rerun import Step

OFTEN = 0.2  # seconds between two looks at a line that changes


class Retraining:
    """Told of each step; leaves the line clean at the end, however that comes."""

    def __init__(self, alone: bool) -> None:
        self.alone, self.last, self.shown = alone, 0.0, False

    def __call__(self, step: "Step") -> None:
        """Say what is trained, then how far it is."""
        if not step.epochs:
            typer.echo(first_line(step, self.alone), err=True)
        elif can_change() and time.monotonic() - self.last >= OFTEN:
            self.last, self.shown = time.monotonic(), True
            sys.stderr.write(f"{CLEAR}{step.done} runs done, {step.epochs:,} epochs so far")
            sys.stderr.flush()

    def __enter__(self) -> "Retraining":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()


def first_line(step: "Step", alone: bool) -> str:
    """What is about to be trained."""
    if alone:
        return "Training the run alone."
    if not step.in_batch:
        return "Training the run alone: the batch that it was trained in is not known."
    if step.runs == 1:
        return "Training the run, which was a batch of its own."
    return (
        f"Training it in its batch of {step.runs} runs, on a CPU with the few that are one program with it; "
        "--alone trains it by itself, which is quicker."
    )
