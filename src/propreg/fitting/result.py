"""What ``fit`` returns: the chosen strength, how it compares with the plain model, and the trained model."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from propreg.data._npz import write_npz
from propreg.engine.spec import Model, Result
from propreg.statistics import Difference, Runs, Summary, paired, summarise


@dataclass(frozen=True)
class FitResult:
    """The outcome of :func:`propreg.fit`. Accuracies are fractions, arrays [strengths, splits, seeds].

    Attributes:
        mu: The chosen strength; 0 where the plain model is best on validation.
        mus: All strengths tried, ascending, 0 first.
        val, test: Accuracy of every run at its reported epoch; NaN for a run that failed or was not finished.
        model: The trained module of the best run at the chosen strength, ``forward(x, edge_index)``.
        runs: Every finished run, with its history.
        finished: False where the fit was interrupted.

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

    @property
    def plain(self) -> Summary:
        """Test accuracy of the plain model."""
        return summarise(self._complete(0.0))

    @property
    def chosen(self) -> Summary:
        """Test accuracy at the chosen strength."""
        return summarise(self._complete(self.mu))

    @property
    def difference(self) -> Difference:
        """Chosen minus plain, on the same splits and seeds."""
        return paired(self._complete(self.mu), self._complete(0.0))

    @property
    def helps(self) -> bool:
        """Whether validation accuracy chose a strength above 0."""
        return self.mu > 0

    def summary(self) -> str:
        """A few lines for people."""
        plain, chosen, apart = self.plain, self.chosen, self.difference
        lines = [
            f"plain        {_percent(plain)}",
            f"P-reg {self.mu:<6g} {_percent(chosen)}",
        ]
        if self.helps:
            lines.append(
                f"difference   {100 * apart.mean:+.2f} points [{100 * apart.low:+.2f}, {100 * apart.high:+.2f}], "
                f"p = {apart.p_value:.3g}, better in {apart.won:.0%} of the paired runs"
            )
        else:
            lines = [lines[0], "No strength did better on validation: the plain model was chosen."]
        return "\n".join(lines)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model's state and what is needed to build it again, as an npz without pickles."""
        if self.architecture is None:
            raise ValueError("the model is of your own making: save its state_dict as you save your other models.")
        settings: dict[str, Any] = {"architecture": asdict(self.architecture), "mu": self.mu}
        arrays = {f"state/{name}": t.detach().cpu().numpy() for name, t in self.model.state_dict().items()}
        text = np.frombuffer(json.dumps(settings, sort_keys=True).encode(), np.uint8)
        write_npz(Path(path), {**{k.replace("/", "__"): v for k, v in arrays.items()}, "settings": text})

    def _complete(self, mu: float) -> Runs:
        runs = self.test[self.mus.index(mu)]
        whole: Runs = runs[~np.isnan(runs).any(axis=1)]
        return whole if whole.size else runs[:, ~np.isnan(runs).any(axis=0)]


def _percent(s: Summary) -> str:
    return f"{100 * s.mean:.2f} ± {100 * s.std:.2f} %  (95 %: {100 * s.low:.2f} to {100 * s.high:.2f}, {s.runs} runs)"
