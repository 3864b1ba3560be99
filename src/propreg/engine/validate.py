"""Every setting of a batch is checked before anything is trained."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from propreg import _errors
from propreg._phi import PHIS
from propreg.data.edges import check_edges
from propreg.data.graph import Graph, SparseFeatures, Split
from propreg.data.splits import check_split
from propreg.engine.models import MODELS
from propreg.engine.ranges import check_at_least_0, check_share, check_whole
from propreg.engine.regularizers import REGULARIZERS
from propreg.engine.spec import Method, Model, Protocol, Replica, RuleName

_OF_ALL = ("name", "hidden", "layers", "input_dropout")  # settings of every built-in model
_WHOLE, _RATES = ("heads", "out_heads", "steps"), ("input_dropout", "attention_dropout", "teleport")


def check_graph(graph: object, splits: object) -> None:
    """Raise unless it is a graph with finite features, and splits with names, which random streams depend on."""
    if not isinstance(graph, Graph):
        raise TypeError(
            f"graph must be a propreg Graph, got a {type(graph).__name__}: propreg.data.own.load.read_graph(data) "
            "converts a PyG Data."
        )
    check_edges(graph.edge_index, graph.num_nodes, "edge_index")
    stored = graph.x.values if isinstance(graph.x, SparseFeatures) else graph.x
    if stored is not None:
        _check_finite(stored)
    if not isinstance(splits, Mapping):
        raise TypeError(
            f"splits must be a dict of Splits by name, got a {type(splits).__name__}: convert a list with "
            "{str(i): split for i, split in enumerate(splits)}."
        )


def _check_finite(features: NDArray[Any]) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        total = features.sum(dtype=np.float64)  # one pass without a temporary; only an overflow costs another
    if not np.isfinite(total) and (bad := int((~np.isfinite(features)).sum())):
        raise ValueError(f"x must be finite, got {bad} NaN or infinite features: replace them, or drop their columns.")


def listed(replicas: Iterable[Replica]) -> list[Replica]:
    """The replicas as a list."""
    if not isinstance(replicas, Iterable) or isinstance(replicas, str):
        raise TypeError(f"replicas must be a list of Replicas, got {_described(replicas)}: pass [Replica(...)].")
    return list(replicas)


def check_kind(name: str, value: object, kind: type) -> None:
    """Raise unless the value is an object of this class; a name in its place is the usual mistake."""
    if not isinstance(value, kind):
        fix = f": write {kind.__name__}({value!r})" if isinstance(value, str) and kind in (Model, Method) else ""
        raise TypeError(f"{name} must be a propreg.engine.{kind.__name__}, got {_described(value)}{fix}.")


def check(
    model: Model,
    method: Method,
    replicas: Sequence[Replica],
    protocol: Protocol,
    splits: Mapping[str, Split],
    y: NDArray[np.int64],
) -> None:
    """Raise for settings that mean nothing, in one sentence each; ``y`` are the nodes' classes, −1 for none."""
    check_kind("model", model, Model)
    check_kind("method", method, Method)
    check_kind("protocol", protocol, Protocol)
    check_model(model)
    check_settings(model)
    _method(method)
    _errors.one_of("rule", protocol.rule, get_args(RuleName))
    _errors.one_of("weight_decay_scope", protocol.weight_decay_scope, ("all", "first"))
    _errors.one_of("optimizer", protocol.optimizer, ("adam", "adamw", "sgd"))
    own = model.architecture
    if protocol.optimizer != "adam" and (own.phases is not None or own.trainer is not None):
        raise ValueError(f"optimizer is for models trained in one phase, and {model.name} has its own: leave it out.")
    check_whole(protocol, "max_epochs")
    if not replicas:
        raise ValueError("replicas is empty: there is nothing to train.")
    for replica in replicas:
        check_kind("each of replicas", replica, Replica)
        _replica(replica, method, splits)
        _own_settings(replica, model)
        if replica.strength and not model.architecture.trained:
            raise ValueError(
                f"strength does not apply to {model.name}, which is not trained, got {replica.strength!r}: leave it "
                "out; for propreg.fit pass mu=0."
            )
    for name in {replica.split for replica in replicas}:
        check_split(splits[name], y, f"split {name!r}", may_overlap=True)


def check_model(model: Model) -> None:
    """Raise for a setting out of its range."""
    _errors.one_of("model", model.name, MODELS)
    check_whole(model, "hidden")
    check_whole(model, "layers", least=2)
    check_whole(model, *_WHOLE)
    check_share(model, *_RATES)
    model.architecture.check(model)


def check_settings(model: Model) -> None:
    """Raise for a setting of another architecture; harmless in a saved model, where it is not checked."""
    _check_meaning(model, Model, (*_OF_ALL, *model.architecture.settings))


def _method(method: Method) -> None:
    if not isinstance(method.name, str) or method.name not in REGULARIZERS:  # an unlisted one is a user's function
        _errors.one_of("method", method.name, REGULARIZERS)
    _errors.one_of("phi", method.phi, PHIS)
    _errors.one_of("norm", method.norm, ("rw", "sym"))
    _errors.one_of("schedule", method.schedule, ("constant", "annealed"))
    _errors.one_of("reduction", method.reduction, ("mean", "sum"))
    _errors.one_of("variant", method.variant, ("paper", "official"))
    _errors.one_of("nodes", method.nodes, ("train", "all"))
    if method.detach is not None:
        _errors.one_of("detach", method.detach, ("self", "neighbors"), " or None")
    for name in ("threshold", "phi_scale"):
        value = getattr(method, name)
        if not (name == "threshold" and value is None):
            _number(name, value)
    _check_meaning(method, Method, ("name", *method.regularizer.options))
    method.regularizer.check(method)


def _check_meaning(settings: Model | Method, shared: type[Model] | type[Method], meant: tuple[str, ...]) -> None:
    """Raise for a setting of the shared class that would be ignored; the settings of a subclass are its own."""
    for setting in fields(shared):
        value = getattr(settings, setting.name)
        if setting.name not in meant and value != setting.default:
            raise ValueError(f"{setting.name} does not apply to {settings.name}, got {value!r}: leave it out.")


def _replica(replica: Replica, method: Method, splits: Mapping[str, Split]) -> None:
    _errors.one_of("split", replica.split, splits)
    check_share(replica, "dropout", "unmask")
    check_whole(replica, "patience", least=0)
    if isinstance(replica.seed, bool) or not isinstance(replica.seed, Integral):
        raise ValueError(f"seed must be a whole number, got {replica.seed!r}.")
    check_at_least_0(replica, "strength", "lr", "weight_decay")
    regularizer = method.regularizer
    if not regularizer.grid and replica.strength != 0:
        raise ValueError(
            f"strength does not apply to {method.name}, got {replica.strength!r}: leave it out, or name a method."
        )
    if not regularizer.masked and replica.unmask != 1:
        raise ValueError(f"unmask does not apply to {method.name}, got {replica.unmask!r}: leave it out.")
    if (regularizer.bounded or method.schedule == "annealed") and replica.strength > 1:
        raise ValueError(f"strength must lie between 0 and 1 for {method.name}, got {replica.strength}.")


def _own_settings(replica: Replica, model: Model) -> None:
    known = model.architecture.per_replica
    for name, value in replica.own:
        if name not in known:
            allowed = f"give it to the model, or use one of {', '.join(known)}" if known else "give it to the model"
            raise ValueError(f"{name} cannot be a replica's own setting for {model.name}, got {value!r}: {allowed}.")
        _number(name, value)
        if value > 0 and getattr(model, name) == 0:
            raise ValueError(f"{name} is 0 for the model, got {value!r} for a replica: give the model one above 0.")
    if replica.own:
        mine: dict[str, Any] = dict(replica.own)
        check_model(replace(model, **mine))


def _described(value: object) -> str:
    return repr(value) if isinstance(value, str) else f"a {type(value).__name__}"


def _number(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}.")
