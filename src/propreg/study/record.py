"""What is kept of a finished run."""

import json
from dataclasses import dataclass

from propreg.study.run import Run


@dataclass(frozen=True)
class Outcome:
    """The result of a run, in whole numbers so that equal results are equal bytes.

    ``measures`` is the canonical JSON of what else was measured, None where nothing was.
    """

    val: int
    val_of: int
    test: int
    test_of: int
    epoch: int
    epochs: int
    failed_at: int | None = None
    measures: str | None = None

    @property
    def measured(self) -> dict[str, float]:
        """What else was measured."""
        return json.loads(self.measures) if self.measures else {}


@dataclass(frozen=True)
class Record:
    """A finished run, its result, and the batch it was trained in."""

    run: Run
    outcome: Outcome
    batch: str
