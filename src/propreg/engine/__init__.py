"""The replica engine: runs that share a graph and an architecture are trained as one program.

Names are imported on first use (PEP 562), so that who only names runs (:mod:`propreg.engine.spec`) need not load torch.
"""

from typing import TYPE_CHECKING

from propreg._lazy import lazy

if TYPE_CHECKING:
    from propreg.engine.spec import Method as Method
    from propreg.engine.spec import Model as Model
    from propreg.engine.spec import Protocol as Protocol
    from propreg.engine.spec import Replica as Replica
    from propreg.engine.spec import Result as Result
    from propreg.engine.tasks.node import Problem as Problem
    from propreg.engine.training.batches import Options as Options
    from propreg.engine.training.batches import train_all as train_all

_HOME = {
    "Method": "spec",
    "Model": "spec",
    "Protocol": "spec",
    "Replica": "spec",
    "Result": "spec",
    "Options": "training.batches",
    "train_all": "training.batches",
    "Problem": "tasks.node",
}

__all__ = [*_HOME]  # noqa: PLE0604  (strings all: the keys of the table above)


__getattr__ = lazy("propreg.engine", _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
