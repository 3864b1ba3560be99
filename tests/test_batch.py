"""batch=: the mean over graphs of each graph's mean."""

from typing import Any

import pytest
import torch

import reference
from propreg import PReg, preg
from samples import ODD, PATH, PHIS, gaussian

EDGES = torch.cat([ODD.edge_index, PATH.edge_index + 6], 1)  # two graphs, of 6 and 4 nodes
Z, BATCH = gaussian(10, 3), torch.tensor([0] * 6 + [1] * 4)
FIRST, SECOND = torch.arange(6), torch.arange(6, 10)


@pytest.mark.parametrize("phi", PHIS)
def test_it_is_the_mean_of_the_graphs_own_values(phi: Any) -> None:
    each = [reference.preg(Z[:6], ODD.edge_index, phi=phi), reference.preg(Z[6:], PATH.edge_index, phi=phi)]
    expected = pytest.approx(float(sum(each)) / 2, rel=1e-12)
    assert preg(Z, EDGES, phi=phi, batch=BATCH).item() == expected
    assert PReg(phi)(Z, EDGES, batch=BATCH).item() == expected
    assert preg(Z, EDGES, phi=phi).item() != expected


def test_only_counted_nodes_count_and_a_graph_without_any_is_left_out() -> None:
    mask = torch.tensor([0, 1, 7])
    each = preg(Z, EDGES, reduction="none")
    expected = (each[:2].mean() + each[7]) / 2
    torch.testing.assert_close(preg(Z, EDGES, mask=mask, batch=BATCH), expected)
    torch.testing.assert_close(preg(Z, EDGES, mask=mask[:2], batch=BATCH), each[:2].mean())
    torch.testing.assert_close(preg(Z, EDGES, mask=mask, batch=BATCH, threshold=0.2), (expected - 0.2).relu())
    z = Z.clone().requires_grad_()
    nobody = preg(z, EDGES, mask=mask[:0], batch=BATCH)
    nobody.backward()  # type: ignore[no-untyped-call]
    assert nobody.item() == 0.0
    assert z.grad is not None
    assert not z.grad.any()


def test_numbers_may_leave_gaps_and_one_graph_is_the_plain_mean() -> None:
    assert preg(Z, EDGES, batch=BATCH * 7).item() == preg(Z, EDGES, batch=BATCH).item()
    torch.testing.assert_close(preg(Z, EDGES, batch=torch.zeros_like(BATCH)), preg(Z, EDGES))


def test_gradients_transforms_and_compile() -> None:
    def term(z: torch.Tensor) -> torch.Tensor:
        return preg(z, EDGES, batch=BATCH, mask=torch.tensor([0, 2, 8]))

    assert torch.autograd.gradcheck(term, Z.clone().requires_grad_())
    torch.testing.assert_close(torch.func.vmap(term)(torch.stack([Z, 2 * Z])), torch.stack([term(Z), term(2 * Z)]))
    torch.compiler.reset()
    torch.testing.assert_close(torch.compile(term, fullgraph=True, backend="aot_eager")(Z), term(Z))


@pytest.mark.parametrize(
    ("batch", "options", "sentence"),
    [
        (BATCH[:3], {}, r"batch must be PyG's batch vector, int64 with shape \(10,\), got torch.int64 \(3,\)"),
        (BATCH.float(), {}, "batch must be PyG's batch vector.*got torch.float32"),
        ([0, 1], {}, "got a list"),
        (BATCH - 1, {}, "batch has the graph number -1"),
        (BATCH * 10, {}, "batch has the graph number 10, but 10 nodes"),
        (BATCH, {"reduction": "sum"}, "batch takes a mean per graph and cannot be combined with reduction='sum'"),
    ],
)
def test_a_bad_batch_is_one_sentence(batch: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        preg(Z, EDGES, batch=batch, **options)
