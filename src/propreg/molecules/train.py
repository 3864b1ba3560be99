"""The training loop on molecules: all seeds and all strengths of a cell as one program.

Every seed has its own order of molecules, initial weights and dropout masks, drawn from its identity; its strengths
share them, so that strength 0 in the paper form is the plain run. The loop is OGB's example: Adam, mini-batches of 32,
a fixed number of epochs, validation and test after each.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from propreg.engine.models.molecules import MoleculeModel
from propreg.engine.ops.adam import Adam
from propreg.engine.ops.dropout import MaskKeys, Masks, Rates
from propreg.engine.ops.random import generator
from propreg.molecules.networks import (
    Encoders,
    MoleculeNetwork,
    Parameters,
    Weight,
    buffers_of,
    weights_of,
)
from propreg.molecules.packing import Batch, Packed, assemble
from propreg.molecules.regularizers import PASSES, Form, preg_term
from propreg.molecules.steps import MoleculeProtocol, Steps
from propreg.molecules.tasks import MoleculeTask

if TYPE_CHECKING:
    from propreg.molecules.checkpoint import Checkpoint

EVALUATED = 128  # molecules in a mini-batch of an evaluation: sums over molecules are dense products


@dataclass(frozen=True)
class MoleculeRun:
    """One training of the batch."""

    seed: int = 0
    strength: float = 0.0


@dataclass(frozen=True)
class MoleculeResult:
    """The scores after each epoch; the reported epoch is the first with the best validation score.

    ``by_task`` are the test scores of each task at the reported epoch, where its weights were kept; NaN for a task that
    has none.
    """

    run: MoleculeRun
    val: NDArray[np.float64]
    test: NDArray[np.float64]
    maximize: bool
    weights: dict[str, Tensor] = field(default_factory=dict, compare=False)
    by_task: NDArray[np.float64] | None = field(default=None, compare=False)

    @property
    def epoch(self) -> int:
        """The reported epoch, counted from 1; 0 where validation has no score."""
        scores = self.val if self.maximize else -self.val
        return 0 if np.isnan(scores).all() else int(np.nanargmax(scores)) + 1

    @property
    def failed(self) -> bool:
        """Whether outputs became NaN or infinite."""
        return not bool(np.isfinite(self.val).all())


def train_molecules(
    task: MoleculeTask,
    model: MoleculeModel,
    form: Form,
    runs: Sequence[MoleculeRun],
    protocol: MoleculeProtocol | None = None,
    *,
    stop: Callable[[], bool] = lambda: False,
    keep_weights: bool | Literal["best"] = False,
    checkpoint: "Checkpoint | None" = None,
) -> Iterator[tuple[int, MoleculeResult]]:
    """Train all runs as one program and yield (place in ``runs``, result) at the end.

    Args:
        task: The molecules.
        model: The architecture.
        form: Of P-reg.
        runs: Seeds and strengths.
        protocol: By default OGB's.
        stop: Called once an epoch; if it is true, nothing is yielded.
        keep_weights: Whether results have the last epoch's weights, or those of the reported epoch (``"best"``).
        checkpoint: Where the training goes on from, and is kept; it is removed once all results are taken.
    """
    protocol = protocol or MoleculeProtocol()
    training = Training(task, model, form, runs, protocol, keep_best=keep_weights == "best")
    done = checkpoint.restore(training) if checkpoint else 0
    for epoch in range(done + 1, protocol.epochs + 1):
        training.epoch(epoch)
        stopped = stop()
        if checkpoint:
            checkpoint.save(training, now=stopped)
        if stopped:
            return
    if checkpoint and done < protocol.epochs:
        checkpoint.finish(training)
    yield from training.results(bool(keep_weights))
    if checkpoint:
        checkpoint.remove()


class Training:
    """What changes while a batch of runs trains."""

    def __init__(
        self,
        task: MoleculeTask,
        model: MoleculeModel,
        form: Form,
        runs: Sequence[MoleculeRun],
        protocol: MoleculeProtocol,
        *,
        keep_best: bool = False,
    ) -> None:
        self.task, self.model, self.form, self.runs, self.protocol = task, model, form, list(runs), protocol
        self.order, self.seeds = _by_seed(runs)
        self.network = MoleculeNetwork(model)
        self.encoders = Encoders.of(task.packed)
        in_order = [runs[i] for i in self.order]
        seeds = [run.seed for run in in_order]
        weights = weights_of(model, task.outputs, form == "reference", self.encoders)
        self.parameters = self._initial(weights, seeds)
        self.buffers = {name: t.detach() for name, t in self._initial(buffers_of(model), seeds).items()}
        self.strength = torch.tensor([run.strength for run in in_order], dtype=task.dtype, device=task.device)
        lr = torch.full((len(runs),), protocol.lr, dtype=task.dtype, device=task.device)
        self.adam = Adam(self.parameters, lr, dict.fromkeys(self.parameters, torch.zeros_like(lr)))
        streams = [task.stream(seed, model, "dropout") for seed in self.seeds]
        self.keys = MaskKeys(np.array(streams, np.uint64), task.device)
        masks = len(self.seeds) * PASSES[form]
        self.rates = Rates(torch.full((masks,), protocol.dropout, dtype=task.dtype, device=task.device))
        self.steps = Steps(task, model, self.seeds, protocol)
        self.scores: list[Tensor] = []  # [2, R] after each epoch
        self.best = {name: t.detach().clone() for name, t in self._weights().items()} if keep_best else {}
        self._programs: dict[tuple[int, int], _Recorded] = {}
        self._given = torch.zeros(len(self.seeds), protocol.batch_size, dtype=torch.int64, device=task.device)
        self._evaluated = {part: evaluated(task.packed, task.data.split[part]) for part in ("valid", "test")}

    def epoch(self, number: int) -> None:
        """All mini-batches of an epoch, then the scores."""
        orders = self.steps.orders(number)
        for i, batch in enumerate(orders):
            self.train_on(batch, (number - 1) * len(orders) + i + 1)
        self.scores.append(torch.stack([self.task.score(self.outputs(part), part) for part in ("valid", "test")]))
        if self.best:
            self._keep_best()

    @torch.no_grad()
    def _keep_best(self) -> None:
        """Copy the weights of the runs whose validation score is better than all before."""
        sign = 1 if self.task.maximize else -1
        val = sign * torch.stack([scores[0] for scores in self.scores]).nan_to_num(-sign * torch.inf)
        better = (val[:-1] < val[-1]).all(0) & val[-1].isfinite()
        for name, t in self._weights().items():
            self.best[name][better] = t[better]

    def _weights(self) -> Parameters:
        return {**self.parameters, **self.buffers}

    def train_on(self, batch: tuple[Tensor, tuple[int, int]], number: int) -> None:
        """One step, counted from 1, on the molecules of each seed and the sizes they are padded to."""
        molecules, size = batch
        self._given.copy_(molecules)
        self.keys.advance(number)
        self.adam.advance()
        with _tensor_cores():
            self._program(size)()

    def outputs(self, part: str) -> Tensor:
        """Outputs of all runs on a part of the split, [R, molecules, tasks]."""
        return self._outputs(self.parameters, self.buffers, part)

    def results(self, keep_weights: bool = False) -> Iterator[tuple[int, MoleculeResult]]:
        """The results, in the order of training; if wanted, with the weights of the reported epoch, or of the last."""
        scores = torch.stack(self.scores).cpu().numpy()
        tasks = self._best_by_task() if self.best else None
        for row, place in enumerate(self.order):
            kept = (self.best or self._weights()) if keep_weights else {}
            weights = {name: t[row].detach().cpu() for name, t in kept.items()}
            val, test = scores[:, 0, row], scores[:, 1, row]
            mine = None if tasks is None else tasks[row]
            yield place, MoleculeResult(self.runs[place], val, test, self.task.maximize, weights, mine)

    def _best_by_task(self) -> NDArray[np.float64]:
        """The test scores of each task with the weights of the reported epoch, [R, tasks]."""
        out = self._outputs(self.best, self.best, "test")
        found: NDArray[np.float64] = self.task.score_by_task(out, "test")[0].double().cpu().numpy()
        return found

    def _outputs(self, p: Parameters, buffers: Parameters, part: str) -> Tensor:
        with _tensor_cores():
            return outputs_of(self.network, p, buffers, self._evaluated[part])

    def state(self) -> dict[str, Tensor]:
        """All that the next epoch depends on, and the scores so far."""
        return {**self._tensors(), "scores": torch.stack(self.scores), "steps": torch.tensor(self.adam.step_number)}

    def restore(self, state: Mapping[str, Tensor]) -> int:
        """Go on from a :meth:`state`; returns the number of epochs that are done.

        Tensors are written in place: a recorded step keeps reading them where they are.
        """
        with torch.no_grad():
            for name, t in self._tensors().items():
                t.copy_(state[name])
        self.adam.step_number = int(state["steps"])
        self.scores = list(state["scores"].to(self.task.device))
        return len(self.scores)

    def _tensors(self) -> dict[str, Tensor]:
        weights = {f"weight.{name}": t for name, t in self._weights().items()}
        weights |= {f"best.{name}": t for name, t in self.best.items()}
        return weights | self.adam.tensors()

    def loss(self, batch: Batch) -> Tensor:
        """The loss of each run, [R]."""
        count = PASSES[self.form]
        h = self.network.atoms(self.parameters, self.buffers, batch, self.draw, training=True, passes=count)
        passes = h.reshape(len(h), -1, count, *h.shape[2:]).unbind(2)
        loss = self.task.loss(self.network.predict(self.parameters, passes[0], batch), batch)
        term = preg_term(self.form, passes, self.parameters, batch)
        if term is not None:
            loss = loss + self.strength.view_as(loss) * term
        return loss.flatten()

    def step(self, batch: Batch) -> Tensor:
        """One step of Adam on each run's loss; returns the losses [R]."""
        with torch.enable_grad():
            loss = self.loss(batch)
            gradients = torch.autograd.grad(loss.sum(), list(self.parameters.values()))
        self.adam.step(self.parameters, dict(zip(self.parameters, gradients, strict=True)))
        return loss.detach()

    def _program(self, size: tuple[int, int]) -> Callable[[], object]:
        def body() -> Tensor:
            return self.step(assemble(self.task.packed, self._given, *size))

        if self.task.device.type != "cuda":
            return body
        if size not in self._programs:
            self._programs[size] = _Recorded(body)
        return self._programs[size]

    def draw(self, place: str) -> Masks | None:
        """The masks of all training passes; a layer's, or a virtual node's after it."""
        if self.protocol.dropout == 0:
            return None
        kind, layer = ("virtual", 7) if place.startswith("virtual") else ("layer", 5)
        site = 2 * int(place[layer:]) + (kind == "virtual")
        keys = [self.keys(site * len(PASSES) + number) for number in range(PASSES[self.form])]
        return Masks(torch.stack(keys, 1).flatten(0, 1) if len(keys) > 1 else keys[0], self.rates)

    def _initial(self, weights: dict[str, Weight], seeds: list[int]) -> Parameters:
        """Drawn in float64 from each seed's own stream, one stream per parameter."""
        found = {}
        for name, weight in weights.items():
            drawn = {seed: self._drawn(weight, seed, name) for seed in dict.fromkeys(seeds)}
            values = np.stack([drawn[seed] for seed in seeds])
            found[name] = torch.from_numpy(values).to(self.task.device, self.task.dtype).requires_grad_()
        return found

    def _drawn(self, weight: Weight, seed: int, name: str) -> NDArray[np.float64]:
        if weight.draw in ("zeros", "ones"):
            return np.full(weight.shape, float(weight.draw == "ones"))
        random = generator(self.task.stream(seed, self.model, name))
        if weight.draw == "normal":
            return random.standard_normal(weight.shape)
        bounds: NDArray[np.float64] | float = weight.bounds[0]
        if weight.blocks:
            bounds = np.repeat(weight.bounds, weight.blocks)[:, None]
        return random.uniform(-1, 1, weight.shape) * bounds


Evaluated = list[tuple[Batch, int]]


def evaluated(packed: Packed, chosen: NDArray[np.int64]) -> Evaluated:
    """These graphs in their order, as mini-batches that all runs share, and how many each has."""
    found = []
    for start in range(0, len(chosen), EVALUATED):
        rows = chosen[start : start + EVALUATED]
        sizes = int(packed.atoms_of[rows].sum()), max(int(packed.bonds_of[rows].sum()), 1)
        found.append((assemble(packed, torch.from_numpy(rows[None]).to(packed.source.device), *sizes), len(rows)))
    return found


@torch.no_grad()
def outputs_of(network: MoleculeNetwork, p: Parameters, buffers: Parameters, batches: Evaluated) -> Tensor:
    """Outputs of all replicas in evaluation mode, [R, graphs, outputs]."""
    found = []
    for batch, count in batches:
        h = network.atoms(p, buffers, batch, lambda _: None, training=False)
        found.append(network.predict(p, h, batch)[0, :, :count])
    return torch.cat(found, dim=1)


class _Recorded:
    """A step as a CUDA graph: it runs as it is once, so that kernels compile, and is recorded the second time."""

    def __init__(self, body: Callable[[], Tensor]) -> None:
        self.body, self.warm = body, False
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        if self.graph is not None:
            self.graph.replay()
        elif not self.warm:
            self.body()
            self.warm = True
        else:
            self.graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(self.graph):
                self.body()
            self.graph.replay()


@contextlib.contextmanager
def _tensor_cores() -> Iterator[None]:
    """Let a GPU's tensor cores multiply in TF32: 10 bits of mantissa, sums in float32, a third less time per step."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _by_seed(runs: Sequence[MoleculeRun]) -> tuple[list[int], list[int]]:
    """The runs sorted by seed, and the seed of each group; each run alone where seeds have unequal numbers of runs."""
    order = sorted(range(len(runs)), key=lambda i: runs[i].seed)
    seeds = [runs[i].seed for i in order]
    counts = {seeds.count(seed) for seed in seeds}
    return (order, list(dict.fromkeys(seeds))) if len(counts) == 1 else (order, seeds)
