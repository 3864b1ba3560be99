"""Training a recorded run again, and how the results compare."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from propreg.store.batch import Batch
from propreg.store.errors import StudyError
from propreg.store.provenance import Conditions, compare_conditions, sessions_of
from propreg.store.results import Recorded, load_results
from propreg.store.run import Outcome, Record, Run
from propreg.study.spec.batches import cut, of_seeds
from propreg.study.spec.experiment import experiment_names, load_experiment
from propreg.study.spec.part import Line
from propreg.study.spec.unfold import unfolded

if TYPE_CHECKING:
    from propreg.study.execute.trainer import Trainer

LIMIT = 3.0
"""The largest difference on another machine or in another batch, in standard deviations between the other seeds of the
same split."""


@dataclass(frozen=True)
class Rerun:
    """A run trained again.

    Args:
        record: The recorded run.
        again: The new outcome.
        in_batch: Whether it was trained in its recorded batch.
        between_seeds: The standard deviation of the test score between the other seeds; None if there are too few.
        conditions: How the conditions of the recorded training compare with today's.
    """

    record: Record
    again: Outcome
    in_batch: bool
    between_seeds: float | None
    conditions: Conditions

    @property
    def equal(self) -> bool:
        """Whether the outcomes are the same, whatever further reports were recorded."""
        return self.again.agrees(self.record.outcome)

    @property
    def difference(self) -> float:
        """The new test score minus the recorded one, accuracies as fractions."""
        return self.again.test_score - self.record.outcome.test_score

    @property
    def equal_expected(self) -> bool:
        """Whether anything but the same bits is a failure: the same batch under the same conditions."""
        return self.in_batch and self.conditions.same

    @property
    def passed(self) -> bool:
        """Equal; or, if equal bits are not expected, as near as another seed could be."""
        if self.equal or self.equal_expected:
            return self.equal
        return self.between_seeds is not None and abs(self.difference) <= LIMIT * self.between_seeds

    def sentence(self) -> str:
        """For people."""
        how = "in its batch" if self.in_batch else "alone"
        start = f"run {self.record.run.key[:16]}, trained again {how}:"
        if self.equal:
            return f"{start} the same to the last node, {100 * self.again.test_score:.2f} % on test."
        apart = f"{start} not the same, {100 * self.difference:+.2f} points on test"
        why = f" {self.conditions.sentence()}" if self.in_batch else ""
        if self.equal_expected:
            return f"{apart}.{why}"
        if self.between_seeds is None:
            return f"{apart}; fewer than two other seeds of its split are recorded to compare with.{why}"
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
    """The progress of a training: in the recorded batch or not, runs and runs done, and epochs so far, 0 at first."""

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
        trainer: The trainer, or what makes it, which is called once the run is found.
        alone: Train the run by itself.
        tell: Called with the progress, once an epoch.
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
        raise StudyError(f"The engine returned no result of run {record.run.key[:16]}.")
    conditions = compare_conditions(crew.about(), sessions_of(recorded, record))
    return Rerun(record, found, batch is not None, _between_seeds(recorded, record.run), conditions)


def _batch(recorded: Recorded, record: Record) -> Batch | None:
    """The batch a run was trained in: by the store, else by the experiments of the package."""
    keys = recorded.members(record.batch)
    if keys:
        runs = {run.key: run for lines in _relatives(recorded, record.run) for line in lines for run in line.runs()}
        if all(key in runs for key in keys):
            return Batch("recorded", tuple(runs[key] for key in keys))
    seeds = recorded.seeds(record.run.cell.text, record.batch)
    for lines in _relatives(recorded, record.run):
        for batch in (*cut(lines), *cut(of_seeds(lines, seeds))):
            if batch.id == record.batch:
                return batch
    return None


def _relatives(recorded: Recorded, run: Run) -> Iterator[tuple[Line, ...]]:
    """The lines of each of the package's experiments on the same dataset; if records add runs, those of the model."""
    for experiment in map(load_experiment, experiment_names()):
        lines = tuple(line for line in experiment.lines if line.dataset == run.cell.dataset)
        if any(line.unfolds for line in lines):
            lines = tuple(line for line in lines if line.model == run.cell.model.name)
            lines = unfolded(replace(experiment, lines=lines), load_results(recorded.path)).lines if lines else ()
        yield lines


def _between_seeds(recorded: Recorded, run: Run) -> float | None:
    """Without the run itself: an outlier would widen the deviation that it is judged by."""
    others = recorded.tests(run.cell.text, run.split, run.seed)
    return float(np.std(others, ddof=1)) if len(others) > 1 else None
