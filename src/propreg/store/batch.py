"""Batches: runs that are trained as one program, with their id and their cost; and graphs that are no benchmarks."""

import hashlib
from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property

from propreg.data.benchmarks.catalog import MOLECULE_SETS, NODE_SETS
from propreg.data.digests import join_digests
from propreg.engine.spec import Sizes
from propreg.store.errors import StudyError, unknown
from propreg.store.reports import has_reports
from propreg.store.run import Cell, Run, SplitKind


@dataclass(frozen=True)
class GraphFile:
    """A graph that is no benchmark.

    Args:
        path: The file or folder.
        digests: The digest of each of its parts.
        sizes: Its numbers, from which costs are computed.
        directed: Whether ``edges.csv`` lists edges from source to target only.
    """

    path: str
    digests: tuple[tuple[str, str], ...]
    sizes: Sizes
    directed: bool = False

    @property
    def has_split(self) -> bool:
        """Whether it has a split of its own."""
        return any(part == "splits" for part, _ in self.digests)

    def digest(self, split_kind: SplitKind) -> str:
        """The content digest of what runs on a kind of split depend on."""
        return join_digests({part: digest for part, digest in self.digests if part != "splits" or split_kind == "own"})


@dataclass(frozen=True)
class Batch:
    """Runs that share graph, architecture, method and protocol, and are trained as one program, in a fixed order.

    Args:
        title: What people see.
        runs: The members.
        rules: Further selection rules that report on each run.
        measures: Whether each report has measures.
        graph: Where their graph is, if it is no benchmark.
    """

    title: str
    runs: tuple[Run, ...]
    rules: tuple[str, ...] = ()
    measures: bool = False
    graph: GraphFile | None = None

    @cached_property
    def id(self) -> str:
        """16 hexadecimal digits of its members' keys."""
        return batch_id("".join(run.key for run in self.runs))

    @cached_property
    def cost(self) -> float:
        """Its time relative to other batches, see :func:`cost_of`."""
        sizes = None if self.graph is None else self.graph.sizes
        return sum(cost_of(run.cell, sizes) for run in self.runs)

    def is_complete(self, reports: str | None) -> bool:
        """Whether a run that is recorded with these reports needs no training for this batch."""
        return not (self.rules or self.measures) or has_reports(reports, self.rules, self.measures)

    def missing(self, known: Set[str]) -> set[str]:
        """The keys of its runs that are not among these."""
        return {run.key for run in self.runs} - known


def batch_id(keys: str) -> str:
    """The id of a batch whose members have these keys, one after another."""
    return hashlib.sha256(keys.encode()).hexdigest()[:16]


def cost_of(cell: Cell, sizes: Sizes | None = None) -> float:
    """The numbers that an epoch of one run touches: its time relative to others.

    Args:
        cell: The run's.
        sizes: Those of a graph that is no benchmark.

    Raises:
        StudyError: If the model or the method is not registered in this process, or the sizes are not known.
    """
    model = cell.model
    try:
        architecture, passes = model.architecture, cell.method.regularizer.passes(cell.method)
    except ValueError as error:
        raise StudyError(str(error)) from error
    if cell.dataset in MOLECULE_SETS:
        molecules = MOLECULE_SETS[cell.dataset]
        sizes = Sizes(molecules.nodes, 2 * molecules.bonds, 0, molecules.tasks)
    elif cell.dataset in NODE_SETS:
        graph = NODE_SETS[cell.dataset]
        sizes = Sizes(graph.nodes, 2 * graph.edges, graph.features, graph.classes)
    if sizes is None:
        raise unknown("benchmark", cell.dataset, [*NODE_SETS, *MOLECULE_SETS])
    return float((1 + passes) * model.layers * architecture.cost(model, sizes) + 20 * sizes.features * model.width)
