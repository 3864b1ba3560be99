"""The Laplacian in torch's world: gradients, precision, transforms, compilation, and bad input."""

from typing import Any

import pytest
import torch
from torch import Tensor

import propreg
from samples import needs_inductor

# A loop, a duplicate, a one-way edge and an isolated node (5).
ODD = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 4, 4], [1, 0, 2, 1, 2, 0, 1, 3, 3]])
GRAPH = propreg.Propagation(ODD, 6)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"reduction": "sum"},
    {"norm": "sym"},
    {"norm": "sym", "reduction": "sum"},
    {"variant": "official"},
]
every_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())) or "default")


def random_logits(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).to(dtype)


@every_option
def test_gradcheck_and_gradgradcheck(options: dict[str, Any]) -> None:
    """The official variant is not smooth on a loop or between equal rows (a length of 0); it is checked without."""
    edges = ODD[:, ODD[0] != ODD[1]] if "variant" in options else ODD
    z = random_logits(6, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda a: propreg.laplacian(a, edges, **options), z)
    assert torch.autograd.gradgradcheck(lambda a: propreg.laplacian(a, edges, **options), z)


@pytest.mark.parametrize("norm", [None, "sym"])
def test_gradients_flow_to_edge_weights(norm: Any) -> None:
    z = random_logits(6, 3).requires_grad_()
    weight = torch.linspace(0.2, 1.5, ODD.shape[1], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, w: propreg.laplacian(a, ODD, w, norm=norm), (z, weight))


def test_the_official_variant_has_the_gradient_zero_where_a_length_is_zero() -> None:
    """Its first derivative takes the subgradient 0 there, and stays finite."""
    z = torch.ones(3, 2, requires_grad=True)
    value = propreg.laplacian(z, torch.tensor([[0, 1, 2], [1, 0, 2]]), variant="official")
    (gradient,) = torch.autograd.grad(value, z)
    assert value.item() == 0.0
    assert not gradient.any()


@every_option
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype, options: dict[str, Any]) -> None:
    z = random_logits(6, 3, dtype=dtype).requires_grad_()
    value = propreg.laplacian(z, ODD, **options)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value.double(), propreg.laplacian(z.double(), ODD, **options), rtol=1e-6, atol=1e-7)
    (gradient,) = torch.autograd.grad(value, z)
    assert gradient.dtype == dtype


@every_option
@pytest.mark.parametrize("size", [80.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_large_logits_give_the_right_value_and_gradient(
    dtype: torch.dtype, size: float, options: dict[str, Any]
) -> None:
    """Those of float64, rounded to the dtype: float16 ends at 65504, and the sum's true gradient may lie above it."""
    z = (random_logits(6, 3).sign() * size).to(dtype).requires_grad_()
    value = propreg.laplacian(z, ODD, **options)
    (gradient,) = torch.autograd.grad(value, z)
    exact = z.detach().double().requires_grad_()
    exact_value = propreg.laplacian(exact, ODD, **options)
    (exact_gradient,) = torch.autograd.grad(exact_value, exact)
    torch.testing.assert_close(value.double(), exact_value, rtol=1e-6, atol=0)
    torch.testing.assert_close(gradient, exact_gradient.to(dtype))
    if options.get("reduction") != "sum":
        assert gradient.isfinite().all()


def test_autocast_changes_nothing() -> None:
    z = random_logits(6, 3, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = propreg.laplacian(z, ODD, norm="sym")
    assert torch.equal(value, propreg.laplacian(z, ODD, norm="sym"))


@every_option
def test_vmap_and_grad_agree_with_a_loop(options: dict[str, Any]) -> None:
    z = random_logits(4, 6, 3)
    for graph in (ODD, GRAPH):

        def fn(a: Tensor, graph: Any = graph) -> Tensor:
            value: Tensor = propreg.laplacian(a, graph, **options)
            return value

        torch.testing.assert_close(torch.func.vmap(fn)(z), torch.stack([fn(a) for a in z]))
        leaf = z[0].clone().requires_grad_()
        (expected,) = torch.autograd.grad(fn(leaf), leaf)
        torch.testing.assert_close(torch.func.grad(fn)(z[0]), expected)
        torch.testing.assert_close(torch.func.vmap(torch.func.grad(fn))(z)[0], expected)


def test_vmap_over_edge_weights() -> None:
    z, weights = random_logits(6, 3), random_logits(4, ODD.shape[1]).abs()
    each = torch.stack([propreg.laplacian(z, ODD, w, norm="sym") for w in weights])
    torch.testing.assert_close(torch.func.vmap(lambda w: propreg.laplacian(z, ODD, w, norm="sym"))(weights), each)


def test_compile_with_a_propagation() -> None:
    torch._dynamo.reset()
    z = random_logits(6, 3)
    compiled = torch.compile(lambda a: propreg.laplacian(a, GRAPH), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(z), propreg.laplacian(z, GRAPH))


@every_option
def test_compile_without_a_graph_break(options: dict[str, Any]) -> None:
    torch._dynamo.reset()
    z = random_logits(6, 3).requires_grad_()
    compiled = torch.compile(lambda a, e: propreg.laplacian(a, e, **options), fullgraph=True, backend="aot_eager")
    value, expected = compiled(z, ODD), propreg.laplacian(z, ODD, **options)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, z), torch.autograd.grad(expected, z))


@pytest.mark.slow
@needs_inductor
# Loading inductor loads a torch module that is decorated with what torch itself has deprecated.
@pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")
def test_compile_with_inductor() -> None:
    torch._dynamo.reset()
    z = random_logits(6, 3).requires_grad_()
    weight = torch.linspace(0.2, 1.5, ODD.shape[1])
    compiled = torch.compile(lambda a, e, w: propreg.laplacian(a, e, w, norm="sym"), fullgraph=True)
    value, expected = compiled(z, ODD, weight), propreg.laplacian(z, ODD, weight, norm="sym")
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(torch.autograd.grad(value, z), torch.autograd.grad(expected, z))


@pytest.mark.parametrize(
    ("error", "sentence", "arguments"),
    [
        (TypeError, "z must be a tensor of logits", {"z": [[0.0]]}),
        (ValueError, "z must have two dimensions", {"z": torch.zeros(6)}),
        (TypeError, "z must hold floating-point logits", {"z": torch.zeros(6, 3, dtype=torch.int64)}),
        (ValueError, "z has a NaN or infinite value in row 4", {"z": torch.tensor([[0.0]] * 4 + [[torch.nan], [0.0]])}),
        (ValueError, "edge_index must have shape .*pass edge_index.t()", {"edge_index": ODD.t()}),
        (TypeError, "edge_index must be int64 or int32, but its dtype is torch.int16", {"edge_index": ODD.short()}),
        (ValueError, "edge_index refers to node 6 but z has 6 rows", {"edge_index": torch.tensor([[0], [6]])}),
        (ValueError, "edge_index refers to node -1 but z has 6 rows", {"edge_index": torch.tensor([[-1], [0]])}),
        (ValueError, r"edge_weight must hold one number per edge, shape \(9,\)", {"edge_weight": torch.ones(3)}),
        (ValueError, "edge_weight must be finite and not negative, but edge 8", {"edge_weight": 7 - torch.arange(9)}),
        (ValueError, "reduction must be one of 'mean', 'sum', got 'none'", {"reduction": "none"}),
        (ValueError, "norm must be one of 'sym' or None, got 'rw'", {"norm": "rw"}),
        (ValueError, "variant must be one of .* Did you mean 'official'", {"variant": "oficial"}),
        (ValueError, "variant='official' has no edge weights", {"variant": "official", "edge_weight": torch.ones(9)}),
        (ValueError, "variant='official' has no edge weights, no norm", {"variant": "official", "norm": "sym"}),
        (ValueError, "no other reduction than 'mean'", {"variant": "official", "reduction": "sum"}),
        (ValueError, "the Propagation has 5 nodes but z has 6 rows", {"edge_index": propreg.Propagation(ODD, 5)}),
        (ValueError, "edge_weight goes into", {"edge_index": GRAPH, "edge_weight": torch.ones(9)}),
        (ValueError, "z is on meta and edge_index on cpu", {"z": torch.zeros(6, 3, device="meta")}),
    ],
)  # fmt: skip
def test_bad_input_is_named(error: type[Exception], sentence: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(error, match=sentence):
        propreg.laplacian(**{"z": torch.zeros(6, 3), "edge_index": ODD, **arguments})


def test_validate_false_lets_values_through() -> None:
    z = torch.full((6, 3), torch.nan)
    assert propreg.laplacian(z, ODD, validate=False).isnan()
