"""What the names in an experiment mean: models, methods, grids, weight decay and batch sizes, from ``presets.toml``."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from propreg.engine.models import MODELS
from propreg.engine.models.architecture import Recipe
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Method, Model
from propreg.names import method_title
from propreg.store.errors import unknown
from propreg.store.run import decimal


@dataclass(frozen=True)
class NamedMethod:
    """A method as tables show it: the two columns ``method`` and ``preset``, and the grid of its strengths.

    ``later`` are the strengths that were added to the grid when the others had been trained.
    """

    name: str
    method: str
    preset: str
    grid: tuple[float, ...]
    settings: Method
    by_classes: bool = False
    later: tuple[float, ...] = ()

    @property
    def title(self) -> str:
        """The method with its form, for people."""
        return method_title(self.method, self.preset)

    def on(self, classes: int) -> Method:
        """The engine's method on a graph with so many classes."""
        return replace(self.settings, phi_scale=decimal("phi_scale", 1 / classes)) if self.by_classes else self.settings


def model_names() -> list[str]:
    """The presets, and the registered architectures."""
    return [*dict.fromkeys((*_presets()["models"], *MODELS))]


def named_model(name: str, also: Iterable[str] = ()) -> tuple[Model, float]:
    """The architecture of this name, and its dropout rate: a preset, or a registered one as ``fit`` trains it.

    Args:
        name: The name.
        also: Names that are known, too, to whom an unknown name is told.

    Example:
        >>> named_model("mlp-16")[0].hidden, named_model("gat")[1]
        (16, 0.6)
    """
    known = _presets()["models"]
    if name in known:
        settings = dict(known[name])
        dropout = float(settings.pop("dropout"))
        return Model.of(**settings), dropout
    if name not in MODELS:
        raise unknown("model", name, [*also, *model_names()])
    return MODELS[name].default, MODELS[name].dropout


def published(name: str, dataset: str) -> tuple[Model, dict[str, Any], Recipe]:
    """The model of this name on a dataset as it was published (or as we chose): settings, training, and the recipe.

    The training holds ``dropout`` beside what :class:`~propreg.engine.models.architecture.Recipe` lists.
    """
    if name not in MODELS:
        raise unknown("model", name, MODELS)
    entry = MODELS[name]
    if dataset not in entry.recipes:
        raise unknown(f"published recipe of {name} for", dataset, entry.recipes)
    recipe = entry.recipes[dataset]
    training = {"dropout": entry.dropout, **entry.trained_with(**recipe.training)}
    return entry.kind(entry.name, **{**entry.defaults, **recipe.settings}), training, recipe


def named_method(name: str) -> NamedMethod:
    """The method of this name: a preset, or a registered regularizer with the grid that ``fit`` tries.

    Example:
        >>> named_method("preg-reference").settings == Method.preset("reference"), len(named_method("preg-paper").grid)
        (True, 20)
    """
    known = _presets()["methods"]
    if name not in known:
        if name in REGULARIZERS and not any(found["method"] == name for found in known.values()):
            entry = REGULARIZERS[name]
            return NamedMethod(name, name, "", entry.grid or (0.0,), entry.preset("paper"))
        raise unknown("method", name, known)
    found = known[name]
    settings = Method.of(**found.get("settings", {"name": found["method"]}))
    grid = named_grid(found["grid"]) if "grid" in found else (0.0,)
    later = _strengths(_presets()["later"].get(found.get("grid"), []))
    by_classes = found.get("by_classes", False)
    return NamedMethod(name, found["method"], found.get("preset", ""), grid, settings, by_classes, later)


def named_grid(name: str) -> tuple[float, ...]:
    """The strengths of this name, smallest first."""
    known = _presets()["grids"]
    if name not in known:
        raise unknown("grid", name, known)
    return _strengths([*known[name], *_presets()["later"].get(name, [])])


def weight_decay(dataset: str) -> float:
    """L2 weight decay on this dataset."""
    known: Mapping[str, float] = _presets()["weight_decay"]
    return float(known.get(dataset, known["default"]))


def batch_size(model: str, dataset: str) -> int:
    """How many runs of an architecture on a dataset are one batch."""
    known = _presets()["batch"]
    mine = known.get(model, known)
    return int(mine.get(dataset, mine["default"]))


def _strengths(values: Iterable[Any]) -> tuple[float, ...]:
    return tuple(sorted(decimal("strength", value) for value in values))


@cache
def _presets() -> dict[str, Any]:
    text = resources.files("propreg.study.spec").joinpath("presets.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
