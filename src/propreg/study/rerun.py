"""Training a stored run again and saying how the results compare."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from propreg.study.batches import Batch, cut
from propreg.study.errors import StudyError
from propreg.study.experiment import experiment_names, load_experiment
from propreg.study.record import Outcome, Record
from propreg.study.run import Run
from propreg.study.store import Store

if TYPE_CHECKING:
    from propreg.study.training import Trainer

LIMIT = 3.0
"""Standard deviations between seeds of the same split that another machine or batch may be away."""


@dataclass(frozen=True)
class Rerun:
    """A run trained again. ``between_seeds`` is the standard deviation of test accuracy between seeds of its split."""

    record: Record
    again: Outcome
    in_batch: bool
    between_seeds: float | None

    @property
    def equal(self) -> bool:
        """Whether everything recorded is the same."""
        return self.again == self.record.outcome

    @property
    def difference(self) -> float:
        """Of test accuracy, as a fraction."""
        return (self.again.test - self.record.outcome.test) / self.again.test_of

    @property
    def passed(self) -> bool:
        """Equal, or as near as another seed could be."""
        if self.equal:
            return True
        return self.between_seeds is not None and abs(self.difference) <= LIMIT * self.between_seeds

    def sentence(self) -> str:
        """For people."""
        how = "in its batch" if self.in_batch else "alone"
        start = f"run {self.record.run.key[:16]}, trained again {how}:"
        if self.equal:
            return f"{start} the same to the last node, {100 * self.again.test / self.again.test_of:.2f} % on test."
        apart = f"{start} {100 * self.difference:+.2f} points on test"
        if self.between_seeds is None:
            return f"{apart}; no other seed of its split is stored to judge that by."
        verdict = "within" if self.passed else "beyond"
        return (
            f"{apart}, {verdict} {LIMIT:g} standard deviations between seeds ({100 * self.between_seeds:.2f} points)."
        )

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "key": self.record.run.key,
            "equal": self.equal,
            "passed": self.passed,
            "in_batch": self.in_batch,
            "difference": self.difference,
            "between_seeds": self.between_seeds,
            "before": vars(self.record.outcome),
            "again": vars(self.again),
        }


def rerun(store: Store, key: str, trainer: "Trainer", *, alone: bool = False) -> Rerun:
    """Train the run of a key again, in its recorded batch where that is known; the store is only read."""
    record = store.find(key)
    batch = None if alone else _batch(store, record)
    training = batch or Batch("alone", (record.run,))
    found = None
    for each in trainer.train(training):
        if each.run.key == record.run.key:
            found = each.outcome
    if found is None:
        raise StudyError(f"The engine handed out no result of run {record.run.key[:16]}.")
    return Rerun(record, found, batch is not None, _between_seeds(store, record.run))


def _batch(store: Store, record: Record) -> Batch | None:
    """The batch a run was trained in: by the store, else by the experiments of the package."""
    keys = store.members(record.batch)
    if keys:
        runs = {run.key: run for run in _relatives(record.run)}
        if all(key in runs for key in keys):
            return Batch("recorded", tuple(runs[key] for key in keys))
    for name in experiment_names():
        for batch in cut(line for line in load_experiment(name).lines if line.dataset == record.run.cell.dataset):
            if batch.id == record.batch:
                return batch
    return None


def _relatives(run: Run) -> list[Run]:
    """All runs of the package's experiments on the same dataset."""
    lines = [line for name in experiment_names() for line in load_experiment(name).lines]
    return [other for line in lines if line.dataset == run.cell.dataset for other in line.runs()]


def _between_seeds(store: Store, run: Run) -> float | None:
    with store.reading():
        rows = store.db.execute(
            "SELECT test * 1.0 / test_of FROM runs JOIN cells ON cells.id = cell WHERE text = ? AND split = ?",
            (run.cell.text, run.split),
        ).fetchall()
    return float(np.std([value for (value,) in rows])) if len(rows) > 1 else None
