"""Training a stored run again and saying how the results compare."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from propreg.study.batches import Batch, cut
from propreg.study.conditions import Conditions, compare_conditions
from propreg.study.errors import StudyError
from propreg.study.experiment import experiment_names, load_experiment
from propreg.study.makers import makers
from propreg.study.record import Outcome, Record
from propreg.study.recorded import Recorded
from propreg.study.run import Run

if TYPE_CHECKING:
    from propreg.study.training import Trainer

LIMIT = 3.0
"""Standard deviations between the other seeds of the same split that another machine or batch may be away."""


@dataclass(frozen=True)
class Rerun:
    """A run trained again.

    Args:
        record: What is recorded of it.
        again: What came now.
        in_batch: Whether it was trained in its recorded batch.
        between_seeds: The standard deviation of test accuracy between the other seeds; None if there is none.
        conditions: How those under which it was trained compare with those of now.
    """

    record: Record
    again: Outcome
    in_batch: bool
    between_seeds: float | None
    conditions: Conditions

    @property
    def equal(self) -> bool:
        """Whether everything recorded is the same."""
        return self.again == self.record.outcome

    @property
    def difference(self) -> float:
        """Of test accuracy, as a fraction."""
        return (self.again.test - self.record.outcome.test) / self.again.test_of

    @property
    def equal_expected(self) -> bool:
        """Whether anything but the same bits is wrong: in the same batch, with all that is noted as it was."""
        return self.in_batch and self.conditions.same

    @property
    def passed(self) -> bool:
        """Equal; or, where that is not to be expected, as near as another seed could be."""
        if self.equal or self.equal_expected:
            return self.equal
        return self.between_seeds is not None and abs(self.difference) <= LIMIT * self.between_seeds

    def sentence(self) -> str:
        """For people."""
        how = "in its batch" if self.in_batch else "alone"
        start = f"run {self.record.run.key[:16]}, trained again {how}:"
        if self.equal:
            return f"{start} the same to the last node, {100 * self.again.test / self.again.test_of:.2f} % on test."
        apart = f"{start} not the same, {100 * self.difference:+.2f} points on test"
        why = f" {self.conditions.sentence()}" if self.in_batch else ""
        if self.equal_expected:
            return f"{apart}.{why}"
        if self.between_seeds is None:
            return f"{apart}; fewer than two other seeds of its split are stored to judge that by.{why}"
        verdict = "within" if self.passed else "beyond"
        return (
            f"{apart}, {verdict} {LIMIT:g} standard deviations between the other seeds of its split "
            f"({100 * self.between_seeds:.2f} points).{why}"
        )

    def as_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "key": self.record.run.key,
            "equal": self.equal,
            "passed": self.passed,
            "in_batch": self.in_batch,
            "equal_expected": self.equal_expected,
            "conditions": vars(self.conditions),
            "difference": self.difference,
            "between_seeds": self.between_seeds,
            "before": vars(self.record.outcome),
            "again": vars(self.again),
        }


@dataclass(frozen=True)
class Step:
    """How far a training is: in the recorded batch or not, runs done of so many, and epochs so far, 0 at first."""

    in_batch: bool
    runs: int
    done: int = 0
    epochs: int = 0


def rerun(
    recorded: Recorded,
    key: str,
    trainer: "Trainer | Callable[[], Trainer]",
    *,
    alone: bool = False,
    tell: Callable[[Step], None] = lambda _: None,
) -> Rerun:
    """Train the run of a key again, in its recorded batch where that is known; the record is only read.

    Args:
        recorded: A store, or exports.
        key: The run's key, or its beginning.
        trainer: Trains; or what makes it, which is called once the run is found.
        alone: Train the run by itself.
        tell: Is told how it goes, once an epoch.
    """
    record = recorded.find(key)
    batch = None if alone else _batch(recorded, record)
    training = batch or Batch("alone", (record.run,))
    step = Step(batch is not None, len(training.runs))
    tell(step)
    crew = trainer() if callable(trainer) else trainer

    def epoch() -> bool:
        nonlocal step
        step = replace(step, epochs=step.epochs + 1)
        tell(step)
        return False

    found = None
    others = {run.key for run in training.runs} - {record.run.key}
    for each in crew.train(training, epoch, others):
        step = replace(step, done=step.done + 1)
        if each.run.key == record.run.key:
            found = each.outcome
    if found is None:
        raise StudyError(f"The engine handed out no result of run {record.run.key[:16]}.")
    conditions = compare_conditions(crew.about(), makers(recorded, record))
    return Rerun(record, found, batch is not None, _between_seeds(recorded, record.run), conditions)


def _batch(recorded: Recorded, record: Record) -> Batch | None:
    """The batch a run was trained in: by the store, else by the experiments of the package."""
    keys = recorded.members(record.batch)
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


def _between_seeds(recorded: Recorded, run: Run) -> float | None:
    """Without the run itself: with it, a record that is far off would be its own excuse."""
    others = recorded.tests(run.cell.text, run.split, run.seed)
    return float(np.std(others, ddof=1)) if len(others) > 1 else None
