"""What ``fit`` returns: the chosen strength, how it compares with the plain model, and the trained model."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import nn

from propreg.data.graph import Split
from propreg.engine.spec import Model, Result
from propreg.fitting.choosing import matched
from propreg.fitting.methods import METHODS
from propreg.fitting.reasons import Facts, reasons
from propreg.fitting.verdict import judge, points
from propreg.statistics import Difference, Runs, Summary, paired, summarise

MOST_SEEDS = 5  # that are named


@dataclass(frozen=True, eq=False)  # of arrays, which have no one answer to ==
class FitResult:
    """The outcome of :func:`propreg.fit`. Accuracies are fractions, arrays [strengths, splits, seeds].

    Attributes:
        mu: The chosen strength; 0 where the plain model is best on validation.
        mus: All strengths tried, ascending, 0 first.
        val, test: Accuracy of every run at its reported epoch; NaN for a run that failed or was not finished.
        model: The trained module of the best run at the chosen strength, ``forward(x, edge_index)``, in evaluation
            mode and float32: of other features pass ``x.float()``.
        runs: Every finished run, with its history, in the arrays' order.
        finished: False where the fit was interrupted.
        method, preset: The regulariser.
        splits: The splits, by name, in the arrays' order.
        predicted: The classes that the runs without a regulariser (key 0) and with the chosen strength predict for all
            nodes, int64 [splits, seeds, nodes]; −1 where a run failed or was not finished.
        dropout: Of the training.
        facts: What the graph is like, for the reasons that :meth:`summary` gives.

    Example:
        >>> import propreg
        >>> data = propreg.load_dataset("digits", split=0)
        >>> result = propreg.fit(data, "mlp", mu=0.1, seeds=2, max_epochs=3)
        >>> result.plain.runs, result.mus
        (2, (0.0, 0.1))
    """

    mu: float
    mus: tuple[float, ...]
    val: Runs
    test: Runs
    model: nn.Module
    runs: tuple[Result, ...]
    architecture: Model | None
    finished: bool = True
    method: str = "preg"
    preset: str = "paper"
    splits: Mapping[str, Split] = field(default_factory=dict)
    predicted: Mapping[float, NDArray[np.int64]] = field(default_factory=dict)
    dropout: float = 0.5
    facts: Facts | None = None

    @property
    def plain(self) -> Summary:
        """Test accuracy of the plain model; of 0 runs, all numbers NaN, where every one of its runs failed."""
        return self.at(0.0)

    @property
    def chosen(self) -> Summary:
        """Test accuracy at the chosen strength."""
        return self.at(self.mu)

    @property
    def difference(self) -> Difference:
        """Chosen minus plain, on the same splits and seeds; NaN where no run of both has finished."""
        return self.against_plain(self.mu)

    @property
    def helps(self) -> bool:
        """Whether it is sure that the regulariser helps, as ``propreg run`` judges it.

        Validation chose a strength above 0, the 95 % interval of the difference on the test nodes lies above 0, and
        p is at most 1/16, the least that five splits can give. ``mu > 0`` alone says what validation chose.
        """
        return judge(self).kind == "helps"

    def at(self, mu: float) -> Summary:
        """Test accuracy at one of the strengths, over its finished runs."""
        (runs,) = matched(self.test[self._place(mu)])
        return summarise(runs) if runs.size else Summary(math.nan, math.nan, math.nan, math.nan, 0)

    def against_plain(self, mu: float) -> Difference:
        """One of the strengths minus plain, on the splits and seeds that both have finished."""
        there, plain = matched(self.test[self._place(mu)], self.test[0])
        return paired(there, plain) if there.size else Difference(math.nan, math.nan, math.nan, math.nan, math.nan)

    def _place(self, mu: float) -> int:
        if mu not in self.mus:
            raise ValueError(f"mu = {mu!r} was not tried: the strengths are {', '.join(f'{m:g}' for m in self.mus)}.")
        return self.mus.index(mu)

    def summary(self) -> str:
        """A few lines for people: plain, the best strength above 0, their difference, and what that means.

        Of a fit that was interrupted, it says first how far that came.
        """
        verdict = judge(self)
        found = verdict.pair
        if found is None:
            there = not np.isnan(self.test[0]).all()
            return "\n".join(
                [
                    *self._interrupted(),
                    *([f"plain  {_percent(self.plain)}"] if there else []),
                    verdict.sentence,
                    *self._failed(),
                ]
            )
        name, apart = f"{METHODS[self.method].title} {found.mu:g}", found.difference
        wide = max(len("difference"), len(name)) + 2
        between = f" [{points(apart.low)}, {points(apart.high)}], p = {apart.p_value:.3g}" if found.units > 1 else ""
        why = reasons(self.facts, self, verdict, "{}=…") if self.facts else []
        return "\n".join(
            [
                *self._interrupted(),
                f"{'plain':<{wide}} {_percent(found.plain)}",
                f"{name:<{wide}} {_percent(found.other)}",
                f"{'difference':<{wide}} {points(apart.mean)} points{between}, "
                f"better in {100 * apart.won:.0f} % of the paired runs",
                verdict.sentence,
                *(f"Perhaps because: {each}" for each in why),
                *self._failed(),
            ]
        )

    def _interrupted(self) -> list[str]:
        if self.finished:
            return []
        return [f"Interrupted: {len(self.runs)} of {self.val.size} trainings are finished."]

    def _failed(self) -> list[str]:
        failed = [run for run in self.runs if run.failed]
        seeds = sorted({run.replica.seed for run in failed})
        which = f" (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))})" if len(seeds) <= MOST_SEEDS else ""
        many = f"{len(failed)} of {len(self.runs)} runs" if len(failed) > 1 else "One run"
        return (
            [f"{many}{which} failed: the loss became NaN or infinite. Lower lr where that is often."] if failed else []
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trained model to one file: its weights and how to build it again, as an npz without pickles.

        :func:`propreg.load_model` reads it. The file is there whole or not at all, and equal models give equal bytes.
        Of a model of your own it holds the parameters and buffers (but sparse ones) and not the code, which you give
        ``load_model`` as a new module.

        Args:
            path: The file to make or replace; name it like ``model.npz``.

        Raises:
            DataError: If the file cannot be written.
        """
        from propreg.fitting.saved import write_model
        from propreg.fitting.saved_state import write_state

        about = {"method": self.method, "preset": self.preset, "mu": self.mu}
        if self.architecture is None:
            write_state(path, self.model, about)
        else:
            write_model(path, self.model, self.architecture, self.dropout, about)


def _percent(s: Summary) -> str:
    if s.runs == 1:
        return f"{100 * s.mean:.2f} %  (1 run, too few for an interval)"
    return f"{100 * s.mean:.2f} ± {100 * s.std:.2f} %  (95 %: {100 * s.low:.2f} to {100 * s.high:.2f}, {s.runs} runs)"
