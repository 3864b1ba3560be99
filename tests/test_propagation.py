"""Propagation: the matrix it stands for, whatever the graph came as, and what it keeps."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from propreg import Propagation, preg
from samples import BACKENDS, LAYOUTS, NORMS, ODD, PATH, compressed, edge_index_of_pyg, gaussian, layouts, pyg
from strategies import Graph, graphs, logits, thorough


def expected_matrix(graph: Graph, norm: str, loops: bool) -> reference.Array:
    adjacency = reference.adjacency(graph.edge_index, graph.num_nodes, graph.edge_weight, add_self_loops=loops)
    return reference.normalized(adjacency, norm)


@given(data=st.data(), graph=graphs(), norm=st.sampled_from(NORMS), loops=st.booleans())
@thorough
def test_it_is_the_matrix_of_the_reference(data: st.DataObject, graph: Graph, norm: Any, loops: bool) -> None:
    x = data.draw(logits(graph.num_nodes))
    dense = expected_matrix(graph, norm, loops)
    for backend in BACKENDS:
        propagation = Propagation(
            graph.edge_index, graph.num_nodes, graph.edge_weight, norm=norm, add_self_loops=loops, backend=backend
        )
        np.testing.assert_allclose(propagation.to_dense(torch.float64), dense, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(propagation(x), dense @ x.numpy(), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(propagation.transposed(x), dense.T @ x.numpy(), rtol=1e-10, atol=1e-10)


@given(graph=graphs(), loops=st.booleans())
@thorough
def test_connected_are_the_nodes_whose_row_of_a_does_not_sum_to_zero(graph: Graph, loops: bool) -> None:
    rows = reference.adjacency(graph.edge_index, graph.num_nodes, graph.edge_weight, add_self_loops=loops).sum(axis=1)
    propagation = Propagation(graph.edge_index, graph.num_nodes, graph.edge_weight, add_self_loops=loops)
    assert propagation.connected().tolist() == (rows > 0).tolist()
    assert propagation.all_connected() == bool((rows > 0).all())


@given(graph=graphs(weighted=True))
@thorough
def test_loops_and_symmetric_norm_are_those_of_pyg(graph: Graph) -> None:
    """Also of several loops of a node: one counts, the last."""
    assert graph.edge_weight is not None
    edge_index, edge_weight = graph.edge_index, graph.edge_weight
    size = (graph.num_nodes, graph.num_nodes)

    looped, weight = pyg("torch_geometric.utils").add_remaining_self_loops(
        edge_index, edge_weight, fill_value=1.0, num_nodes=graph.num_nodes
    )
    plain = torch.zeros(size, dtype=torch.float64).index_put((looped[1], looped[0]), weight, accumulate=True)
    ours = reference.adjacency(edge_index, graph.num_nodes, edge_weight, add_self_loops=True)
    np.testing.assert_allclose(ours, plain, rtol=1e-12)

    normed, values = pyg("torch_geometric.nn.conv.gcn_conv").gcn_norm(edge_index, edge_weight, graph.num_nodes)
    theirs = torch.zeros(size, dtype=torch.float64).index_put((normed[1], normed[0]), values, accumulate=True)
    propagation = Propagation(edge_index, graph.num_nodes, edge_weight, norm="sym", add_self_loops=True)
    torch.testing.assert_close(propagation.to_dense(torch.float64), theirs, rtol=1e-12, atol=1e-14)


def test_of_several_loops_the_last_counts_where_every_node_gets_one() -> None:
    twice = torch.tensor([[0, 0, 1], [0, 0, 0]])
    weight = torch.tensor([0.5, 1.5, 0.5])
    assert Propagation(twice, 2, weight, add_self_loops=True).to_dense().tolist() == [[0.75, 0.25], [0.0, 1.0]]
    as_listed = Propagation(twice, 2, weight).to_dense()
    torch.testing.assert_close(as_listed, torch.tensor([[0.8, 0.2], [0.0, 0.0]]), msg="without, they add up")


def test_loops_that_were_added_twice_are_those_that_were_added_once() -> None:
    once = torch.tensor([[0, 1, 2, 0, 1], [1, 0, 2, 0, 1]])
    twice = torch.cat([once, torch.tensor([[0, 1], [0, 1]])], 1)
    dense = [Propagation(edges, 3, norm="sym", add_self_loops=True).to_dense() for edges in (once, twice)]
    assert torch.equal(*dense)


def test_loops_of_a_sparse_matrix_are_its_diagonal() -> None:
    listed = torch.sparse_coo_tensor(
        torch.tensor([[0, 0, 0], [0, 0, 1]]), torch.tensor([0.5, 1.0, 0.5]), (2, 2), check_invariants=True
    )
    assert Propagation(listed, add_self_loops=True).to_dense().tolist() == [[0.75, 0.25], [0.0, 1.0]]


def test_a_loop_of_weight_zero_keeps_it() -> None:
    propagation = Propagation(torch.tensor([[0], [0]]), 2, torch.zeros(1), add_self_loops=True)
    assert propagation.to_dense().tolist() == [[0.0, 0.0], [0.0, 1.0]]
    assert propagation.connected().tolist() == [False, True]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_the_same_matrix(layout: str) -> None:
    edge_index, weight = layouts(ODD)[layout]
    made = Propagation(edge_index, 6, weight, norm="sym")
    np.testing.assert_allclose(made.to_dense(torch.float64), expected_matrix(ODD, "sym", False), rtol=1e-12)


@pytest.mark.parametrize("layout", ["COO", "CSR", "CSC", "EdgeIndex"])
def test_a_layout_that_knows_its_size_needs_no_num_nodes(layout: str) -> None:
    edge_index, weight = layouts(ODD)[layout]
    assert Propagation(edge_index, edge_weight=weight).num_nodes == 6


def test_sparse_indices_may_be_int32_and_values_whole_numbers() -> None:
    wide = compressed(ODD.sparse(), torch.sparse_csr)
    narrow = torch.sparse_csr_tensor(
        wide.crow_indices().int(), wide.col_indices().int(), wide.values(), wide.shape, check_invariants=True
    )
    z = gaussian(6, 3)
    torch.testing.assert_close(preg(z, narrow), preg(z, wide))
    whole = torch.sparse_coo_tensor(PATH.edge_index, torch.ones(6, dtype=torch.int64), (4, 4), check_invariants=True)
    torch.testing.assert_close(preg(z[:4], whole), preg(z[:4], PATH.edge_index))


def test_a_sparse_tensor_is_a_itself_and_not_its_transpose() -> None:
    a = torch.zeros(3, 3)
    a[0, 1] = a[0, 2] = 1.0  # node 0 hears 1 and 2
    x = torch.tensor([[1.0], [2.0], [4.0]])
    for layout in (a.to_sparse(), compressed(a, torch.sparse_csr), compressed(a, torch.sparse_csc)):
        assert Propagation(layout)(x).flatten().tolist() == [3.0, 0.0, 0.0]
        assert Propagation(layout).transposed(x).flatten().tolist() == [0.0, 0.5, 0.5]


def test_sorted_and_transposed_edge_indices_of_pyg() -> None:
    edge_index = pyg("torch_geometric").EdgeIndex(ODD.edge_index, sparse_size=(6, 6))
    z = gaussian(6, 3)
    by_row, order = edge_index.sort_by("row")
    for came, weight in ((edge_index, ODD.edge_weight), (by_row, ODD.edge_weight[order])):  # type: ignore[index]
        torch.testing.assert_close(preg(z, came, weight), preg(z, ODD.edge_index, ODD.edge_weight))
    assert preg(z, edge_index_of_pyg(ODD.edge_index, 6)).item() == preg(z, ODD.edge_index).item()


@pytest.mark.parametrize("backend", BACKENDS)
def test_x_of_any_shape_over_the_nodes(backend: Any) -> None:
    propagation = Propagation(ODD.edge_index, 6, backend=backend)
    for shape in ((6,), (6, 1), (6, 4), (6, 2, 3), (6, 0)):
        x = gaussian(*shape)
        flat = x.reshape(6, -1) if x.numel() else x
        torch.testing.assert_close(propagation(x), propagation(flat).reshape(shape))
        assert propagation(x).shape == x.shape
        torch.testing.assert_close(propagation @ x, propagation(x))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dtypes_one_after_another(backend: Any, dtype: torch.dtype) -> None:
    propagation = Propagation(ODD.edge_index, 6, ODD.edge_weight, backend=backend).build(torch.float32)
    x = gaussian(6, 3, dtype=dtype)
    half = dtype in (torch.bfloat16, torch.float16)
    result = propagation(x)
    assert result.dtype == (torch.float32 if half else dtype)
    np.testing.assert_allclose(
        result,
        expected_matrix(ODD, "rw", False) @ x.double().numpy(),
        rtol=1e-6,
        atol=1e-14 if dtype == torch.float64 else 1e-6,
    )


@given(graph=graphs(min_nodes=1))
@thorough
def test_rows_of_the_random_walk_sum_to_one_or_zero(graph: Graph) -> None:
    propagation = Propagation(graph.edge_index, graph.num_nodes, graph.edge_weight)
    sums = propagation(torch.ones(graph.num_nodes, dtype=torch.float64))
    torch.testing.assert_close(sums, propagation.connected().double())


def test_a_graph_of_no_nodes() -> None:
    empty = Propagation(torch.empty(2, 0, dtype=torch.int64), 0)
    assert empty(torch.empty(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
def test_preg_takes_norm_and_loops_from_it(norm: Any, loops: bool, backend: Any) -> None:
    z = gaussian(6, 3)
    made = Propagation(ODD.edge_index, 6, ODD.edge_weight, norm=norm, add_self_loops=loops, backend=backend)
    expected = preg(z, ODD.edge_index, ODD.edge_weight, norm=norm, add_self_loops=loops)
    torch.testing.assert_close(preg(z, made), expected)
    torch.testing.assert_close(preg(z, made, norm=norm, add_self_loops=loops), expected)


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_work_and_leave_the_matrix_behind(copied: Any) -> None:
    propagation = Propagation(ODD.edge_index, 6, ODD.edge_weight, norm="sym", backend="csr").build()
    propagation.all_connected()
    other = copied(propagation)
    assert other._csr is None
    assert other._connected is None
    assert repr(other) == repr(propagation)
    torch.testing.assert_close(other(gaussian(6, 3)), propagation(gaussian(6, 3)))


def test_what_depends_on_weights_with_a_gradient_is_never_kept() -> None:
    weight = torch.ones(8, dtype=torch.float64, requires_grad=True)
    propagation = Propagation(ODD.edge_index, 6, weight, norm="sym")
    z = gaussian(6, 3)
    first = preg(z, propagation)
    with torch.no_grad():
        weight[0] = 5.0
        weight[7] = 0.0  # node 3 now hears nobody
    torch.testing.assert_close(preg(z, propagation), preg(z, ODD.edge_index, weight, norm="sym"))
    assert propagation.connected().tolist() == [True, True, True, False, False, False]
    assert preg(z, propagation).item() != first.item()


def test_to_the_same_device_is_itself() -> None:
    propagation = Propagation(ODD.edge_index, 6)
    assert propagation.to("cpu") is propagation
    assert propagation.device == torch.device("cpu")


def test_repr_says_what_it_is() -> None:
    assert repr(Propagation(PATH.edge_index, 4, norm="sym", add_self_loops=True)) == (
        "Propagation(num_nodes=4, num_edges=6, norm='sym', add_self_loops=True, backend='auto', device='cpu')"
    )


CHAIN = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


@given(data=st.data(), graph=graphs(), norm=st.sampled_from(NORMS), loops=st.booleans())
@thorough
def test_a_subgraph_with_the_degrees_of_the_whole_graph_is_its_operator_restricted(
    data: st.DataObject, graph: Graph, norm: Any, loops: bool
) -> None:
    whole = Propagation(graph.edge_index, graph.num_nodes, graph.edge_weight, norm=norm, add_self_loops=loops)
    kept = data.draw(st.lists(st.booleans(), min_size=graph.num_nodes, max_size=graph.num_nodes).filter(any))
    nodes = torch.tensor(kept).nonzero().flatten()
    number = torch.full((graph.num_nodes,), -1).index_put((nodes,), torch.arange(len(nodes)))
    inside = (number[graph.edge_index] >= 0).all(0)
    weight = None if graph.edge_weight is None else graph.edge_weight[inside]
    degree = whole.degree()[nodes]
    edges = number[graph.edge_index][:, inside]
    part = Propagation(edges, len(nodes), weight, norm=norm, add_self_loops=loops, degree=degree)
    restricted = whole.to_dense(torch.float64)[nodes][:, nodes]
    torch.testing.assert_close(part.to_dense(torch.float64), restricted, rtol=1e-12, atol=0)
    x = data.draw(logits(len(nodes)))
    for backend in BACKENDS:
        fixed: dict[str, Any] = {"norm": norm, "add_self_loops": loops, "backend": backend, "degree": degree}
        other = Propagation(edges, len(nodes), weight, **fixed)
        torch.testing.assert_close(other(x), restricted.to(x.dtype) @ x, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(other.transposed(x), restricted.to(x.dtype).t() @ x, rtol=1e-9, atol=1e-9)


def test_a_subgraph_without_the_degrees_of_the_whole_graph_is_another_operator() -> None:
    whole, edge = Propagation(CHAIN, 3), torch.tensor([[0, 1], [1, 0]])
    restricted = whole.to_dense()[:2, :2]
    assert torch.equal(Propagation(edge, 2, degree=whole.degree()[:2]).to_dense(), restricted)
    assert not torch.equal(Propagation(edge, 2).to_dense(), restricted)


def test_a_self_loop_counts_in_the_degree_where_it_is_added() -> None:
    path = torch.tensor([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])  # node 2 has a loop of its own
    assert Propagation(path, 3).degree().tolist() == [1.0, 2.0, 2.0]
    assert Propagation(path, 3, add_self_loops=True).degree().tolist() == [2.0, 3.0, 2.0]
    assert Propagation(path, 3, degree=torch.tensor([4, 5, 6])).degree().tolist() == [4.0, 5.0, 6.0]


def test_a_node_whose_neighbors_are_all_outside_has_nothing_to_agree_with() -> None:
    lonely = Propagation(torch.tensor([[0, 1], [1, 0]]), 3, degree=torch.tensor([2.0, 1.0, 5.0]))
    assert lonely.connected().tolist() == [True, True, False]
    z = torch.randn(3, 2, requires_grad=True)
    values = preg(z, lonely, reduction="none")
    (grad,) = torch.autograd.grad(values[2], z)
    assert values[2].item() == 0.0
    assert not grad.any()


def test_given_degrees_travel() -> None:
    part = Propagation(torch.tensor([[0, 1], [1, 0]]), 2, degree=torch.tensor([2.0, 4.0]))
    for other in (copy.deepcopy(part), pickle.loads(pickle.dumps(part)), part._like(part.edge_index, None)):
        assert torch.equal(other.to_dense(), torch.tensor([[0.0, 0.5], [0.25, 0.0]]))
    assert part.to("meta").degree().is_meta


@pytest.mark.parametrize(
    ("degree", "loops", "sentence"),
    [
        (torch.ones(2), False, r"degree must be a tensor of one number per node, shape \(3,\), got shape \(2,\)"),
        ([1, 1, 1], False, "degree must be a tensor of one number per node.*got a list"),
        (torch.tensor([1.0, 1.0, 1.0]), False, r"got 1 for node 1, whose edges weigh 2: .*whole\.degree\(\)\[nodes\]"),
        (torch.tensor([1.0, 2.0, 1.0]), True, "got 1 for node 0, whose edges weigh 2: .*same add_self_loops"),
        (torch.tensor([1.0, float("inf"), 1.0]), False, "degree must be finite"),
        (torch.tensor([float("nan"), 2.0, 1.0]), False, "degree must be finite"),
    ],
)
def test_degrees_that_cannot_be_those_of_a_whole_graph(degree: Any, loops: bool, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Propagation(CHAIN, 3, degree=degree, add_self_loops=loops)
    if isinstance(degree, torch.Tensor) and len(degree) == 3:
        Propagation(CHAIN, 3, degree=degree, add_self_loops=loops, validate=False)
