"""Graphs that are too large to train as a whole: neighbor sampling, mini-batches, and P-reg on them."""

from typing import TYPE_CHECKING

from propreg._lazy import lazy

if TYPE_CHECKING:
    from propreg.scale.loader import Loader as Loader
    from propreg.scale.regularizer import MiniBatchPReg as MiniBatchPReg

_HOME = {"Loader": "loader", "MiniBatchPReg": "regularizer"}
__all__ = [*_HOME]  # noqa: PLE0604  (strings all: the keys of the table above)

__getattr__ = lazy("propreg.scale", _HOME)
