"""An epoch of a batch as one call: evaluate the weights as they are, then one step.

On a GPU the call is recorded as a CUDA graph and replayed: an epoch is some sixty kernels, and launching them one by
one from Python takes longer than a small batch takes to compute.
"""

import contextlib
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from propreg.engine import kernels
from propreg.engine.models.network import Parameters
from propreg.engine.training.objective import Objective
from propreg.engine.training.passes import Passes
from propreg.engine.training.phases import Phase
from propreg.engine.training.state import Judged, State
from propreg.engine.training.stopping import Stopper

WARM_UP = 2  # epochs that run before one is recorded: kernels compile and tables are built in them


class Numbers(NamedTuple):
    """The losses of a step, and the evaluation of the weights before it: [R] each."""

    loss: Tensor
    val: Tensor  # correct validation nodes, int64
    test: Tensor
    val_loss: Tensor | None = None  # if a rule reads it


class Epoch:
    """Runs the epochs of a phase; ``epoch(number)`` makes step ``number`` after evaluating the weights before it.

    Args:
        phase: The phase.
        y: The classes of the nodes.
        keep_weights: Keep the weights of the epoch that the first rule reports.
        keep_logits: Keep the logits of validation and test nodes of the epoch that each rule reports.
        record: Record and replay epochs as CUDA graphs.
    """

    def __init__(
        self,
        phase: Phase,
        y: Tensor,
        *,
        keep_weights: bool = False,
        keep_logits: bool = False,
        record: bool = False,
    ) -> None:
        self.phase, self.y, self.record = phase, y, record
        self.keep_weights, self.keep_logits = keep_weights or phase.leaves == "best", keep_logits
        self.with_loss = any(rule.losses for rule in phase.rules)
        self.steps = 0
        phase.state.stopper = None  # not that of an earlier phase
        if self.keep_weights or keep_logits:
            phase.state.stopper = Stopper(phase.rules, phase.state.patience, phase.epochs)
            phase.state.best, phase.state.moments, phase.state.logits = {}, {}, {}
        self._warm = 0
        self._stream: torch.cuda.Stream | None = None
        self._recorded: tuple[torch.cuda.CUDAGraph, Numbers] | None = None
        self._stale = True

    def restart(self) -> None:
        """Record anew, since the state has new tensors; one epoch runs first, which allocates those that it keeps."""
        self._stale, self._warm = True, min(self._warm, WARM_UP - 1)

    def __call__(self, number: int) -> Numbers:
        if not self.record:
            self._advance(number)
            return self._body(number)
        with torch.cuda.device(self.y.device):  # streams and kernels belong to the device that is current
            return self._recorded_epoch(number)

    def look(self) -> Numbers:
        """Evaluate the weights without another step; the losses are 0."""
        network, state = self.phase.network, self.phase.state
        with torch.no_grad():
            seen = self._evaluate(Passes(network, state, network.begin(state.tensors), 0), state.loss)
        return seen._replace(loss=torch.zeros_like(state.loss))

    def _recorded_epoch(self, number: int) -> Numbers:
        self._advance(number)
        if self._stale:
            if self._warm < WARM_UP:
                self._warm += 1
                return self._body(number)
            self._recorded = self._capture(number)
            self._stale = False
        if self._recorded is None:
            raise RuntimeError("no epoch was recorded.")
        graph, (loss, val, test, val_loss) = self._recorded
        graph.replay()
        return Numbers(loss.clone(), val.clone(), test.clone(), None if val_loss is None else val_loss.clone())

    def _capture(self, number: int) -> tuple[torch.cuda.CUDAGraph, Numbers]:
        """Record an epoch into the memory that the last recording leaves.

        ``torch.cuda.graph`` would first free all cached memory and allocate it again a moment later: too slow for a
        recording after every few replicas that leave. Only the first recording does so: the cache may hold memory of
        another batch, and nothing can be freed while recording.
        """
        graph = torch.cuda.CUDAGraph()
        before = self._recorded  # kept alive until this recording ends, since a pool lives as long as its graphs
        if before is None:
            torch.cuda.empty_cache()
        self._stream = self._stream or torch.cuda.Stream()  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
        with torch.cuda.stream(self._stream):
            graph.capture_begin(pool=None if before is None else before[0].pool())
            try:
                out = self._body(number)
            except BaseException:
                with contextlib.suppress(RuntimeError):  # an open recording would forbid freeing any memory
                    graph.capture_end()
                raise
            graph.capture_end()
        torch.cuda.current_stream().wait_stream(self._stream)
        return graph, out

    def _advance(self, number: int) -> None:
        advance(self.phase.objective, self.phase.state, self.phase.state.epochs + number)
        self.steps = number

    @torch.enable_grad()
    def _body(self, number: int) -> Numbers:
        phase, state = self.phase, self.phase.state
        objective = phase.objective
        begun = phase.network.begin(state.tensors)
        logits = Passes(phase.network, state, begun, objective.passes, objective.in_groups)
        if number == 1 and not self.record:  # weights that are never reported
            nobody = torch.zeros_like(state.patience)
            seen = Numbers(state.loss, nobody, nobody, None)
        else:
            seen = self._evaluate(logits, state.loss, count=number > 1)
        stopper = state.stopper
        if stopper is None or self.y.device.type != "cpu" or not bool(stopper.stopped.all()):
            loss = step(objective, state, logits)
        elif bool((stopper.watches[0].epoch == stopper.epoch).any()):
            loss = objective.loss(state, logits).detach()  # whether the last weights, which are reported, have one
        else:
            loss = state.loss.clone()
        state.loss.copy_(loss)
        return seen._replace(loss=loss)

    @torch.no_grad()
    def _evaluate(self, logits: Passes, loss: Tensor, count: bool = True) -> Numbers:
        """Evaluate the weights; ``count`` is False before the first step, whose weights are never reported."""
        state, evaluated = self.phase.state, logits.evaluated()
        val, test = count_correct(evaluated, self.y, state.val, state.test)
        val_loss = self._val_loss(evaluated) if self.with_loss else None
        if state.stopper is not None and count:
            self._keep(state.stopper.take(val, test, loss, val_loss), evaluated)
        return Numbers(loss, val, test, val_loss)

    def _val_loss(self, evaluated: Tensor) -> Tensor:
        nodes, real = self.phase.state.val
        logits = at(evaluated, nodes)
        found = self.phase.state.targets.loss_at(logits, torch.where(real, nodes, -1))
        return _cross_entropy(logits, self.y, nodes, real) if found is None else found

    def _keep(self, reported: list[Tensor], evaluated: Tensor) -> None:
        state = self.phase.state
        if self.keep_weights and (not state.best or _some(reported[0])):
            remember(state.best, {**state.parameters, **self.phase.network.buffers()}, reported[0])
        if self.phase.leaves == "best":
            remember(state.moments, state.optimizer.tensors(), reported[0])
        if self.keep_logits:
            judged = at(evaluated, torch.cat([state.val[0], state.test[0]], 1))
            for rule, chosen in zip(self.phase.rules, reported, strict=True):
                remember(state.logits, {rule.name: judged}, chosen)


def advance(objective: Objective, state: State, epoch: int) -> None:
    """Set what changes from epoch to epoch and is not learned: mask keys, bias corrections, the annealed strength."""
    state.keys.advance(epoch)
    state.optimizer.advance()
    objective.advance(state, epoch)


def step(objective: Objective, state: State, logits: Passes) -> Tensor:
    """One step of the optimizer on each replica's loss; returns the losses [R]."""
    loss = objective.loss(state, logits)
    trained = {name: t for name, t in state.parameters.items() if t.requires_grad}
    gradients = torch.autograd.grad(loss.sum(), list(trained.values()), allow_unused=True)
    # As in torch, a parameter that the loss does not depend on stays as it is: no weight decay either.
    moved = {name: g for name, g in zip(trained, gradients, strict=True) if g is not None}
    state.optimizer.step({name: trained[name] for name in moved}, moved)
    return loss.detach()


def count_correct(logits: Tensor, y: Tensor, *judged: Judged) -> Tensor:
    """Of how many nodes the largest of the logits, the first of equal ones, is that of the class. int64 [choices, R].

    The logits are [R, N, C], or in groups [groups, members, N, C]; the last rows may then belong to padding members.
    """
    if kernels.usable(logits, y):
        from propreg.engine.kernels.accuracy import count_correct as kernel

        return kernel(logits, y, *judged)
    right = (logits.max(-1).indices == y).flatten(0, -2)  # as argmax, in half of its time on a CPU
    return torch.stack([(right[: len(nodes)].gather(1, nodes) & real).sum(1) for nodes, real in judged])


def at(logits: Tensor, nodes: Tensor) -> Tensor:
    """The logits of each replica's nodes [R, T], from [R, N, C] or in groups [groups, members, N, C]. [R, T, C]."""
    classes = logits.shape[-1]
    if logits.dim() == 3:
        return logits.gather(1, nodes.unsqueeze(2).expand(-1, -1, classes))
    groups, members = logits.shape[:2]
    index = pad(nodes, (0, 0, 0, groups * members - len(nodes))).view(groups, members, -1, 1)
    return logits.gather(2, index.expand(-1, -1, -1, classes)).flatten(0, 1)[: len(nodes)]


def remember(kept: Parameters, now: Parameters, reported: Tensor) -> None:
    """Overwrite the kept tensors of the replicas that report this epoch."""
    if now.keys() <= kept.keys() and not _some(reported):
        return
    for name, t in now.items():
        if name not in kept:
            kept[name] = t.detach().clone()
        wide = reported.view(-1, *([1] * (t.dim() - 1)))
        kept[name].copy_(torch.where(wide, t, kept[name]))


def _some(reported: Tensor) -> bool:
    """Whether a replica may report this epoch: in a long training few do. A GPU would have to be asked."""
    return reported.device.type != "cpu" or bool(reported.any())


def _cross_entropy(logits: Tensor, y: Tensor, nodes: Tensor, real: Tensor) -> Tensor:
    """The mean cross entropy of each replica's nodes, in float64. [R]."""
    log_p = logits.double().log_softmax(-1)
    classes = (
        y.expand(len(nodes), -1).gather(1, nodes).clamp(min=0).unsqueeze(-1)
    )  # node 0, the padding, may have no class
    return -(log_p.gather(-1, classes).squeeze(-1) * real).sum(1) / real.sum(1)
