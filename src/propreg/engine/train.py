"""The training loop: R runs that share a graph and an architecture, as one program.

An epoch is one step and then an evaluation. The first layer of that evaluation is also that of the next step, so the
loop evaluates the last step's weights at the beginning of the next and computes that layer once: call number e gives
the loss of step e and the accuracies after step e − 1.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from propreg.engine.check import check
from propreg.engine.epoch import Epoch
from propreg.engine.memory import bytes_per_replica
from propreg.engine.models import Network
from propreg.engine.problem import Problem
from propreg.engine.spec import Method, Model, Protocol, Replica, Result
from propreg.engine.state import State, begin
from propreg.engine.stopping import Stopper

RECORDING = 18_000_000_000  # bytes of replicas trained for an epoch in the time of a recording: an estimate for an H200


def train(
    problem: Problem,
    model: Model,
    method: Method,
    replicas: Sequence[Replica],
    protocol: Protocol,
    *,
    keep_history: bool = False,
    keep_weights: bool = False,
    check_every: int = 1,
    network: Network | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, Result]]:
    """Train a batch and yield (place in ``replicas``, result) the moment each replica stops.

    Args:
        problem: The graph on its device.
        model: The architecture all replicas share.
        method: The regulariser all replicas share; each has its own strength.
        replicas: One per run.
        protocol: When to stop and what to report.
        keep_history: Put losses and accuracies per epoch into the results.
        keep_weights: Put the weights of the reported epoch into the results.
        check_every: Look at the accuracies only every so many epochs: on a GPU each look costs a synchronisation. What
            is reported does not depend on it; a replica may train a few epochs more than it needs.
        network: A network of the caller's own in place of ``model``'s.
        stop: Asked after every epoch; True ends the batch, and what is not finished is lost.
    """
    check(model, method, replicas, protocol, problem.splits, problem.graph.y)
    record = problem.device.type == "cuda" and network is None
    network, regulariser = network or problem.network(model), problem.regulariser(method)
    state = begin(problem, network, model, replicas, protocol)
    ledger = Ledger(problem, replicas, protocol, keep_history)
    rule = protocol.rule if keep_weights else None
    run = Epoch(network, regulariser, method, state, problem.y, remember=rule, record=record)
    spare = RECORDING // bytes_per_replica(problem, model, method) if record else 0
    wasted = 0
    waiting: list[tuple[Tensor, Tensor, Tensor]] = []
    loss, _, _ = run(1)
    for epoch in range(2, protocol.max_epochs + 2):
        next_loss, val, test = run(epoch)
        waiting.append((loss, val, test))
        loss = next_loss
        if stop():
            return
        if len(waiting) < check_every and epoch <= protocol.max_epochs:
            continue
        ledger.write(epoch - len(waiting), waiting, next_loss)
        waiting = []
        for i in ledger.finished():
            yield ledger.result(i, state)
        if ledger.all_done():
            return
        # Recording an epoch anew takes time: until those who have left have cost as much, they stay.
        wasted += check_every * ledger.idle()
        if wasted > spare:
            wasted = 0
            kept = ledger.compact()
            state.keep(kept)
            loss = loss[torch.from_numpy(kept).to(loss.device)]
            run.restart()


class Ledger:
    """The epochs' numbers on the host: what the stopping rule made of them, what failed, and the history if kept."""

    def __init__(self, problem: Problem, replicas: Sequence[Replica], protocol: Protocol, keep_history: bool) -> None:
        self.problem, self.replicas, self.keep_history = problem, replicas, keep_history
        self.number = np.arange(len(replicas))
        self.stopper = Stopper(protocol, np.array([r.patience for r in replicas], np.int64))
        self.failed_at = np.zeros(len(replicas), np.int64)
        self.history: list[list[tuple[float, int, int]]] = [[] for _ in replicas]
        self.told = np.zeros(len(replicas), np.bool_)

    def write(self, first: int, waiting: list[tuple[Tensor, Tensor, Tensor]], next_loss: Tensor) -> None:
        """Take the losses and counts of consecutive epochs, in one transfer each, and the loss after them."""
        columns = list(zip(*waiting, strict=True))
        losses, vals, tests = (torch.stack(c).cpu().numpy() for c in ((*columns[0], next_loss), columns[1], columns[2]))
        for offset, (loss, after, val, test) in enumerate(zip(losses, losses[1:], vals, tests, strict=False)):
            epoch, live = first + offset, ~self.stopper.stopped
            self.stopper.update(epoch, val, test)
            # What a run reports of its last step counts only if the weights of that step still have a loss.
            last = self.stopper.stopped & (self.stopper.best_epoch == epoch) & ~np.isfinite(after)
            broken = live & (~np.isfinite(loss) | last)
            self.failed_at[broken] = epoch
            self.stopper.stopped |= broken
            if self.keep_history:
                for i in np.flatnonzero(live):
                    self.history[self.number[i]].append((float(loss[i]), int(val[i]), int(test[i])))

    def finished(self) -> list[int]:
        """Rows of the batch that have stopped since this was asked last."""
        new = np.flatnonzero(self.stopper.stopped & ~self.told)
        self.told |= self.stopper.stopped
        return [int(i) for i in new]

    def all_done(self) -> bool:
        """Whether nobody trains any more."""
        return bool(self.stopper.stopped.all())

    def idle(self) -> int:
        """How many rows have stopped but are still in the batch."""
        return int(self.stopper.stopped.sum())

    def result(self, i: int, state: State) -> tuple[int, Result]:
        """The result of row i, and its place in the input."""
        number, stopper = int(self.number[i]), self.stopper
        replica = self.replicas[number]
        split = self.problem.splits[replica.split]
        history = {}
        if self.keep_history:
            losses, vals, tests = (np.array(column) for column in zip(*self.history[number], strict=True))
            history = {"loss": losses, "val": vals / split.val.sum(), "test": tests / split.test.sum()}
        failed = int(self.failed_at[i]) or None
        weights = {name: p[i].cpu() for name, p in state.best.items()}
        if failed is None and any(_broken(w, state.parameters.get(name)) for name, w in weights.items()):
            failed = int(stopper.best_epoch[i])  # in what the loss does not depend on
        return number, Result(
            replica,
            val=int(stopper.best[i]) / int(split.val.sum()),
            test=int(stopper.best_test[i]) / int(split.test.sum()),
            epoch=int(stopper.best_epoch[i]),
            epochs=int(stopper.epochs[i]),
            failed_at=failed,
            history=history,
            weights=weights,
        )

    def compact(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """Forget the finished rows; returns the rows that stay."""
        kept = np.flatnonzero(~self.stopper.stopped)
        self.number, self.failed_at, self.told = self.number[kept], self.failed_at[kept], self.told[kept]
        self.stopper.keep(kept)
        return kept


def _broken(weight: Tensor, parameter: Tensor | None) -> bool:
    """Whether training has spoilt what a run reports: a weight that is not finite, or a NaN among running statistics.

    What is not trained may hold anything, and a mask among a module's buffers is made of infinities.
    """
    if parameter is None:
        return bool(weight.isnan().any())
    return parameter.requires_grad and not bool(weight.isfinite().all())
