"""How long a training takes, from its first epochs: nobody should wonder whether it ends."""

import threading
import time
from collections.abc import Callable

FIRST_SECONDS, FIRST_EPOCHS = 5.0, 4  # before these a guess would be of the start, not of the training
LONG = 60.0  # seconds: beyond this a quicker setting is worth a line


class Estimate:
    """Counts epochs as groups of runs train them, and says once how long all of them may take.

    Args:
        groups: How many groups of runs are trained.
        epochs: The fewest and the most epochs that a group trains.
        say: Takes the line.
        quicker: A second line where it takes more than a minute.
        clock: Seconds.
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
        self._start, self._count, self._said = clock(), 0, False
        self._lock = threading.Lock()  # groups train in threads of their own

    def epoch(self) -> bool:
        """One epoch of one group more. False, so that it can be asked whether to stop."""
        with self._lock:
            self._count += 1
            spent = self._clock() - self._start
            if self._said or spent < FIRST_SECONDS or self._count < FIRST_EPOCHS:
                return False
            self._said = True
        least, most = (max(self._groups * each * spent / self._count - spent, 0.0) for each in self._epochs)
        self._say(f"It takes {between(least, most)} more, by how early trainings stop.")
        if self._quicker and most > LONG:
            self._say(self._quicker)
        return False


def between(least: float, most: float) -> str:
    """Two durations in words.

    Example:
        >>> between(30, 40), between(50, 400), between(7000, 8000), between(0, 2)
        ('about 40 s', '1 to 7 min', 'about 2.2 h', 'about 5 s')
    """
    unit, size = ("h", 3600.0) if most >= 5400 else ("min", 60.0) if most >= 90 else ("s", 1.0)

    def short(seconds: float) -> str:
        return f"{seconds / size:.1f}" if unit == "h" else f"{max(round(seconds / size), 1)}"

    if unit == "s":
        return f"about {max(5, 5 * round(most / 5))} s"
    return f"about {short(most)} {unit}" if least > 0.7 * most else f"{short(least)} to {short(most)} {unit}"


def quicker_command(splits: int, seeds: int, strengths: int) -> str:
    """The options of ``propreg run`` that make it quicker; empty where it is as quick as that already.

    Example:
        >>> quicker_command(5, 3, 12)
        'Quicker, for a first look: --splits 2 --seeds 1 --mu 0.3'
        >>> quicker_command(1, 1, 2)
        ''
    """
    wanted = [
        *(["--splits 2"] if splits > 2 else []),
        *(["--seeds 1"] if seeds > 1 else []),
        *(["--mu 0.3"] if strengths > 2 else []),
    ]
    return f"Quicker, for a first look: {' '.join(wanted)}" if wanted else ""
