"""The trained state of a module of the user's own, in one ``.npz`` file without pickles and without its code.

The format, version 1. Every member is a plain array.

==================  =============  ===================================================================================
member              type           meaning
==================  =============  ===================================================================================
``format``          text, 0-d      ``propreg-state-1``
``settings``        text, 0-d      JSON: ``names`` (of the parameters and dense buffers, in order), ``about``
                                   (regulariser, preset and strength of the training)
``state_0`` …       any number     the parameter or buffer of that name, as its module has it
``sha256``          text, 0-d      of all other members
==================  =============  ===================================================================================
"""

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from propreg.data._npz import write_npz
from propreg.data.errors import DataError
from propreg.data.own_npz import members_digest
from propreg.fitting.saved_members import BESIDE, STATE, text


def write_state(path: str | os.PathLike[str], module: nn.Module, about: Mapping[str, Any]) -> None:
    """Write a module's parameters and buffers."""
    state = _state(module)
    settings = json.dumps({"names": list(state), "about": dict(about)}, sort_keys=True)
    arrays = {f"state_{i}": _array(name, t) for i, (name, t) in enumerate(state.items())}
    arrays |= {"format": np.array(STATE), "settings": np.array(settings)}
    write_npz(path, {**arrays, "sha256": np.array(members_digest(arrays))})


def fill(module: nn.Module, arrays: Mapping[str, NDArray[Any]], where: str) -> nn.Module:
    """The module with the state that these members of a file hold, in evaluation mode."""
    saved, state = _saved(arrays, where), _state(module)
    if saved.keys() != state.keys():
        name = min(saved.keys() ^ state.keys())
        has, lacks = ("file", "module") if name in saved else ("module", "file")
        raise ValueError(f"{where}: the {has} has {name!r} but the {lacks} has not: make the module that was trained.")
    for name, t in state.items():
        array = saved[name]
        if array.shape != t.shape or (array.dtype.kind == "f") != t.is_floating_point():
            raise ValueError(
                f"{where}: {name!r} is {array.dtype} {list(array.shape)} but that of the module {t.dtype} "
                f"{list(t.shape)}: make the module that was trained."
            )
    with torch.no_grad():
        for name, t in state.items():
            t.copy_(torch.from_numpy(saved[name]))
    return module.eval()


def _state(module: nn.Module) -> dict[str, Tensor]:
    """Also buffers that a state dict leaves out; a sparse one is a matrix of the graph, which a new module has too."""
    named = [*module.named_parameters(), *module.named_buffers()]
    for name, t in named:
        if is_lazy(t):
            raise ValueError(f"{name!r} of module is lazy and has no size: call the module once on your data first.")
    return {name: t for name, t in named if t.layout == torch.strided}


def _array(name: str, t: Tensor) -> NDArray[Any]:
    t = t.detach().cpu()
    if t.is_complex():
        raise ValueError(f"{name!r} of the model is {t.dtype}, which cannot be saved: keep torch.view_as_real of it.")
    try:
        return t.numpy()
    except TypeError:  # NumPy has no bfloat16: its numbers are exact in float32, and bfloat16 again in a module
        return t.float().numpy()


def _saved(arrays: Mapping[str, NDArray[Any]], where: str) -> dict[str, NDArray[Any]]:
    try:
        names = json.loads(text(arrays, "settings", where))["names"]
        known = isinstance(names, list) and all(isinstance(name, str) for name in names)
    except (KeyError, TypeError, ValueError, RecursionError):
        known = False
    if not known or {f"state_{i}" for i in range(len(names))} | set(BESIDE) != arrays.keys():
        raise DataError(f"{where}: its settings cannot be used: save the model again.")
    return {name: arrays[f"state_{i}"] for i, name in enumerate(names)}
