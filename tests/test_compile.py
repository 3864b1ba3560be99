"""torch.compile with no graph break: function, module, prebuilt propagations, every option."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from propreg import PReg, Propagation, _compiled, _spmm, preg
from samples import ODD, PHIS, distance, edge_index_of_pyg, gaussian, needs_inductor, torch_uses_jit

Z = gaussian(6, 2)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def compiled(function: Callable[..., Tensor], backend: str = "aot_eager", **options: Any) -> Callable[..., Tensor]:
    return torch.compile(function, fullgraph=True, backend=backend, **options)


def value_and_gradients(function: Callable[..., Tensor], *inputs: Tensor) -> list[Tensor]:
    leaves = [t.clone().requires_grad_() if t.is_floating_point() else t for t in inputs]
    value = function(*leaves)
    needed = [t for t in leaves if t.requires_grad]
    return [value.detach(), *torch.autograd.grad(value.sum(), needed, allow_unused=True, materialize_grads=True)]


def check(function: Callable[..., Tensor], *inputs: Tensor, **options: Any) -> None:
    """Compiled and plain give the same value and gradients."""
    expected = value_and_gradients(function, *inputs)
    torch.testing.assert_close(value_and_gradients(compiled(function, **options), *inputs), expected)
    torch.testing.assert_close(value_and_gradients(function, *inputs), expected)


@pytest.mark.parametrize("phi", [*PHIS, distance])
def test_the_function(phi: Any) -> None:
    check(lambda z, edge_index: preg(z, edge_index, phi=phi), Z, ODD.edge_index)


@pytest.mark.parametrize("detach", [None, "self", "neighbours"])
def test_all_options(detach: Any) -> None:
    mask = torch.tensor([True, False, True, True, True, True])

    def term(z: Tensor, source: Tensor, weight: Tensor, mask: Tensor) -> Tensor:
        return preg(
            z,
            ODD.edge_index,
            weight,
            phi="kl",
            norm="sym",
            add_self_loops=True,
            source=source,
            detach=detach,
            mask=mask,
            threshold=0.01,
        )

    assert ODD.edge_weight is not None
    check(term, Z, gaussian(6, 2, seed=1), ODD.edge_weight, mask)
    check(term, Z, gaussian(6, 2, seed=1), ODD.edge_weight, torch.tensor([4, 1]))


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_reductions(reduction: Any) -> None:
    check(lambda z: preg(z, ODD.edge_index, reduction=reduction), Z)


def test_the_module_before_and_after_it_keeps_a_graph() -> None:
    module = PReg("kl", norm="sym")
    fast = compiled(module)
    expected = preg(Z, ODD.edge_index, phi="kl", norm="sym")
    torch.testing.assert_close(fast(Z, ODD.edge_index), expected)
    assert module._cached == []  # what a trace makes is never kept
    torch.testing.assert_close(module(Z, ODD.edge_index), expected)
    torch.testing.assert_close(fast(Z, ODD.edge_index), expected)
    edited = ODD.edge_index.clone()
    fast(Z, edited)
    edited[0, 0] = 4
    torch.testing.assert_close(fast(Z, edited), preg(Z, edited, phi="kl", norm="sym"))


def test_a_model_with_the_module_inside() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 3, dtype=torch.float64)
            self.regularizer = PReg.preset("reference")

        def forward(self, x: Tensor) -> Tensor:
            value: Tensor = self.regularizer(self.linear(x), ODD.edge_index)
            return value

    check(Model(), Z)


@pytest.mark.parametrize("built", [False, True])
@pytest.mark.parametrize("how", ["captured", "argument"])
def test_a_propagation_made_before(built: bool, how: str) -> None:
    graph = Propagation(ODD.edge_index, 6, ODD.edge_weight, norm="sym")
    if built:
        preg(Z, graph.build(torch.float64))
    expected = preg(Z, ODD.edge_index, ODD.edge_weight, norm="sym")
    if how == "captured":
        check(lambda z: preg(z, graph), Z)
    else:
        fast = compiled(preg)
        torch.testing.assert_close(fast(Z, graph), expected)
        other = Propagation(ODD.edge_index.flip(0), 6, norm="rw")
        torch.testing.assert_close(fast(Z, other), preg(Z, ODD.edge_index.flip(0)))
    torch.testing.assert_close(preg(Z, graph), expected)


def test_a_propagation_made_inside() -> None:
    check(lambda z: preg(z, Propagation(ODD.edge_index, 6, norm="sym", add_self_loops=True)), Z)


def test_the_bare_propagation() -> None:
    graph = Propagation(ODD.edge_index, 6)
    check(lambda z: graph(z) + graph.transposed(z), Z)  # dynamo knows no @ of other objects with tensors


@pytest.mark.parametrize("norm", ["rw", "sym"])
@pytest.mark.parametrize("backend", ["auto", "csr"])
def test_a_matrix_that_is_built_is_one_operator_with_its_own_backward_pass(backend: Any, norm: Any) -> None:
    graph = Propagation(ODD.edge_index, 6, ODD.edge_weight, norm=norm, backend=backend).build(torch.float64)
    check(lambda z: preg(z, graph), Z)
    check(lambda z: graph.transposed(z).square(), Z)
    seen: list[object] = []

    def looked_at(module: torch.fx.GraphModule, _: object) -> Callable[..., Any]:
        seen.extend(node.target for node in module.graph.nodes)
        return module.forward

    torch.compiler.reset()
    torch.compile(lambda z: preg(z, graph), fullgraph=True, backend=looked_at)(Z)
    assert torch.ops.propreg.csr_product.default in seen
    assert not any("index_add" in str(target) for target in seen)


def test_the_operator_passes_torchs_own_checks() -> None:
    matrix = Propagation(ODD.edge_index, 6, ODD.edge_weight).build(torch.float64)._matrix(torch.float64)
    values, transposed = matrix._values[torch.float64]
    index = (matrix._crow, matrix._col, values), (matrix._crow_t, matrix._col_t, transposed)
    torch.library.opcheck(torch.ops.propreg.csr_product.default, (Z.clone().requires_grad_(), *index[0], *index[1]))


def targets_of(function: Callable[..., Any], *inputs: Tensor) -> list[str]:
    """What the traced program calls."""
    seen: list[str] = []

    def looked_at(module: torch.fx.GraphModule, _: object) -> Callable[..., Any]:
        seen.extend(str(node.target) for node in module.graph.nodes)
        return module.forward

    torch.compiler.reset()
    torch.compile(function, fullgraph=True, backend=looked_at)(*inputs)
    return seen


@pytest.mark.parametrize("how", ["int64", "int32", "weighted", "EdgeIndex"])
def test_a_plain_edge_index_has_the_fast_product_too(how: str) -> None:
    weight = ODD.edge_weight if how == "weighted" else None
    given: Any = ODD.edge_index.int() if how == "int32" else ODD.edge_index
    if how == "EdgeIndex":
        given = edge_index_of_pyg(given, 6)
    term = PReg("kl", norm="sym", add_self_loops=True)
    check(lambda z: term(z, given, weight), Z)
    seen = targets_of(lambda z: term(z, given, weight), Z)
    assert "propreg.propagate.default" in seen
    assert not any("index_add" in target for target in seen)


def test_its_matrix_is_built_once_for_each_graph_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    csr = _spmm.Csr

    def counted(*given: Any) -> Any:
        built.append(1)
        return csr(*given)

    monkeypatch.setattr(_spmm, "Csr", counted)
    module, edges = PReg(), ODD.edge_index.clone()
    module.forget()
    fast = compiled(module)
    for _ in range(3):
        fast(Z.clone().requires_grad_(), edges).backward()  # type: ignore[no-untyped-call]
    assert len(built) == 1
    expected = {node: preg(Z, edges.index_fill(1, torch.tensor([0]), node)) for node in (4, 5)}
    for node in (4, 5, 4):
        edges.data[:, 0] = node  # a change that torch does not count
        torch.testing.assert_close(fast(Z, edges), expected[node])
    assert len(built) == 1 + 2 + len(expected)
    module.forget()
    assert not _compiled.kept
    with pytest.raises(ValueError, match="refers to node 6 but z has 6 rows"):
        fast(Z, edges.index_fill(1, torch.tensor([0]), 6))


@pytest.mark.parametrize("strict", [False, True])
def test_an_exported_program_needs_no_operator_of_ours(strict: bool) -> None:
    class Model(torch.nn.Module):
        def forward(self, z: Tensor, edge_index: Tensor) -> Tensor:
            return preg(z, edge_index)

    program = torch.export.export(Model(), (Z, ODD.edge_index), strict=strict)
    assert "propreg" not in str(program.graph)
    torch.testing.assert_close(program.module()(Z, ODD.edge_index), preg(Z, ODD.edge_index))


def test_the_operators_of_a_plain_edge_index_pass_torchs_own_checks() -> None:
    options = ODD.edge_index, ODD.edge_weight, 6, 6, "rw", False
    torch.library.opcheck(torch.ops.propreg.propagate.default, (Z.clone().requires_grad_(), *options, False))
    torch.library.opcheck(torch.ops.propreg.reached.default, options)
    wide = ODD.edge_index[:, ODD.edge_index[1] < 4], None, 6, 4, "rw", False
    check(lambda z: torch.ops.propreg.propagate(z, *wide, False).square(), Z)
    check(lambda z: torch.ops.propreg.propagate(z[:4], *wide, True).square(), Z)


def test_second_derivatives_of_the_operator() -> None:
    graph = Propagation(ODD.edge_index, 6, ODD.edge_weight).build(torch.float64)
    product = torch.ops.propreg.csr_product
    matrix = graph._matrix(torch.float64)
    first, second = matrix._values[torch.float64]
    parts = matrix._crow, matrix._col, first, matrix._crow_t, matrix._col_t, second
    leaf = Z.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: product(z, *parts).square(), leaf)
    assert torch.autograd.gradgradcheck(lambda z: product(z, *parts).square(), leaf)


def test_graphs_of_any_size_with_dynamic_shapes() -> None:
    fast = compiled(lambda z, edge_index: preg(z, edge_index, norm="sym", add_self_loops=True), dynamic=True)
    for nodes in (6, 9, 13):
        z = gaussian(nodes, 2, seed=nodes)
        edge_index = torch.stack([torch.arange(nodes), torch.arange(nodes).roll(1)])[:, : nodes - 2]
        torch.testing.assert_close(fast(z, edge_index), preg(z, edge_index, norm="sym", add_self_loops=True))


def test_edge_index_of_pyg() -> None:
    edge_index = edge_index_of_pyg(ODD.edge_index, 6)
    torch.testing.assert_close(compiled(preg)(Z, edge_index), preg(Z, ODD.edge_index))


def test_half_precision_and_autocast() -> None:
    for dtype in (torch.bfloat16, torch.float16):
        check(lambda z: preg(z, ODD.edge_index), Z.to(dtype))

    def with_autocast(z: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return preg(z @ torch.eye(2), ODD.edge_index)

    torch.testing.assert_close(compiled(with_autocast)(Z.float()), with_autocast(Z.float()))


def test_values_are_not_looked_at() -> None:
    bad = Z.clone()
    bad[0, 0] = float("nan")
    assert compiled(preg)(bad, ODD.edge_index).isnan()


@pytest.mark.parametrize("built", [False, True])
def test_transforms_inside(built: bool) -> None:
    graph: Any = Propagation(ODD.edge_index, 6).build(torch.float64) if built else ODD.edge_index
    term = lambda z: preg(z, graph)  # noqa: E731
    batch = torch.stack([Z, 2 * Z])
    fast = torch.compile(torch.func.vmap(torch.func.grad(term)), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(fast(batch), torch.func.vmap(torch.func.grad(term))(batch))


@torch_uses_jit
@pytest.mark.slow
@needs_inductor
@pytest.mark.parametrize("what", ["function", "module"])
def test_inductor(what: str) -> None:
    if what == "function":
        check(lambda z, e: preg(z, e, phi="kl", norm="sym", add_self_loops=True), Z, ODD.edge_index, backend="inductor")
    else:
        graph = Propagation(ODD.edge_index, 6, ODD.edge_weight).build(torch.float64)
        module = PReg("l2_probability", detach="self")
        check(lambda z: module(z, graph), Z, backend="inductor")
