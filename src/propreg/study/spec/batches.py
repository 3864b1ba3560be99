"""Which runs are trained as one program: batches, cut from a whole sweep and never from what is missing of it.

So an interrupted batch is trained again with the same members, and an interrupted sweep ends in the same bytes as an
undisturbed one.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace

from propreg.store.batch import Batch
from propreg.store.run import Cell, Run
from propreg.study.spec.part import Line
from propreg.study.spec.presets import batch_size


def cut(lines: Iterable[Line]) -> list[Batch]:
    """The batches of a sweep: runs by what they share, in a fixed order, so many at a time.

    How many is in ``presets.toml``, by architecture and dataset, unless the experiment says otherwise.

    Example:
        >>> from propreg.study.spec.experiment import load_experiment
        >>> batches = cut(load_experiment("digits-smoke").lines)
        >>> len(batches), len(batches[0].runs), batches[0].title
        (10, 20, 'digits gcn plain')
    """
    groups: dict[tuple[object, ...], dict[str, Run]] = {}
    made: dict[tuple[object, ...], tuple[Batch, int, Callable[[Run], tuple[object, ...]]]] = {}
    for line in lines:
        # A later rung must not change the batches of the rungs before it, nor one search those of another.
        searched = (line.variant, line.rung) if line.search else ()
        for cell, (number, splits) in itertools.product(line.cells, enumerate(line.split_groups)):
            added = cell.strength in (*line.method.later, *line.beyond)
            shared = (*_shared(cell), added, number, line.rules, line.measures, *searched)
            if shared not in groups:
                groups[shared] = {}
                size = line.batch or batch_size(cell.model.name, cell.dataset)
                title = f"{line.dataset} {line.model} {line.method.name}"
                order = _by_stream if line.search else _by_cell
                made[shared] = (Batch(title, (), line.rules, line.measures, line.graph), size, order)
            members = groups[shared]
            for split, seed in itertools.product(splits, line.seeds):
                run = Run(cell, split, seed)
                members.setdefault(run.key, run)
    found = []
    for shared, members in groups.items():
        batch, size, key = made[shared]
        ordered = sorted(members.values(), key=key)
        found += [replace(batch, runs=tuple(ordered[i : i + size])) for i in range(0, len(ordered), size)]
    return found


def of_seeds(lines: Iterable[Line], seeds: Set[int]) -> list[Line]:
    """The lines with these seeds, as ``propreg reproduce --seeds`` leaves them: without strengths beyond a grid."""
    return [
        replace(
            line,
            cells=tuple(cell for cell in line.cells if cell.strength not in line.beyond),
            seeds=tuple(seed for seed in line.seeds if seed in seeds),
            beyond=(),
        )
        for line in lines
    ]


def joined(batches: Iterable[Batch]) -> list[Batch]:
    """The batches of several sweeps, each once, with all reports that any of them asks for."""
    found: dict[str, Batch] = {}
    for batch in batches:
        known = found.setdefault(batch.id, batch)
        rules = tuple(dict.fromkeys((*known.rules, *batch.rules)))
        found[batch.id] = replace(known, rules=rules, measures=known.measures or batch.measures)
    return list(found.values())


def longest_first(batches: Sequence[Batch]) -> list[Batch]:
    """By cost, the largest first: the last ones are short, so that several workers finish together."""
    return sorted(batches, key=lambda batch: (-batch.cost, batch.id))


def _by_cell(run: Run) -> tuple[object, ...]:
    return run.cell.strength, run.cell.text, run.split, run.seed


def _by_stream(run: Run) -> tuple[object, ...]:
    """Side by side are the runs of one random stream, whose augmentations a network may compute once."""
    return run.split, run.seed, run.cell.strength, run.cell.text


def _shared(cell: Cell) -> tuple[object, ...]:
    """What the replicas of one program have in common."""
    mine = (cell.dataset, cell.digest, cell.labels, cell.normalize, cell.model.program, cell.method, cell.protocol)
    return (*mine, cell.wrong_edges, cell.wrong_labels, cell.measure, cell.recipe)
