"""The architectures of OGB's molecule example: their settings; :mod:`propreg.molecules` trains them."""

from dataclasses import dataclass
from typing import NoReturn

from propreg.engine.models.architecture import Architecture
from propreg.engine.spec import Model, Sizes


@dataclass(frozen=True)
class MoleculeModel(Model):
    """OGB's GCN or GIN with bond encoders.

    Args:
        name: ``"mol-gcn"`` or ``"mol-gin"``.
        hidden, layers: Width and number of convolutions.
        virtual_node: Whether all atoms of a molecule also talk through a virtual node.
    """

    name: str = "mol-gin"
    hidden: int = 300
    layers: int = 5
    virtual_node: bool = False


def _refuse(*_: object) -> NoReturn:
    raise ValueError("mol-gcn and mol-gin are trained on molecules, not on nodes: use propreg.molecules.")


def _entry(name: str, title: str, products: int) -> Architecture:
    """``products``: the linear maps from width to width that a convolution costs."""
    streams = ("hidden", "layers", "virtual_node")

    def cost(model: Model, sizes: Sizes) -> int:
        return sizes.nodes * products * 2 * model.width**2

    return Architecture(name, title, build=_refuse, export=_refuse, streams=streams, kind=MoleculeModel, cost=cost)


MOL_GCN, MOL_GIN = _entry("mol-gcn", "GCN", 1), _entry("mol-gin", "GIN", 4)
