"""An epoch of a batch as one call: evaluate the weights as they are, then one step.

On a GPU the call is recorded as a CUDA graph and replayed: an epoch is some sixty kernels, and launching them one by
one from Python takes longer than a small batch takes to compute.
"""

import contextlib
from typing import Literal

import torch
from torch import Tensor

from propreg.engine.losses import Regulariser
from propreg.engine.models import Network
from propreg.engine.passes import Passes
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
        remember: Literal["official", "strict"] | None = None,
        record: bool = False,
    ) -> None:
        self.network, self.regulariser, self.method, self.state, self.y = network, regulariser, method, state, y
        self.remember, self.record = remember, record
        self._warm = 0
        self._stream: torch.cuda.Stream | None = None
        self._recorded: tuple[torch.cuda.CUDAGraph, Numbers] | None = None
        self._stale = True

    def restart(self) -> None:
        """Record anew: the state's tensors are others now, and an epoch must run to make those that it keeps."""
        self._stale, self._warm = True, min(self._warm, WARM_UP - 1)

    def __call__(self, number: int) -> Numbers:
        if not self.record:
            advance(self.state, self.method, number)
            return self._body(number)
        with torch.cuda.device(self.y.device):  # streams and kernels belong to the device that is current
            return self._recorded_epoch(number)

    def _recorded_epoch(self, number: int) -> Numbers:
        advance(self.state, self.method, number)
        if self._stale:
            if self._warm < WARM_UP:
                self._warm += 1
                return self._body(number)
            self._recorded = self._capture(number)
            self._stale = False
        if self._recorded is None:
            raise RuntimeError("nothing was recorded.")
        graph, (loss, val, test) = self._recorded
        graph.replay()
        return loss.clone(), val.clone(), test.clone()

    def _capture(self, number: int) -> tuple[torch.cuda.CUDAGraph, Numbers]:
        """Record an epoch into the memory that the last recording leaves.

        ``torch.cuda.graph`` would give all unused memory back to the system first, and take it again a moment later:
        too slow for a recording after every few replicas that leave. Only the first one does so, since no memory can be
        had back while it goes on, and that of another batch may be lying around.
        """
        graph = torch.cuda.CUDAGraph()
        before = self._recorded  # alive until this recording ends: its memory is in use as long as someone shares it
        if before is None:
            torch.cuda.empty_cache()
        self._stream = self._stream or torch.cuda.Stream()  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=None if before is None else before[0].pool())
            try:
                out = self._body(number)
            except BaseException:
                with contextlib.suppress(RuntimeError):  # left open, it would forbid to give any memory back
                    graph.capture_end()
                raise
            graph.capture_end()
        torch.cuda.current_stream().wait_stream(self._stream)
        return graph, out

    @torch.enable_grad()
    def _body(self, number: int) -> Numbers:
        begun = self.network.begin(self.state.parameters)
        logits = Passes(self.network, self.method, self.state, begun)
        val, test = correct(logits.evaluated(), self.state, self.y)
        if self.remember is not None and number > 1:  # weights that have made no step are never reported
            remember(self.network, self.state, val, official=self.remember == "official")
        loss = step(self.regulariser, self.method, self.state, logits)
        self.state.rule.loss.copy_(loss)
        return loss, val, test
