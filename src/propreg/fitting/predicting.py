"""What trained runs predict."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.engine.passes import nothing_dropped
from propreg.engine.problem import Problem
from propreg.engine.spec import Model, Result

Predict = Callable[[Result], Tensor]


def predict_of(problem: Problem, spec: Model) -> Predict:
    """Gives the logits [N, C] of a run of one of our models."""
    network = problem.network(spec)

    @torch.no_grad()
    def predict(result: Result) -> Tensor:
        p = {name: w.to(problem.device).unsqueeze(0) for name, w in result.weights.items()}
        return network.finish(p, network.begin(p), nothing_dropped)[0]

    return predict


def predicted(
    predict: Predict, results: Sequence[Result | None], shape: tuple[int, int], nodes: int
) -> NDArray[np.int64]:
    """The class of every node by each run's reported weights [splits, seeds, nodes]; −1 where there are none."""
    found = np.full((len(results), nodes), -1, np.int64)
    for place, result in enumerate(results):
        if result is not None and not result.failed:
            found[place] = predict(result).argmax(-1).cpu().numpy()
    return found.reshape(*shape, nodes)
