"""The result of a fit from its runs: scores, the chosen strength, the trained module, predictions."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from propreg.data.graph import Graph, Split
from propreg.data.scaling import Scaling
from propreg.devices import device_title
from propreg.engine import Model, Problem, Replica, Result
from propreg.engine.models.module_inputs import Inputs
from propreg.engine.models.network import no_dropout
from propreg.engine.models.user_module import OwnNetwork
from propreg.fitting.explain import facts_of
from propreg.fitting.kept import KeptRuns
from propreg.fitting.measured import Measured, measures_of, picked_by, with_measures
from propreg.fitting.picking import Select
from propreg.fitting.predictions import activated
from propreg.fitting.preprocessing import take_raw_features
from propreg.fitting.pyg_modules import as_module
from propreg.fitting.result import FitResult
from propreg.fitting.scoring import ACCURACY, Score, truth_of
from propreg.fitting.selection import NothingToChooseError, Scores, choose
from propreg.fitting.verdict import Judging
from propreg.scale.trainer import MiniBatches

Logits = Callable[[Result], Tensor]


@dataclass(frozen=True)
class Job:
    """What was trained: with the runs' results, it makes the result of the fit."""

    graph: Graph
    scaling: Scaling
    problem: Problem
    spec: Model
    network: OwnNetwork | None
    method: str
    preset: str
    mus: tuple[float, ...]
    parts: Mapping[str, Split]
    order: Sequence[tuple[int, int, int]]
    rate: float
    kept: KeptRuns | None
    score: Score = ACCURACY
    nested: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    select: Select | None = None
    trainer: MiniBatches | None = None
    batches: str = ""
    begun: float = field(default_factory=monotonic)
    known: dict[Replica, Measured] = field(default_factory=dict)
    """The runs that are measured: ``watch`` makes a result after each run."""

    def trained(self, train: Callable[[dict[int, Result]], bool], errors: Sequence[Exception]) -> FitResult:
        """The result of a training.

        Args:
            train: Puts results by number into a dict, and returns whether all finished.
            errors: Exceptions that it recorded.
        """
        found: dict[int, Result] = {}
        try:
            finished = train(found)
        except Exception as error:
            some = any(not run.failed for run in found.values())
            with suppress(TypeError):  # an exception without attributes
                vars(error)["partial_result"] = self.result(found, finished=False) if some else None
            raise
        if errors and finished and all(run.failed for run in found.values()):
            raise errors[0]
        try:
            return self.result(found, finished=finished)
        except NothingToChooseError:
            if not finished:
                raise KeyboardInterrupt from None  # interrupted before there was anything to return
            raise

    def result(self, found: Mapping[int, Result], *, finished: bool) -> FitResult:
        """The result of finished runs, by number.

        Raises:
            NothingToChooseError: If none is finished, or all have failed.
        """
        if self.network is not None:
            self.network.check_inputs()
        shape = len(self.mus), len(self.parts), 1 + max(seed for _, _, seed in self.order)
        by_place = {self.order[number]: result for number, result in found.items()}
        results = [by_place.get((m, s, n)) for m, s, n in np.ndindex(shape)]
        logits = self._logits()
        scores = Scores.of(results, shape)
        for place, run in enumerate(results):
            if run is not None and not run.failed:
                measured = self._measured(run, logits)
                scores.val.flat[place], scores.test.flat[place] = measured.val, measured.test
        picking = None
        if self.select is not None:
            picking = picked_by(self.select, results, shape, partial(self._measured, logits=logits))
        best = choose(replace(scores, val=self.score.sign * scores.val if picking is None else picking))
        each = shape[1] * shape[2]
        of_plain, of_best = results[:each], results[best * each : (best + 1) * each]
        no_test = not any(split.test.any() for split in self.parts.values())
        part, score = "validation" if no_test else "test", self.score
        classes = {
            mu: _predicted(logits, runs, shape[1:], self.graph.num_nodes)
            for mu, runs in ((self.mus[0], of_plain), (self.mus[best], of_best))
            if self.graph.targets is None
        }
        result = FitResult(
            self.mus[best],
            self.mus,
            scores.val,
            scores.test,
            nn.Identity(),
            tuple(self._with_measures(r) for r in results if r is not None),
            None if self.network is not None else self.spec,
            finished,
            self.method,
            self.preset,
            self.parts,
            classes,
            self.rate,
            facts_of(self.graph, self.parts) if self.graph.targets is None else None,
            self._sizes,
            None if self.kept is None else self.kept.folder,
            self.scaling,
            self.graph,
            Judging(score.title, part, score.sign, score.fraction, self.nested),
            inputs=None if self.network is None else self.network.inputs,
            settings=self.settings,
            device=device_title(str(self.problem.device)),
            seconds=monotonic() - self.begun,
            picked_by=picking,
            batches=self.batches,
        )
        run = result.best_run
        model, scaling = self.module(run), self.scaling_of(run)
        return replace(result, model=model, scaling=scaling, probabilities=self.probabilities(run))

    def probabilities(self, run: Result) -> NDArray[np.float32]:
        """What a run predicts for all nodes, by the network that was trained: sparse features stay sparse."""
        return self._outputs(self._logits(), run)

    def _logits(self) -> Logits:
        if self.trainer is not None:
            return self.trainer.logits
        return self.network.predict if self.network is not None else _logits_of(self.problem, self.spec)

    def module(self, run: Result) -> nn.Module:
        """The trained module of a run; it takes the features as the graph has them."""
        if self.network is not None:
            module = self.network.module(run.weights, run.replica.seed)
            return take_raw_features(module, self.scaling_of(run), (self.network.inputs or Inputs()).names)
        weighted = self.graph.edge_weight is not None
        return as_module(
            self.spec, run.weights, self._sizes, self.rate, weighted=weighted, scaling=self.scaling_of(run)
        )

    @property
    def _sizes(self) -> tuple[int, int]:
        """The numbers of features and classes."""
        return self.graph.num_features, self.graph.num_classes

    def scaling_of(self, run: Result) -> Scaling:
        """What the module of a run does to features, and to the numbers that it predicts."""
        numbers = self.graph.task == "regression"
        return replace(
            self.scaling, targets=Scaling("standard", *self.problem.units(run.replica.split)) if numbers else None
        )

    def _outputs(self, logits: Logits, run: Result) -> NDArray[np.float32]:
        """What a run predicts for all nodes: probabilities, or numbers in the units of the targets."""
        found: NDArray[np.float32] = activated(logits(run), self.graph.task).cpu().numpy()
        mean, deviation = self.problem.units(run.replica.split)
        return found if self.graph.task != "regression" else found * deviation + mean

    def _measured(self, run: Result, logits: Logits) -> Measured:
        """What a run's reported weights predict: one forward pass, the first time that it is asked for."""
        if run.replica not in self.known:
            z, split = logits(run), self.problem.splits[run.replica.split]
            measures, predicted = None, tuple[int, ...]()
            if self.graph.targets is None:
                measures, predicted = measures_of(z, self.problem.y, split)
            val, test = run.val, run.test
            if self.score != ACCURACY:
                truth, p = truth_of(self.graph), self._outputs(lambda _: z, run)
                val, test = (float(self.score.compute(truth[nodes], p[nodes])) for nodes in (split.val, split.test))
            self.known[run.replica] = Measured(val, test, measures, predicted)
        return self.known[run.replica]

    def _with_measures(self, run: Result) -> Result:
        found = self.known.get(run.replica)
        return run if found is None else with_measures(run, found.measures)


def _logits_of(problem: Problem, spec: Model) -> Callable[[Result], Tensor]:
    """The function that computes the logits [N, C] of a run of a built-in model."""
    network = problem.network(spec)

    @torch.no_grad()
    def logits(result: Result) -> Tensor:
        p = {name: w.to(problem.device).unsqueeze(0) for name, w in result.weights.items()}
        return network.finish(p, network.begin(p), no_dropout)[0]

    return logits


def _predicted(
    logits: Callable[[Result], Tensor], results: Sequence[Result | None], shape: tuple[int, int], nodes: int
) -> NDArray[np.int64]:
    """The class of every node by each run's reported weights [splits, seeds, nodes]; −1 if the run has none."""
    found = np.full((len(results), nodes), -1, np.int64)
    for place, result in enumerate(results):
        if result is not None and not result.failed:
            found[place] = logits(result).argmax(-1).cpu().numpy()
    return found.reshape(*shape, nodes)
