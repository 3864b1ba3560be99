"""What looks like a mistake gets one warning: probabilities given as logits, and sampled batches."""

import warnings

import pytest
import torch
from torch import Tensor

from propreg import PReg, Propagation, _notices, laplacian, preg
from samples import gaussian

N = 200
SEEDS = torch.arange(20)
Z = gaussian(N, 3)
RING = torch.stack([torch.arange(N), torch.arange(N).roll(1)])
# Like the batch of a sampler: 40 nodes hear others, 160 only send.
SAMPLED = torch.stack([torch.arange(20, N), torch.arange(N - 20) % 40])


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_notices, "_given", set())


def test_probabilities_given_as_logits_are_noticed_once() -> None:
    p = Z.softmax(-1)
    with pytest.warns(UserWarning, match="z looks like probabilities .* before its softmax") as caught:
        preg(p, RING)
    assert caught[0].filename == __file__
    preg(p, RING)  # warnings are errors: a second one would raise
    PReg()(p, RING)


def test_a_module_names_the_line_of_its_caller() -> None:
    with pytest.warns(UserWarning, match="probabilities") as caught:
        PReg("kl")(Z.softmax(-1), RING)
    assert caught[0].filename == __file__


def test_logits_and_what_may_be_probabilities_are_not_noticed() -> None:
    p = Z.softmax(-1)
    for z in (Z, p.log(), p.log_softmax(-1), torch.zeros_like(Z), p * 2, torch.cat([p[:-1], Z[:1]])):
        preg(z, RING)
    preg(p, RING, phi="squared_error")
    preg(p, RING, phi=lambda z, q: (z - q).sum(-1))
    preg(p[:9], RING[:, :0])
    preg(p, RING, validate=False)
    laplacian(p, RING)


def test_a_sampled_batch_is_noticed_once_and_the_warning_names_the_right_way() -> None:
    with pytest.warns(UserWarning, match=r"160 of 200 counted nodes .*PReg\(\).on_batch\(z, batch\)") as caught:
        preg(Z, SAMPLED)
    assert caught[0].filename == __file__
    preg(Z, SAMPLED)


@pytest.mark.parametrize(
    ("edges", "mask"),
    [
        (SAMPLED, SEEDS),  # the right way
        (RING, None),
        (torch.cat([SAMPLED, SAMPLED.flip(0)], 1), None),
        (RING[:, :10], None),  # most nodes are alone: they send nothing either
        (SAMPLED[:, :40], torch.arange(60)),
    ],
)
def test_other_graphs_are_not_noticed(edges: Tensor, mask: Tensor | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        preg(Z, edges, mask=mask)


def test_nothing_is_noticed_where_values_are_not_looked_at() -> None:
    graph = Propagation(SAMPLED, N)
    torch.func.vmap(lambda z: preg(z, graph))(torch.stack([Z, Z.softmax(-1)]))
    preg(Z.to("meta"), SAMPLED.to("meta"))
