"""What a batch may be asked to train: every setting is looked at before anything is trained."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from numbers import Integral, Real
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from propreg import _errors
from propreg._phi import PHIS
from propreg.data.edges import check_nodes
from propreg.data.graph import Graph, Split
from propreg.engine.spec import Method, MethodName, Model, ModelName, Protocol, Replica

# What each method has: other options would be ignored.
OPTIONS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "label_smoothing": ("schedule",),
    "confidence_penalty": ("variant", "nodes", "schedule"),
    "laplacian": ("variant", "reduction", "schedule"),
    "preg": (
        "phi",
        "norm",
        "add_self_loops",
        "detach",
        "threshold",
        "phi_scale",
        "second_pass",
        "reduction",
        "schedule",
    ),
}

# And each model, beside the width, the depth and the dropout of its input.
SETTINGS: dict[str, tuple[str, ...]] = {
    "gcn": (),
    "mlp": (),
    "gat": ("heads", "out_heads", "attention_dropout"),
    "appnp": ("steps", "teleport"),
}
_OF_ALL = ("name", "hidden", "layers", "input_dropout")


def check_graph(graph: object, splits: object) -> None:
    """Refuse what is no graph of NumPy arrays, and splits without names, which random streams depend on."""
    if not isinstance(graph, Graph):
        raise TypeError(
            f"graph must be a propreg Graph, but a {type(graph).__name__} came: of a PyG Data, "
            "propreg.data.own.read_graph(data) makes one."
        )
    check_nodes(graph.edge_index, graph.num_nodes, "edge_index")
    if not isinstance(splits, Mapping):
        raise TypeError(
            f"splits must be a dict of Splits by name, but a {type(splits).__name__} came: of a list, "
            "{str(i): split for i, split in enumerate(splits)}."
        )


def listed(replicas: Iterable[Replica]) -> list[Replica]:
    """The replicas of any iterable, as a list."""
    if not isinstance(replicas, Iterable) or isinstance(replicas, str):
        raise TypeError(f"replicas must be a list of Replicas, but {_came(replicas)} came: pass [Replica(...)].")
    return list(replicas)


def check_kind(name: str, value: object, kind: type) -> None:
    """Refuse what is no such object, a name in the place of what it names above all."""
    if not isinstance(value, kind):
        fix = f": write {kind.__name__}({value!r})" if isinstance(value, str) and kind in (Model, Method) else ""
        raise TypeError(f"{name} must be a propreg.engine.{kind.__name__}, but {_came(value)} came{fix}.")


def check(
    model: Model,
    method: Method,
    replicas: Sequence[Replica],
    protocol: Protocol,
    splits: Mapping[str, Split],
    y: NDArray[np.int64],
) -> None:
    """Refuse settings that mean nothing, in one sentence each; ``y`` are the nodes' classes, −1 where there is none."""
    check_kind("model", model, Model)
    check_kind("method", method, Method)
    check_kind("protocol", protocol, Protocol)
    _model(model)
    _model_settings(model)
    _method(method)
    _errors.one_of("rule", protocol.rule, ("official", "strict"))
    _errors.one_of("weight_decay_scope", protocol.weight_decay_scope, ("all", "first"))
    _least("max_epochs", protocol.max_epochs, 1)
    if not replicas:
        raise ValueError("replicas is empty: there is nothing to train.")
    for replica in replicas:
        check_kind("each of replicas", replica, Replica)
        _replica(replica, method, splits)
    for name in {replica.split for replica in replicas}:
        if not isinstance(splits[name], Split):
            raise TypeError(f"split {name!r} must be a propreg Split, but {_came(splits[name])} came.")
        for part in ("train", "val", "test"):
            nodes = getattr(splits[name], part)
            if nodes.dtype != np.bool_ or nodes.shape != y.shape:
                raise ValueError(
                    f"the {part} nodes of split {name!r} must be a mask, bool {y.shape}, but {nodes.dtype} "
                    f"{nodes.shape} came: of node numbers, mask = np.zeros(num_nodes, bool); mask[numbers] = True."
                )
            if not nodes.any():
                raise ValueError(f"split {name!r} has no {part} nodes: each part needs at least one.")
            if (y[nodes] < 0).any():
                node = int(np.flatnonzero(nodes & (y < 0))[0])
                raise ValueError(
                    f"split {name!r} has {part} node {node}, which has no class (y = {y[node]}): leave it out."
                )


def _model(model: Model) -> None:
    _errors.one_of("model", model.name, get_args(ModelName))
    _least("hidden", model.hidden, 1)
    _least("layers", model.layers, 2)
    if model.name in ("gat", "appnp") and model.layers != 2:
        raise ValueError(f"{model.name} has 2 layers, but layers={model.layers} came.")
    for name in ("heads", "out_heads", "steps"):
        _least(name, getattr(model, name), 1)
    for name in ("input_dropout", "attention_dropout", "teleport"):
        _share(name, getattr(model, name))


def _model_settings(model: Model) -> None:
    """Not where a saved model is read: what its file says beyond need does no harm there."""
    for setting in fields(Model):
        asked = getattr(model, setting.name)
        if setting.name not in (*_OF_ALL, *SETTINGS[model.name]) and asked != setting.default:
            raise ValueError(f"{setting.name} means nothing for {model.name}, but {asked!r} came: leave it out.")


def _method(method: Method) -> None:
    _errors.one_of("method", method.name, get_args(MethodName))
    _errors.one_of("phi", method.phi, PHIS)
    _errors.one_of("norm", method.norm, ("rw", "sym"))
    _errors.one_of("schedule", method.schedule, ("constant", "annealed"))
    _errors.one_of("reduction", method.reduction, ("mean", "sum"))
    _errors.one_of("variant", method.variant, ("paper", "official"))
    _errors.one_of("nodes", method.nodes, ("train", "all"))
    if method.detach is not None:
        _errors.one_of("detach", method.detach, ("self", "neighbours"), " or None")
    for name in ("threshold", "phi_scale"):
        value = getattr(method, name)
        if not (name == "threshold" and value is None):
            _number(name, value)
    for option in fields(Method):
        asked = getattr(method, option.name)
        if option.name != "name" and option.name not in OPTIONS[method.name] and asked != option.default:
            raise ValueError(f"{option.name} means nothing for {method.name}, but {asked!r} came: leave it out.")
    if method.threshold is not None and method.reduction != "mean":
        raise ValueError("threshold hinges the mean, max(0, mean − τ), and does not go with reduction='sum'.")
    if method.name == "laplacian" and method.variant == "official" and method.reduction != "mean":
        raise ValueError("the official Laplacian has no other reduction than 'mean'.")


def _replica(replica: Replica, method: Method, splits: Mapping[str, Split]) -> None:
    _errors.one_of("split", replica.split, splits)
    _share("dropout", replica.dropout)
    _share("unmask", replica.unmask)
    _least("patience", replica.patience, 0)
    if isinstance(replica.seed, bool) or not isinstance(replica.seed, Integral):
        raise ValueError(f"seed must be a whole number, but {replica.seed!r} came.")
    for name in ("strength", "lr", "weight_decay"):
        value = getattr(replica, name)
        if not isinstance(value, Real) or not value >= 0:
            raise ValueError(f"{name} must be a number of at least 0, but {value!r} came.")
    if method.name == "plain" and replica.strength != 0:
        raise ValueError(
            f"strength means nothing for plain, but {replica.strength!r} came: leave it out, or name a method."
        )
    if method.name != "preg" and replica.unmask != 1:
        raise ValueError(f"unmask means nothing for {method.name}, but {replica.unmask!r} came: leave it out.")
    bounded = method.schedule == "annealed" or method.name == "label_smoothing"
    if bounded and replica.strength > 1:
        raise ValueError(f"strength must lie between 0 and 1 for {method.name}, but {replica.strength} came.")


def _came(value: object) -> str:
    return repr(value) if isinstance(value, str) else f"a {type(value).__name__}"


def _least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, but {value!r} came.")


def _number(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, but {value!r} came.")


def _share(name: str, value: float) -> None:
    if not isinstance(value, Real) or not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, but {value!r} came.")
