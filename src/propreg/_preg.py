"""P-reg as a function and as a module."""

from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from propreg import _batch, _compiled, _errors
from propreg._kept import Kept
from propreg._notices import notice_probabilities, notice_sampled
from propreg._operator import Operator
from propreg._options import Detach, Options, PhiLike, Reduction
from propreg._propagation import Norm, not_swapped, resolve
from propreg._reduce import graphs_of, reduced, selected

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"phi": "cross_entropy", "norm": "rw", "add_self_loops": False, "detach": None},
    "reference": {"phi": "cross_entropy", "norm": "sym", "add_self_loops": True, "detach": None},
}


OPTIONS = frozenset(each.name for each in fields(Options))


def preg(
    z: Tensor,
    edge_index: Tensor | Operator,
    edge_weight: Tensor | None = None,
    *,
    phi: PhiLike = "cross_entropy",
    norm: Norm = "rw",
    add_self_loops: bool = False,
    source: Tensor | None = None,
    detach: Detach = None,
    mask: Tensor | None = None,
    batch: Tensor | None = None,
    threshold: float | None = None,
    reduction: Reduction = "mean",
    validate: bool | None = None,
) -> Tensor:
    r"""The propagation regularizer of `"Rethinking Graph Regularization for Graph Neural Networks"
    <https://arxiv.org/abs/2009.02027>`_ (AAAI 2021), to be added to a loss as ``ce + mu * preg(z, edge_index)``,

    .. math::
        \mathcal L_{P\text{-}reg} = \frac1N \sum_{i=1}^N \phi\bigl(z_i, (\hat A Z)_i\bigr),

    and returns an average over all nodes.

    A node whose row of A sums to 0 has nothing to agree with: its value and gradient are 0, and it still counts in N.
    float16 and bfloat16 logits are computed and returned in float32.

    Args:
        z: Logits, never probabilities, one row per node of the whole (block-diagonal) graph.
        edge_index: int64 or int32 [2, E], edges source → target; a sparse adjacency; PyG's ``EdgeIndex``; or a
            :class:`Propagation`, which carries its own ``norm`` and loops.
        edge_weight: One weight per edge, not negative.
        phi: ``"cross_entropy"`` (the paper's default), ``"kl"``, ``"reverse_kl"``, ``"squared_error"``,
            ``"l2_probability"``, ``"jensen_shannon"``, ``"cosine"`` (of logits), ``"bernoulli"`` (each column its own
            yes/no), or a callable (z, propagated) → [N].
            With a softmax phi and a single column the term is identically 0: that is what ``"bernoulli"`` is for.
        norm: ``"rw"`` is the paper's :math:`D^{-1}A`, ``"sym"`` the official code's :math:`D^{-1/2}AD^{-1/2}`.
        add_self_loops: Give each node without a loop one of weight 1, as the official code does.
        source: The logits that are propagated where they are not ``z`` itself: a second pass with other dropout.
        detach: Stop the gradient through Z (``"self"``) or through ÂZ (``"neighbors"``).
        mask: Only these nodes count: bool [N] or unique int64 node numbers. If there are none, as in some mini-batches,
            the term is 0 and so is its gradient.
        batch: PyG's batch vector, int64 [N], the number of each node's graph: the result is then the mean over the
            graphs of each graph's mean, so a large graph weighs no more than a small one. Graphs without a counted node
            are left out.
        threshold: τ of Appendix C: the result is :math:`\max(0, \text{mean} - \tau)`.
        reduction: ``"mean"`` per counted node, ``"sum"``, or ``"none"``: [N] with 0 where a node does not count.
        validate: None checks shapes and dtypes always, node numbers once per graph, and values (NaN, negative weights)
            only where that needs no synchronization: on the CPU, in eager mode. True and False force it; with False a
            node number out of range can crash the process.

    Shape:
        - z, source: :math:`(N, C)`; edge_index: :math:`(2, E)`; edge_weight: :math:`(E)`; mask: :math:`(N)` or
          :math:`(M)`; batch: :math:`(N)`.
        - returns a scalar, or :math:`(N)` with ``reduction="none"``.

    Example:
        >>> import torch
        >>> edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> z = torch.tensor([[2.0, 0.0], [0.0, 0.0], [0.0, 2.0]], requires_grad=True)
        >>> loss = 0.5 * preg(z, edge_index)
        >>> loss.backward()
        >>> round(loss.item(), 4)
        0.3466
    """
    options = Options(phi, norm, add_self_loops, detach, threshold, reduction, validate)
    not_swapped(z, edge_index)
    _errors.logits("z", z)
    propagation = resolve(
        edge_index, edge_weight, z.shape[0], norm=norm, add_self_loops=add_self_loops, validate=validate
    )
    return regularized(z, propagation, options, source, mask, batch)


class PReg(nn.Module):
    r"""The propagation regularizer as a module: :func:`preg` with its options fixed, keeping the last few graphs.

    The normalized adjacency is computed on the first call and reused as long as the same ``edge_index`` and
    ``edge_weight`` objects are passed unchanged; with edge weights that require a gradient nothing is cached. The last
    four graphs are kept, so training and validation graphs may alternate; :meth:`forget` releases them. Options can be
    read, and set again, as attributes: ``regularizer.phi = "kl"``. A ``phi`` that is a module is a submodule: its
    parameters are trained, moved and saved with this one's. The cache is not part of ``state_dict``, pickles or copies.
    A change that torch does not count (through ``.data[...]``, NumPy's view of the memory, or the components of a
    sparse tensor) is not detected: pass a new tensor, or use :func:`preg`. Under ``torch.compile`` on a CPU all modules
    together keep the last few graphs, compared by their values; on a GPU a trace keeps none: pass
    ``Propagation(edge_index, num_nodes).build()`` there, whose fast product stays.

    Args:
        phi, norm, add_self_loops, detach, threshold, reduction, validate: As for :func:`preg`.

    Shape:
        - As for :func:`preg`.

    Example:
        >>> import torch
        >>> regularizer = PReg(phi="squared_error")
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> regularizer(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), edge_index)
        tensor(12.5000)
    """

    def __init__(
        self,
        phi: PhiLike = "cross_entropy",
        norm: Norm = "rw",
        add_self_loops: bool = False,
        *,
        detach: Detach = None,
        threshold: float | None = None,
        reduction: Reduction = "mean",
        validate: bool | None = None,
    ) -> None:
        super().__init__()
        self._cached = Kept()
        self._set(Options(phi, norm, add_self_loops, detach, threshold, reduction, validate))

    @classmethod
    def preset(cls, name: str, **changes: Any) -> "PReg":
        """The paper form (``"paper"``) or the official-code form (``"reference"``), with optional changes.

        ``"reference"`` equals the official loss when ``source=`` is a second forward pass of the model.

        Example:
            >>> PReg.preset("reference")
            PReg(phi='cross_entropy', norm='sym', add_self_loops=True)
        """
        _errors.one_of("preset", name, PRESETS)
        return cls(**{**PRESETS[name], **changes})

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor | Operator,
        edge_weight: Tensor | None = None,
        *,
        source: Tensor | None = None,
        mask: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        """The term, as :func:`preg` computes it."""
        not_swapped(z, edge_index)
        _errors.logits("z", z)
        propagation = self._propagation(edge_index, edge_weight, z.shape[0])
        return regularized(z, propagation, self.options, source, mask, batch)

    def on_batch(self, z: Tensor, batch: Any, *, layers: int | None = None) -> Tensor:
        """The term of a mini-batch, an unbiased estimate of the whole graph's for the logits at hand.

        A batch of a neighbor loader (PyG's, or :class:`propreg.scale.Loader`) counts its seeds. It must hold all of
        their neighbors, and one hop more than the model has layers: ``num_neighbors=[-1, 10, 10]`` for two. A batch of
        a GraphSAINT sampler counts its nodes with their ``node_norm``; the neighbors that it lacks make the term larger
        than the whole graph's. Both need the degrees of the whole graph: set ``data.degree =
        Propagation(data.edge_index, data.num_nodes).degree()`` before the loader is made.

        Args:
            z: Logits of all nodes of the batch.
            batch: The loader's batch, with ``edge_index``, ``degree``, and ``batch_size`` or ``node_norm``.
            layers: The number of the model's layers; a batch with too few hops for them is refused.
        """
        _errors.logits("z", z)
        if getattr(batch, "node_norm", None) is None:
            propagation, mask = _batch.seeds_of(z, batch, self.options, layers)
            return regularized(z, propagation, self.options, None, mask, None)
        propagation, weight = _batch.saint_of(z, batch, self.options)
        value = regularized(z, propagation, replace(self.options, reduction="none"), None, None, None)
        return (value * weight).sum()

    def forget(self) -> None:
        """Let go of the graphs that are kept, those of compiled programs included."""
        self._cached.clear()
        _compiled.kept.clear()

    def __getattr__(self, name: str) -> Any:
        if name in OPTIONS and "options" in self.__dict__:
            return getattr(self.options, name)
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OPTIONS:
            self._set(replace(self.options, **{name: value}))
        else:
            super().__setattr__(name, value)

    def _set(self, options: Options) -> None:
        if isinstance(options.phi, nn.Module):
            self.phi_module = options.phi
        elif "phi_module" in self._modules:
            del self.phi_module
        self.options = options
        self._cached.clear()

    def extra_repr(self) -> str:
        o = self.options
        shown: dict[str, object] = {"phi": o.phi, "norm": o.norm, "add_self_loops": o.add_self_loops}
        optional = {"detach": o.detach, "threshold": o.threshold, "validate": o.validate}
        shown |= {k: v for k, v in optional.items() if v is not None}
        if o.reduction != "mean":
            shown["reduction"] = o.reduction
        return ", ".join(f"{k}={v!r}" for k, v in shown.items())

    def _propagation(self, edge_index: Tensor | Operator, edge_weight: Tensor | None, num_nodes: int) -> Operator:
        o = self.options

        def make() -> Operator:
            options: dict[str, Any] = {"norm": o.norm, "add_self_loops": o.add_self_loops, "validate": o.validate}
            return resolve(edge_index, edge_weight, num_nodes, **options)

        if isinstance(edge_index, Operator):
            return make()
        return self._cached.find(num_nodes, (edge_index, edge_weight), make)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached": Kept()}  # both deepcopy and pickle call this


def regularized(
    z: Tensor,
    propagation: Operator,
    options: Options,
    source: Tensor | None,
    mask: Tensor | None,
    batch: Tensor | None,
) -> Tensor:
    _errors.same_device("z", z, "edge_index", propagation)
    if source is not None:
        _errors.logits("source", source)
        expected = (propagation.size[0], z.shape[1])
        if source.shape != expected:
            whose = "the shape of z" if propagation.size[0] == z.shape[0] else "a row per source and the columns of z"
            raise ValueError(f"source must have {whose}, {expected}, got {tuple(source.shape)}.")
        _errors.same_device("z", z, "source", source)
    elif propagation.size[0] != z.shape[0]:
        raise ValueError(
            f"the graph leads from {propagation.size[0]} nodes to {z.shape[0]} others: pass source=, the logits of the "
            "source nodes."
        )
    if _errors.values_are_checked(options.validate, z):
        _errors.finite_rows("z", z)
        if source is not None:
            _errors.finite_rows("source", source)
    counted = selected(mask, z, options.validate)
    graphs = graphs_of(batch, z, options.reduction, options.validate)
    if _errors.values_are_checked(options.validate, z):
        if options.takes_softmax:
            notice_probabilities(z)
        if not propagation.all_connected():
            notice_sampled(propagation, counted)
    if _errors.autocast(z.device):
        with torch.autocast(z.device.type, enabled=False):
            return _value(z, propagation, options, source, counted, graphs)
    return _value(z, propagation, options, source, counted, graphs)


def _value(
    z: Tensor,
    propagation: Operator,
    options: Options,
    source: Tensor | None,
    mask: Tensor | None,
    batch: Tensor | None,
) -> Tensor:
    z = _errors.at_least_float32(z)
    propagated = propagation(z if source is None else _errors.at_least_float32(source).to(z.dtype))
    if options.detach == "self":
        z = z.detach()
    elif options.detach == "neighbors":
        propagated = propagated.detach()
    connected = None if propagation.all_connected() else propagation.connected()
    if not options.smooth:
        z, propagated = _masked_inputs(z, propagated, connected, mask)
    value = options.function(z, propagated)
    if not isinstance(value, Tensor) or value.shape != z.shape[:1]:
        got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
        raise ValueError(f"phi must return one value per node, shape ({z.shape[0]},), got {got}.")
    if connected is not None:
        value = torch.where(connected, value, torch.zeros_like(value))
    result = reduced(value, mask, options.reduction, batch)
    if options.threshold is not None:
        result = (result - options.threshold).relu()
    return result


def _masked_inputs(
    z: Tensor, propagated: Tensor, connected: Tensor | None, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Feed φ constants at nodes that do not count, so that a NaN in its gradient is not multiplied by 0.

    The two rows differ, and are neither zero nor uniform: norms, cosines and logarithms are smooth there.
    """
    conditions = [c for c in (connected, mask) if c is not None]
    if not conditions:
        return z, propagated
    ramp = torch.linspace(0.5, 1.0, z.shape[1], dtype=z.dtype, device=z.device)
    here = torch.stack(conditions).all(dim=0).unsqueeze(-1)
    return torch.where(here, z, ramp), torch.where(here, propagated, 2.0 - ramp)
