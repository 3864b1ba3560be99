"""Tune μ and train, on a list of graphs."""

import hashlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from propreg import _errors
from propreg.console import Progress
from propreg.data.errors import DataError
from propreg.data.graph_list import KINDS, GraphList, Parts
from propreg.data.own.graph_list import check_kind, read_graphs
from propreg.data.scaling import Scale, Scaling, scaling_of
from propreg.devices import find_device
from propreg.engine.models.molecules import MoleculeModel
from propreg.engine.regularizers.regularizer import Preset
from propreg.engine.torch_modes import ordinary_modes
from propreg.fitting.graphs.model import GraphModel
from propreg.fitting.graphs.result import JUDGED, GraphFitResult
from propreg.fitting.graphs.splits import Given, named_splits
from propreg.fitting.inputs import check_progress, number, number_of_seeds, strengths, whole
from propreg.fitting.selection import Scores, choose
from propreg.jsonio import canonical
from propreg.molecules.checkpoint import Checkpoint
from propreg.molecules.networks import Encoders, buffers_of, weights_of
from propreg.molecules.packing import Packed
from propreg.molecules.regularizers import PASSES, Form
from propreg.molecules.steps import MoleculeProtocol
from propreg.molecules.tasks import MoleculeTask
from propreg.molecules.train import MoleculeResult, MoleculeRun, train_molecules

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from propreg.data.benchmarks.molecules import MoleculeDataset

MODELS = {"gin": "mol-gin", "gcn": "mol-gcn"}
CPU_BYTES = 1 << 30  # of activations that train together on a CPU
ALONE = 6  # strengths of one seed that keep a CPU busy: other seeds have other mini-batches, and would need padding


def fit_graphs(
    graphs: "Sequence[Data] | MoleculeDataset | GraphList",
    model: str | MoleculeModel = "gin",
    mu: Literal["auto"] | float | Sequence[float] = "auto",
    *,
    task: Literal["auto", "classification", "binary", "regression"] = "auto",
    preset: Preset = "paper",
    splits: int | Given | Sequence[Given] | None = None,
    groups: Sequence[Any] | None = None,
    seeds: int | None = None,
    hidden: int = 64,
    layers: int = 3,
    virtual_node: bool = False,
    dropout: float = 0.5,
    lr: float = 0.001,
    batch_size: int = 32,
    max_epochs: int = 100,
    scale: Scale = "auto",
    device: str | torch.device = "auto",
    progress: Literal["lines"] | bool | None = None,
    resume: str | os.PathLike[str] | None = None,
) -> GraphFitResult:
    """Train on whole graphs, plain and with P-reg at every strength, and pick μ on validation.

    All seeds and strengths of a split train together as one program. The models are OGB's: GIN or GCN with features of
    edges, batch norm, mean pooling and, if wanted, a virtual node; P-reg acts on the last node embeddings. Strength 0,
    the plain model, is always among them: if it is best on validation, it is what you get.

    Args:
        graphs: PyG ``Data`` objects with ``x``, ``edge_index`` (as listed: both directions of an undirected edge),
            perhaps ``edge_attr``, and ``y``; or a molecule dataset of :func:`propreg.load_dataset`, whose own split is
            used. OGB's integer codes of atoms and bonds are embedded; other features go through a linear map.
        model: ``"gin"``, ``"gcn"``, or a :class:`propreg.engine.models.molecules.MoleculeModel`.
        mu: ``"auto"`` for a grid from 0.05 to 1, one strength, or a list of them.
        task: ``"classification"`` for one of several classes, compared by accuracy; ``"binary"`` for one or many yes/no
            questions, NaN for a missing label, by ROC-AUC; ``"regression"`` for numbers, by RMSE. ``"auto"`` takes an
            integer ``y`` for a class, a row of 0, 1 and NaN for questions, and all else for numbers.
        preset: The paper form or the official-code form (``"reference"``) of P-reg; the latter propagates with learned
            parameters and takes three passes a step.
        splits: The number of random splits (80 % training, 10 % validation, 10 % test), by default 6; or the splits
            themselves, each a mapping of ``"train"``, ``"val"`` and ``"test"`` to graph numbers.
        groups: The group of each graph: random splits keep graphs of one group together.
        seeds: Trainings per split and strength; default 3, or 10 if there is one split.
        hidden, layers, virtual_node: Settings of a model given by name. OGB's examples have 300 and 5.
        dropout, lr, batch_size, max_epochs: Training settings. The reported epoch is the first best on validation.
        scale: What is done to float features, see :func:`propreg.fit`. Targets of a regression are standardized for the
            training; scores and predictions have their units.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"cuda:1"``, or a ``torch.device``.
        progress: Show a bar; None shows it on a terminal only. Ctrl-C returns the finished splits.
        resume: A folder where trainings are saved every minute: after a kill or Ctrl-C the same call resumes from it.

    Raises:
        DataError: If a graph, a target or a split cannot be used, in one sentence, before anything is trained.

    Example:
        >>> import torch
        >>> from propreg import fit_graphs
        >>> from torch_geometric.data import Data
        >>> ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> graphs = [Data(x=torch.full((3, 1), float(i)), edge_index=ring, y=torch.tensor(i / 2)) for i in range(20)]
        >>> result = fit_graphs(graphs, mu=[0.2, 0.5], splits=2, seeds=1, hidden=8, max_epochs=2)
        >>> result.mus, result.judging.what
        ((0.0, 0.2, 0.5), 'test RMSE')
    """
    _errors.one_of("task", task, ("auto", *KINDS))
    _errors.one_of("preset", preset, ("paper", "reference"))
    check_progress(progress)
    spec = _architecture(model, hidden, layers, virtual_node)
    protocol = MoleculeProtocol(
        whole("max_epochs", max_epochs, 1), whole("batch_size", batch_size, 2), number("lr", lr), _rate(dropout)
    )
    mus = strengths(mu, "preg")
    data = check_kind(read_graphs(graphs), task)
    parts = named_splits(data, splits, groups)
    shape = len(mus), len(parts), number_of_seeds(seeds, len(parts))
    on = find_device(device)
    scaling = (Scaling(), Scaling()) if data.coded else (scaling_of(data.x, scale), _edge_scaling(data, scale))
    job = _Job(data, data.scaled(*scaling), scaling, spec, preset, mus, parts, shape[2], protocol, on)
    with ordinary_modes(on):
        return job.run(progress, None if resume is None else Path(resume))


def _edge_scaling(data: GraphList, scale: Scale) -> Scaling:
    return scaling_of(data.edge_attr, scale) if data.edge_attr.size else Scaling()


def _architecture(model: Any, hidden: int, layers: int, virtual_node: bool) -> MoleculeModel:
    if isinstance(model, MoleculeModel):
        return model
    _errors.one_of("model", model, MODELS, " or a MoleculeModel")
    if not isinstance(virtual_node, bool):
        raise TypeError(f"virtual_node must be True or False, got {virtual_node!r}.")
    return MoleculeModel(
        MODELS[model], whole("hidden", hidden, 1), whole("layers", layers, 1), virtual_node=virtual_node
    )


def _rate(dropout: Any) -> float:
    rate = number("dropout", dropout)
    if rate >= 1:
        raise ValueError(f"dropout must be below 1, got {dropout!r}.")
    return rate


@dataclass(frozen=True)
class _Job:
    """What is trained: with the runs' results, it makes the result of the fit."""

    given: GraphList
    data: GraphList
    scaling: tuple[Scaling, Scaling]
    spec: MoleculeModel
    preset: Preset
    mus: tuple[float, ...]
    parts: Mapping[str, Parts]
    seeds: int
    protocol: MoleculeProtocol
    device: torch.device

    def run(self, progress: Literal["lines"] | bool | None, folder: Path | None) -> GraphFitResult:
        """Train batch after batch; Ctrl-C keeps what is finished."""
        if folder is not None and folder.exists() and not folder.is_dir():
            raise DataError(f"{folder}: is not a folder: name another one with resume.")
        start = time.perf_counter()
        found: dict[tuple[float, str, int], MoleculeResult] = {}
        best: dict[float, tuple[float, dict[str, torch.Tensor]]] = {}
        batches = [(name, *each) for name in self.parts for each in self._batches()]
        finished = False
        with Progress(len(batches) * self.protocol.epochs, "epochs", progress) as bar:

            def epoch_done() -> bool:
                bar.advance()
                return False

            try:
                for name, form, runs in batches:
                    task = self._task(name)
                    kept = None if folder is None else Checkpoint(self._path(folder, task, form, runs), keep=True)
                    trained = train_molecules(
                        task,
                        self.spec,
                        form,
                        runs,
                        self.protocol,
                        stop=epoch_done,
                        keep_weights="best",
                        checkpoint=kept,
                    )
                    for _, result in trained:
                        self._take(result, name, task, found, best)
                finished = True
            except KeyboardInterrupt:
                if not any(not result.failed for result in found.values()):
                    raise
        return self._result(found, best, finished=finished, seconds=time.perf_counter() - start)

    def _task(self, name: str) -> MoleculeTask:
        data = self.data.with_split(self.parts[name])
        return MoleculeTask(data, data.kind, self.device, standardize=True)

    def _batches(self) -> Iterator[tuple[Form, list[MoleculeRun]]]:
        """Runs that train together: whole seeds, as many as fit in memory."""
        plain: list[tuple[Form, tuple[float, ...]]] = [("paper", self.mus)]
        if self.preset == "reference":  # its strength 0 has three passes: the plain model is another program
            plain = [("plain", self.mus[:1]), *([("reference", self.mus[1:])] if self.mus[1:] else [])]  # type: ignore[list-item]
        for form, mus in plain:
            together = max(1, self._room() // (self._bytes(form) * len(mus)))
            if self.device.type == "cpu" and len(mus) >= ALONE:
                together = 1
            for first in range(0, self.seeds, together):
                seeds = range(first, min(first + together, self.seeds))
                yield form, [MoleculeRun(seed, mu) for seed in seeds for mu in mus]

    def _room(self) -> int:
        return torch.cuda.mem_get_info(self.device)[0] // 2 if self.device.type == "cuda" else CPU_BYTES

    def _bytes(self, form: Form) -> int:
        """About what the activations of one run take in a step."""
        size = 2 * self.protocol.batch_size / len(self.data)
        nodes, edges = size * self.data.num_nodes.sum(), size * self.data.num_edges.sum()
        rows = nodes * (14 if self.spec.name == "mol-gin" else 8) + edges * 4
        return int(4 * PASSES[form] * (self.spec.layers + 1) * self.spec.hidden * rows) + 1

    def _path(self, folder: Path, task: MoleculeTask, form: Form, runs: Sequence[MoleculeRun]) -> Path:
        about = [task.digest, task.task, self.spec.identity(), form, vars(self.protocol), [vars(run) for run in runs]]
        return folder / f"{hashlib.sha256(canonical(about).encode()).hexdigest()[:32]}.safetensors"

    def _take(
        self,
        result: MoleculeResult,
        name: str,
        task: MoleculeTask,
        found: dict[tuple[float, str, int], MoleculeResult],
        best: dict[float, tuple[float, dict[str, torch.Tensor]]],
    ) -> None:
        """Keep the scores, and of each strength the weights of its best run on validation."""
        mu, sign = result.run.strength, JUDGED[self.data.kind].sign
        found[mu, name, result.run.seed] = replace(result, weights={})
        score = -np.inf if result.failed else sign * result.val[result.epoch - 1]
        if mu not in best or score > best[mu][0]:
            units = {} if task.units is None else dict(zip(("units.mean", "units.deviation"), task.units, strict=True))
            best[mu] = score, result.weights | {key: t.cpu() for key, t in units.items()}

    def _result(
        self,
        found: Mapping[tuple[float, str, int], MoleculeResult],
        best: Mapping[float, tuple[float, dict[str, torch.Tensor]]],
        *,
        finished: bool,
        seconds: float,
    ) -> GraphFitResult:
        judging, names = JUDGED[self.data.kind], list(self.parts)
        shape = len(self.mus), len(names), self.seeds
        val, test, failed = np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape, np.bool_)
        for (mu, name, seed), result in found.items():
            place = self.mus.index(mu), names.index(name), seed
            failed[place] = result.failed
            if not result.failed:
                val[place], test[place] = result.val[result.epoch - 1], result.test[result.epoch - 1]
        chosen = choose(Scores(judging.sign * val, judging.sign * test, failed))
        model = self._model(best[self.mus[chosen]][1], self.mus[chosen])
        return GraphFitResult(
            self.mus[chosen],
            self.mus,
            val,
            test,
            model,
            dict(found),
            self.given,
            self.parts,
            judging,
            self.protocol,
            finished=finished,
            preset=self.preset,
            device=str(self.device),
            seconds=seconds,
        )

    def _model(self, weights: dict[str, torch.Tensor], mu: float) -> GraphModel:
        """The trained model, without the parameters of a learned propagation."""
        encoders = Encoders.of(Packed.of(self.data, torch.device("cpu"), torch.float32))
        outputs = int(weights["head.bias"].shape[0])
        names = weights_of(self.spec, outputs, encoders=encoders) | buffers_of(self.spec)
        kept = {name: t for name, t in weights.items() if name in names or name.startswith("units.")}
        about = {"method": "preg", "preset": self.preset, "mu": mu, "tasks": list(self.data.tasks)}
        return GraphModel(self.spec, encoders, self.data.kind, outputs, kept, *self.scaling, about)
