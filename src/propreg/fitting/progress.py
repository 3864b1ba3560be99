"""How far a fit is and how long it takes: finished runs with their validation accuracy, and an early estimate."""

import threading
import time
from collections.abc import Callable
from types import TracebackType

from propreg import console
from propreg.console import Shown, duration_range
from propreg.engine.spec import Result

FIRST_SECONDS, FIRST_EPOCHS = 5.0, 4  # an earlier estimate would be of the start, not of the training
LONG = 60.0  # seconds: beyond this a quicker setting is worth a line


class Progress:
    """Counts finished runs, with the mean validation accuracy so far, plain and at the best strength.

    Args:
        total: The number of runs.
        shown: See :class:`propreg.console.Progress`.
        scores: Whether runs have an accuracy.
    """

    def __init__(self, total: int, shown: Shown, *, scores: bool = True) -> None:
        self._shows = scores
        self._scores: dict[float, list[float]] = {}
        self._bar = console.Progress(total, "runs", shown)
        self.say = self._bar.say

    def __enter__(self) -> "Progress":
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def advance(self, result: Result) -> None:
        """One run more."""
        if not result.failed and self._shows:
            self._scores.setdefault(result.replica.strength, []).append(result.val)
        self._bar.advance(self.so_far())

    def so_far(self) -> str:
        """The validation accuracies of the finished runs, for example ``; validation 93.1 %, with mu 0.5 94.0 %``."""
        means = {mu: sum(scores) / len(scores) for mu, scores in self._scores.items()}
        most = max((len(scores) for scores in self._scores.values()), default=0)
        above = [mu for mu in means if mu > 0 and 2 * len(self._scores[mu]) > most]  # not by luck of its first run
        known = [f"{100 * means[0.0]:.1f} %"] if 0.0 in means else []
        if above:
            best = max(above, key=lambda mu: means[mu])
            known.append(f"with mu {best:g} {100 * means[best]:.1f} %")
        return f"; validation {', '.join(known)}" if known else ""


class Estimate:
    """Counts epochs as groups of runs train, and prints once how long all of them may take.

    Args:
        groups: The number of groups of runs that are trained.
        epochs: The fewest and the most epochs that a group trains.
        say: Prints a line.
        quicker: A second line if it takes more than a minute.
        clock: Returns seconds.
    """

    def __init__(
        self,
        groups: int,
        epochs: tuple[int, int],
        say: Callable[[str], None],
        quicker: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._groups, self._epochs, self._say, self._quicker, self._clock = groups, epochs, say, quicker, clock
        self._start, self._count, self._done = clock(), 0, False
        self._lock = threading.Lock()  # groups train in threads of their own

    def epoch(self) -> bool:
        """One more epoch of one group. Returns False: as the engine's ``stop`` it never stops a training."""
        with self._lock:
            self._count += 1
            spent = self._clock() - self._start
            if self._done or spent < FIRST_SECONDS or self._count < FIRST_EPOCHS:
                return False
            self._done = True
        least, most = (max(self._groups * each * spent / self._count - spent, 0.0) for each in self._epochs)
        self._say(f"Time left: {duration_range(least, most)}, depending on how early trainings stop.")
        if self._quicker and most > LONG:
            self._say(self._quicker)
        return False


def quicker_command(splits: int, seeds: int, strengths: int) -> str:
    """The options of ``propreg run`` that make it quicker; empty if none would.

    Example:
        >>> quicker_command(5, 3, 12)
        'For a quick first look: --splits 2 --seeds 1 --mu 0.3'
        >>> quicker_command(1, 1, 2)
        ''
    """
    wanted = [
        *(["--splits 2"] if splits > 2 else []),
        *(["--seeds 1"] if seeds > 1 else []),
        *(["--mu 0.3"] if strengths > 2 else []),
    ]
    return f"For a quick first look: {' '.join(wanted)}" if wanted else ""
