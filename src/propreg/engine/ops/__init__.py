"""The operations that networks and losses are built from: products, activations, dropout, random streams, Adam.

Names are imported on first use (PEP 562): a model's file says ``from propreg.engine import ops`` and can be read
without torch.
"""

from typing import TYPE_CHECKING

from propreg._lazy import lazy

if TYPE_CHECKING:
    from propreg.engine.ops.activation import bias_relu as bias_relu
    from propreg.engine.ops.activation import propagate as propagate
    from propreg.engine.ops.activation import propagate_relu as propagate_relu
    from propreg.engine.ops.adversarial import Perturbed as Perturbed
    from propreg.engine.ops.adversarial import divergence as divergence
    from propreg.engine.ops.adversarial import divergence_to_neighbors as divergence_to_neighbors
    from propreg.engine.ops.apart import Apart as Apart
    from propreg.engine.ops.attention import attend as attend
    from propreg.engine.ops.diffusion import EPSILON as EPSILON
    from propreg.engine.ops.diffusion import batch_norm as batch_norm
    from propreg.engine.ops.diffusion import corrected_and_smoothed as corrected_and_smoothed
    from propreg.engine.ops.diffusion import logarithm as logarithm
    from propreg.engine.ops.diffusion import mean_of_powers as mean_of_powers
    from propreg.engine.ops.diffusion import personalized as personalized
    from propreg.engine.ops.diffusion import powers as powers
    from propreg.engine.ops.diffusion import sharpened as sharpened
    from propreg.engine.ops.diffusion import update_running as update_running
    from propreg.engine.ops.dropout import Masks as Masks
    from propreg.engine.ops.dropout import drop_ as drop_
    from propreg.engine.ops.dropout import dropped as dropped
    from propreg.engine.ops.dropout import dropped_linear as dropped_linear
    from propreg.engine.ops.dropout import elu_linear as elu_linear
    from propreg.engine.ops.dropout import row_for as row_for
    from propreg.engine.ops.features import Features as Features
    from propreg.engine.ops.loss import cross_entropy as cross_entropy
    from propreg.engine.ops.loss import preg as preg
    from propreg.engine.ops.loss import preg_and_cross_entropy as preg_and_cross_entropy
    from propreg.engine.ops.loss import soft_cross_entropy as soft_cross_entropy
    from propreg.engine.ops.mixup import elementwise_cross_entropy as elementwise_cross_entropy
    from propreg.engine.ops.mixup import mixed as mixed
    from propreg.engine.ops.mixup import rows as rows
    from propreg.engine.ops.noise import Neighbors as Neighbors
    from propreg.engine.ops.noise import normals as normals
    from propreg.engine.ops.noise import truncated_normals as truncated_normals
    from propreg.engine.ops.noise import uniforms as uniforms
    from propreg.engine.ops.shared import Sharing as Sharing
    from propreg.engine.ops.sparse import Matrix as Matrix
    from propreg.engine.ops.sparse import Pattern as Pattern
    from propreg.engine.ops.sparse import ReplicaMatrix as ReplicaMatrix

_HOME = {
    "elementwise_cross_entropy": "mixup",
    "mixed": "mixup",
    "rows": "mixup",
    "Apart": "apart",
    "divergence": "adversarial",
    "divergence_to_neighbors": "adversarial",
    "Neighbors": "noise",
    "normals": "noise",
    "Perturbed": "adversarial",
    "truncated_normals": "noise",
    "uniforms": "noise",
    "attend": "attention",
    "batch_norm": "diffusion",
    "bias_relu": "activation",
    "corrected_and_smoothed": "diffusion",
    "cross_entropy": "loss",
    "drop_": "dropout",
    "dropped": "dropout",
    "dropped_linear": "dropout",
    "elu_linear": "dropout",
    "EPSILON": "diffusion",
    "Features": "features",
    "logarithm": "diffusion",
    "Masks": "dropout",
    "Matrix": "sparse",
    "mean_of_powers": "diffusion",
    "Pattern": "sparse",
    "personalized": "diffusion",
    "powers": "diffusion",
    "ReplicaMatrix": "sparse",
    "row_for": "dropout",
    "sharpened": "diffusion",
    "Sharing": "shared",
    "update_running": "diffusion",
    "preg": "loss",
    "preg_and_cross_entropy": "loss",
    "propagate": "activation",
    "propagate_relu": "activation",
    "soft_cross_entropy": "loss",
}

__all__ = [*_HOME]  # noqa: PLE0604  (strings all: the keys of the table above)


__getattr__ = lazy("propreg.engine.ops", _HOME)
