"""Trained models as :meth:`propreg.FitResult.save` writes them and ``load_model`` builds them again."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from propreg import __version__
from propreg.data.errors import DataError
from propreg.data.graph import Task
from propreg.data.scaling import Scaling, from_parts
from propreg.engine.spec import Model
from propreg.engine.validate import check_model
from propreg.fitting.predictions import Trained
from propreg.fitting.preprocessing import scaling_arrays, take_raw_features
from propreg.fitting.pyg_modules import state_shapes, untrained_module
from propreg.fitting.saved_file import MODEL, STATE, Arrays, Saved, read_saved, unusable, write_saved
from propreg.jsonio import from_json, to_json

_SCALED, _UNITS = "preprocessing.", "units."  # before the names of a scaling's numbers beside a user's tensors
_MAX_SIZE = 2**31  # of any one dimension: larger ones are damage, and would allocate absurd memory


@dataclass(frozen=True)
class About:
    """What a saved model knows of its training.

    Args:
        about: The regularizer, its preset and strength.
        class_names, feature_names: Of the graph, if it has them.
        inputs: What the ``forward`` of a user's module takes.
        task: What the model predicts.
    """

    about: Mapping[str, Any]
    class_names: Sequence[str] = ()
    feature_names: Sequence[str] = ()
    inputs: Sequence[str] | None = None
    task: Task = "classes"

    def texts(self, scaling: Scaling) -> dict[str, Any]:
        """As settings of a file."""
        named = {name: list(getattr(self, name)) for name in ("class_names", "feature_names")}
        versions = {"propreg": __version__, "torch": torch.__version__}
        named |= {} if self.inputs is None else {"inputs": list(self.inputs)}
        task: dict[str, str] = {} if self.task == "classes" else {"task": self.task}
        task |= {} if scaling.targets is None else {"units": scaling.targets.kind}
        return {**named, **task, "about": dict(self.about), "scale": scaling.kind, "versions": versions}


@dataclass(frozen=True)
class Settings:
    """How to build a saved model again; ``scale`` and ``units`` are what it does to features and predicted numbers."""

    architecture: Model
    features: int
    classes: int
    dropout: float
    weighted: bool
    about: dict[str, Any]
    scale: str = "none"
    class_names: list[str] = field(default_factory=list)
    feature_names: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    task: Task = "classes"
    units: str = "none"


def write_model(
    path: str | os.PathLike[str],
    module: nn.Module,
    architecture: Model,
    sizes: tuple[int, int],
    dropout: float,
    about: About,
    scaling: Scaling,
) -> None:
    """Write a module that :func:`propreg.fitting.pyg_modules.as_module` made, for so many features and classes."""
    state = {name: t.detach().float().cpu().numpy() for name, t in module.state_dict().items()}
    weighted = "edge_weight" in getattr(module, "signature").param_dict  # noqa: B009  (nn.Module has no such field)
    settings: dict[str, Any] = {"features": sizes[0], "classes": sizes[1], "dropout": dropout, "weighted": weighted}
    settings |= {"architecture": architecture.identity() | to_json(architecture), **about.texts(scaling)}
    write_saved(path, Saved(MODEL, json.dumps(settings, sort_keys=True), state))


def write_state(path: str | os.PathLike[str], module: nn.Module, about: About, scaling: Scaling) -> None:
    """Write the parameters and buffers of a user's module."""
    state = {name: _array(name, t) for name, t in _state(module).items()}
    scaled = {f"{_SCALED}{name}": array for name, array in scaling_arrays(scaling).items()}
    scaled |= {f"{_UNITS}{name}": array for name, array in scaling_arrays(scaling.targets).items()}
    write_saved(path, Saved(STATE, json.dumps(about.texts(scaling), sort_keys=True), {**state, **scaled}))


def load_model(path: str | os.PathLike[str], module: nn.Module | None = None) -> nn.Module:
    """Read a model that :meth:`propreg.FitResult.save` or ``propreg run`` wrote.

    The file holds numbers and text only: reading it never runs code from the file.

    Args:
        path: The file.
        module: For a model of your own, whose code no file can hold: a new module, like ``MyGNN(...)``. Its parameters
            and buffers get the saved values.

    Returns:
        A ``torch_geometric.nn.Sequential`` with ``forward(x, edge_index)`` (and ``edge_weight``, if the model was
        trained on a weighted graph), on the CPU and in evaluation mode; or ``module``, in evaluation mode. Either
        scales ``x`` as in the training: pass the features as the graph has them.

    Raises:
        DataError: If the file is missing or damaged, not a model, or of a newer propreg.
        ValueError: If a model of your own comes without ``module``, a built-in one with it, or names or shapes of the
            file and of the module differ.

    Example:
        >>> import tempfile, propreg
        >>> data = propreg.load_dataset("digits", split=0)
        >>> result = propreg.fit(data, mu=0.5, seeds=1, max_epochs=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.save(f"{folder}/model.safetensors")
        ...     model = propreg.load_model(f"{folder}/model.safetensors")
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
        ...     own.save(f"{folder}/own.safetensors")
        ...     model = propreg.load_model(f"{folder}/own.safetensors", Linear())
        >>> bool((model(data.x, data.edge_index) == own.model(data.x, data.edge_index)).all())
        True
    """
    if module is not None and not isinstance(module, nn.Module):
        raise TypeError(f"module must be a torch.nn.Module, got {module!r:.80}: make one, like MyGNN(...).")
    saved, where = read_saved(path), str(path)
    if saved.form == STATE:
        if module is None:
            raise ValueError(
                f"{where}: holds the state of a model of your own, but not its code: pass a new module, like "
                "load_model(path, MyGNN(...))."
            )
        state, scaling, inputs = _scaling_of_state(saved, where)
        return take_raw_features(_fill(module, state, where), scaling, inputs)
    settings = _settings(saved, where)
    if module is not None:
        raise ValueError(f"{where}: holds a {settings.architecture.name}, which is built from it: leave module out.")
    return _built(settings, saved.tensors, where)


def _scaling_of_state(saved: Saved, where: str) -> tuple[Arrays, Scaling, list[str]]:
    """The tensors of a user's module, the scaling that its file holds beside them, and the inputs of ``forward``."""
    try:
        settings = json.loads(saved.settings)
        kind, inputs = settings.get("scale", "none"), settings.get("inputs", ["x", "edge_index"])
        if not isinstance(inputs, list):
            raise TypeError("inputs are no list")
        units = settings.get("units", "none")
        names = {f"{_SCALED}{name}" for name in ("mean", "deviation") if kind == "standard"}
        names |= {f"{_UNITS}{name}" for name in ("mean", "deviation") if units == "standard"}
        arrays = {name: saved.tensors[name] for name in names}
        scaling = from_parts(kind, arrays.get(f"{_SCALED}mean"), arrays.get(f"{_SCALED}deviation"))
        scaling = _with_units(scaling, units, arrays.get(f"{_UNITS}mean"), arrays.get(f"{_UNITS}deviation"))
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise unusable(where, error) from error
    return {name: array for name, array in saved.tensors.items() if name not in names}, scaling, inputs


def load_trained(path: str | os.PathLike[str]) -> Trained:
    """A saved model with what it was trained on, for :meth:`propreg.fitting.predictions.Trained.probabilities`."""
    saved, where = read_saved(path), str(path)
    if saved.form == STATE:
        raise DataError(f"{where}: holds a model of your own without its code: load it with load_model in Python.")
    settings = _settings(saved, where)
    if settings.task != "classes":
        raise DataError(f"{where}: predicts no classes but {settings.task}: load it with load_model in Python.")
    module = _built(settings, saved.tensors, where)
    return Trained(module, settings.features, settings.weighted, settings.class_names, settings.feature_names)


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """The settings of a saved model, without building it."""
    return _settings(read_saved(path), str(path))


def _built(settings: Settings, state: Arrays, where: str) -> nn.Module:
    sizes, scaling = (settings.features, settings.classes), _scaling_of_model(state, settings, where)
    _check_state(state, settings, scaling, where)
    module = untrained_module(
        settings.architecture, sizes, settings.dropout, weighted=settings.weighted, scaling=scaling
    )
    module.load_state_dict({name: torch.from_numpy(array) for name, array in state.items()})
    return module.eval()


def _settings(saved: Saved, where: str) -> Settings:
    if saved.form != MODEL:
        raise DataError(f"{where}: holds the state of a user's module, which has no settings.")
    try:
        raw = json.loads(saved.settings)
        found = Settings(**{**raw, "architecture": _architecture(raw["architecture"])})
        check_model(found.architecture)
        sizes = [value for value in vars(found.architecture).values() if isinstance(value, int)]
        positive = all(type(size) is int and size > 0 for size in (found.features, found.classes))
        if not positive or max(found.features, found.classes, *sizes) >= _MAX_SIZE:
            raise ValueError("a size is out of range")
        if found.task not in get_args(Task):
            raise ValueError(f"task is {found.task!r:.40}")
        if type(found.weighted) is not bool or not isinstance(found.about, dict):
            raise TypeError("a setting has another type")
        if not isinstance(found.dropout, int | float) or not 0 <= found.dropout <= 1:
            raise ValueError(f"dropout is {found.dropout!r}")
        for what, names, count in (
            ("class_names", found.class_names, found.classes),
            ("feature_names", found.feature_names, found.features),
        ):
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError(f"{what} are not texts")
            if len(names) not in (0, count):
                raise ValueError(f"{what} are {len(names)}, not {count}")
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise unusable(where, error) from error
    return found


def _scaling_of_model(state: Arrays, settings: Settings, where: str) -> Scaling:
    standard = settings.scale == "standard"
    mean, deviation = (state.get(f"module_0.{name}") if standard else None for name in ("mean", "deviation"))
    try:
        scaling = from_parts(settings.scale, mean, deviation)
        if mean is not None and len(mean) != settings.features:
            raise ValueError(f"{len(mean)} means of {settings.features} features")
        if settings.units == "standard":
            last = max((name for name in state if name.endswith(".mean")), key=lambda name: int(name[7:-5]))
            prefix = last.removesuffix("mean")
            scaling = _with_units(scaling, settings.units, state[last], state.get(f"{prefix}deviation"))
            if scaling.targets is None or len(state[last]) != settings.classes:
                raise ValueError(f"{len(state[last])} units of {settings.classes} numbers")
    except ValueError as error:
        raise unusable(where, error) from error
    return scaling


def _with_units(scaling: Scaling, kind: Any, mean: Any, deviation: Any) -> Scaling:
    return scaling if kind == "none" else replace(scaling, targets=from_parts(kind, mean, deviation))


def _architecture(raw: Any) -> Model:
    """The model; a setting that a later version has added has its default, which changes no weight."""
    found = from_json(Model.kind_of(raw.get("name")) if isinstance(raw, dict) else Model, raw)
    if lacks := found.identity().keys() - raw.keys():
        raise ValueError(f"the architecture lacks {min(lacks)}")
    return found


def _check_state(state: Arrays, settings: Settings, scaling: Scaling, where: str) -> None:
    """Names, types and shapes, before a module is built: its sizes are then those of arrays that exist."""
    model = settings.architecture
    few = model.layers > len(state)  # before a loop over layers that do not exist
    shapes = {} if few else state_shapes(model, (settings.features, settings.classes), scaling)
    if few or len(state) < len(shapes):
        raise DataError(f"{where}: has {len(state)} arrays for {model.layers} layers: it is damaged, save it again.")
    if state.keys() != shapes.keys():
        raise DataError(f"{where}: has other arrays than a {model.name} of {model.layers} layers: save it again.")
    for name, shape in shapes.items():
        array = state[name]
        if not _fits(array.shape, shape) or array.dtype != np.float32:
            raise DataError(f"{where}: {name} is {array.dtype} {array.shape}, not float32 {shape}: save it again.")
        if not np.isfinite(array).all():
            raise DataError(f"{where}: {name} holds a NaN or infinite weight: train and save it again.")


def _fits(found: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether the shapes are equal, where 0 stands for any number: the nodes of a graph."""
    return len(found) == len(shape) and all(n in (0, m) for m, n in zip(found, shape, strict=True))


def _fill(module: nn.Module, saved: Arrays, where: str) -> nn.Module:
    """The module with this state, in evaluation mode; unchanged if the state does not fit."""
    state = _state(module)
    if saved.keys() != state.keys():
        name = min(saved.keys() ^ state.keys())
        has, lacks = ("file", "module") if name in saved else ("module", "file")
        raise ValueError(f"{where}: the {has} has {name!r} but the {lacks} does not: make the module that was trained.")
    for name, t in state.items():
        array = saved[name]
        if array.shape != t.shape or (array.dtype.kind == "f") != t.is_floating_point():
            raise ValueError(
                f"{where}: {name!r} is {array.dtype} {list(array.shape)} in the file but {t.dtype} {list(t.shape)} in "
                "the module: make the module that was trained."
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
