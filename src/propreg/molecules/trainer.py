"""A batch of recorded runs on molecules: from the store's cells to the training loop and back."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from propreg.data.benchmarks.catalog import MOLECULE_SETS
from propreg.data.benchmarks.load import load_molecules
from propreg.data.errors import DataError
from propreg.engine.models.molecules import MoleculeModel
from propreg.engine.spec import Method, Report, Result
from propreg.molecules.checkpoint import Checkpoint
from propreg.molecules.regularizers import Form
from propreg.molecules.steps import MoleculeProtocol
from propreg.molecules.tasks import MoleculeTask
from propreg.molecules.train import MoleculeResult, MoleculeRun, train_molecules
from propreg.store.batch import Batch
from propreg.store.errors import StudyError
from propreg.store.run import Cell, Outcome, Record


class MoleculeTrainer:
    """Trains batches on one device; datasets stay packed on it.

    Args:
        device: Where.
        root: The folder of the data.
        folder: Where batches in training are kept; None keeps none.
    """

    def __init__(self, device: torch.device, root: str | None = None, folder: Path | None = None) -> None:
        self.device, self.root, self.folder = device, root, folder
        self._tasks: dict[str, MoleculeTask] = {}

    def kept(self, batch: Batch) -> Path | None:
        """The file that a batch in training is kept in; None if it is not."""
        return self.folder / f"{batch.id}.safetensors" if self.folder else None

    def train(self, batch: Batch, stop: Callable[[], bool] = lambda: False) -> Iterator[Record]:
        """Yield each run when the batch is trained.

        Raises:
            StudyError: If the data on disk is not what the runs name, or P-reg has settings that molecules do not know.
        """
        cell = batch.runs[0].cell
        if not isinstance(cell.model, MoleculeModel):
            raise StudyError(f"{cell.dataset} holds molecules, got model {cell.model.name!r}: use mol-gcn or mol-gin.")
        task = self._task(cell)
        protocol = MoleculeProtocol(cell.protocol.max_epochs, lr=cell.lr, dropout=cell.dropout)
        runs = [MoleculeRun(run.seed, run.cell.strength) for run in batch.runs]
        entry, form, path = MOLECULE_SETS[cell.dataset], form_of(cell.method), self.kept(batch)
        kept = Checkpoint(path) if path else None
        for place, result in train_molecules(task, cell.model, form, runs, protocol, stop=stop, checkpoint=kept):
            val, test = (len(task.data.split[part]) for part in ("valid", "test"))
            outcome = Outcome.of(_as_result(cell, result, protocol), val, test, metric=entry.metric)
            yield Record(batch.runs[place], outcome, batch.id)

    def _task(self, cell: Cell) -> MoleculeTask:
        if cell.dataset not in self._tasks:
            try:
                data = load_molecules(cell.dataset, self.root)
            except DataError as error:
                raise StudyError(str(error)) from error
            task = MoleculeTask(data, MOLECULE_SETS[cell.dataset].task_type, self.device)
            if task.digest != cell.digest:
                raise StudyError(
                    f"{cell.dataset} on disk has content {task.digest[:16]}, but the run names {cell.digest[:16]}: "
                    f"remove it and run propreg data fetch {cell.dataset}."
                )
            self._tasks[cell.dataset] = task
        return self._tasks[cell.dataset]


def form_of(method: Method) -> Form:
    """What a recorded method means on molecules: the presets of P-reg, or none.

    Example:
        >>> form_of(Method()), form_of(Method.preset("paper")), form_of(Method.preset("reference"))
        ('plain', 'paper', 'reference')
    """
    forms: dict[Method, Form] = {
        Method(): "plain", Method.preset("paper"): "paper", Method.preset("reference"): "reference",
    }  # fmt: skip
    if method not in forms:
        raise StudyError("On molecules P-reg has the presets 'paper' and 'reference' and no other settings.")
    return forms[method]


def _as_result(cell: Cell, found: MoleculeResult, protocol: MoleculeProtocol) -> Result:
    broken = ~np.isfinite(found.val)
    failed = int(np.argmax(broken)) + 1 if broken.any() else None
    best = found.epoch - 1
    val, test = (float(found.val[best]), float(found.test[best])) if best >= 0 else (0.0, 0.0)
    report = Report(cell.protocol.rule, found.epoch, val, test, None)
    replica = cell.replica(0, found.run.seed)
    return Result(replica, val, test, found.epoch, protocol.epochs, failed, reports=(report,))
