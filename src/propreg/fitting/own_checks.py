"""What a module of the user's own must be, each in one sentence: refused before anything is trained."""

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy


def check_new(first: nn.Module, second: nn.Module) -> None:
    """Refuse a function that gives the same module twice: its runs would not be independent."""
    theirs = {id(p) for p in second.parameters()}
    if first is second or any(p.requires_grad and id(p) in theirs for p in first.parameters()):
        raise ValueError(
            "model must make a new module at every call, but two calls share their parameters: "
            "build it inside the function, like lambda: MyGNN(...)."
        )
    shapes = [{name: p.shape for name, p in module.named_parameters()} for module in (first, second)]
    if shapes[0] != shapes[1]:
        raise ValueError("model must make the same architecture at every call, but two calls made different ones.")


def check_parameters(module: nn.Module) -> None:
    """Refuse what cannot be trained, or not in float32."""
    trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
    if not trained:
        raise ValueError("model has no parameter that requires a gradient: there is nothing to train.")
    for name, part in module.named_modules():
        if getattr(part, "sparse", False) is True and isinstance(part, nn.Embedding | nn.EmbeddingBag):
            raise ValueError(f"{name!r} of model has sparse gradients, which fit does not take: leave out sparse=True.")
    for name, p in trained.items():
        if p.dtype != torch.float32:
            raise TypeError(
                f"parameter {name!r} of model is {p.dtype}, but fit trains in torch.float32: call .float() on the "
                "module inside the function."
            )


def check_no_longer_lazy(module: nn.Module) -> None:
    """Refuse a lazy parameter or buffer that a forward pass has left without a size."""
    for name, t in [*module.named_parameters(), *module.named_buffers()]:
        if is_lazy(t):
            raise ValueError(f"{name!r} of model is lazy, and forward does not use it: give it a size, or remove it.")


def check_logits(z: object, nodes: int, classes: int) -> None:
    """Refuse what are no logits of every node, in float32."""
    if not isinstance(z, Tensor) or z.shape != (nodes, classes):
        came = tuple(z.shape) if isinstance(z, Tensor) else type(z).__name__
        raise ValueError(f"model(x, edge_index) must return logits of shape {(nodes, classes)}, but {came} came.")
    if z.dtype != torch.float32:
        raise TypeError(f"model(x, edge_index) must return logits in torch.float32, but {z.dtype} came.")


def check_depends(z: Tensor) -> None:
    """Refuse logits that no parameter can change."""
    if not z.requires_grad:
        raise ValueError(
            "no gradient flows from model(x, edge_index) to its parameters: is something detached, or under "
            "torch.no_grad()?"
        )


def check_unchanged(x: Tensor) -> None:
    """Refuse a module that has written into the features: every later run would see others."""
    if x._version:
        raise ValueError(
            "the module changes x in place, which all runs share: leave inplace=True out on x, or begin forward with "
            "x = x.clone()."
        )


def check_same(trained: Tensor, handed_back: Tensor) -> None:
    """Refuse a module of which parameters and buffers do not tell what it computes."""
    size = max(1.0, float(trained.nan_to_num().abs().max()))
    if not torch.allclose(trained, handed_back, rtol=1e-3, atol=1e-4 * size, equal_nan=True):
        raise ValueError(
            "the trained model could not be handed back: a new module with the same parameters and buffers gives other "
            "logits, so keep what forward uses in parameters, buffers or what torch's seed decides."
        )
