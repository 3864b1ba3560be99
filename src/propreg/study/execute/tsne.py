"""The outputs behind figure 3: its runs are trained again, since outputs are not stored, and laid out with t-SNE.

The picture shows the first seed; the numbers are of all seeds, so that nobody reads too much into one picture.
"""

from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from propreg.store.errors import StudyError
from propreg.store.run import Run
from propreg.study.figures.tsne_record import Cloud, RunMeasures, TsneRecord
from propreg.study.spec.experiment import load_experiment
from propreg.study.spec.part import Line

if TYPE_CHECKING:
    from propreg.engine.spec import Result
    from propreg.engine.tasks.node import Problem
    from propreg.study.execute.trainer import Trainer

PERPLEXITY = 30.0
AGREES = 2
"""Nodes by which the accuracy of the kept outputs may differ from the reported one: another path rounds differently."""
Array = NDArray[np.float64]


def make_tsne(
    trainer: "Trainer",
    lines: tuple[Line, ...] | None = None,
    say: Callable[[str], object] = str,
) -> TsneRecord:
    """Train the runs of ``fig-tsne`` and lay out their outputs.

    Args:
        trainer: The trainer; on the same machine it gives the same record, byte for byte.
        lines: Other lines than those of the experiment; all on one dataset and split.
        say: Called with a line for each step.

    Raises:
        StudyError: If outputs are not finite, or do not have the reported accuracy.
    """
    lines = load_experiment("fig-tsne").lines if lines is None else lines
    clouds = []
    for line in lines:
        say(f"training {line.method.name}: {len(line.seeds)} runs")
        found = sorted(_trained(trainer, line), key=lambda each: each[0].seed)
        say(f"laying out {line.method.name}")
        xy = tuple((float(x), float(y)) for x, y in _flat(found[0][1]))
        clouds.append(Cloud(line.method.name, line.cells[0].strength, xy, tuple(numbers for numbers, _ in found)))
    return TsneRecord(
        dataset=lines[0].dataset,
        model=lines[0].model,
        split=lines[0].splits[0],
        perplexity=PERPLEXITY,
        labels=tuple(int(label) for label in trainer.problem(tuple(lines[0].runs())).graph.y),
        clouds=tuple(clouds),
        versions={name: version(name) for name in ("numpy", "propreg", "scikit-learn", "torch")},
    )


def _trained(trainer: "Trainer", line: Line) -> Iterator[tuple[RunMeasures, Array]]:
    """The numbers and the outputs of each run of a line, as each is finished."""
    from propreg.engine.training.batches import CPU_GROUP, Options, train_all
    from propreg.study.execute.trainer import logits

    runs = list(line.runs())
    cell = runs[0].cell
    problem = trainer.problem(tuple(runs))
    network = problem.network(cell.model)
    size = CPU_GROUP if trainer.device.type == "cpu" else None
    options = Options(keep_weights=True, batch=size)
    replicas = [run.replica() for run in runs]
    for place, result in train_all(problem, cell.model, cell.method, replicas, cell.protocol, options):
        z = np.asarray(logits(problem, network, result.weights).double().cpu().numpy(), np.float64)
        if not bool(np.isfinite(z).all()):
            raise StudyError(f"Run {runs[place].key[:16]} has outputs that are not finite: it cannot be laid out.")
        yield _numbers(problem, runs[place], result, z), z


def _numbers(problem: "Problem", run: Run, result: "Result", z: Array) -> RunMeasures:
    import torch
    from sklearn.metrics import silhouette_score

    from propreg._distance import intra_class_distance

    y, chosen = problem.graph.y, problem.splits[result.replica.split].test
    test, test_of = int((z.argmax(1) == y)[chosen].sum()), int(chosen.sum())
    reported = round(result.test * test_of)
    if abs(test - reported) > AGREES:
        raise StudyError(
            f"The outputs kept of run {run.key[:16]} are right on {test} test nodes, but training reported {reported}: "
            "they are not of the reported epoch; this is a bug, please report it."
        )
    omega = float(intra_class_distance(torch.from_numpy(z), torch.from_numpy(y)))
    return RunMeasures(
        seed=run.seed,
        key=run.key,
        test=reported,
        test_of=test_of,
        epoch=result.epoch,
        silhouette=float(f"{silhouette_score(z, y):.6g}"),
        omega=float(f"{omega:.6g}"),
        length=float(f"{np.linalg.norm(z, axis=1).mean():.6g}"),
    )


def _flat(z: Array) -> Array:
    """Two coordinates per node, with two decimals."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    perplexity = min(PERPLEXITY, (len(z) - 1) / 3)
    # One thread: with several, the order of sums is not fixed, nor the last bits, nor the picture.
    with threadpool_limits(1):
        flat = TSNE(perplexity=perplexity, init="pca", random_state=0).fit_transform(z)
    return np.asarray(np.round(flat.astype(np.float64), 2) + 0.0, np.float64)
