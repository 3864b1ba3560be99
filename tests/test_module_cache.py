"""The graph that PReg keeps: used when the very same one comes again, and never when anything about it changed."""

import copy
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from propreg import PReg, Propagation, preg
from propreg._kept import KEPT
from samples import ODD, compressed, edge_index_of_pyg, gaussian, layouts
from strategies import Graph

Z = gaussian(6, 3)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Propagation]]:
    """Every Propagation that is made while the test runs."""
    seen: list[Propagation] = []
    original = Propagation.__init__

    def counting(self: Propagation, *args: Any, **kwargs: Any) -> None:
        seen.append(self)
        original(self, *args, **kwargs)

    monkeypatch.setattr(Propagation, "__init__", counting)
    yield seen
    seen.clear()


def check(module: PReg, edge_index: Any, weight: Tensor | None = None, z: Tensor = Z) -> float:
    """The module's value, after comparing it with that of the function, which keeps nothing."""
    value = module(z, edge_index, weight)
    torch.testing.assert_close(value, preg(z, edge_index, weight, norm=module.options.norm), rtol=0, atol=0)
    return float(value.item())


@pytest.mark.parametrize("layout", ["edge_index", "COO", "COO, coalesced", "CSR", "CSC", "EdgeIndex"])
def test_the_same_graph_is_made_once(layout: str, made: list[Propagation]) -> None:
    module = PReg()
    edge_index, weight = layouts(ODD)[layout]
    for seed in range(3):
        module(gaussian(6, 3, seed=seed), edge_index, weight)
    module(gaussian(6, 5), edge_index, weight, mask=torch.tensor([1]))
    module(gaussian(6, 3, dtype=torch.float32).requires_grad_(), edge_index, weight).backward()
    assert len(made) == 1


def test_it_is_made_once_across_no_grad_and_inference_mode(made: list[Propagation]) -> None:
    module = PReg()
    module(Z, ODD.edge_index)
    with torch.no_grad():
        module(Z, ODD.edge_index)
    with torch.inference_mode():
        module(Z, ODD.edge_index)
    module(Z, ODD.edge_index)
    assert len(made) == 1


def test_graphs_may_alternate_and_only_the_last_four_are_kept(made: list[Propagation]) -> None:
    module = PReg()
    graphs = [ODD.edge_index.roll(i, 1) for i in range(KEPT + 1)]
    for edge_index in (*graphs[:2], *graphs[:2]):
        check(module, edge_index)
    assert len(made) == 2 + 4  # two by the module, four by the function it is compared with
    for edge_index in graphs:
        module(Z, edge_index)
    made.clear()
    module(Z, graphs[-1])
    assert made == []
    module(Z, graphs[0])
    assert len(made) == 1


def test_it_lets_go_of_its_graphs_on_request(made: list[Propagation]) -> None:
    module, edge_index = PReg(), ODD.edge_index.clone()
    module(Z, edge_index)
    held = weakref.ref(made.pop())
    assert held() is not None
    module.forget()
    gc.collect()
    assert held() is None
    module(Z, edge_index)
    assert len(made) == 1


class Scaled(torch.nn.Module):
    """A divergence with a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

    def forward(self, z: Tensor, propagated: Tensor) -> Tensor:
        return self.scale * (z - propagated).square().sum(-1)


def test_a_divergence_that_is_a_module_is_a_part_of_it() -> None:
    module = PReg(phi=Scaled())
    assert [name for name, _ in module.named_parameters()] == ["phi_module.scale"]
    module(Z, ODD.edge_index).backward()
    assert module.phi.scale.grad is not None
    saved = {name: 3 * value for name, value in module.state_dict().items()}
    module.load_state_dict(saved)
    assert module.phi.scale.item() == 6.0
    other = copy.deepcopy(module)
    assert other.phi is other.phi_module
    assert other.phi is not module.phi
    assert other.float().phi.scale.dtype == torch.float32
    module.phi = "kl"
    assert list(module.parameters()) == []


def test_options_are_attributes_that_can_be_set() -> None:
    module = PReg(norm="sym", threshold=0.1)
    assert (module.phi, module.norm, module.threshold, module.detach) == ("cross_entropy", "sym", 0.1, None)
    module.phi, module.norm, module.threshold = "squared_error", "rw", None
    assert torch.equal(module(Z, ODD.edge_index), preg(Z, ODD.edge_index, phi="squared_error"))
    with pytest.raises(ValueError, match="phi must be one of"):
        module.phi = "nonesuch"
    with pytest.raises(AttributeError):
        _ = module.nonesuch


def _scale(values: Tensor) -> None:
    values.mul_(torch.arange(1, len(values) + 1))


EDITS: dict[str, list[Callable[[Any, Any], object]]] = {
    "edge_index": [
        lambda graph, _: graph[0].fill_(4),
        lambda graph, _: graph.copy_(graph.flip(0)),
        lambda _, weight: _scale(weight),
        lambda _, weight: weight[2:].zero_(),
    ],
    "EdgeIndex": [
        lambda graph, _: graph.__setitem__((0, 0), 4),
        lambda graph, _: graph.as_tensor().__setitem__((0, 0), 3),
        lambda _, weight: _scale(weight),
    ],
    "COO": [lambda graph, _: _scale(graph._values()), lambda graph, _: graph._indices()[1].fill_(4)],
    "COO, coalesced": [
        lambda graph, _: _scale(graph.values()),
        lambda graph, _: graph.indices()[1, 0].fill_(4),
        lambda graph, _: graph.zero_(),
    ],
    "CSR": [lambda graph, _: _scale(graph.values()), lambda graph, _: graph.col_indices()[0].fill_(4)],
    "CSC": [lambda graph, _: _scale(graph.values()), lambda graph, _: graph.row_indices()[0].fill_(4)],
}


@pytest.mark.parametrize(("layout", "number"), [(name, i) for name, edits in EDITS.items() for i in range(len(edits))])
def test_an_edit_in_place_is_seen(layout: str, number: int) -> None:
    module = PReg(norm="sym")
    assert ODD.edge_weight is not None
    graph, weight = layouts(Graph(ODD.edge_index.clone(), 6, ODD.edge_weight.clone()))[layout]
    before = check(module, graph, weight)
    EDITS[layout][number](graph, weight)
    assert check(module, graph, weight) != before


def test_an_edit_of_the_tensor_inside_an_edge_index_of_pyg_is_seen() -> None:
    module = PReg()
    wrapped = edge_index_of_pyg(ODD.edge_index, 6)
    inside = wrapped.as_tensor()
    before = check(module, wrapped)
    inside[0, 0] = 3
    assert check(module, wrapped) != before


def test_other_data_under_the_same_tensor_is_seen() -> None:
    module = PReg()
    edge_index, weight = ODD.edge_index.clone(), torch.ones(8, dtype=torch.float64)
    before = check(module, edge_index, weight)
    edge_index.data = ODD.edge_index.flip(0).contiguous()  # counts no version, but lies elsewhere
    middle = check(module, edge_index, weight)
    weight.data = torch.arange(8, dtype=torch.float64)
    assert len({before, middle, check(module, edge_index, weight)}) == 3
    edge_index.set_(ODD.edge_index.clone())  # type: ignore[call-overload]
    check(module, edge_index, weight)
    edge_index.resize_(2, 4)
    check(module, edge_index, weight[:4])


def test_weights_that_come_and_go_are_seen() -> None:
    module = PReg()
    weight = ODD.edge_weight
    assert check(module, ODD.edge_index) != check(module, ODD.edge_index, weight)
    check(module, ODD.edge_index)
    check(module, ODD.edge_index, torch.arange(8))


def test_another_number_of_nodes_is_seen() -> None:
    module = PReg()
    for nodes in (6, 9, 6):
        check(module, ODD.edge_index, z=gaussian(nodes, 3))
    module(gaussian(6, 3), ODD.edge_index)
    with pytest.raises(ValueError, match="node 4 but z has 3 rows"):
        module(gaussian(3, 3), ODD.edge_index)


def test_another_dtype_is_computed_in_that_dtype() -> None:
    module = PReg()
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float32):
        check(module, ODD.edge_index, z=gaussian(6, 3, dtype=dtype))


def test_weights_that_need_a_gradient_are_never_kept(made: list[Propagation]) -> None:
    module = PReg(norm="sym")
    weight = torch.ones(8, dtype=torch.float64)
    module(Z, ODD.edge_index, weight)
    weight.requires_grad_()
    for _ in range(2):
        (gradient,) = torch.autograd.grad(module(Z, ODD.edge_index, weight), weight)
        (expected,) = torch.autograd.grad(preg(Z, ODD.edge_index, weight, norm="sym"), weight)
        torch.testing.assert_close(gradient, expected, rtol=0, atol=0)
        assert gradient.any()
    assert len(made) == 1 + 2 + 2
    check(module, ODD.edge_index, weight.detach())
    sparse = ODD.sparse().requires_grad_()
    module(Z, sparse).backward()
    assert sparse.grad is not None


def test_a_weight_that_is_the_result_of_a_model_is_followed() -> None:
    module = PReg(norm="sym")
    raw = torch.zeros(8, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([raw], lr=1.0)
    for _ in range(3):
        optimizer.zero_grad()
        weight = raw.exp()
        check(module, ODD.edge_index, weight)
        module(Z, ODD.edge_index, weight).backward()
        optimizer.step()


@pytest.mark.parametrize("layout", ["edge_index", "COO", "CSR", "EdgeIndex"])
def test_a_new_graph_at_the_address_of_an_old_one_is_seen(layout: str) -> None:
    module = PReg()
    values = set()
    for source in (0, 1, 2, 3, 4):
        edge_index = torch.tensor([[source], [5]])
        graph, _ = layouts(Graph(edge_index, 6))[layout]
        values.add(check(module, graph))
        del graph, edge_index  # the next ones may get the same addresses
    assert len(values) == 5


def test_inference_tensors_count_no_versions_and_are_not_kept() -> None:
    module = PReg()
    with torch.inference_mode():
        for graph in (ODD.edge_index.clone(), edge_index_of_pyg(ODD.edge_index, 6)):
            weight = torch.ones(8, dtype=torch.float64)
            values = {check(module, graph, weight)}
            graph[0, 0] = 4
            values.add(check(module, graph, weight))
            weight[4] = 7.0
            values.add(check(module, graph, weight))
            assert len(values) == 3
    outside = PReg()
    wrapped = edge_index_of_pyg(ODD.edge_index, 6)
    with torch.inference_mode():
        inner = ODD.edge_index.clone()
    check(outside, wrapped)
    check(outside, edge_index_of_pyg(inner, 6))
    check(outside, type(wrapped)(inner, sparse_size=(6, 6)))


@pytest.mark.parametrize("layout", ["edge_index", "COO", "CSR", "CSC", "EdgeIndex"])
@pytest.mark.parametrize("kept", ["module", "propagation"])
def test_what_inference_mode_kept_serves_training(layout: str, kept: str) -> None:
    edge_index, weight = layouts(ODD)[layout]
    graph = Propagation(edge_index, 6, weight) if kept == "propagation" else edge_index
    weight = None if kept == "propagation" else weight
    module = PReg("squared_error")
    with torch.inference_mode():
        module(Z, graph, weight)
    z = Z.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(module(z, graph, weight), z)
    (expected,) = torch.autograd.grad(preg(z, ODD.edge_index, ODD.edge_weight, phi="squared_error"), z)
    torch.testing.assert_close(gradient, expected)


def test_node_numbers_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = PReg()
    module(Z, ODD.edge_index)
    monkeypatch.setattr(torch, "aminmax", lambda _: pytest.fail("the kept graph was checked again"))
    module(Z, ODD.edge_index)


def test_a_refused_graph_is_not_kept() -> None:
    module = PReg()
    check(module, ODD.edge_index)
    with pytest.raises(ValueError, match="node 9"):
        module(Z, torch.tensor([[0], [9]]))
    check(module, ODD.edge_index)
    with pytest.raises(ValueError, match="edge 0"):
        module(Z, torch.tensor([[0], [1]]), torch.tensor([-1.0]))
    check(module, ODD.edge_index)


def test_a_compressed_copy_is_another_graph() -> None:
    module = PReg()
    first, second = (compressed(a, torch.sparse_csr) for a in (ODD.sparse(), ODD.sparse().t()))
    assert check(module, first) != check(module, second)
