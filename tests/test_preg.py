"""The values of ``preg``: against the dense reference, and the invariances that follow from its definition."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import reference
from propreg import PReg, Propagation, preg
from samples import BACKENDS, LAYOUTS, NORMS, ODD, PATH, PHIS, gaussian, layouts, pyg
from strategies import Case, Graph, cases, graphs, logits, thorough


def agree(value: Tensor, expected: Any, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(value.detach().numpy(), expected, rtol=tolerance, atol=tolerance)


def on(graph: Graph, z: Tensor, **options: Any) -> Tensor:
    return preg(z, graph.edge_index, graph.edge_weight, **options)


@pytest.mark.parametrize("phi", PHIS)
@given(case=cases())
@thorough
def test_value_is_that_of_the_reference(phi: str, case: Case) -> None:
    expected = reference.preg(case.z, case.graph.edge_index, case.graph.edge_weight, phi=phi, **case.options)
    agree(on(case.graph, case.z, phi=phi, **case.options), expected)


@given(phi=st.sampled_from(PHIS), case=cases(num_classes=1000, max_nodes=4))
@thorough
def test_a_thousand_classes(phi: Any, case: Case) -> None:
    expected = reference.preg(case.z, case.graph.edge_index, case.graph.edge_weight, phi=phi, **case.options)
    agree(on(case.graph, case.z, phi=phi, **case.options), expected)


@pytest.mark.slow
@given(data=st.data(), graph=graphs(), norm=st.sampled_from(NORMS))
@thorough
def test_every_layout_and_backend_gives_the_same_value_and_gradient(
    data: st.DataObject, graph: Graph, norm: Any
) -> None:
    z = data.draw(logits(graph.num_nodes, 3)).requires_grad_()
    expected = on(graph, z, norm=norm)
    (gradient,) = torch.autograd.grad(expected, z)
    agree(expected, reference.preg(z, graph.edge_index, graph.edge_weight, norm=norm))
    came: list[tuple[str, Any, Tensor | None]] = [(name, *given) for name, given in layouts(graph).items()]
    for backend in BACKENDS:
        name, edge_index, weight = data.draw(st.sampled_from(came[: len(LAYOUTS)]))
        made = Propagation(edge_index, graph.num_nodes, weight, norm=norm, backend=backend)
        came.append((f"a Propagation of {name} with {backend}", made, None))
    for name, edge_index, weight in came:
        value = preg(z, edge_index, weight, norm=norm)
        torch.testing.assert_close(value, expected, msg=f"the value with {name}")
        torch.testing.assert_close(torch.autograd.grad(value, z)[0], gradient, msg=f"the gradient with {name}")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("loops", [False, True])
def test_every_layout_with_every_backend(layout: str, backend: Any, loops: bool) -> None:
    z = gaussian(6, 3).requires_grad_()
    edge_index, weight = layouts(ODD)[layout]
    made = Propagation(edge_index, 6, weight, norm="sym", add_self_loops=loops, backend=backend)
    value, expected = preg(z, made), on(ODD, z, norm="sym", add_self_loops=loops)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, z), torch.autograd.grad(expected, z))


def test_four_nodes_by_hand() -> None:
    z = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 8.0], [5.0, 5.0]])
    edge_index = torch.tensor([[0, 2, 3], [1, 1, 2]])  # 1 hears 0 and 2, 2 hears 3; 0 and 3 hear nobody
    value = preg(z, edge_index, phi="squared_error", reduction="none")
    assert value.tolist() == [0.0, 0.5 * (0.0 + 1.5**2), 0.5 * (1.0 + 3.0**2), 0.0]


@given(phi=st.sampled_from(PHIS), data=st.data(), graph=graphs())
@thorough
def test_relabelling_the_nodes_changes_nothing(phi: Any, data: st.DataObject, graph: Graph) -> None:
    z = data.draw(logits(graph.num_nodes))
    new = torch.tensor(data.draw(st.permutations(range(graph.num_nodes))))
    edges = torch.tensor(data.draw(st.permutations(range(graph.edge_index.shape[1]))), dtype=torch.int64)
    weight = None if graph.edge_weight is None else graph.edge_weight[edges]
    moved = torch.empty_like(z).index_copy(0, new, z)
    value = preg(moved, new[graph.edge_index][:, edges], weight, phi=phi, reduction="none")
    torch.testing.assert_close(value[new], on(graph, z, phi=phi, reduction="none"))


@pytest.mark.parametrize("phi", ["cross_entropy", "kl"])
@given(data=st.data(), graph=graphs(), norm=st.sampled_from(NORMS))
@thorough
def test_a_constant_added_to_a_row_changes_nothing(phi: Any, data: st.DataObject, graph: Graph, norm: Any) -> None:
    z = data.draw(logits(graph.num_nodes))
    shift = data.draw(logits(graph.num_nodes, 1))
    torch.testing.assert_close(on(graph, z + shift, phi=phi, norm=norm), on(graph, z, phi=phi, norm=norm))


@given(
    phi=st.sampled_from(PHIS),
    data=st.data(),
    first=graphs(weighted=True),
    second=graphs(weighted=True),
    loops=st.booleans(),
)
@thorough
def test_a_block_diagonal_batch_is_the_node_weighted_mean_of_its_graphs(
    phi: Any, data: st.DataObject, first: Graph, second: Graph, loops: bool
) -> None:
    a, b = data.draw(logits(first.num_nodes, 3)), data.draw(logits(second.num_nodes, 3))
    edge_index = torch.cat([first.edge_index, second.edge_index + first.num_nodes], dim=1)
    assert first.edge_weight is not None
    assert second.edge_weight is not None
    weight = torch.cat([first.edge_weight, second.edge_weight])
    batch = preg(torch.cat([a, b]), edge_index, weight, phi=phi, add_self_loops=loops)
    parts = len(a) * on(first, a, phi=phi, add_self_loops=loops) + len(b) * on(second, b, phi=phi, add_self_loops=loops)
    torch.testing.assert_close(batch, parts / (len(a) + len(b)))


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("norm", NORMS)
def test_a_graph_without_edges_costs_nothing(phi: Any, norm: Any) -> None:
    z = gaussian(3, 4).requires_grad_()
    value = preg(z, torch.empty(2, 0, dtype=torch.int64), phi=phi, norm=norm)
    (gradient,) = torch.autograd.grad(value, z)
    assert value.item() == 0.0
    assert not gradient.any()


@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("norm", NORMS)
def test_an_isolated_node_with_a_loop_agrees_with_itself(phi: Any, norm: Any) -> None:
    z = gaussian(6, 3)
    value = preg(z, ODD.edge_index, phi=phi, norm=norm, add_self_loops=True, reduction="none")[5].item()
    if phi == "cross_entropy":
        assert value == pytest.approx(reference.entropy(z[5].numpy()), rel=1e-12)
    elif phi != "bernoulli":  # whose value is the entropy of its columns
        assert value == pytest.approx(0.0, abs=1e-15)


def test_an_isolated_node_still_counts_in_the_mean() -> None:
    z = gaussian(6, 3)
    total = preg(z, ODD.edge_index, reduction="sum")
    torch.testing.assert_close(preg(z, ODD.edge_index), total / 6)
    alone = torch.tensor([1, 5])  # 5 hears nobody, and is one of two
    torch.testing.assert_close(preg(z, ODD.edge_index, mask=alone), preg(z, ODD.edge_index, reduction="none")[1] / 2)


@pytest.mark.parametrize("phi", ["cross_entropy", "kl", "reverse_kl", "l2_probability"])
def test_a_softmax_of_one_column_is_identically_zero(phi: Any) -> None:
    z = gaussian(4, 1).requires_grad_()
    value = preg(z, PATH.edge_index, phi=phi)
    assert value.item() == 0.0
    assert not torch.autograd.grad(value, z)[0].any()


@given(data=st.data(), graph=graphs(), norm=st.sampled_from(NORMS))
@thorough
def test_bernoulli_of_one_logit_is_a_softmax_of_two(data: st.DataObject, graph: Graph, norm: Any) -> None:
    z = data.draw(logits(graph.num_nodes, 1))
    pair = torch.cat([torch.zeros_like(z), z], dim=1)
    yes_no = on(graph, z, phi="bernoulli", norm=norm)
    torch.testing.assert_close(yes_no, on(graph, pair, phi="cross_entropy", norm=norm))


def test_bernoulli_of_many_columns_is_the_sum_over_them() -> None:
    z = gaussian(6, 4)
    columns = [on(ODD, column.unsqueeze(-1), phi="bernoulli") for column in z.unbind(-1)]
    torch.testing.assert_close(on(ODD, z, phi="bernoulli"), torch.stack(columns).sum())


@given(data=st.data(), graph=graphs())
@thorough
def test_regression_outputs_with_squared_error(data: st.DataObject, graph: Graph) -> None:
    z = data.draw(logits(graph.num_nodes, 1))
    matrix = reference.normalized(reference.adjacency(graph.edge_index, graph.num_nodes, graph.edge_weight))
    gap = (np.eye(graph.num_nodes) - matrix) @ z.numpy()
    gap[matrix.sum(axis=1) == 0] = 0.0
    agree(on(graph, z, phi="squared_error"), 0.5 * (gap**2).sum() / graph.num_nodes)


def test_preset_reference_is_the_loss_of_the_official_code() -> None:
    """−1/N Σ P log(Q + 1e-15), P from one pass and Q from a second one, Â the GCN normalization of A + I."""
    gcn_norm = pyg("torch_geometric.nn.conv.gcn_conv").gcn_norm
    first, second = gaussian(6, 3, seed=1).requires_grad_(), gaussian(6, 3, seed=2).requires_grad_()
    (sources, targets), weight = gcn_norm(ODD.edge_index, ODD.edge_weight, num_nodes=6)
    a_hat = torch.zeros(6, 6, dtype=torch.float64).index_put((targets, sources), weight, accumulate=True)
    p, q = first.softmax(dim=1), (a_hat @ second).softmax(dim=1)
    official = -(p * (q + 1e-15).log()).sum(dim=1).mean()
    ours = PReg.preset("reference")(first, ODD.edge_index, ODD.edge_weight, source=second)
    torch.testing.assert_close(ours, official)
    for a, b in zip(
        torch.autograd.grad(ours, (first, second)), torch.autograd.grad(official, (first, second)), strict=True
    ):
        torch.testing.assert_close(a, b)


def test_preset_paper_is_the_default() -> None:
    z = gaussian(6, 3)
    assert PReg.preset("paper")(z, ODD.edge_index).item() == preg(z, ODD.edge_index).item()


def test_threshold_hinges_the_mean() -> None:
    z = gaussian(6, 3)
    mean = on(ODD, z)
    assert on(ODD, z, threshold=0.0).item() == mean.item()
    torch.testing.assert_close(on(ODD, z, threshold=0.1), mean - 0.1)
    assert on(ODD, z, threshold=mean.item() + 0.1).item() == 0.0


@pytest.mark.parametrize("phi", PHIS)
def test_a_bool_mask_and_node_numbers_say_the_same(phi: Any) -> None:
    z = gaussian(6, 3)
    numbers = torch.tensor([4, 1, 2])
    mask = torch.zeros(6, dtype=torch.bool).index_fill(0, numbers, True)
    assert on(ODD, z, phi=phi, mask=mask).item() == on(ODD, z, phi=phi, mask=numbers).item()
    assert on(ODD, z, phi=phi, mask=torch.ones(6, dtype=torch.bool)).item() == pytest.approx(on(ODD, z, phi=phi).item())


@pytest.mark.parametrize("detach", ["self", "neighbors", "neighbours"])
def test_detach_leaves_the_value(detach: Any) -> None:
    z = gaussian(6, 3)
    assert on(ODD, z, detach=detach).item() == on(ODD, z).item()


def test_whole_numbers_and_other_dtypes_as_weights() -> None:
    z = gaussian(6, 3)
    whole = torch.arange(8)
    for weight in (whole, whole.int(), whole.half(), whole.bfloat16(), whole.float()):
        torch.testing.assert_close(preg(z, ODD.edge_index, weight), preg(z, ODD.edge_index, whole.double()))


@pytest.mark.parametrize("norm", NORMS)
def test_only_the_ratio_of_weights_matters(norm: Any) -> None:
    z, weight = gaussian(6, 3), ODD.edge_weight
    assert weight is not None
    for factor in (1e-30, 1e30):
        torch.testing.assert_close(preg(z, ODD.edge_index, weight * factor, norm=norm), on(ODD, z, norm=norm))


def test_logits_in_any_memory_order() -> None:
    z = gaussian(3, 6).t()
    assert not z.is_contiguous()
    torch.testing.assert_close(on(ODD, z), on(ODD, z.contiguous()))
    spread = gaussian(1, 3).expand(6, 3)
    torch.testing.assert_close(on(ODD, spread), on(ODD, spread.contiguous()))


@pytest.mark.parametrize("nobody", [torch.zeros(6, dtype=torch.bool), torch.empty(0, dtype=torch.int64)])
@pytest.mark.parametrize("phi", PHIS)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_mask_of_nobody_is_zero_with_a_gradient(nobody: Tensor, phi: Any, reduction: Any) -> None:
    """A mini-batch may hold none of the nodes that count: it must neither stop the training nor poison it."""
    z = gaussian(6, 3).requires_grad_()
    value = preg(z, ODD.edge_index, phi=phi, mask=nobody, reduction=reduction).sum()
    value.backward()  # type: ignore[no-untyped-call]
    assert value.item() == 0.0
    assert z.grad is not None
    assert (z.grad == 0).all()
