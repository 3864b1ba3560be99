"""Training a batch of runs with the engine: the graph, its splits, the replicas, and what is recorded of results."""

import platform
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from propreg import __version__
from propreg._distance import intra_class_distance
from propreg.data.benchmarks.catalog import MOLECULE_SETS, NODE_SETS
from propreg.data.benchmarks.load import load_node_graph
from propreg.data.errors import DataError
from propreg.data.graph import Split
from propreg.data.mistakes import wrong_edges, wrong_labels
from propreg.data.own.load import read_graph
from propreg.data.scaling import scaling_of
from propreg.data.splits import grow_train, official_splits, random_split
from propreg.devices import check_device, find_device, processor
from propreg.engine.models.network import Network, no_dropout
from propreg.engine.spec import Result
from propreg.engine.tasks.node import Problem
from propreg.engine.training.batches import CPU_GROUP, Options, train_all
from propreg.engine.validate import check
from propreg.molecules.trainer import MoleculeTrainer
from propreg.store.batch import Batch, GraphFile
from propreg.store.errors import Stopped, StudyError
from propreg.store.provenance import engine_digest
from propreg.store.run import DATASET_PARTS, DRAWN_SPLITS, OWN_SPLITS, Cell, Outcome, Record, Run


class Trainer:
    """Trains batches on one device; graphs stay loaded from batch to batch.

    Args:
        device: Where.
        root: The folder of the data.
        folder: Where a batch of molecules in training is kept every minute; None keeps none.
    """

    def __init__(self, device: str = "auto", root: str | None = None, folder: Path | None = None) -> None:
        check_device(device)
        self.device, self.root = find_device(device), root
        self._problems: dict[tuple[object, ...], Problem] = {}
        self._splits: dict[tuple[object, ...], dict[str, Split]] = {}
        self._molecules = MoleculeTrainer(self.device, root, folder)

    def train(
        self, batch: Batch, stop: Callable[[], bool] = lambda: False, known: Set[str] = frozenset()
    ) -> Iterator[Record]:
        """Yield each run of the batch as soon as it is finished.

        Args:
            batch: The runs.
            stop: Called once an epoch.
            known: Keys that need no training. A program is trained whole all the same: on a GPU that is the batch, on a
                CPU a group of a few runs.

        Raises:
            Stopped: Soon after ``stop`` was true.
            StudyError: If the data on disk is not what the runs name, or their model is not registered.
        """
        cell = batch.runs[0].cell
        if cell.dataset in MOLECULE_SETS:
            yield from self._molecules.train(batch, stop)
            if stop():
                raise Stopped
            return
        problem = self.problem(batch.runs, batch.graph)
        try:
            network = problem.network(cell.model)
            check(
                cell.model,
                cell.method,
                [run.replica() for run in batch.runs],
                cell.protocol,
                problem.splits,
                problem.graph.y,
            )
        except ValueError as error:  # a name that is registered in another program, or a setting that cannot be
            raise StudyError(f"{batch.title}: {error}") from error
        measured = cell.measure == "distance"
        on_cpu = self.device.type == "cpu"
        size = CPU_GROUP if on_cpu else None
        options = Options(keep_weights=measured, batch=size, stop=stop, measures=batch.measures, rules=batch.rules)
        runs = _needed(batch.runs, known, CPU_GROUP if on_cpu else len(batch.runs))
        replicas = [replace(run.replica(), own=run.cell.model.beside(cell.model)) for run in runs]
        for place, result in train_all(problem, cell.model, cell.method, replicas, cell.protocol, options):
            numbers = _distances(problem, network, result) if measured else None
            split = problem.splits[result.replica.split]
            sizes = int(split.val.sum()), int(split.test.sum())
            outcome = Outcome.of(result, *sizes, numbers, measured=batch.measures)
            yield Record(runs[place], outcome, batch.id)
        if stop():
            raise Stopped

    def kept(self, batch: Batch) -> Path | None:
        """The file that a batch that is stopped goes on from; None if it begins anew."""
        return self._molecules.kept(batch) if batch.runs[0].cell.dataset in MOLECULE_SETS else None

    def problem(self, runs: tuple[Run, ...], file: GraphFile | None = None) -> Problem:
        """The graph of runs that share one, with the splits they need; ``file`` is that of one that is no benchmark."""
        cell = runs[0].cell
        name = (cell.dataset, cell.digest, cell.labels, cell.normalize, cell.wrong_edges, cell.wrong_labels)
        try:
            if name not in self._problems:
                self._splits[name] = {}
                self._problems[name] = self._load(cell, self._splits[name], file)
            for run in runs:
                known = run.cell.split_name(run.split)
                if known not in self._splits[name]:
                    self._splits[name][known] = self._split(run, self._problems[name])
        except DataError as error:
            raise StudyError(str(error)) from error
        return self._problems[name]

    def _load(self, cell: Cell, splits: dict[str, Split], file: GraphFile | None) -> Problem:
        if file is not None:
            graph = read_graph(file.path, directed=file.directed)
            graph = replace(graph, x=scaling_of(graph.x)(graph.x)) if cell.normalize else graph
        elif cell.split_kind in OWN_SPLITS and cell.dataset not in NODE_SETS:
            raise StudyError(
                f"{cell.dataset} is a graph of an experiment of yours, and no benchmark: train it again with propreg "
                "reproduce, its TOML file, and a new store."
            )
        else:
            graph = load_node_graph(cell.dataset, self.root, labels=cell.labels, normalize_features=cell.normalize)
        # Without the digest of a split: random streams name the split themselves.
        parts = (*DATASET_PARTS, "splits") if cell.split_kind == "own" else DATASET_PARTS
        graph = replace(graph, digests={part: graph.digests[part] for part in parts if part in graph.digests})
        y = graph.y
        if cell.wrong_edges:  # digests stay: the random streams are those of the graph without
            graph = replace(graph, edge_index=wrong_edges(graph.edge_index, graph.num_nodes, cell.wrong_edges))
        if cell.wrong_labels:
            graph = replace(graph, y=wrong_labels(y, cell.wrong_labels))
        problem = Problem(graph, splits, self.device, judged_by=y)
        if problem.digest != cell.digest and file is not None:
            raise StudyError(
                f"{file.path} has changed: its content is {problem.digest[:16]}, and the runs are of "
                f"{cell.digest[:16]}; recorded runs are kept. Put the old file back, or run the command again."
            )
        if problem.digest != cell.digest:
            raise StudyError(
                f"{cell.dataset} on disk has content {problem.digest[:16]}, but the run names {cell.digest[:16]}: "
                f"remove it and run propreg data fetch {cell.dataset}."
            )
        return problem

    def _split(self, run: Run, problem: Problem) -> Split:
        cell, graph = run.cell, problem.graph
        if cell.split_kind in DRAWN_SPLITS and cell.train_nodes is None:
            y, natural = problem.y.cpu().numpy(), cell.split_kind == "natural"
            return random_split(y, cell.per_class or 20, seed=run.split, small_classes="shrink", natural=natural)
        if cell.split_kind == "official":
            if cell.train_nodes is not None:
                raise StudyError("train_nodes grows the public split; the official ones leave no node free to add.")
            return official_splits(cell.dataset, self.root)[run.split]
        if graph.split is None:
            raise StudyError(f"{cell.dataset} has no public split: use split_kind = 'official'.")
        if cell.train_nodes is None:
            return graph.split
        return grow_train(graph.split, graph.y, total=cell.train_nodes, seed=run.split)

    def about(self) -> dict[str, Any]:
        """The machine, the versions and the engine's code, for the provenance."""
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else platform.machine()
        versions = {"python": platform.python_version(), "torch": str(torch.__version__), "propreg": __version__}
        about = {"device": f"{self.device.type}: {name}", **versions, "engine": engine_digest()}
        # Results differ between processors of one architecture.
        model = processor() if self.device.type == "cpu" else ""
        return about | ({"processor": model} if model else {})


def _needed(runs: Sequence[Run], known: Set[str], size: int) -> list[Run]:
    """The programs of ``size`` runs of which something is missing; the others keep their members and their order."""
    programs = [runs[i : i + size] for i in range(0, len(runs), size)]
    return [run for program in programs if any(run.key not in known for run in program) for run in program]


def logits(problem: Problem, network: Network, weights: dict[str, Tensor]) -> Tensor:
    """The outputs [N, C] of one trained replica, nothing dropped."""
    p = {name: w.unsqueeze(0).to(problem.device) for name, w in weights.items()}
    with torch.no_grad():
        return network.finish(p, network.begin(p), no_dropout)[0]


def _distances(problem: Problem, network: Network, result: Result) -> dict[str, float]:
    """ω of the reported epoch and the outputs' mean length: ω over it does not grow with their scale."""
    z = logits(problem, network, result.weights).double()
    if not bool(z.isfinite().all()):
        return {}
    omega, length = float(intra_class_distance(z, problem.y)), float(z.norm(dim=-1).mean())
    return {"omega": omega, "length": length}
