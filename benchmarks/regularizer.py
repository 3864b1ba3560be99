"""One forward and backward pass of the P-reg term, against the official way and against two bare sparse products.

(a) ``official``: gather, scale, scatter, softmax, ``log(· + 1e-15)``, as the official code computes it (its second pass
through the model left out). (b) ``bare``: a sparse product with Â and one with its transpose, the least that a forward
and a backward pass can cost with the same kernels.

CPU: 20,000 nodes and 200,000 undirected edges. GPU: a power-law graph of ogbn-products' size, 2.4 M nodes, 62 M
undirected edges, 47 classes.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

import propreg
from common import Record, arguments, peak_bytes, seconds, show

Operator = tuple[Tensor, Tensor]


def power_law(num_nodes: int, num_edges: int, device: str, seed: int = 0) -> Tensor:
    """An undirected graph whose degrees fall as a power law, nodes in random order; both directions listed."""
    generator = torch.Generator(device).manual_seed(seed)
    ends = torch.rand(2, num_edges, device=device, generator=generator).square_().mul_(num_nodes).long()
    ends.clamp_(max=num_nodes - 1)
    shuffled = torch.randperm(num_nodes, device=device, generator=generator)[ends]
    return torch.cat([shuffled, shuffled.flip(0)], dim=1)


def official(z: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    """The official computation of the term, on a normalized graph."""
    source, target = edge_index
    messages = weight.unsqueeze(-1) * z.index_select(0, source)
    index = target.unsqueeze(-1).expand_as(messages)
    propagated = torch.zeros_like(z).scatter_add(0, index, messages)
    p, q = z.softmax(-1), propagated.softmax(-1)
    return -(p * torch.log(q + 1e-15)).sum(-1).mean()


def term(edge_index: Tensor, z: Tensor, device: str) -> tuple[list[Record], float, Tensor, Operator]:
    """Measure time and GPU memory of our term and two bare products; also return its value, gradient and matrix."""
    propagation = propreg.Propagation(edge_index, z.shape[0], norm="sym", add_self_loops=True).build()
    regularizer = propreg.PReg.preset("reference")
    grad = torch.randn_like(z)

    def ours() -> None:
        z.grad = None
        torch.autograd.backward(regularizer(z, propagation))

    def bare() -> None:
        with torch.no_grad():
            propagation(z)
            propagation.transposed(grad)

    records = [
        Record("", device, "step propreg", 1e3 * seconds(ours, device), "ms"),
        Record("", device, "step bare", 1e3 * seconds(bare, device), "ms"),
    ]
    if device == "cuda":
        records.append(Record("", device, "peak propreg", peak_bytes(ours) / 1e9, "GB"))
    gradient = z.grad
    if gradient is None:
        raise SystemExit("our term gave no gradient: nothing is compared")
    row, col, weight = propagation.entries(torch.float32)
    return records, regularizer(z, propagation).item(), gradient.clone(), (torch.stack([col, row]), weight)


def official_term(z: Tensor, operator: Operator, device: str, value: float, gradient: Tensor) -> list[Record]:
    """Measure time and GPU memory of the official way, after checking that it computes the same."""

    def theirs() -> Tensor:
        z.grad = None
        loss = official(z, *operator)
        torch.autograd.backward(loss)
        return loss

    same = math.isclose(value, theirs().item(), rel_tol=1e-4)
    if not same or z.grad is None or not torch.allclose(gradient, z.grad, rtol=1e-3, atol=1e-7):
        raise SystemExit("the official value or gradient and ours disagree: nothing is compared")
    records = [Record("", device, "step official", 1e3 * seconds(theirs, device, repeats=7), "ms")]
    if device == "cuda":
        records.append(Record("", device, "peak official", peak_bytes(theirs) / 1e9, "GB"))
    return records


def compare(num_nodes: int, num_edges: int, classes: int, device: str) -> list[Record]:
    """All records of one size, the ratios last."""
    edge_index = power_law(num_nodes, num_edges, device)
    z = torch.randn(num_nodes, classes, device=device, requires_grad=True)
    records, value, gradient, operator = term(edge_index, z, device)
    del edge_index
    records += official_term(z, operator, device, value, gradient)
    by = {r.metric: r.value for r in records}
    ratios = [
        ("speed-up", "official", by["step official"] / by["step propreg"]),
        ("time over bare products", "bare", by["step propreg"] / by["step bare"]),
    ]
    if device == "cuda":
        ratios.append(("peak memory saved", "official", by["peak official"] / by["peak propreg"]))
    records += [Record("", device, metric, ratio, "×", baseline, ratio) for metric, baseline, ratio in ratios]
    case = f"{num_nodes / 1e3:,.0f} k nodes, {num_edges / 1e3:,.0f} k edges, {classes} classes"
    return [replace(record, case=case) for record in records]


def main() -> None:
    """Measure and print."""
    options = arguments(__doc__.splitlines()[0] if __doc__ else "")
    if options.device == "cuda":
        sizes = [(2_449_029, 6_000_000, 47)] if options.quick else [(2_449_029, 61_859_140, 47)]
    else:
        sizes = [(20_000, 200_000, 16)] if options.quick else [(20_000, 200_000, c) for c in (7, 16, 47)]
    records = [record for size in sizes for record in compare(*size, options.device)]
    show(records, options.device, options.json, options.save)


if __name__ == "__main__":
    main()
