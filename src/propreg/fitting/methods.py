"""The regularisers that ``fit`` can train with: what each computes in either preset, and the strengths it tries."""

from dataclasses import dataclass
from typing import Literal

from propreg.engine.spec import Method

Preset = Literal["paper", "reference"]


@dataclass(frozen=True)
class Known:
    """A regulariser: how tables call it, its formula in the paper and in the official code, and its strengths."""

    title: str
    paper: Method
    reference: Method
    grid: tuple[float, ...]


# P-reg: the paper's [0, 1]. The others: the sweeps of the official history, which published no strengths; the
# Laplacian's is per edge, so that one grid serves all graphs.
_SHARES = (0.0001, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
METHODS = {
    "preg": Known(
        "P-reg",
        Method.preset("paper"),
        Method.preset("reference"),
        (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    ),
    "laplacian": Known(
        "Laplacian",
        Method("laplacian"),
        Method("laplacian", variant="official"),
        (1e-5, 3e-5, 1e-4, 3e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    ),
    "confidence_penalty": Known(
        "confidence penalty",
        Method("confidence_penalty"),
        Method("confidence_penalty", variant="official"),
        _SHARES,
    ),
    "label_smoothing": Known("label smoothing", Method("label_smoothing"), Method("label_smoothing"), _SHARES),
}


def method_of(name: str, preset: Preset) -> Method:
    """The engine's settings of a regulariser; both names have been checked.

    Example:
        >>> method_of("preg", "paper").norm, method_of("preg", "reference").norm
        ('rw', 'sym')
    """
    known = METHODS[name]
    return known.paper if preset == "paper" else known.reference
