"""A batch in training on disk: what a later call goes on from after a time limit, a signal or a kill.

One safetensors file per batch, replaced atomically: weights, running statistics, Adam's moments and the scores so far.
Orders of molecules and dropout masks need no place in it: they depend on the runs' identity and the epoch alone.
"""

import platform
import time
import warnings
from contextlib import suppress
from pathlib import Path

import torch

from propreg.data.errors import DataError
from propreg.data.formats.safetensors import read_safetensors, write_safetensors
from propreg.devices import processor
from propreg.jsonio import canonical
from propreg.molecules.train import Training
from propreg.store.provenance import engine_digest

SECONDS = 60.0  # between two writes
SHARE = 0.05  # of the time, at most, is spent on writing: a batch of 110 runs of GIN with virtual node takes 4 GB


class Checkpoint:
    """The file of a batch in training.

    Args:
        path: The file; its folder is made when there is something to keep.
        seconds: Between two writes, by default a minute.
        keep: Whether the file stays when the batch is trained: another call then has its results at once.
    """

    def __init__(self, path: Path, seconds: float | None = None, *, keep: bool = False) -> None:
        self.path, self.seconds, self.keep = path, SECONDS if seconds is None else seconds, keep
        self._next = time.monotonic() + self.seconds

    def restore(self, training: Training) -> int:
        """Put a training where it was; returns the number of epochs that are done, 0 if there is nothing to go on from.

        A damaged file, and one of other code, other versions or another machine, which would not give the same bits, is
        left out with a warning.
        """
        if not self.path.exists():
            return 0
        wanted = self._conditions(training)
        try:
            arrays, about = read_safetensors(self.path)
            if other := sorted(name for name in wanted if about.get(name) != wanted[name]):
                raise DataError(f"{self.path}: was written with another {' and '.join(other)}.")
            return training.restore({name: torch.from_numpy(array) for name, array in arrays.items()})
        except DataError as error:
            warnings.warn(f"{error} The batch is trained from its first epoch.", stacklevel=2)
            return 0

    def save(self, training: Training, *, now: bool = False) -> None:
        """Write the file if it is due, or ``now``."""
        started = time.monotonic()
        if not now and started < self._next:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {name: t.detach().cpu().numpy() for name, t in training.state().items()}
        write_safetensors(self.path, arrays, self._conditions(training))
        ended = time.monotonic()
        self._next = ended + max(self.seconds, (ended - started) / SHARE)

    def finish(self, training: Training) -> None:
        """After the last epoch: write the file a last time if it is to be kept."""
        if self.keep:
            self.save(training, now=True)

    def remove(self) -> None:
        """Remove the file unless it is to be kept, and its folder if that was the last one."""
        if self.keep:
            return
        self.path.unlink(missing_ok=True)
        with suppress(OSError):  # files of other batches are there, or it never was
            self.path.parent.rmdir()

    def _conditions(self, training: Training) -> dict[str, str]:
        """What equal bits depend on."""
        device = training.task.device
        on = torch.cuda.get_device_name(device) if device.type == "cuda" else f"{processor()} {torch.get_num_threads()}"
        protocol, runs = vars(training.protocol), [vars(run) for run in training.runs]
        code = f"{engine_digest()} {engine_digest(Path(__file__).parent)}"
        task = [training.task.digest, training.task.task]
        settings = [task, training.model.identity(), training.form, protocol, runs]
        return {
            "settings": canonical(settings),
            "code": code,
            "torch": str(torch.__version__),
            "machine": f"{platform.machine()} {on}",
        }
