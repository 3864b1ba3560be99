"""check_regularizer: ours pass every check, and each broken one fails at the check that names its fault."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import propreg
from propreg._checks import CHECKS
from samples import PHIS

ALL = ["scalar", "pure", "odd_graphs", "gradient", "relabelling", "edge_order", "dtypes", "large_logits"]
Regularizer = Callable[[Tensor, Tensor], Tensor]


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("norm", ["rw", "sym"])
@pytest.mark.parametrize("phi", PHIS)
def test_preg_passes(phi: str, norm: str, loops: bool) -> None:
    module = propreg.PReg(phi, norm, loops)  # type: ignore[arg-type]
    assert propreg.check_regularizer(module, seed=1) == ALL

    def function(z: Tensor, edge_index: Tensor) -> Tensor:
        value: Tensor = propreg.preg(z, edge_index, phi=phi, norm=norm, add_self_loops=loops)  # type: ignore[arg-type]
        return value

    assert propreg.check_regularizer(function) == ALL


@pytest.mark.parametrize("seed", range(5))
def test_other_seeds_pass_as_well(seed: int) -> None:
    assert propreg.check_regularizer(propreg.preg, seed=seed) == ALL


def test_laplacian_passes() -> None:
    assert propreg.check_regularizer(propreg.laplacian) == ALL
    assert propreg.check_regularizer(lambda z, e: propreg.laplacian(z, e, norm="sym", reduction="sum")) == ALL
    assert propreg.check_regularizer(lambda z, e: propreg.laplacian(z, e, variant="official")) == ALL


def test_confidence_penalty_passes_wrapped() -> None:
    assert propreg.check_regularizer(lambda z, _: propreg.confidence_penalty(z)) == ALL
    assert propreg.check_regularizer(lambda z, _: propreg.confidence_penalty(z, variant="official")) == ALL


def test_a_detached_side_has_another_gradient_and_skips_that_check() -> None:
    """With ``detach`` the gradient is on purpose not that of the value."""
    fn = propreg.PReg(detach="neighbours")
    with pytest.raises(AssertionError, match=r"^gradient: "):
        propreg.check_regularizer(fn)
    assert propreg.check_regularizer(fn, skip=["gradient"]) == [name for name in ALL if name != "gradient"]


class _HalfTheGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:  # noqa: ARG004
        return x.clone()

    @staticmethod
    def backward(ctx: object, *grads: Tensor) -> Tensor:  # noqa: ARG004
        return 0.5 * grads[0]


def _not_a_tensor(z: Tensor, edge_index: Tensor) -> Tensor:
    return propreg.preg(z, edge_index).item()  # type: ignore[return-value]


def _one_value_per_node(z: Tensor, edge_index: Tensor) -> Tensor:
    return propreg.preg(z, edge_index, reduction="none")


def _no_gradient(z: Tensor, edge_index: Tensor) -> Tensor:
    return propreg.preg(z.detach(), edge_index)


def _infinite(z: Tensor, edge_index: Tensor) -> Tensor:
    return propreg.preg(z, edge_index) / 0.0


def _wrong_gradient(z: Tensor, edge_index: Tensor) -> Tensor:
    halved: Tensor = _HalfTheGradient.apply(z)  # type: ignore[no-untyped-call]
    return propreg.preg(halved, edge_index)


def _random(z: Tensor, edge_index: Tensor) -> Tensor:
    return propreg.preg(torch.nn.functional.dropout(z, 0.5), edge_index)


def _edits_logits(z: Tensor, edge_index: Tensor) -> Tensor:
    return propreg.preg(z.clamp_(-1.0, 1.0), edge_index)


def _edits_logits_behind_autograd(z: Tensor, edge_index: Tensor) -> Tensor:
    z.data.mul_(2.0)
    return propreg.preg(z, edge_index)


def _edits_edges(z: Tensor, edge_index: Tensor) -> Tensor:
    value = propreg.preg(z, edge_index)
    edge_index.copy_(edge_index.flip(0))
    return value


def _first_node_counts_double(z: Tensor, edge_index: Tensor) -> Tensor:
    return propreg.preg(z, edge_index) + z[0].double().square().sum()


def _looks_at_the_first_edges(z: Tensor, edge_index: Tensor) -> Tensor:
    return propreg.preg(z, edge_index[:, : max(1, edge_index.shape[1] // 2)])


def _half_precision_throughout(z: Tensor, edge_index: Tensor) -> Tensor:
    p = z.softmax(-1)  # in bfloat16 where z is
    return propreg.laplacian(p * p, edge_index)


def _half_precision_from_float32(z: Tensor, edge_index: Tensor) -> Tensor:
    return propreg.laplacian(z if z.dtype == torch.float64 else z.bfloat16(), edge_index)


def _log_of_softmax(z: Tensor, edge_index: Tensor) -> Tensor:
    propagated = propreg.Propagation(edge_index, z.shape[0])(z.float() if z.dtype == torch.bfloat16 else z)
    p = (z.float() if z.dtype == torch.bfloat16 else z).softmax(-1)
    return -(p * propagated.softmax(-1).log()).sum(-1).mean()


def _divides_by_the_degree(z: Tensor, edge_index: Tensor) -> Tensor:
    source, target = edge_index
    degree = z.new_zeros(z.shape[0]).index_add(0, target, z.new_ones(target.shape[0]))
    mean = torch.zeros_like(z).index_add(0, target, z[source]) / degree.unsqueeze(-1)
    return (mean - z).square().sum(-1).mean()


def _gradient_is_nan_without_neighbors(z: Tensor, edge_index: Tensor) -> Tensor:
    """The value is fine; the square root's slope at 0 is not."""
    apart = propreg.preg(z, edge_index, phi="squared_error", reduction="none")
    return apart.sqrt().mean()


BROKEN: list[tuple[Regularizer, str, str]] = [
    (_not_a_tensor, "scalar", "must return a tensor, got a float"),
    (_one_value_per_node, "scalar", "must return a scalar, but its shape is (9,)"),
    (_no_gradient, "scalar", "no gradient flows from the value to z"),
    (_infinite, "scalar", "fn returned inf"),
    (_random, "pure", "two calls with the same inputs give different values"),
    (_edits_logits, "pure", "fn changes its inputs in place"),
    (_edits_logits_behind_autograd, "pure", "fn changes its inputs in place"),
    (_edits_edges, "pure", "fn changes its inputs in place"),
    (_divides_by_the_degree, "odd_graphs", "a graph without edges gives nan"),
    (_gradient_is_nan_without_neighbors, "odd_graphs", "gives a gradient that is not finite"),
    (_wrong_gradient, "gradient", "the gradient is not that of the value"),
    (_first_node_counts_double, "relabelling", "when nodes are numbered differently"),
    (_looks_at_the_first_edges, "edge_order", "when edges are listed in another order"),
    (_half_precision_throughout, "dtypes", "torch.bfloat16 logits give"),
    (_half_precision_from_float32, "dtypes", "torch.float32 logits give"),
    (_log_of_softmax, "large_logits", "use log_softmax"),
]


@pytest.mark.parametrize(("fn", "check", "sentence"), BROKEN, ids=[fn.__name__.strip("_") for fn, _, _ in BROKEN])
def test_each_broken_one_fails_where_it_is_broken(fn: Regularizer, check: str, sentence: str) -> None:
    """Everything before that check passes, and skipping it lets the rest be seen."""
    with pytest.raises(AssertionError) as failure:
        propreg.check_regularizer(fn)
    said = str(failure.value)
    assert said.startswith(f"{check}: ")
    assert sentence in said


def test_a_check_that_does_not_apply_can_be_skipped() -> None:
    rest = [name for name in ALL if name != "relabelling"]
    assert propreg.check_regularizer(_first_node_counts_double, skip={"relabelling"}) == rest
    assert propreg.check_regularizer(_one_value_per_node, skip=ALL) == []
    assert list(CHECKS) == ALL


def test_bad_arguments_are_named() -> None:
    with pytest.raises(TypeError, match=r"fn must be a callable .* got a str"):
        propreg.check_regularizer("preg")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"skip must be one of 'scalar', .*got 'gradients'. Did you mean 'gradient'"):
        propreg.check_regularizer(propreg.preg, skip=["gradients"])


def test_it_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    propreg.check_regularizer(propreg.preg, skip=["gradient"])
    assert torch.equal(torch.rand(3), expected)
