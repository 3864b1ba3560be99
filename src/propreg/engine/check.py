"""What a batch may be asked to train: every setting is looked at before anything is trained."""

from collections.abc import Mapping, Sequence
from typing import get_args

from propreg import _errors
from propreg._phi import PHIS
from propreg.data.graph import Split
from propreg.engine.spec import Method, MethodName, Model, ModelName, Protocol, Replica


def check(
    model: Model, method: Method, replicas: Sequence[Replica], protocol: Protocol, splits: Mapping[str, Split]
) -> None:
    """Refuse settings that mean nothing, in one sentence each."""
    _model(model)
    _method(method)
    _errors.one_of("rule", protocol.rule, ("official", "strict"))
    _errors.one_of("weight_decay_scope", protocol.weight_decay_scope, ("all", "first"))
    _least("max_epochs", protocol.max_epochs, 1)
    if not replicas:
        raise ValueError("replicas is empty: there is nothing to train.")
    for replica in replicas:
        _replica(replica, method, splits)
    for name in {replica.split for replica in replicas}:
        for part in ("train", "val", "test"):
            if not getattr(splits[name], part).any():
                raise ValueError(f"split {name!r} has no {part} nodes: each part needs at least one.")


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
    if method.name == "laplacian" and method.variant == "official" and method.reduction != "mean":
        raise ValueError("the official Laplacian has no other reduction than 'mean'.")


def _replica(replica: Replica, method: Method, splits: Mapping[str, Split]) -> None:
    _errors.one_of("split", replica.split, splits)
    _share("dropout", replica.dropout)
    _share("unmask", replica.unmask)
    for name in ("strength", "lr", "weight_decay"):
        if not getattr(replica, name) >= 0:
            raise ValueError(f"{name} must be a number of at least 0, but {getattr(replica, name)} came.")
    bounded = method.schedule == "annealed" or method.name == "label_smoothing"
    if bounded and replica.strength > 1:
        raise ValueError(f"strength must lie between 0 and 1 for {method.name}, but {replica.strength} came.")


def _least(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, but {value!r} came.")


def _share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, but {value} came.")
