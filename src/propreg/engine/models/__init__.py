"""The architectures, one entry each: everything that the program knows of one is asked here."""

from propreg.engine.models.appnp import APPNP
from propreg.engine.models.architecture import Architecture
from propreg.engine.models.gat import GAT
from propreg.engine.models.gcn_mlp import GCN, MLP
from propreg.engine.models.molecules import MOL_GCN, MOL_GIN
from propreg.engine.registry import Registry

MODELS: Registry[Architecture] = Registry("model", (GCN, GAT, MLP, APPNP))
"""Those that classify nodes."""

GRAPH_MODELS: Registry[Architecture] = Registry("graph model", (MOL_GCN, MOL_GIN))
"""Those that predict something of whole graphs."""


def find_model(name: str) -> Architecture:
    """The entry of a model of either kind; raises for an unknown name."""
    return GRAPH_MODELS[name] if name in GRAPH_MODELS else MODELS[name]
