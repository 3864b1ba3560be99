"""What ``propreg run`` trains with where the user did not say: quick on the digits, thorough elsewhere."""

import math
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Training:
    """The settings of :func:`propreg.fit` that a run chooses by itself."""

    seeds: int | None
    lr: float
    patience: int
    max_epochs: int
    weight_decay: float = 5e-4


# The digits are there to be looked at within seconds: ten splits instead of seeds, since the split is the unit of the
# statistics, and of the learning rates from 0.01 to 0.1 the one with which a hundred epochs
# bring the plain model furthest on validation.
QUICK = Training(seeds=1, lr=0.05, patience=50, max_epochs=100)
THOROUGH = Training(seeds=None, lr=0.01, patience=100, max_epochs=1000)
QUICK_MUS = (0.1, 0.3, 0.6, 1.0)


def parse_mu(text: str, method: str = "preg") -> str | tuple[float, ...]:
    """``"auto"``, a number or a comma list, as :func:`propreg.fit` takes it.

    Raises:
        ValueError: If it is none of these, a number is not finite or below 0, or none is above 0: the plain model is
            always trained, and needs something to be compared with.

    Example:
        >>> parse_mu("0.2,0.5"), parse_mu("auto")
        ((0.2, 0.5), 'auto')
    """
    if text.strip().lower() == "auto":
        return "auto"
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--mu must be auto, a number or a list like 0.2,0.5, but {text!r} came.") from None
    if not all(math.isfinite(mu) and mu >= 0 for mu in found):
        raise ValueError(f"--mu must hold finite numbers of at least 0, but {text!r} came.")
    if max(found) == 0:
        raise ValueError("--mu needs a strength above 0: the plain model, mu = 0, is always trained beside it.")
    if method == "label_smoothing" and max(found) > 1:
        raise ValueError(f"--mu must lie between 0 and 1 for label_smoothing, but {text!r} came.")
    return found


def check_device(name: str) -> None:
    """Refuse a name that no device has; whether there is such a device is found out later.

    Raises:
        ValueError: If it is not one of those that torch trains on here.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", name):
        raise ValueError(f"--device must be auto, cpu, cuda or one GPU like cuda:0, but {name!r} came.")
