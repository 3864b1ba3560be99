"""What ``propreg run`` trains with where the user did not say: quick on the digits, thorough elsewhere."""

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


def parse_mu(text: str) -> str | tuple[float, ...]:
    """``"auto"``, a number or a comma list, as :func:`propreg.fit` takes it.

    Example:
        >>> parse_mu("0.2,0.5"), parse_mu("auto")
        ((0.2, 0.5), 'auto')
    """
    if text.strip().lower() == "auto":
        return "auto"
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ValueError(f"--mu must be auto, a number or a list like 0.2,0.5, but {text!r} came.") from None
