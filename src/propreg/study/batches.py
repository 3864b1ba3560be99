"""Which runs are trained as one program: batches, cut from a whole sweep and never from what is missing of it.

So a batch that was interrupted is trained again with the same members, and an interrupted sweep ends in the same bytes
as one left alone.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from propreg.data.catalog import NODE_SETS
from propreg.study.experiment import Line
from propreg.study.presets import batch_size
from propreg.study.run import Cell, Run


@dataclass(frozen=True)
class Batch:
    """Runs that share graph, architecture, method and protocol, in a fixed order."""

    title: str
    runs: tuple[Run, ...]

    @cached_property
    def id(self) -> str:
        """16 hexadecimal digits of its members' keys."""
        return hashlib.sha256("".join(run.key for run in self.runs).encode()).hexdigest()[:16]

    @property
    def cost(self) -> float:
        """How long it takes beside others: numbers touched in an epoch of all its replicas."""
        return sum(cost_of(run.cell) for run in self.runs)


def cut(lines: Iterable[Line]) -> list[Batch]:
    """The batches of a sweep: runs by what they share, in a fixed order, so many at a time.

    How many is in ``presets.toml``, by architecture and dataset, unless the experiment says otherwise.

    Example:
        >>> from propreg.study.experiment import load_experiment
        >>> batches = cut(load_experiment("digits-smoke").lines)
        >>> len(batches), len(batches[0].runs), batches[0].title
        (10, 20, 'digits gcn plain')
    """
    groups: dict[tuple[object, ...], dict[str, Run]] = {}
    titles: dict[tuple[object, ...], tuple[str, int]] = {}
    for line in lines:
        for run in line.runs():
            shared = (*_shared(run.cell), run.cell.strength in line.method.later)
            if shared not in groups:
                groups[shared] = {}
                size = line.batch or batch_size(run.cell.model.name, run.cell.dataset)
                titles[shared] = (f"{line.dataset} {line.model} {line.method.name}", size)
            groups[shared].setdefault(run.key, run)
    found = []
    for shared, members in groups.items():
        title, size = titles[shared]
        ordered = sorted(members.values(), key=lambda r: (r.cell.strength, r.cell.text, r.split, r.seed))
        found += [Batch(title, tuple(ordered[i : i + size])) for i in range(0, len(ordered), size)]
    return found


def longest_first(batches: Sequence[Batch]) -> list[Batch]:
    """By cost, the largest first: what is left at the end is short, and several workers finish together."""
    return sorted(batches, key=lambda batch: (-batch.cost, batch.id))


def _shared(cell: Cell) -> tuple[object, ...]:
    """What all replicas of one program have in common."""
    mine = (cell.dataset, cell.digest, cell.labels, cell.normalize, cell.model, cell.method, cell.protocol)
    return (*mine, cell.measure, cell.recipe)


def cost_of(cell: Cell) -> float:
    graph, model = NODE_SETS[cell.dataset], cell.model
    width = model.width
    passes = 2 if cell.method.second_pass else 1
    propagated = 0 if model.name == "mlp" else 2 * graph.edges
    each = graph.nodes * width * (4 if model.name == "gat" else 1) + propagated * (width + graph.classes)
    return float((1 + passes) * model.layers * each + 20 * graph.features * width)
