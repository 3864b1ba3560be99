"""What ``fit_graphs`` returns."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from propreg.data.graph_list import GraphList, Parts
from propreg.fitting.comparison import Comparison
from propreg.fitting.graphs.model import GraphModel
from propreg.fitting.verdict import Judging, judge
from propreg.molecules.steps import MoleculeProtocol
from propreg.molecules.train import MoleculeResult
from propreg.statistics import Runs

WHERE = "on these graphs"
JUDGED = {
    "classification": Judging(where=WHERE),
    "binary classification": Judging("ROC-AUC", where=WHERE),
    "regression": Judging("RMSE", sign=-1, fraction=False, where=WHERE),
}
"""The score of each kind of task."""


@dataclass(frozen=True, eq=False)
class GraphFitResult(Comparison):
    """The outcome of :func:`propreg.fit_graphs`. Scores are arrays [strengths, splits, seeds].

    Attributes:
        mu: The chosen strength; 0 if the plain model is best on validation.
        mus: All strengths tried, ascending, 0 first.
        val, test: Score of every run at its reported epoch, see ``judging``: accuracy of classes, ROC-AUC averaged over
            the tasks of yes/no questions, RMSE averaged over targets in their own units; NaN for a run that failed or
            was not finished.
        model: The trained model of the best run at the chosen strength.
        runs: The scores of every finished run after each epoch, by strength, split and seed.
        graphs: The graphs of the training.
        splits: The splits, by name, in the arrays' order.
        judging: What ``val`` and ``test`` hold.
        protocol: How each run was trained.
        finished: False if the fit was interrupted.
        method, preset: The regularizer.
        device, seconds: Where it was trained, and for how long.

    Example:
        >>> import torch, propreg
        >>> from torch_geometric.data import Data
        >>> ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> graphs = [Data(x=torch.full((3, 1), float(i)), edge_index=ring, y=torch.tensor(i % 2)) for i in range(20)]
        >>> result = propreg.fit_graphs(graphs, mu=0.5, splits=2, seeds=1, hidden=8, max_epochs=2)
        >>> result.test.shape, result.predict().shape
        ((2, 2, 1), (20,))
    """

    mu: float
    mus: tuple[float, ...]
    val: Runs
    test: Runs
    model: GraphModel
    runs: Mapping[tuple[float, str, int], MoleculeResult]
    graphs: GraphList
    splits: Mapping[str, Parts]
    judging: Judging
    protocol: MoleculeProtocol = field(default_factory=MoleculeProtocol)
    finished: bool = True
    method: str = "preg"
    preset: str = "paper"
    device: str = "cpu"
    seconds: float = 0.0

    def __repr__(self) -> str:
        """The verdict in one line; :meth:`summary` has the numbers."""
        return f"<GraphFitResult: {judge(self).sentence}>"

    @property
    def by_task(self) -> Runs:
        """Test score of every run by target, [strengths, splits, seeds, tasks]; NaN where a part has no labels of it.

        ``test`` is the mean over the targets that have a score.
        """
        found = np.full((*self.test.shape, len(self.model.tasks)), np.nan)
        for (mu, name, seed), run in self.runs.items():
            if run.by_task is not None and not run.failed:
                found[self.mus.index(mu), list(self.splits).index(name), seed] = run.by_task
        return found

    def for_task(self, task: int) -> "GraphFitResult":
        """The same comparison by the test scores of one target."""
        return replace(self, test=self.by_task[..., task])

    @property
    def best_run(self) -> tuple[float, str, int]:
        """Strength, split and seed of the run that ``model`` is of: the best on validation at the chosen strength."""
        val = self.judging.sign * self.val[self.mus.index(self.mu)]
        split, seed = np.unravel_index(int(np.nanargmax(val)), val.shape)
        return self.mu, list(self.splits)[int(split)], int(seed)

    def predict(self, graphs: Any = None) -> NDArray[Any]:
        """The class of each graph, int64 [graphs]; or 0 and 1, or numbers, [graphs, tasks].

        Args:
            graphs: A list of PyG ``Data`` with the features of the training, which need no ``y``; None: the graphs of
                the training, with and without a label.
        """
        return self.model.predict(self.graphs if graphs is None else graphs)

    def predict_proba(self, graphs: Any = None) -> NDArray[np.float32]:
        """The probability of each class [graphs, classes], or of a 1 in each task [graphs, tasks]."""
        return self.model.predict_proba(self.graphs if graphs is None else graphs)

    def _failed(self) -> list[str]:
        failed = sum(run.failed for run in self.runs.values())
        if not failed:
            return []
        which = f"{failed} of {len(self.runs)} runs failed"
        return [f"{which}: outputs became NaN or infinite. Lower lr if it happens often."]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trained model to one safetensors file that :func:`propreg.load_graph_model` reads.

        Raises:
            DataError: If the file cannot be written.
        """
        self.model.save(path)
