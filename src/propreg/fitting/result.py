"""What ``fit`` returns: the chosen strength, how it compares with the plain model, and the trained model."""

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
from propreg.statistics import Difference, Runs, Summary, paired, summarise


@dataclass(frozen=True)
class FitResult:
    """The outcome of :func:`propreg.fit`. Accuracies are fractions, arrays [strengths, splits, seeds].

    Attributes:
        mu: The chosen strength; 0 where the plain model is best on validation.
        mus: All strengths tried, ascending, 0 first.
        val, test: Accuracy of every run at its reported epoch; NaN for a run that failed or was not finished.
        model: The trained module of the best run at the chosen strength, ``forward(x, edge_index)``.
        runs: Every finished run, with its history, in the arrays' order.
        finished: False where the fit was interrupted.
        method, preset: The regulariser.
        splits: The splits, by name, in the arrays' order.
        predicted: The classes that the runs without a regulariser (key 0) and with the chosen strength predict for all
            nodes, int64 [splits, seeds, nodes]; −1 where a run failed or was not finished.
        dropout: Of the training.

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

    @property
    def plain(self) -> Summary:
        """Test accuracy of the plain model."""
        return self.at(0.0)

    @property
    def chosen(self) -> Summary:
        """Test accuracy at the chosen strength."""
        return self.at(self.mu)

    @property
    def difference(self) -> Difference:
        """Chosen minus plain, on the same splits and seeds."""
        return self.against_plain(self.mu)

    @property
    def helps(self) -> bool:
        """Whether validation accuracy chose a strength above 0."""
        return self.mu > 0

    def at(self, mu: float) -> Summary:
        """Test accuracy at one of the strengths, over its finished runs."""
        return summarise(*matched(self.test[self.mus.index(mu)]))

    def against_plain(self, mu: float) -> Difference:
        """One of the strengths minus plain, on the splits and seeds that both have finished."""
        return paired(*matched(self.test[self.mus.index(mu)], self.test[self.mus.index(0.0)]))

    def summary(self) -> str:
        """A few lines for people."""
        title = METHODS[self.method].title
        wide = max(len("difference"), len(f"{title} {self.mu:g}")) + 2
        lines = [f"{'plain':<{wide}} {_percent(self.plain)}"]
        if not self.helps:
            return "\n".join([*lines, "No strength did better on validation: the plain model was chosen."])
        apart = self.difference
        low, high = 100 * apart.low, 100 * apart.high
        lines += [
            f"{f'{title} {self.mu:g}':<{wide}} {_percent(self.chosen)}",
            f"{'difference':<{wide}} {100 * apart.mean:+.2f} points [{low:+.2f}, {high:+.2f}], "
            f"p = {apart.p_value:.3g}, better in {100 * apart.won:.0f} % of the paired runs",
        ]
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trained model to one file: its weights and how to build it again, as an npz without pickles.

        :func:`propreg.load_model` reads it. The file is there whole or not at all, and equal models give equal bytes.

        Args:
            path: The file to make or replace; name it like ``model.npz``.

        Raises:
            ValueError: If the model is of your own making, whose code no file can hold: save its ``state_dict``.
            DataError: If the file cannot be written.
        """
        from propreg.fitting.saved import write_model

        if self.architecture is None:
            raise ValueError("the model is of your own making: save its state_dict as you save your other models.")
        about = {"method": self.method, "preset": self.preset, "mu": self.mu}
        write_model(path, self.model, self.architecture, self.dropout, about)


def _percent(s: Summary) -> str:
    return f"{100 * s.mean:.2f} ± {100 * s.std:.2f} %  (95 %: {100 * s.low:.2f} to {100 * s.high:.2f}, {s.runs} runs)"
