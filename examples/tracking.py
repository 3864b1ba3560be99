"""Log trainings to your experiment tracker, here CSV or TensorBoard; a tracker needs only two methods."""

import csv
import tempfile
from typing import Protocol

import propreg


class Tracker(Protocol):
    def log_metric(self, name: str, value: float, step: int) -> None: ...
    def close(self) -> None: ...


class CsvTracker:
    def __init__(self, path: str) -> None:
        file = open(path, "w", newline="")  # noqa: SIM115  (close closes it)
        self.log_metric, self.close = lambda *row: csv.writer(file).writerow(row), file.close


class TensorBoardTracker:
    def __init__(self, folder: str) -> None:
        from torch.utils.tensorboard import SummaryWriter

        writer = SummaryWriter(folder)
        self.log_metric, self.close = writer.add_scalar, writer.close


def track(tracker: Tracker, result: propreg.FitResult) -> None:
    for run in result.runs:
        name = f"validation, mu {run.replica.strength:g}, seed {run.replica.seed}"
        for epoch, value in enumerate(run.history["val"], start=1):
            tracker.log_metric(name, float(value), epoch)
    tracker.close()


if __name__ == "__main__":
    data = propreg.load_dataset("digits", split=0)
    track(CsvTracker(path := f"{tempfile.mkdtemp()}/metrics.csv"), propreg.fit(data, mu=0.5, seeds=2, max_epochs=30))
    print(f"wrote {path}")
