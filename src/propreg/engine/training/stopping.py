"""Which epoch a run reports and when it stops, for all replicas of a batch at once.

The same code runs on the host, whose numbers become the results, and on the device, where the weights and logits of the
reported epoch must be kept without waiting for the host.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rule:
    """Which epoch is reported, and when a training stops whose protocol has this rule.

    Args:
        name: What :class:`propreg.engine.Protocol` and reports call it.
        reports: Which replicas report this epoch in place of an earlier one, bool [R] from a :class:`Watch`.
        improves: Which reset their count of epochs without improvement; None: those that report. A replica that neither
            reports nor improves adds one; one that reports without improving (a tie) leaves the count as it is.
        stops: Which stop after this epoch; None: only the protocol's ``max_epochs`` stops them.
        losses: How many of the latest validation losses the rule reads; with 0 none is computed.
    """

    name: str
    reports: Callable[["Watch"], Tensor]
    improves: Callable[["Watch"], Tensor] | None = None
    stops: Callable[["Watch"], Tensor] | None = None
    losses: int = 0


def _better(watch: "Watch") -> Tensor:
    return watch.now > watch.best


def _no_worse(watch: "Watch") -> Tensor:
    return watch.now >= watch.best


# The released code stops once the counter exceeds the patience; "for 200 epochs" is reached at the 200th.
OFFICIAL = Rule("official", _no_worse, improves=_better, stops=lambda watch: watch.counter > watch.patience)
STRICT = Rule("strict", _better, stops=lambda watch: watch.counter >= watch.patience)
LATEST_BEST = Rule("latest_best", _no_worse)
FIRST_BEST = Rule("first_best", _better)
LOWEST_VAL_LOSS = Rule("lowest_val_loss", lambda watch: watch.losses[:, -1] < watch.lowest, losses=1)
LAST = Rule("last", lambda watch: torch.ones_like(watch.stopped))


def _patience_ends(watch: "Watch") -> Tensor:
    return watch.counter >= watch.patience


def _lower(watch: "Watch") -> Tensor:
    return watch.losses[:, -1] < watch.lowest


def _no_worse_in_one(watch: "Watch") -> Tensor:
    return (watch.losses[:, -1] <= watch.lowest) | _no_worse(watch)


def _above_recent_mean(watch: "Watch") -> Tensor:
    return watch.losses[:, -1] > watch.losses[:, :-1].mean(1)  # of fewer epochs than the window the mean is infinite


VAL_LOSS = Rule("val_loss", _lower, stops=_patience_ends, losses=1)
# GRAND's and APPNP's own: of the epochs that are no worse in one of the two numbers the one with the lowest loss.
LOSS_OR_ACCURACY = Rule(
    "loss_or_accuracy",
    lambda watch: _no_worse_in_one(watch) & (watch.losses[:, -1] <= watch.loss),
    improves=_no_worse_in_one,
    stops=_patience_ends,
    losses=1,
)
# The citation benchmark of PyG: from epoch 101 on, stop once the loss exceeds the mean of the ten epochs before.
LOSS_WINDOW = Rule("loss_window", _lower, stops=lambda watch: (watch.at > 100) & _above_recent_mean(watch), losses=11)
# The first code for GCN: the last epoch is reported, and the loss may rise above that mean from epoch 11 on.
LAST_IN_WINDOW = Rule(
    "last_in_window",
    lambda watch: torch.ones_like(watch.stopped),
    stops=lambda watch: (watch.at > 10) & _above_recent_mean(watch),
    losses=11,
)
# GraphVAT's on CiteSeer: the same with a window of one epoch.
LAST_ON_RISE = Rule(
    "last_on_rise",
    lambda watch: torch.ones_like(watch.stopped),
    stops=lambda watch: (watch.at > 1) & _above_recent_mean(watch),
    losses=2,
)

_ALL = (OFFICIAL, STRICT, LATEST_BEST, FIRST_BEST, LOWEST_VAL_LOSS, LAST)
RULES = {rule.name: rule for rule in (*_ALL, VAL_LOSS, LOSS_OR_ACCURACY, LOSS_WINDOW, LAST_IN_WINDOW, LAST_ON_RISE)}


class Watch:
    """What one rule has seen of R replicas: [R] each, written in place so that a captured graph updates them.

    Accuracies are counts of correct nodes, so that ties are exact. When a rule's functions run, ``now``, ``at`` and the
    last of ``losses`` are this epoch's; ``best``, ``lowest`` and what is reported are still of earlier epochs.
    """

    patience: Tensor
    now: Tensor  # correct validation nodes of this epoch,
    at: Tensor  # its number,
    losses: Tensor  # and the validation losses up to it, the latest last: [R, rule.losses]
    best: Tensor  # of earlier epochs
    lowest: Tensor
    val: Tensor  # of the reported epoch
    test: Tensor
    epoch: Tensor
    loss: Tensor
    counter: Tensor
    stopped: Tensor

    def __init__(self, rule: Rule, patience: Tensor) -> None:
        self.rule, self.patience = rule, patience
        zeros = torch.zeros_like(patience)
        infinite = torch.full((len(patience),), torch.inf, dtype=torch.float64, device=patience.device)
        self.now, self.at = zeros, zeros
        self.losses = infinite.unsqueeze(1).repeat(1, rule.losses)
        self.best, self.lowest = zeros - 1, infinite.clone()
        self.val, self.test, self.epoch, self.loss = *(zeros.clone() for _ in range(3)), infinite
        self.counter, self.stopped = zeros.clone(), zeros.bool()

    def take(self, live: Tensor, epoch: Tensor, val: Tensor, test: Tensor, val_loss: Tensor | None) -> Tensor:
        """See an epoch of the live replicas; returns which of them report it. bool [R]."""
        rule, live = self.rule, live & ~self.stopped
        self.now, self.at = val, epoch
        if rule.losses and val_loss is not None:
            self.losses.copy_(torch.cat([self.losses[:, 1:], val_loss.unsqueeze(1)], 1))
        reported = live & rule.reports(self)
        better = reported if rule.improves is None else live & rule.improves(self)
        for kept, new in ((self.val, val), (self.test, test), (self.epoch, epoch)):
            torch.where(reported, new, kept, out=kept)
        torch.maximum(self.best, val, out=self.best)
        if rule.losses:
            torch.where(reported, self.losses[:, -1], self.loss, out=self.loss)
            torch.fmin(self.lowest, self.losses[:, -1], out=self.lowest)
        if rule.stops:
            self.counter.add_(live & ~reported).mul_(~better)
            self.stopped |= live & rule.stops(self)
        return reported

    def keep(self, kept: Tensor) -> None:
        """Compact to these replicas."""
        for name in ("patience", "losses", "best", "lowest", "val", "test", "epoch", "loss", "counter", "stopped"):
            setattr(self, name, getattr(self, name)[kept])


class Stopper:
    """The rules that watch a training; the first one stops it.

    A rule with a patience of its own reports what it would have reported alone, provided that the first one trains for
    as long.
    """

    def __init__(self, rules: Sequence[Rule], patience: Tensor, max_epochs: int) -> None:
        self.watches, self.max_epochs = [Watch(rule, patience) for rule in rules], max_epochs
        self.epoch = patience.new_zeros(())  # of all replicas
        self.epochs, self.stopped = torch.zeros_like(patience), torch.zeros_like(patience).bool()

    @torch.no_grad()
    def take(self, val: Tensor, test: Tensor, loss: Tensor, val_loss: Tensor | None = None) -> list[Tensor]:
        """See the next epoch; returns which replicas report it, by rule. bool [R] each.

        Args:
            val, test: How many validation and test nodes are correct after the step. int64 [R].
            loss: The training loss of the step; if it is not finite, the run stops. [R].
            val_loss: The validation loss after the step, if a rule reads it. [R].
        """
        self.epoch += 1
        live = ~self.stopped
        reported = [watch.take(live, self.epoch, val, test, val_loss) for watch in self.watches]
        torch.where(live, self.epoch, self.epochs, out=self.epochs)
        self.stopped |= self.watches[0].stopped | ~loss.isfinite() | (self.epoch >= self.max_epochs)
        return reported

    def keep(self, kept: Tensor) -> None:
        """Compact to these replicas."""
        self.epochs, self.stopped = self.epochs[kept], self.stopped[kept]
        for watch in self.watches:
            watch.keep(kept)
