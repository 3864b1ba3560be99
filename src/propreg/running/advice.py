"""Remarks in plain words: what to know of the numbers of a run, whatever they say."""

from typing import TYPE_CHECKING

import numpy as np

from propreg.engine.spec import Result

if TYPE_CHECKING:
    from propreg.fitting.result import FitResult

MANY_IMPROVING = 0.25  # a rule of thumb: said with the number it was compared with


def caveats(result: "FitResult", max_epochs: int, planned: int) -> list[str]:
    """What to know of the numbers, whatever they say."""
    said = []
    if not result.finished:
        said.append(
            f"The run was interrupted: {len(result.runs)} of {planned} trainings are finished, and strengths are "
            "compared on the splits and seeds that all of them have."
        )
    if failed := sum(run.failed for run in result.runs):
        said.append(f"In {failed} of {len(result.runs)} trainings the loss became NaN or infinite: they do not count.")
    late = sum(_still_improving(run, max_epochs) for run in result.runs if not run.failed)
    if late > MANY_IMPROVING * len(result.runs):
        said.append(
            f"{late} of {len(result.runs)} trainings were still improving when they reached the limit of {max_epochs} "
            "epochs: more may change the numbers (--max-epochs)."
        )
    bounded = result.method == "label_smoothing"
    if len(result.mus) > 2 and result.mu == result.mus[-1] and not (bounded and result.mu >= 0.9):
        more = ",".join(f"{factor * result.mu:g}" for factor in (1, 1.5, 2, 3))
        said.append(f"The largest strength tried, {result.mu:g}, was chosen: larger ones may do better (--mu {more}).")
    return said


def _still_improving(run: Result, max_epochs: int) -> bool:
    """Whether validation accuracy reached its best only in the last tenth before the limit."""
    return run.epochs >= max_epochs and int(np.argmax(run.history["val"])) + 1 > 0.9 * max_epochs
