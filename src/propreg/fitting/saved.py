"""A trained model of ours in one ``.npz`` file without pickles: what :meth:`propreg.FitResult.save` writes.

One of the user's own has a format of its own, see :mod:`propreg.fitting.saved_state`.

The format, version 1. Every member is a plain array.

==================  =============  ===================================================================================
member              type           meaning
==================  =============  ===================================================================================
``format``          text, 0-d      ``propreg-model-1``
``settings``        text, 0-d      JSON: ``architecture`` (the fields of :class:`propreg.engine.Model`), ``features``,
                                   ``classes``, ``dropout``, ``weighted`` (whether ``forward`` takes edge weights),
                                   ``about`` (regulariser, preset and strength of the training)
``module_0__bias``  float32        the module's state, one member per entry, with ``__`` for each dot
…
``sha256``          text, 0-d      of all other members
==================  =============  ===================================================================================
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from propreg.data._npz import read_npz, write_npz
from propreg.data.errors import DataError
from propreg.data.own_npz import members_digest
from propreg.engine.check import _model as check_model
from propreg.engine.spec import Model
from propreg.fitting.export import state_shapes, untrained_module
from propreg.fitting.saved_members import BESIDE, MODEL, STATE, format_of, text
from propreg.fitting.saved_state import fill

_MAX_SIZE = 2**31  # of any one dimension: larger ones are damage, and would ask for absurd memory


@dataclass(frozen=True)
class Settings:
    """How to build a saved model again."""

    architecture: Model
    features: int
    classes: int
    dropout: float
    weighted: bool
    about: dict[str, Any]


def write_model(
    path: str | os.PathLike[str], module: nn.Module, architecture: Model, dropout: float, about: Mapping[str, Any]
) -> None:
    """Write a module that :func:`propreg.fitting.export.as_module` made."""
    state = {name: t.detach().float().cpu().numpy() for name, t in module.state_dict().items()}
    features, classes = _sizes(state, architecture)
    weighted = "edge_weight" in getattr(module, "signature").param_dict  # noqa: B009  (nn.Module has no such field)
    settings = Settings(architecture, features, classes, dropout, weighted, dict(about))
    arrays: dict[str, NDArray[Any]] = {name.replace(".", "__"): array for name, array in state.items()}
    arrays |= {"format": np.array(MODEL), "settings": np.array(json.dumps(asdict(settings), sort_keys=True))}
    write_npz(path, {**arrays, "sha256": np.array(members_digest(arrays))})


def load_model(path: str | os.PathLike[str], module: nn.Module | None = None) -> nn.Module:
    """Read a model that :meth:`propreg.FitResult.save` or ``propreg run`` wrote.

    The file holds numbers and text only: reading it runs no code of its writer's, whatever it is.

    Args:
        path: The ``.npz`` file.
        module: For a model of your own, whose code no file can hold: a new module, like ``MyGNN(...)``. Its parameters
            and buffers get the saved values.

    Returns:
        A ``torch_geometric.nn.Sequential`` with ``forward(x, edge_index)`` (and ``edge_weight``, where the model was
        trained on a weighted graph), on the CPU and in evaluation mode; or ``module``, in evaluation mode.

    Raises:
        DataError: If the file is missing or damaged, no model, or of a newer propreg.
        ValueError: If a model of your own comes without ``module``, one of ours with it, or names or shapes of the file
            and of the module differ.

    Example:
        >>> import tempfile, propreg
        >>> data = propreg.load_dataset("digits", split=0)
        >>> result = propreg.fit(data, mu=0.5, seeds=1, max_epochs=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(f"{folder}/model.npz")
        ...     model = propreg.load_model(f"{folder}/model.npz")
        >>> bool((model(data.x, data.edge_index) == result.model(data.x, data.edge_index)).all())
        True

        A model of your own is loaded into a new module:

        >>> class Linear(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = torch.nn.Linear(64, 10)
        ...     def forward(self, x, edge_index):
        ...         return self.layer(x)
        >>> own = propreg.fit(data, Linear, mu=0.5, seeds=1, max_epochs=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     own.save(f"{folder}/own.npz")
        ...     model = propreg.load_model(f"{folder}/own.npz", Linear())
        >>> bool((model(data.x, data.edge_index) == own.model(data.x, data.edge_index)).all())
        True
    """
    if module is not None and not isinstance(module, nn.Module):
        raise TypeError(
            f"module must be a torch.nn.Module, but {module!r:.80} came: make one, like load_model(path, MyGNN(...))."
        )
    arrays, where = read_npz(path), str(path)
    if format_of(arrays, where) == STATE:
        if module is None:
            raise ValueError(
                f"{where}: holds the state of a model of your own, but not its code: pass a new module, like "
                "load_model(path, MyGNN(...))."
            )
        return fill(module, arrays, where)
    settings = _settings(arrays, where)
    if module is not None:
        raise ValueError(f"{where}: holds a {settings.architecture.name}, which is built from it: leave module out.")
    return _built(settings, arrays, where)


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """What a saved model is, without building it."""
    return _settings(read_npz(path), str(path))


def _built(settings: Settings, arrays: Mapping[str, NDArray[Any]], where: str) -> nn.Module:
    state = {name.replace("__", "."): a for name, a in arrays.items() if name not in BESIDE}
    _check_state(state, settings, where)
    module = untrained_module(
        settings.architecture, (settings.features, settings.classes), settings.dropout, weighted=settings.weighted
    )
    module.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    return module.eval()


def _settings(arrays: Mapping[str, NDArray[Any]], where: str) -> Settings:
    if format_of(arrays, where) != MODEL:
        raise DataError(f"{where}: holds the state of a model of its user's own, which has no settings.")
    try:
        raw = json.loads(text(arrays, "settings", where))
        found = Settings(**{**raw, "architecture": _architecture(raw["architecture"])})
        check_model(found.architecture)
        mine = found.architecture
        sizes = [found.features, found.classes, mine.hidden, mine.heads, mine.out_heads, mine.steps]
        if not all(type(size) is int and 0 < size < _MAX_SIZE for size in sizes):
            raise ValueError("a size is out of range")
        if type(found.weighted) is not bool or not isinstance(found.about, dict):
            raise TypeError("a setting has another type")
        if not isinstance(found.dropout, int | float) or not 0 <= found.dropout <= 1:
            raise ValueError(f"dropout is {found.dropout!r}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DataError(f"{where}: its settings cannot be used ({error}): save the model again.") from error
    return found


def _architecture(raw: Any) -> Model:
    """Every field, with a value of its kind: a model must not be built from defaults that a later version changes."""
    kinds = {f.name: type(f.default) for f in fields(Model)}
    if not isinstance(raw, dict) or raw.keys() != kinds.keys():
        raise ValueError("the architecture has other fields than propreg.engine.Model")
    for name, kind in kinds.items():
        value = raw[name]
        if isinstance(value, bool) or not isinstance(value, (int, float) if kind is float else kind):
            raise TypeError(f"{name} is {value!r}")
    return Model(**raw)


def _check_state(state: Mapping[str, NDArray[Any]], settings: Settings, where: str) -> None:
    """Names, types and shapes, before a module is built: its sizes are then those of arrays that are there."""
    model = settings.architecture
    if 2 * model.layers > len(state):  # before a loop over layers that are not there
        raise DataError(f"{where}: has {len(state)} arrays for {model.layers} layers: it is damaged, save it again.")
    shapes = state_shapes(model, (settings.features, settings.classes))
    if state.keys() != shapes.keys():
        raise DataError(f"{where}: has other arrays than a {model.name} of {model.layers} layers: save it again.")
    for name, shape in shapes.items():
        array = state[name]
        if array.shape != shape or array.dtype != np.float32:
            raise DataError(f"{where}: {name} is {array.dtype} {array.shape}, not float32 {shape}: save it again.")
        if not np.isfinite(array).all():
            raise DataError(f"{where}: {name} holds a NaN or infinite weight: train and save it again.")


def _sizes(state: Mapping[str, NDArray[Any]], model: Model) -> tuple[int, int]:
    weights = [array for name, array in state.items() if name.endswith("weight")]
    return int(weights[0].shape[1]), int(weights[-1].shape[0] // (model.out_heads if model.name == "gat" else 1))
