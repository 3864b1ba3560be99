"""The regularizers, one entry each: everything that the program knows of one is asked here."""

from propreg.engine.registry import Registry
from propreg.engine.regularizers.confidence import CONFIDENCE_PENALTY
from propreg.engine.regularizers.label_smoothing import LABEL_SMOOTHING
from propreg.engine.regularizers.laplacian import LAPLACIAN
from propreg.engine.regularizers.plain import PLAIN
from propreg.engine.regularizers.preg import PREG
from propreg.engine.regularizers.regularizer import Regularizer

REGULARIZERS: Registry[Regularizer] = Registry("method", (PLAIN, PREG, LAPLACIAN, CONFIDENCE_PENALTY, LABEL_SMOOTHING))


def tunable() -> dict[str, Regularizer]:
    """The entries with a strength to tune: all but the plain model."""
    return {name: entry for name, entry in REGULARIZERS.items() if entry.grid}
