"""An epoch of a batch as one call: evaluate the weights as they are, then one step.

On a GPU the call is recorded as a CUDA graph and replayed: an epoch is some sixty kernels, and launching them one by
one from Python takes longer than a small batch takes to compute.
"""

from typing import Literal

import torch
from torch import Tensor

from propreg.engine.losses import Regulariser
from propreg.engine.models import Network
from propreg.engine.spec import Method
from propreg.engine.state import State
from propreg.engine.step import advance, correct, remember, step

Numbers = tuple[Tensor, Tensor, Tensor]
WARM_UP = 2  # real epochs before one is recorded: kernels compile and tables are built in them


class Epoch:
    """Runs epochs of one state; ``epoch(number)`` gives this step's losses and the counts of the weights before it."""

    def __init__(
        self,
        network: Network,
        regulariser: Regulariser | None,
        method: Method,
        state: State,
        y: Tensor,
        *,
        best: Literal["first", "latest"] | None = None,
        record: bool = False,
    ) -> None:
        self.network, self.regulariser, self.method, self.state, self.y = network, regulariser, method, state, y
        self.best, self.record = best, record
        self.restart()

    def restart(self) -> None:
        """Forget what was recorded: the state's tensors are others now."""
        self._warm = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._out: Numbers | None = None

    def __call__(self, number: int) -> Numbers:
        advance(self.state, self.method, number)
        if not self.record:
            return self._body(number)
        if self._graph is None:
            if self._warm < WARM_UP:
                self._warm += 1
                return self._body(number)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._out = self._body(number)
        self._graph.replay()
        if self._out is None:
            raise RuntimeError("a recorded epoch has no output.")
        loss, val, test = self._out
        return loss.clone(), val.clone(), test.clone()

    def _body(self, number: int) -> Numbers:
        begun = self.network.begin(self.state.parameters)
        val, test = correct(self.network, self.state, begun, self.y)
        if self.best is not None and number > 1:  # weights that have made no step are never reported
            remember(self.network, self.state, val, ties=self.best == "latest")
        return step(self.network, self.regulariser, self.method, self.state, begun), val, test
