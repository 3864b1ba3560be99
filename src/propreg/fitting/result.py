"""What ``fit`` returns: the chosen strength, how it compares with the plain model, and the trained model."""

import html
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from propreg._lazy import MissingPackageError
from propreg.data.graph import Graph, Split, Task
from propreg.data.scaling import Scaling
from propreg.engine.models.module_inputs import Inputs
from propreg.engine.spec import Model, Result
from propreg.fitting.by_class import confusion_of, report_of
from propreg.fitting.comparison import Comparison
from propreg.fitting.explain import Facts, about_shift, reasons
from propreg.fitting.leaderboard import Leaderboard
from propreg.fitting.metric_table import metric_lines, metric_pairs
from propreg.fitting.predictions import Trained, predictions_csv
from propreg.fitting.splits import judgeable
from propreg.fitting.verdict import JUDGING, Judging, Pair, Verdict, judge
from propreg.metrics import METRICS
from propreg.statistics import Runs

if TYPE_CHECKING:
    import pandas
    from torch_geometric.data import Data

MOST_SEEDS = 5  # that are listed
COLUMNS = (
    *("model", "method", "mu", "split", "seed", "validation", "test", "epoch", "epochs", "failed"),
    *(f"test_{name}" for name in METRICS),
)
"""Of :meth:`FitResult.to_frame`; the last are metrics of classes."""


@dataclass(frozen=True, eq=False, repr=False)  # it holds arrays, whose == has no single answer
class FitResult(Comparison):
    """The outcome of :func:`propreg.fit`. Accuracies are fractions, arrays [strengths, splits, seeds].

    With another ``metric``, the arrays hold its values instead; without test nodes, ``test`` is of the validation
    nodes. ``judging`` names both.

    Attributes:
        mu: The chosen strength; 0 if the plain model is best on validation.
        mus: All strengths tried, ascending, 0 first.
        val, test: Accuracy of every run at its reported epoch; NaN for a run that failed or was not finished.
        model: The trained module of the best run at the chosen strength, ``forward(x, edge_index)``, in evaluation
            mode and float32: for other features pass ``x.float()``. It takes ``x`` as the graph has it.
        runs: Every finished run, with its history and, of classes, the measures behind every metric, in the arrays'
            order.
        finished: False if the fit was interrupted.
        method, preset: The regularizer.
        splits: The splits, by name, in the arrays' order.
        predicted: The classes that the runs without a regularizer (key 0) and with the chosen strength predict for all
            nodes, int64 [splits, seeds, nodes]; −1 if a run failed or was not finished.
        dropout: The dropout of the training.
        facts: Properties of the graph, for the reasons in :meth:`summary`.
        sizes: The numbers of features and classes.
        kept: The folder inside ``resume`` that holds the finished runs; None without it.
        scaling: What ``model`` does to the features before anything else, see ``scale`` of :func:`propreg.fit`.
        graph: The training graph.
        judging: What ``val`` and ``test`` hold, and of which nodes.
        probabilities: The probabilities of ``model`` for the nodes of the training graph, see :meth:`predict_proba`.
        inputs: What the ``forward`` of a model of your own is called with.
        leaderboard: With several models or regularizers, the results of all; this one is the best on validation.
        refit: The run on training and validation nodes that produced ``model``, if ``refit`` was set.
        picked_by: With ``select``, the validation scores by which the strength was picked, higher is better.
        settings: The settings of the training, by option; ``device`` and ``seconds`` are where and how long it ran.
        batches: How it was trained in mini-batches, as a sentence; empty for full batches.

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
    sizes: tuple[int, int] = (0, 0)
    kept: Path | None = None
    scaling: Scaling = field(default_factory=Scaling)
    graph: Graph | None = None
    judging: Judging = JUDGING
    refit: Result | None = None
    leaderboard: Leaderboard | None = None
    inputs: Inputs | None = None
    probabilities: NDArray[np.float32] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    device: str = ""
    seconds: float = 0.0
    batches: str = ""
    picked_by: Runs | None = None

    @property
    def picking(self) -> Runs:
        """The validation scores by which the strength was picked, higher is better."""
        return super().picking if self.picked_by is None else self.picked_by

    def __repr__(self) -> str:
        """The verdict in one line; :meth:`summary` has the numbers."""
        return f"<FitResult: {judge(self).sentence}>"

    @property
    def best_run(self) -> Result:
        """The run that ``model`` is of: the best on validation at the chosen strength."""
        runs, names, sign = self.runs, list(self.splits), self.judging.sign
        of_mu = [run for run in runs if run.replica.strength == self.mu and not run.failed]
        val = self.val[self._place(self.mu)]
        return max(of_mu, key=lambda run: _finite(sign * val[names.index(run.replica.split), run.replica.seed]))

    def predict(self, data: "Data | Graph | str | os.PathLike[str] | None" = None) -> NDArray[Any]:
        """The class that ``model`` predicts for each node [nodes]; or 0 and 1 [nodes, labels], or numbers [nodes, L].

        Args:
            data: A graph with the features of the training: a PyG ``Data``, which needs no ``y``, or the path of one.
                None: the training graph, including its unlabeled nodes.
        """
        found = self._predicted(data)
        if self.task == "regression":
            return found
        classes: NDArray[np.int64] = found.argmax(axis=1) if self.task == "classes" else (found >= 0.5).astype(np.int64)
        return classes

    @property
    def task(self) -> Task:
        """What was learned."""
        return "classes" if self.graph is None else self.graph.task

    def predict_proba(self, data: "Data | Graph | str | os.PathLike[str] | None" = None) -> NDArray[np.float32]:
        """The probability of each class or label for each node [nodes, classes], as :meth:`predict`."""
        if self.task == "regression":
            raise ValueError("numbers have no probabilities: call predict.")
        return self._predicted(data)

    def _predicted(self, data: "Data | Graph | str | os.PathLike[str] | None") -> NDArray[np.float32]:
        if self.graph is None:
            raise ValueError("the result has no graph: it was not made by fit.")
        if data is None and self.probabilities is not None:
            return self.probabilities.copy()
        graph, features = self.graph, self.sizes[0]
        weighted = self.architecture is not None and graph.edge_weight is not None
        trained = Trained(
            self.model, features, weighted, graph.class_names, graph.feature_names, self.inputs, self.task
        )
        return trained.probabilities(graph if data is None else data)

    def predictions(self) -> str:
        """The predictions of :meth:`predict_proba` for the graph of the training as CSV text, one line per node.

        Its columns are the node's id, its given label, its part of the split that ``model`` was trained on, the
        predicted class and its probability, the runner-up, and the share of neighbors with the same prediction.
        """
        if self.graph is None:
            raise ValueError("the result has no graph: it was not made by fit.")
        if self.task != "classes":
            raise ValueError(f"the table is of classes, but the task is {self.task}: call predict.")
        split = self.splits[self.best_run.replica.split]
        return predictions_csv(self.graph, self.predict_proba(), self.graph.class_names, split)

    def confusion(self, mu: float | None = None) -> NDArray[np.int64]:
        """The confusion matrix [true, predicted] over the test nodes of all runs.

        Args:
            mu: The chosen strength (None), or 0 for the plain model.
        """
        mu = self.mu if mu is None else mu
        if self.graph is None or mu not in self.predicted:
            known = ", ".join(f"{each:g}" for each in self.predicted) or "none"
            raise ValueError(f"there are no predictions of classes at mu = {mu!r}: predictions are kept at {known}.")
        splits = [judgeable(split) for split in self.splits.values()]
        return confusion_of(self.graph.y, self.predicted[mu], splits, self.graph.num_classes)

    def classification_report(self, mu: float | None = None) -> str:
        """Precision, recall and F1 of each class over the test nodes of all runs, as text; see :meth:`confusion`."""
        table = self.confusion(mu)
        names = self.graph.class_names if self.graph is not None else ()
        return report_of(table, names or [str(c) for c in range(len(table))])

    def metrics(self) -> dict[str, Pair]:
        """Every metric of :data:`propreg.metrics.METRICS` for the plain model and the compared strength.

        By name, their means over the runs that both have, and the gain with its interval. Empty of other tasks than
        classes. The metrics of one run are ``METRICS[name].compute(run.reports[0].measures.test)``.
        """
        return metric_pairs(self)

    def metrics_report(self) -> str:
        """:meth:`metrics` as text."""
        if not (found := self.metrics()):
            raise ValueError(
                "there is no pair of finished runs to compare." if self.task == "classes"
                else f"the metrics are of classes, but the task is {self.task}: see summary."
            )  # fmt: skip
        return "\n".join(metric_lines(found, self.method, self.judging.part, self.judging.nested))

    def _repr_html_(self) -> str:
        """The summary, for notebooks."""
        return f"<pre>{html.escape(self.summary())}</pre>"

    def summary(self) -> str:
        """A few lines: plain, the best strength above 0, their difference, and the verdict.

        For a fit that was interrupted, the first line states how far it got. Of several models, the leaderboard.
        """
        if self.leaderboard is not None:
            return "\n".join([self.leaderboard.summary(), "", replace(self, leaderboard=None).summary()])
        return "\n".join([super().summary(), *([self.batches] if self.batches else [])])

    def _reasons(self, verdict: Verdict) -> list[str]:
        return reasons(self.facts, self, verdict, "{}=…") if self.facts else []

    def _notes(self) -> list[str]:
        return about_shift(self, 'select="reweighted"')

    def _interrupted(self) -> list[str]:
        if self.finished:
            return []
        return [f"Interrupted: {len(self.runs)} of {self.val.size} trainings are finished."]

    def _failed(self) -> list[str]:
        failed = [run for run in self.runs if run.failed and not run.error]
        lost = [f"{self._which(failed)} failed: the loss became NaN or infinite. Lower lr if it happens often."]
        errors = self.errors()
        return lost * bool(failed) + [f"{errors}."] * bool(errors)

    def errors(self) -> str:
        """How many runs raised, with the last line of the first one's traceback; empty if none did."""
        raised = [run for run in self.runs if run.error]
        if not raised:
            return ""
        last = next((line for line in reversed(raised[0].error.splitlines()) if line.strip()), "")
        return f"{self._which(raised)} raised an exception ({last.strip()[:200]}); its traceback is the run's .error"

    def _which(self, some: list[Result]) -> str:
        seeds = sorted({run.replica.seed for run in some})
        which = f" (seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))})" if len(seeds) <= MOST_SEEDS else ""
        return f"{len(some)} of {len(self.runs)} runs{which}" if len(some) > 1 else f"One run{which}"

    @property
    def model_name(self) -> str:
        """Of a built-in model its name, of your own its class."""
        return type(self.model).__name__ if self.architecture is None else self.architecture.name

    def to_frame(self) -> "pandas.DataFrame":
        """A pandas ``DataFrame`` with a row for each run; of several models, for the runs of all.

        Raises:
            ImportError: If pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as missing:
            raise MissingPackageError("to_frame needs pandas: run pip install pandas.", name="pandas") from missing
        several = {"": self} if self.leaderboard is None else self.leaderboard.results
        rows = [row for name, result in several.items() for row in result._rows(name or result.model_name)]
        return pandas.DataFrame(rows, columns=list(COLUMNS))

    def _rows(self, model: str) -> Iterator[tuple[Any, ...]]:
        names = list(self.splits)
        for run in self.runs:
            mu, split, seed = run.replica.strength, run.replica.split, run.replica.seed
            place = self._place(mu), names.index(split), seed
            scores = float(self.val[place]), float(self.test[place])
            measures = run.reports[0].measures if run.reports else None
            more = (math.nan if measures is None else each.compute(measures.test) for each in METRICS.values())
            yield model, self.method, mu, split, seed, *scores, run.epoch, run.epochs, run.failed, *more

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trained model to one safetensors file: its weights, and in the metadata how to build it again.

        The file also holds what is done to the features, the names of classes and features, and versions.

        :func:`propreg.load_model` reads it. The file is written whole or not at all, and equal models give equal bytes.
        For a model of your own it holds the parameters and buffers (except sparse ones) and not the code, which you
        pass to ``load_model`` as a new module.

        Args:
            path: The file to create or replace, like ``model.safetensors``. A name that ends in ``.npz`` makes an npz
                with the same content, for readers that have NumPy alone.

        Raises:
            DataError: If the file cannot be written.
        """
        from propreg.fitting.checkpoint import About, write_model, write_state

        graph, trained = self.graph, {"method": self.method, "preset": self.preset, "mu": self.mu}
        names = ((), ()) if graph is None else (graph.class_names, graph.feature_names)
        about = About(trained, *names, inputs=None if self.inputs is None else self.inputs.names, task=self.task)
        if self.architecture is None:
            write_state(path, self.model, about, self.scaling)
        else:
            write_model(path, self.model, self.architecture, self.sizes, self.dropout, about, self.scaling)


def _finite(score: float) -> float:
    return -math.inf if math.isnan(score) else score
