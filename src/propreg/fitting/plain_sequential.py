"""PyG's Sequential without the code that it writes and imports when it is made.

``torch_geometric.nn.Sequential`` writes its forward pass as a Python file, which begins with an import of everything
from the module that it was called from, by that file's bare name: a file of this name in the user's folder would be
run. It does so to be scripted by TorchScript; without that file it works the same.
"""

import threading
from collections.abc import Sequence
from typing import Any

from torch import nn

_WRITES, _IMPORTS = "_set_jittable_template", "_caller_module"
_one_at_a_time = threading.Lock()


def sequential(arguments: str, steps: Sequence[Any]) -> nn.Module:
    """``torch_geometric.nn.Sequential(arguments, steps)``, with nothing written, imported or drawn at random."""
    from torch_geometric.nn import Sequential

    with _one_at_a_time:
        writes = getattr(Sequential, _WRITES, None)
        if writes is not None:
            setattr(Sequential, _WRITES, lambda _, raise_on_error=False: None)  # noqa: ARG005
        try:
            module: nn.Module = Sequential(arguments, steps)
        finally:
            if writes is not None:
                setattr(Sequential, _WRITES, writes)
    if hasattr(module, _IMPORTS):
        setattr(module, _IMPORTS, "propreg_no_such_module")  # a copy of the module would try again
    return module
