"""What ``fit`` is asked to train, from what its caller wrote: architecture, strengths, seeds, device."""

import importlib.util
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from propreg import _errors
from propreg.data.errors import DataError
from propreg.data.graph import Graph
from propreg.engine.check import _model as check_model
from propreg.engine.check import _model_settings as check_model_settings
from propreg.engine.spec import Model
from propreg.fitting.given_numbers import in_python, whole
from propreg.fitting.methods import METHODS

MODELS = {
    "gcn": Model("gcn"),
    "gat": Model("gat", hidden=16, input_dropout=0.6, attention_dropout=0.6),
    "mlp": Model("mlp"),
    "appnp": Model("appnp", input_dropout=0.5),
}


def architecture(model: Any) -> Model:
    """The settings of a model given by name, or those given."""
    if isinstance(model, Model):
        found = in_python(model)
        check_model(found)
        check_model_settings(found)
        return found
    if isinstance(model, nn.Module):
        raise TypeError("model is a module, but every run needs a new one: pass a function, like lambda: MyGNN(...).")
    _errors.one_of("model", model, MODELS, ", a propreg.engine.Model or a function that makes a module")
    return MODELS[model]


def strengths(mu: Any, method: str) -> tuple[float, ...]:
    """All strengths to train, ascending, 0 first."""
    if isinstance(mu, str):
        _errors.one_of("mu", mu, ("auto",), ", a number or a list of numbers")
        return (0.0, *METHODS[method].grid)
    try:
        if isinstance(mu, bytes | bytearray):
            raise TypeError
        wanted = [_strength(m) for m in (mu if isinstance(mu, Iterable) else [mu])]
    except (TypeError, ValueError):
        raise TypeError(f"mu must be 'auto', a number or a list of numbers, but {mu!r} came.") from None
    if not wanted or not all(np.isfinite(m) and m >= 0 for m in wanted):
        raise ValueError(f"mu must hold finite numbers of at least 0, but {mu!r} came.")
    return tuple(sorted({0.0, *wanted}))


def _strength(given: Any) -> float:
    """A strength; one of fewer bits as it is written, so that 0.1 in float32 is 0.1.

    Example:
        >>> _strength(np.float32(0.1)), _strength(torch.tensor(0.2)), _strength(1)
        (0.1, 0.2, 1.0)
    """
    if isinstance(given, str | bytes):
        raise TypeError
    digits = next((n for kind, n in _DIGITS.items() if kind in str(getattr(given, "dtype", ""))), None)
    return float(given) if digits is None else float(f"{float(given):.{digits}g}")


_DIGITS = {"bfloat16": 2, "float16": 3, "float32": 7}


def number_of_seeds(seeds: int | None, splits: int) -> int:
    """How many trainings per split and strength: several, more where there is one split."""
    if seeds is None:
        return 10 if splits == 1 else 3
    return whole("seeds", seeds, 1)


def device_of(name: str | torch.device) -> torch.device:
    """The device, refused here where torch has none, not in the middle of a training.

    Example:
        >>> device_of("cpu:0") == device_of(torch.device("cpu"))
        True
    """
    text = str(name)
    kind, colon, index = text.partition(":")
    _errors.one_of("device", kind, ("auto", "cpu", "cuda"))
    if text == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if colon and (kind == "auto" or not index.isdecimal()):
        raise ValueError(f"device must be like 'auto', 'cpu', 'cuda' or 'cuda:0', but {text!r} came.")
    if kind == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ValueError(
            f"device is {text!r}, but torch sees no CUDA device: use 'cpu', or run propreg doctor --devices to see why."
        )
    if index and int(index) >= (count := torch.cuda.device_count()):
        raise ValueError(f"device is {text!r}, but torch sees {count}: the last one is 'cuda:{count - 1}'.")
    return torch.device(text)


def check_progress(progress: object) -> None:
    """Refuse what is neither of the four."""
    if progress is not None and not isinstance(progress, bool) and progress != "lines":
        raise ValueError(f"progress must be True, False, None or 'lines', but {progress!r} came.")


def need_classes(graph: Graph, where: str = "the graph") -> None:
    """Refuse a graph on which every model is right, or none can be trained."""
    known = len(np.unique(graph.y[graph.y >= 0]))
    if known < 2:
        said = "all labelled nodes are of one class" if known else "no node has a label"
        raise DataError(f"{where}: {said}, and there is nothing to learn: give nodes of two classes a label.")


def need_pyg() -> None:
    """Refuse before the training what would fail after it: the trained model is made of PyG's layers."""
    if importlib.util.find_spec("torch_geometric") is None:
        raise ModuleNotFoundError(
            "fit returns a module of PyG's layers and needs torch_geometric: run pip install 'propreg[all]'.",
            name="torch_geometric",
        )
