"""The graph attention network, replica-first: attention over heads, ELU, attention with averaged output heads."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from propreg.engine import kernels
from propreg.engine.attention import attend
from propreg.engine.dropout import elu_linear, row_for
from propreg.engine.features import Features
from propreg.engine.models import Draw, Parameters, Weight
from propreg.engine.sparse import Pattern
from propreg.engine.spec import Model


class Gat:
    """Two attention layers on the graph with self-loops; ``pattern`` holds an entry for every edge j → i and loop."""

    def __init__(self, spec: Model, features: Features, classes: int, pattern: Pattern) -> None:
        self.spec, self.features, self.pattern, self.classes = spec, features, pattern, classes

    def weights(self) -> dict[str, Weight]:
        """Per layer: the map, the two halves of the attention vector, the bias."""
        s, c, width = self.spec, self.classes, self.features.shape[1]
        wide = s.heads * s.hidden
        return {
            "w0": Weight((width, wide), (width, wide)),
            # The authors' release kept both halves in one tensor [heads, 2·width], whose Glorot fans these are.
            "source0": Weight((s.heads, s.hidden), (s.heads, 2 * s.hidden)),
            "target0": Weight((s.heads, s.hidden), (s.heads, 2 * s.hidden)),
            "b0": Weight((wide,)),
            "w1": Weight((wide, s.out_heads * c), (wide, s.out_heads * c)),
            "source1": Weight((s.out_heads, c), (s.out_heads, 2 * c)),
            "target1": Weight((s.out_heads, c), (s.out_heads, 2 * c)),
            "b1": Weight((c,)),
        }

    def begin(self, p: Parameters) -> Tensor | None:
        """The first linear map, where its input is not dropped."""
        return None if self.spec.input_dropout > 0 else self.features(p["w0"])

    def finish(self, p: Parameters, begun: Tensor | None, draw: Draw) -> Tensor:
        """Logits [R, N, C]."""
        s = self.spec
        h = self.features(p["w0"], draw("input")) if begun is None else begun
        h = self._attention(h, p["source0"], p["target0"], draw, "attention0")
        h, source, target = h.flatten(2), p["source1"], p["target1"]
        # The rows of one output head are filled up with zeros where that makes them faster to gather.
        width = row_for(h, p["w1"]) if s.out_heads == 1 else None
        h = elu_linear(h, p["b0"], p["w1"], draw("hidden1"), width)
        if width is not None:
            source, target = (pad(vector, (width - self.classes, 0)) for vector in (source, target))
        z = self._attention(h, source, target, draw, "attention1")[..., -self.classes :]
        return (z.mean(2) if s.out_heads > 1 else z.squeeze(2)) + p["b1"].unsqueeze(1)

    def _attention(self, h: Tensor, source: Tensor, target: Tensor, draw: Draw, place: str) -> Tensor:
        """[R, N, heads · D] → [R, N, heads, D]."""
        if kernels.usable(h, source, target):
            from propreg.engine.kernels import attention as kernel

            return kernel.attention(self.pattern, h, source, target, draw(place))
        replicas, nodes, _ = h.shape
        heads, width = source.shape[1:]
        by_head = h.view(replicas, nodes, heads, width).transpose(1, 2).reshape(replicas * heads, nodes, width)
        to_source = torch.bmm(by_head, source.reshape(-1, width, 1)).squeeze(-1)
        to_target = torch.bmm(by_head, target.reshape(-1, width, 1)).squeeze(-1)
        out = attend(self.pattern, by_head, to_source, to_target, draw(place))
        return out.view(replicas, heads, nodes, width).transpose(1, 2)
