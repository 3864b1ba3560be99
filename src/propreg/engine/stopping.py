"""When a replica stops and which epoch it reports, for all replicas of a batch at once."""

import numpy as np
from numpy.typing import NDArray

from propreg.engine.spec import Protocol


class Stopper:
    """The state of the stopping rule of R replicas; accuracies come as counts of correct nodes, so ties are exact."""

    def __init__(self, protocol: Protocol, patience: NDArray[np.int64]) -> None:
        replicas = len(patience)
        self.protocol = protocol
        self.patience = patience
        self.best = np.full(replicas, -1, np.int64)
        self.best_test = np.zeros(replicas, np.int64)
        self.best_epoch = np.zeros(replicas, np.int64)
        self.counter = np.zeros(replicas, np.int64)
        self.stopped = np.zeros(replicas, np.bool_)
        self.epochs = np.zeros(replicas, np.int64)

    def update(self, epoch: int, val: NDArray[np.int64], test: NDArray[np.int64]) -> None:
        """Take one epoch's counts; replicas that stopped before are left as they are."""
        live = ~self.stopped
        better, equal = live & (val > self.best), live & (val == self.best)
        official = self.protocol.rule == "official"
        recorded = better | equal if official else better
        self.best_test[recorded] = test[recorded]
        self.best_epoch[recorded] = epoch
        self.best[better] = val[better]
        self.counter[better] = 0
        self.counter[live & ~recorded] += 1
        self.epochs[live] = epoch
        # The released code stops past its patience; "for 200 epochs" is reached at the 200th.
        spent = self.counter > self.patience if official else self.counter >= self.patience
        self.stopped |= live & (spent | (epoch >= self.protocol.max_epochs))

    def keep(self, kept: NDArray[np.int64]) -> None:
        """Compact to these replicas."""
        for name in ("patience", "best", "best_test", "best_epoch", "counter", "stopped", "epochs"):
            setattr(self, name, getattr(self, name)[kept])
