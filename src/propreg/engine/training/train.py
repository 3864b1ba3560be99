"""The training loop: R runs that share a graph and an architecture, as one program.

An epoch is one step and then an evaluation. The first layer of that evaluation is also that of the next step, so the
loop evaluates the last step's weights at the beginning of the next and computes that layer once: call number e gives
the loss of step e and the accuracies after step e − 1.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg import _errors
from propreg.engine.models.network import Network
from propreg.engine.spec import CORRECTED, Measures, Method, Model, Protocol, Replica, Report, Result
from propreg.engine.tasks.node import Problem
from propreg.engine.training.epoch import Epoch, Numbers
from propreg.engine.training.measures import correct_prior, measure
from propreg.engine.training.memory import bytes_per_replica
from propreg.engine.training.phases import Procedure, one_phase
from propreg.engine.training.state import State
from propreg.engine.training.stopping import RULES, Rule, Stopper, Watch
from propreg.engine.validate import check

RECORDING = 9_000_000_000  # bytes of replicas trained for an epoch in the time of a recording: an estimate for an H200


def train(
    problem: Problem,
    model: Model,
    method: Method,
    replicas: Sequence[Replica],
    protocol: Protocol,
    *,
    keep_history: bool = False,
    keep_weights: bool = False,
    measures: bool = False,
    rules: Sequence[str] = (),
    check_every: int = 1,
    network: Network | None = None,
    procedure: Procedure | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, Result]]:
    """Train a batch and yield (place in ``replicas``, result) the moment each replica stops.

    Args:
        problem: The graph on its device.
        model: The architecture all replicas share.
        method: The regularizer all replicas share; each has its own strength.
        replicas: One per run.
        protocol: When to stop and what to report.
        keep_history: Put losses and accuracies per epoch into the results.
        keep_weights: Put the weights of the reported epoch into the results.
        measures: Put the measures of each reported epoch into the results.
        rules: Names of selection rules to report beside the protocol's own; ``"prior_corrected"`` reports the epoch of
            the protocol's with predictions that :func:`.measures.correct_prior` makes.
        check_every: Look at the accuracies only every so many epochs: on a GPU each look costs a synchronization. What
            is reported does not depend on it; a replica may train a few epochs more than it needs.
        network: A network of the caller's own in place of ``model``'s.
        procedure: The phases of the training, in place of the one of ``model``, ``method`` and ``protocol``.
        stop: Called after every epoch; True ends the batch, and its unfinished runs are lost.
    """
    check(model, method, replicas, protocol, problem.splits, problem.graph.y)
    _check_rules(rules, measures=measures)
    ledger = Ledger(problem, replicas, keep_history, corrected=CORRECTED in rules)
    if procedure is None:
        procedure = _procedure(model, method, protocol, network)
    for phase in procedure(problem, replicas):
        last, state = phase.leaves == "results", phase.state
        if last:
            phase.watch(name for name in rules if name != CORRECTED)
        record = phase.recordable and problem.device.type == "cuda"
        run = Epoch(
            phase,
            problem.y,
            keep_weights=keep_weights and last,
            keep_logits=measures and last,
            record=record,
        )
        spare = RECORDING // bytes_per_replica(problem, model, method) if record else 0
        seen_by = state.stopper if problem.device.type == "cpu" and check_every == 1 else None
        ledger.begin(phase.rules, phase.epochs, seen_by)
        wasted, waiting = 0, list[Numbers]()
        now = run(1)
        for number in range(2, phase.epochs + 2):
            step, now = now, run(number) if last or number <= phase.epochs else run.look()
            waiting.append(now._replace(loss=step.loss))
            if stop():
                return
            if len(waiting) < check_every and number <= phase.epochs:
                continue
            ledger.write(waiting, now.loss)
            waiting.clear()
            for row in ledger.finished(last):
                yield ledger.result(row, state, keep_weights and last)
            if ledger.all_done():
                break
            # Compacting means recording anew: stopped replicas stay until they have cost as much time as that takes.
            wasted += check_every * ledger.idle()
            if last and wasted > spare:
                wasted, kept = 0, ledger.compact()
                for each in (state, *phase.along):
                    each.keep(kept)
                now = now._replace(loss=now.loss[torch.from_numpy(kept).to(now.loss.device)])
                run.restart()
        if last or ledger.handed_out.all():
            return
        ledger.end()
        phase.end(run.steps)
    raise ValueError("the procedure ended without a phase that leaves results.")


def _check_rules(rules: Sequence[str], *, measures: bool) -> None:
    for name in rules:
        _errors.one_of("rules", name, (*RULES, CORRECTED))
    if CORRECTED in rules and not measures:
        raise ValueError(f"rules has {CORRECTED!r}, which corrects the logits that measures keep: pass measures=True.")


def _procedure(model: Model, method: Method, protocol: Protocol, network: Network | None) -> Procedure:
    """The phases of a training method, or the one phase of an architecture or a network of the caller's own."""
    own = model.architecture.phases if network is None else None
    if own is not None:
        return partial(own, model=model, method=method, protocol=protocol)
    return partial(one_phase, model=model, method=method, protocol=protocol, network=network)


class Ledger:
    """The epochs' numbers on the host: what the rules report, what failed, and the history if kept."""

    def __init__(
        self, problem: Problem, replicas: Sequence[Replica], keep_history: bool = False, *, corrected: bool = False
    ) -> None:
        self.problem, self.replicas, self.keep_history, self.corrected = problem, replicas, keep_history, corrected
        self.number = np.arange(len(replicas))
        self.past = np.zeros(len(replicas), np.int64)  # epochs of earlier phases
        self.failed_at = np.zeros(len(replicas), np.int64)
        self.history: list[list[tuple[float, int, int]]] = [[] for _ in replicas]
        self.handed_out = np.zeros(len(replicas), np.bool_)
        self.begin([], 0)

    def begin(self, rules: Sequence[Rule], epochs: int, seen_by: Stopper | None = None) -> None:
        """Watch another phase of so many epochs, in which replicas that have failed take no part.

        Args:
            rules, epochs: Of the phase.
            seen_by: The stopper of the epochs, where it is on the host and sees each of them just before the ledger.
        """
        patience = torch.tensor([self.replicas[int(i)].patience for i in self.number])
        self.stopper = Stopper(rules, patience, epochs) if seen_by is None else seen_by
        self.own = seen_by is None
        self.stopper.stopped |= torch.from_numpy(self.failed_at > 0)
        self.ended = self.stopped.copy()

    def end(self) -> None:
        """Count the epochs of a phase that another one follows."""
        self.past += self.stopper.epochs.numpy()

    @property
    def stopped(self) -> NDArray[np.bool_]:
        """Which rows have stopped in this phase."""
        found: NDArray[np.bool_] = self.stopper.stopped.numpy()
        return found

    def write(self, waiting: Sequence[Numbers], next_loss: Tensor) -> None:
        """Take the numbers of consecutive epochs, in one transfer each, and the loss after them."""
        losses, vals, tests = (
            torch.stack([getattr(numbers, name) for numbers in waiting]).cpu() for name in ("loss", "val", "test")
        )
        read = [numbers.val_loss for numbers in waiting if numbers.val_loss is not None]
        val_losses = torch.stack(read).cpu() if read else [None] * len(waiting)
        finite = np.isfinite(np.concatenate([losses.numpy(), next_loss.cpu().numpy()[None]]))
        for offset, (loss, val, test) in enumerate(zip(losses, vals, tests, strict=True)):
            live = ~self.ended
            if self.own:
                self.stopper.take(val, test, loss, val_losses[offset])
            self.ended = self.stopped.copy()
            if not finite[offset : offset + 2].all():
                # What a run reports of its last step counts only if the weights of that step still have a loss.
                own = self.stopper.watches[0]
                last = self.ended & (own.epoch == self.stopper.epoch).numpy() & ~finite[offset + 1]
                broken = live & (~finite[offset] | last)
                self.failed_at[broken] = self.past[broken] + int(self.stopper.epoch)
            if self.keep_history:
                rows = list(zip(loss.tolist(), val.tolist(), test.tolist(), strict=True))
                for i in np.flatnonzero(live):
                    self.history[self.number[i]].append(rows[i])

    def finished(self, last: bool) -> list[int]:
        """Rows whose result has become known: those that have stopped; before the last phase, those that failed."""
        known = self.ended if last else self.failed_at > 0
        new = np.flatnonzero(known & ~self.handed_out)
        self.handed_out |= known
        return [int(i) for i in new]

    def result(self, i: int, state: State, weights: bool) -> tuple[int, Result]:
        """The result of row i, and its place in the input."""
        number = int(self.number[i])
        replica = self.replicas[number]
        split = self.problem.splits[replica.split]
        sizes = int(split.val.sum()), int(split.test.sum())
        history = {}
        if self.keep_history:
            losses, vals, tests = (np.array(column) for column in zip(*self.history[number], strict=True))
            history = {"loss": losses, "val": vals / sizes[0], "test": tests / sizes[1]}
        reports = [self._report(i, watch, sizes, state) for watch in self.stopper.watches]
        if self.corrected:
            reports.append(self._corrected(i, reports[0], sizes, state))
        kept = {name: p[i].cpu() for name, p in state.best.items()} if weights else {}
        failed = int(self.failed_at[i]) or None
        if failed is None and any(_broken(w, state.parameters.get(name)) for name, w in kept.items()):
            failed = reports[0].epoch  # the loss does not depend on the broken weight
        return number, Result(
            replica,
            val=reports[0].val,
            test=reports[0].test,
            epoch=reports[0].epoch,
            epochs=int(self.past[i] + self.stopper.epochs[i]),
            failed_at=failed,
            history=history,
            weights=kept,
            reports=tuple(reports),
            before=int(self.past[i]),
        )

    def _report(self, i: int, watch: Watch, sizes: tuple[int, int], state: State) -> Report:
        val, test = int(watch.val[i]) / sizes[0], int(watch.test[i]) / sizes[1]
        measures = None
        if watch.rule.name in state.logits:
            measures = _measured(state.logits[watch.rule.name][i], i, state, sizes, self.problem.y)
        return Report(watch.rule.name, int(self.past[i] + watch.epoch[i]), val, test, measures)

    def _corrected(self, i: int, own: Report, sizes: tuple[int, int], state: State) -> Report:
        """The run's own report with corrected predictions; as it is if a logit is not finite."""
        if own.measures is None:
            return Report(CORRECTED, own.epoch, own.val, own.test)
        parts = _parts(state.logits[self.stopper.watches[0].rule.name][i], i, state, sizes)
        logits = correct_prior(*(z for z, _ in parts))
        right = (
            int((z.max(1).indices == self.problem.y[nodes]).sum()) for z, (_, nodes) in zip(logits, parts, strict=True)
        )
        val, test = (hits / size for hits, size in zip(right, sizes, strict=True))
        return Report(CORRECTED, own.epoch, val, test)

    def all_done(self) -> bool:
        """Whether every row has stopped."""
        return bool(self.ended.all())

    def idle(self) -> int:
        """The number of stopped rows that are still in the batch."""
        return int(self.ended.sum())

    def compact(self) -> NDArray[np.int64]:
        """Drop the stopped rows; returns the rows that stay."""
        kept = np.flatnonzero(~self.ended)
        self.number, self.past, self.handed_out = self.number[kept], self.past[kept], self.handed_out[kept]
        self.failed_at, self.ended = self.failed_at[kept], self.ended[kept]
        if self.own:
            self.stopper.keep(torch.from_numpy(kept))
        return kept


def _measured(logits: Tensor, i: int, state: State, sizes: tuple[int, int], y: Tensor) -> Measures | None:
    """The measures of row i, from its kept logits: each part is padded to the longest of the batch."""
    val, test = (measure(z, y[nodes]) for z, nodes in _parts(logits, i, state, sizes))
    return None if val is None or test is None else Measures(val, test)


def _parts(logits: Tensor, i: int, state: State, sizes: tuple[int, int]) -> list[tuple[Tensor, Tensor]]:
    """The logits of the validation and of the test nodes, and the nodes."""
    parts = torch.split(logits, [state.val[0].shape[1], state.test[0].shape[1]])
    nodes = state.val[0][i], state.test[0][i]
    return [(z[:n], each[:n]) for z, each, n in zip(parts, nodes, sizes, strict=True)]


def _broken(weight: Tensor, parameter: Tensor | None) -> bool:
    """Whether a reported weight is not finite, or a running statistic NaN.

    Untrained parameters may hold anything, and a mask among a module's buffers consists of infinities.
    """
    if parameter is None:
        return bool(weight.isnan().any())
    return parameter.requires_grad and not bool(weight.isfinite().all())
