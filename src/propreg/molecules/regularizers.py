"""P-reg on node embeddings, in the paper form and as the official code computes it."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from propreg.molecules import ops
from propreg.molecules.networks import Parameters, edge_table, gcn_propagation
from propreg.molecules.packing import Batch

Form = Literal["plain", "paper", "reference"]
PASSES: dict[Form, int] = {"plain": 1, "paper": 1, "reference": 3}
"""Training passes per step, all at once, each with dropout masks and an update of the running statistics of its own."""


def preg_term(form: Form, passes: Sequence[Tensor], p: Parameters, batch: Batch) -> Tensor | None:
    """What is multiplied by the strength, [S, M]; None for the plain model.

    ``"paper"``: :func:`propreg.preg` of the last node embeddings, a softmax over their channels, mean over the atoms of
    the mini-batch. ``"reference"``: the official code's loss: the target comes from a second pass, the prediction from
    a third one through a learned, edge-aware propagation (OGB's GCN convolution without its linear map).
    """
    if form == "plain":
        return None
    each = batch.real / batch.count.unsqueeze(1)
    if form == "paper":
        h = passes[0]
        return ops.agreement(h, ops.messages(h, None, batch.averaged), each * (batch.degree > 0))
    target, source = passes[1:]
    learned = gcn_propagation(source, edge_table(p, "propagation.bonds", batch), p["propagation.root"], batch)
    return ops.agreement(target, learned, each)
