"""With dropout on, a network is the dense formula with the masks of its places, and a step is the library's loss."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, elu, leaky_relu

import propreg
from engine.follow import Run, check_near, drawn
from engine.graphs import KINDS, problem, sample
from propreg.engine import Method, Model, Problem, Protocol, Replica
from propreg.engine.models.gat import Gat
from propreg.engine.models.gcn_mlp import Layers
from propreg.engine.models.network import no_dropout
from propreg.engine.regularizers.preg import Preg
from propreg.engine.training.epoch import advance, step
from propreg.engine.training.passes import DropoutMasks, Passes
from samples import gaussian

RUNS = [Replica(seed=0, split="a", dropout=0.5, strength=0.4), Replica(seed=1, split="b", dropout=0.3, strength=0.7)]
MODELS = {
    "gcn": Model("gcn", hidden=6, layers=3),
    "gcn, input dropout": Model("gcn", hidden=6, input_dropout=0.4),
    "mlp": Model("mlp", hidden=6, input_dropout=0.4),
    "appnp": Model("appnp", hidden=6, steps=3, input_dropout=0.4),
    "gat": Model("gat", hidden=3, heads=2, out_heads=2, input_dropout=0.4, attention_dropout=0.6),
}
Factors = Callable[[str, int], Tensor]


def adjacency(found: Problem) -> Tensor:
    """Â with loops, as the library makes it."""
    graph = sample(found.graph.name)
    weight = None if graph.edge_weight is None else torch.from_numpy(graph.edge_weight)
    edges = torch.from_numpy(graph.edge_index)
    return propreg.Propagation(edges, graph.num_nodes, weight, norm="sym", add_self_loops=True).to_dense(torch.float64)


def features(found: Problem, model: Model, run: Run, epoch: int, number: int, r: int) -> Tensor:
    """X of one replica with its entries dropped, made visible by an identity for a weight."""
    columns = found.features.shape[1]
    eye = torch.eye(columns, dtype=torch.float64).repeat(len(RUNS), 1, 1)
    masks = drawn(run.state, epoch, number, "input") if model.input_dropout else None
    return found.features(eye, masks)[r]


def formula(found: Problem, model: Model, run: Run, p: dict[str, Tensor], epoch: int, number: int, r: int) -> Tensor:
    """Logits of replica r from the textbook, with dense matrices."""
    x, spread = features(found, model, run, epoch, number, r), adjacency(found)

    def factors(place: str, size: int) -> Tensor:
        return drawn(run.state, epoch, number, place).factors(size, torch.float64)[r]

    if isinstance(run.network, Gat):
        return gat(model, run.network, p, x, factors)
    h, last = x, model.layers - 1
    for i in range(last + 1):
        h = h if i == 0 else h * factors(f"hidden{i}", h.numel()).view(h.shape)
        h = h @ p[f"w{i}"]
        h = (spread @ h if model.name == "gcn" else h) + p[f"b{i}"]
        h = h.relu() if i < last else h
    z = h
    for _ in range(model.steps if model.name == "appnp" else 0):
        z = (1 - model.teleport) * spread @ z + model.teleport * h
    return z


def gat(model: Model, network: Gat, p: dict[str, Tensor], x: Tensor, factors: Factors) -> Tensor:
    """Two attention layers, a head at a time."""
    row, col, nodes = network.pattern.row, network.pattern.col, len(x)
    loops = torch.zeros(nodes, nodes, dtype=torch.bool)
    loops[row, col] = True
    h = x
    for layer, heads in enumerate((model.heads, model.out_heads)):
        h = h if layer == 0 else h * factors("hidden1", h.numel()).view(h.shape)
        wide = (h @ p[f"w{layer}"]).view(nodes, heads, -1)
        dropped = factors(f"attention{layer}", heads * len(row)).view(heads, -1)
        out = []
        for k in range(heads):
            by_source, by_target = wide[:, k] @ p[f"source{layer}"][k], wide[:, k] @ p[f"target{layer}"][k]
            score = leaky_relu(by_source.unsqueeze(0) + by_target.unsqueeze(1), 0.2)
            alpha = score.masked_fill(~loops, float("-inf")).softmax(-1)
            factor = torch.zeros(nodes, nodes, dtype=torch.float64).index_put((row, col), dropped[k])
            out.append((alpha * factor) @ wide[:, k])
        h = elu(torch.cat(out, 1) + p["b0"]) if layer == 0 else torch.stack(out).mean(0) + p["b1"]
    return h


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_a_training_pass_is_the_formula_with_its_masks(name: str, kind: str) -> None:
    found, model = problem(kind), MODELS[name]
    run = Run(found, model, Method(), RUNS, Protocol())
    run.step(3)  # biases are not 0 any more
    p = run.state.parameters
    for epoch, number in ((4, 0), (4, 1)):
        run.state.keys.advance(epoch)
        z = run.network.finish(p, run.network.begin(p), DropoutMasks(run.state, number))
        push = gaussian(*z.shape, seed=3)
        gradients = torch.autograd.grad((z * push).sum(), list(p.values()))
        for r in range(len(RUNS)):
            mine = {key: w.detach()[r].requires_grad_() for key, w in p.items()}
            expected = formula(found, model, run, mine, epoch, number, r)
            torch.testing.assert_close(z[r], expected, rtol=0, atol=1e-11)
            by_hand = torch.autograd.grad((expected * push[r]).sum(), list(mine.values()))
            for key, got, wanted in zip(p, gradients, by_hand, strict=True):
                check_near(got[r], wanted, 1e-10, key)


def test_the_two_passes_and_the_evaluation_differ() -> None:
    for name, model in MODELS.items():
        run = Run(problem(), model, Method(), RUNS, Protocol())
        p = run.state.parameters
        run.state.keys.advance(1)
        first, second = (
            run.network.finish(p, run.network.begin(p), DropoutMasks(run.state, n)).detach() for n in (0, 1)
        )
        for a, b in ((first, second), (first, run.logits())):
            assert float((a - b).abs().max()) > 1e-3, name
        again = run.network.finish(p, run.network.begin(p), DropoutMasks(run.state, 0)).detach()
        torch.testing.assert_close(first, again, rtol=0, atol=0)


@pytest.mark.parametrize(
    "method",
    [
        Method(),
        Method.preset("paper"),
        Method.preset("reference"),
        Method("preg", phi="kl", second_pass=True, detach="neighbours", norm="sym"),
        Method("preg", second_pass=True, detach="self", threshold=0.3),
        Method("preg", phi="squared_error", second_pass=True, schedule="annealed"),
        Method("confidence_penalty"),
        Method("label_smoothing"),
    ],
    ids=lambda m: f"{m.name} {m.phi} {m.detach} {m.schedule} {m.second_pass}",
)
@pytest.mark.parametrize("kind", ["plain", "odd"])
@pytest.mark.parametrize("name", ["gcn, input dropout", "gat"])
def test_a_step_s_loss_is_the_library_s(name: str, kind: str, method: Method) -> None:
    found, epoch = problem(kind), 5
    run = Run(found, MODELS[name], method, [replace(r, unmask=0.7) for r in RUNS], Protocol())
    p, state = run.state.parameters, run.state
    for number in range(1, epoch):
        advance(run.objective, state, number)
    advance(run.objective, state, epoch)
    begun = run.network.begin(p)
    z, source = (run.network.finish(p, begun, DropoutMasks(state, n)).detach() for n in (0, 1))
    before = run.weights
    losses = step(run.objective, state, Passes(run.network, state, begun, run.objective.passes))
    assert any(not torch.equal(w, before[key]) for key, w in run.weights.items())
    for r, replica in enumerate(RUNS):
        mask = None if state.counted is None else state.counted[r] > 0
        expected = by_library(found, method, replica, z[r], source[r], mask, epoch)
        torch.testing.assert_close(losses[r], expected, rtol=0, atol=1e-12)


def by_library(
    found: Problem, m: Method, replica: Replica, z: Tensor, source: Tensor, mask: Tensor | None, epoch: int
) -> Tensor:
    """The loss of one replica by the library's public functions."""
    train = torch.from_numpy(found.splits[replica.split].train)
    y = torch.from_numpy(found.graph.y)[train]
    if m.name == "label_smoothing":
        return cross_entropy(z[train], y, label_smoothing=replica.strength)
    loss = cross_entropy(z[train], y)
    strength = propreg.annealed(replica.strength, epoch) if m.schedule == "annealed" else replica.strength
    if m.name == "confidence_penalty":
        return loss + strength * propreg.confidence_penalty(z, mask=train)
    if m.name == "plain":
        return loss
    weight = found.graph.edge_weight
    graph: Any = (torch.from_numpy(found.graph.edge_index), None if weight is None else torch.from_numpy(weight))
    options: Any = {"phi": m.phi, "norm": m.norm, "add_self_loops": m.add_self_loops, "detach": m.detach}
    second = source if m.second_pass else None
    return loss + strength * propreg.preg(z, *graph, source=second, mask=mask, threshold=m.threshold, **options)


def test_matrices_are_made_once() -> None:
    """What kernels know of a matrix, the order of its rows for example, is lost with it."""
    graph = problem()
    network, term = graph.network(Model("gcn")), graph.regularizer(Method.preset("reference"))
    assert isinstance(network, Layers)
    assert isinstance(term, Preg)
    assert network.adjacency is term.adjacency
    other = graph.regularizer(Method.preset("paper"))
    assert isinstance(other, Preg)
    assert other.adjacency is not term.adjacency
    gats = [graph.network(Model("gat")) for _ in range(2)]
    assert isinstance(gats[0], Gat)
    assert isinstance(gats[1], Gat)
    assert gats[0].pattern is gats[1].pattern


@pytest.mark.parametrize("kind", ["dense", "odd"])
@pytest.mark.parametrize("name", ["gcn", "mlp", "appnp", "gat"])
def test_a_perturbation_of_the_features_enters_after_the_first_map(name: str, kind: str) -> None:
    """X + r by X W + r W is the network on other features; its gradient with respect to X is G Wᵀ."""
    model = replace(MODELS[name], input_dropout=0.0)
    found = problem(kind)
    run = Run(found, model, Method(), RUNS, Protocol())
    run.step(3)  # biases are not 0 any more, where a ReLU has a kink
    network, p = run.network, run.state.parameters
    x = found.graph.x if isinstance(found.graph.x, np.ndarray) else found.graph.x.to_dense()
    r = 0.1 * gaussian(*x.shape, seed=5)

    def moved(step: float) -> Tensor:
        wide: Any = x.astype(np.float64) + step * r.numpy()
        other = Problem(replace(found.graph, x=wide), found.splits, torch.device("cpu"), torch.float64).network(model)
        return other.finish(p, other.begin(p), no_dropout)

    xw = network.first(p).detach().requires_grad_()
    z = network.finish(p, network.begin_from(p, xw), no_dropout)
    torch.testing.assert_close(z, network.finish(p, network.begin(p), no_dropout), rtol=0, atol=1e-12)
    perturbed = network.finish(p, network.begin_from(p, xw + r @ p["w0"]), no_dropout)
    torch.testing.assert_close(perturbed, moved(1.0), rtol=0, atol=1e-11)
    push = gaussian(*z.shape, seed=6)
    (by_first,) = torch.autograd.grad((z * push).sum(), xw)
    along = ((by_first @ p["w0"].transpose(1, 2)) * r).sum()
    by_difference = ((moved(1e-6) - moved(-1e-6)) * push).sum() / 2e-6
    torch.testing.assert_close(along, by_difference, rtol=1e-6, atol=1e-6)
