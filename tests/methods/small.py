"""Every entry of the models with settings that suit a graph of sixty nodes; a new entry needs no line here."""

from dataclasses import replace
from typing import Any

from propreg.engine import Model, Replica
from propreg.engine.models import MODELS

SMALLER: dict[str, dict[str, Any]] = {
    "gat": {"hidden": 4, "heads": 2},
    "gcnii": {"layers": 5},
    "graph-unet": {"pooled": 40, "input_dropout": 0.5},
    "o-bvat": {"ascents": 3},
    "s-bvat": {"hops": 1, "sampled": 8},
    "graphmix": {"predictions": 3, "ramp_start": 5, "ramp_end": 30},
    "graphmix-clean": {"predictions": 3, "ramp_start": 5, "ramp_end": 30},
    "gam": {"rounds": 3, "self_labels": 4, "confidence": 0.0},
    "gmnn": {"pretraining": 9, "m_step": 8},
}
"""What else is smaller than an entry's default, beside its width of 8."""


def small(name: str) -> Model:
    """The entry's default model, narrow and shallow."""
    return replace(MODELS[name].default, **{"hidden": 8, **SMALLER.get(name, {})})


NAMES = list(MODELS)
TRAINED = [name for name in NAMES if MODELS[name].trained]


def for_model(name: str, replicas: list[Replica]) -> list[Replica]:
    """The replicas, without a strength for what is not trained."""
    return replicas if MODELS[name].trained else [replace(replica, strength=0.0) for replica in replicas]
