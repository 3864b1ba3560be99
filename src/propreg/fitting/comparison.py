"""What a fit answers, of nodes or of whole graphs: the score of each strength, beside that of the plain model."""

import math
import os
from typing import TYPE_CHECKING

import numpy as np

from propreg.engine.regularizers import REGULARIZERS
from propreg.fitting.selection import matched
from propreg.fitting.verdict import JUDGING, Judging, Verdict, judge, points, signed
from propreg.jsonio import atomic_write
from propreg.statistics import Difference, Runs, Summary, paired, summarize

if TYPE_CHECKING:
    import matplotlib.figure


class Comparison:
    """Scores [strengths, splits, seeds] of trainings at several strengths, the plain model first."""

    mu: float
    mus: tuple[float, ...]
    val: Runs
    test: Runs
    finished: bool
    method: str
    judging: Judging

    @property
    def picking(self) -> Runs:
        """The validation scores by which the strength was picked, higher is better."""
        return self.judging.sign * self.val

    @property
    def plain(self) -> Summary:
        """Test score of the plain model; 0 runs and NaN if every one of its runs failed."""
        return self.at(0.0)

    @property
    def chosen(self) -> Summary:
        """Test score at the chosen strength."""
        return self.at(self.mu)

    @property
    def difference(self) -> Difference:
        """Chosen minus plain, on the same splits and seeds; NaN if no run of both has finished. Positive is better."""
        return self.against_plain(self.mu)

    @property
    def helps(self) -> bool:
        """Whether the regularizer helps significantly, by the rule of ``propreg run``.

        Validation chose a strength above 0, and the 95 % interval of the difference on the test part lies above 0
        (p < 0.05). ``mu > 0`` alone is the choice of validation.
        """
        return judge(self).kind == "helps"

    def at(self, mu: float) -> Summary:
        """Test score at one of the strengths, over its finished runs."""
        (runs,) = matched(self.test[self._place(mu)])
        return summarize(runs) if runs.size else Summary(math.nan, math.nan, math.nan, math.nan, 0)

    def against_plain(self, mu: float) -> Difference:
        """One of the strengths minus plain, on the splits and seeds that both have finished. Positive is better."""
        there, plain = matched(*(self.judging.sign * self.test[place] for place in (self._place(mu), 0)))
        return paired(there, plain) if there.size else Difference(math.nan, math.nan, math.nan, math.nan, math.nan)

    def _place(self, mu: float) -> int:
        if mu not in self.mus:
            raise ValueError(f"mu = {mu!r} was not tried: the strengths are {', '.join(f'{m:g}' for m in self.mus)}.")
        return self.mus.index(mu)

    def summary(self) -> str:
        """A few lines: plain, the best strength above 0, their difference, and the verdict.

        For a fit that was interrupted, the first line states how far it got.
        """
        verdict = judge(self)
        found = verdict.pair
        if found is None:
            there = not np.isnan(self.test[0]).all()
            return "\n".join(
                [
                    *self._interrupted(),
                    *([f"plain  {_shown(self.plain, self.judging)}"] if there else []),
                    verdict.sentence,
                    *self._failed(),
                ]
            )
        strength = "per fold" if self.judging.nested and self.mu else f"{found.mu:g}"
        name, apart = f"{REGULARIZERS[self.method].title} {strength}", found.difference
        wide = max(len("difference"), len(name)) + 2
        write, unit = (points, " points") if self.judging.fraction else (signed, "")
        between = f" [{write(apart.low)}, {write(apart.high)}], p = {apart.p_value:.3g}" if found.units > 1 else ""
        return "\n".join(
            [
                *self._interrupted(),
                *([] if self.judging.what == JUDGING.what else [f"{self.judging.what}:"]),
                f"{'plain':<{wide}} {_shown(found.plain, self.judging)}",
                f"{name:<{wide}} {_shown(found.other, self.judging)}",
                f"{'difference':<{wide}} {write(apart.mean)}{unit}{between}, "
                f"better in {100 * apart.won:.0f} % of the paired runs",
                verdict.sentence,
                *(f"Possible reason: {each}" for each in self._reasons(verdict)),
                *(f"Note: {each}" for each in self._notes()),
                *self._failed(),
            ]
        )

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write the page that ``propreg run`` writes: one HTML file, with the leaderboard of several models.

        Args:
            path: The file to create or replace, like ``page.html``.

        Raises:
            ImportError: If Jinja2 is not installed.
        """
        from propreg.report.of_fit import page_of

        page = page_of(self)
        with atomic_write(path) as file:
            file.write(page.encode())

    def plot(self, path: str | os.PathLike[str] | None = None) -> "matplotlib.figure.Figure":
        """The score against the strength μ, as a Matplotlib figure, which notebooks show.

        Args:
            path: A file to write it to as well, ``.svg``, ``.png`` or ``.pdf``.

        Raises:
            ImportError: If Matplotlib is not installed.
        """
        from propreg.report.of_fit import picture_of

        return picture_of(self, path)

    def _interrupted(self) -> list[str]:
        """How far an interrupted fit got."""
        if self.finished:
            return []
        return [f"Interrupted: {int((~np.isnan(self.test)).sum())} of {self.val.size} trainings are finished."]

    def _reasons(self, _: Verdict) -> list[str]:
        """What may explain the verdict."""
        return []

    def _notes(self) -> list[str]:
        """What else to know."""
        return []

    def _failed(self) -> list[str]:
        """Which runs failed."""
        return []


def _shown(s: Summary, judging: Judging) -> str:
    if not judging.fraction:
        if s.runs == 1:
            return f"{s.mean:.4f}  (1 run, too few for an interval)"
        return f"{s.mean:.4f} ± {s.std:.4f}  (95 %: {s.low:.4f} to {s.high:.4f}, {s.runs} runs)"
    if s.runs == 1:
        return f"{100 * s.mean:.2f} %  (1 run, too few for an interval)"
    return f"{100 * s.mean:.2f} ± {100 * s.std:.2f} %  (95 %: {100 * s.low:.2f} to {100 * s.high:.2f}, {s.runs} runs)"
