"""The architectures, one entry each: everything that the program knows of one is asked here."""

from propreg.engine.models.appnp import APPNP
from propreg.engine.models.architecture import Architecture
from propreg.engine.models.correct_smooth import CORRECT_SMOOTH
from propreg.engine.models.dagnn import DAGNN
from propreg.engine.models.deep_appnp import DEEP_APPNP
from propreg.engine.models.gat import GAT
from propreg.engine.models.gcn_mlp import GCN, MLP
from propreg.engine.models.gcnii import GCNII
from propreg.engine.models.graph_unet import GRAPH_UNET
from propreg.engine.models.label_propagation import LABEL_PROPAGATION
from propreg.engine.models.molecules import MOL_GCN, MOL_GIN
from propreg.engine.models.s2gc import S2GC
from propreg.engine.models.tuned_gcn import TUNED_GCN
from propreg.engine.registry import Registry

MODELS: Registry[Architecture] = Registry(
    "model",
    (GCN, GAT, MLP, APPNP, DEEP_APPNP, GCNII, S2GC, DAGNN, TUNED_GCN, GRAPH_UNET, LABEL_PROPAGATION, CORRECT_SMOOTH),
    more="propreg.methods",
)
"""Those that classify nodes: architectures, and the training methods of :mod:`propreg.methods`."""

GRAPH_MODELS: Registry[Architecture] = Registry("graph model", (MOL_GCN, MOL_GIN))
"""Those that predict something of whole graphs."""


def known_model(name: object) -> Architecture | None:
    """The entry of a model of either kind; None for an unknown name."""
    return (GRAPH_MODELS.get(name) or MODELS.get(name)) if isinstance(name, str) else None


def find_model(name: str) -> Architecture:
    """The entry of a model of either kind; raises for an unknown name."""
    return known_model(name) or MODELS[name]
