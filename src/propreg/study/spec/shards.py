"""Shards: a sweep in parts of equal cost, one for each job of an array, every one with a store of its own.

Shards consist of whole batches, and the cut into batches does not depend on them: stores of all shards, merged, hold
the same bytes as one that a single machine has filled.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from propreg.store.batch import Batch
from propreg.store.errors import UsageError
from propreg.study.spec.batches import longest_first

_SLURM, _KUBERNETES = "SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"
_TEXT = re.compile(r"(\d{1,9})/(\d{1,9})|auto(?:/(\d{1,9}))?")


@dataclass(frozen=True)
class Shard:
    """One of ``count`` parts of a sweep, ``index`` counted from 0.

    Example:
        >>> Shard.parse("3/8", {}).store(Path("runs/table1.sqlite"))
        PosixPath('runs/table1.3-of-8.sqlite')
        >>> Shard.parse("auto/8", {"JOB_COMPLETION_INDEX": "3"})
        Shard(index=3, count=8)
    """

    index: int
    count: int

    @classmethod
    def parse(cls, text: str, environment: Mapping[str, str] | None = None) -> "Shard":
        """Read ``3/8``; ``auto/8``, whose index is that of the job; or ``auto``, of an array of SLURM.

        Args:
            text: The value of ``--shard``.
            environment: The variables of the job; those of this process if left out.

        Raises:
            UsageError: If it is none of these, or the job has no index.
        """
        found = _TEXT.fullmatch(text)
        if found is None:
            raise UsageError(f"--shard must be like 3/8, auto/8 or auto, got {text!r}.")
        if found[1]:
            index, count, where = int(found[1]), int(found[2]), ""
        else:
            job = os.environ if environment is None else environment
            name = _variable(job)
            index, where = _number(job, name), f" ({name})"
            count = int(found[3]) if found[3] else _jobs(job, name)
        if count < 1:
            raise UsageError(f"--shard needs at least one shard, got {text!r}.")
        if index >= count:
            raise UsageError(f"--shard counts from 0: of {count} shards the last is {count - 1}, got {index}{where}.")
        return cls(index, count)

    def of(self, batches: Sequence[Batch]) -> list[Batch]:
        """The batches of this shard: the longest first, each to the shard that has the least to do so far."""
        costs, mine = [0.0] * self.count, list[Batch]()
        for batch in longest_first(batches):
            place = costs.index(min(costs))
            costs[place] += batch.cost
            if place == self.index:
                mine.append(batch)
        return mine

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def store(self, path: Path) -> Path:
        """The shard's own store, beside that of the whole sweep."""
        return path.with_name(f"{path.stem}.{self.index}-of-{self.count}{path.suffix}")


def shard_stores(path: Path) -> list[Path]:
    """The stores of shards that lie beside the store of the whole sweep, which need not exist."""
    name = re.compile(rf"{re.escape(path.stem)}\.\d+-of-\d+{re.escape(path.suffix)}")
    return sorted(each for each in path.parent.glob("*") if name.fullmatch(each.name))


def _variable(job: Mapping[str, str]) -> str:
    """The variable that numbers this job of an array."""
    found = [name for name in (_SLURM, _KUBERNETES) if name in job]
    if len(found) != 1:
        state = "both are set" if found else "neither is set"
        raise UsageError(f"--shard auto needs {_SLURM} or {_KUBERNETES}, and {state}: give a number, as in 3/8.")
    return found[0]


def _jobs(job: Mapping[str, str], name: str) -> int:
    """How many jobs the array has, where that is known and they are counted from 0.

    A task that is sent again by itself has an array of one: by its count it would train everything.
    """
    fix = "write auto/N with the number of shards"
    if name == _KUBERNETES:
        raise UsageError(f"--shard auto: Kubernetes does not tell a job how many there are: {fix}.")
    first, last, count = (_number(job, f"SLURM_ARRAY_TASK_{end}") for end in ("MIN", "MAX", "COUNT"))
    if first != 0 or last != count - 1:
        raise UsageError(
            f"--shard auto: the array of SLURM has {count} tasks from {first} to {last}, not from 0: {fix}."
        )
    return count


def _number(job: Mapping[str, str], name: str) -> int:
    if not job.get(name, "").isdecimal():
        raise UsageError(f"--shard auto: {name} must be a whole number, got {job.get(name, '')!r}.")
    return int(job[name])
