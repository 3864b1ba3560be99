"""HeteroPReg: the sum of the terms of edge types and metapaths."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor

from propreg import HeteroPReg, Propagation, Term, preg
from samples import gaussian, pyg

BY, WROTE, CITES = ("paper", "by", "author"), ("author", "wrote", "paper"), ("paper", "cites", "paper")
COAUTHORS = (BY, WROTE)
E_BY = torch.tensor([[0, 1, 1, 2, 4], [0, 0, 2, 2, 1]])  # five papers, three authors; paper 3 has none
EDGES = {BY: E_BY, WROTE: E_BY.flip(0), CITES: torch.tensor([[0, 1, 3], [2, 2, 0]])}
Z = {"paper": gaussian(5, 3), "author": gaussian(3, 3, seed=1)}
TO_AUTHOR, TO_PAPER = Propagation(EDGES[BY], size=(5, 3)), Propagation(EDGES[WROTE], size=(3, 5))


@pytest.mark.parametrize("phi", ["cross_entropy", "squared_error"])
def test_it_is_the_sum_of_its_terms(phi: Any) -> None:
    module = HeteroPReg({CITES: 0.3, COAUTHORS: 0.5, BY: 0.7}, phi=phi)
    cites = preg(Z["paper"], EDGES[CITES], phi=phi)
    together = preg(Z["paper"], TO_PAPER @ TO_AUTHOR, phi=phi)
    by = preg(Z["author"], TO_AUTHOR, phi=phi, source=Z["paper"])
    torch.testing.assert_close(module(Z, EDGES), 0.3 * cites + 0.5 * together + 0.7 * by)


def test_the_metapath_averages_over_random_walks() -> None:
    """By hand: paper 1 has the authors 0 and 2, who wrote 0 and 1, and 1 and 2."""
    dense = (TO_PAPER @ TO_AUTHOR).to_dense()
    assert dense[1].tolist() == [0.25, 0.5, 0.25, 0.0, 0.0]
    assert dense[3].tolist() == [0.0] * 5


def test_logits_of_nodes_between_are_not_needed() -> None:
    module = HeteroPReg({COAUTHORS: 1.0})
    papers = {"paper": Z["paper"]}
    torch.testing.assert_close(module(papers, EDGES), preg(Z["paper"], TO_PAPER @ TO_AUTHOR))
    short = {BY: torch.empty(2, 0, dtype=torch.int64), WROTE: torch.empty(2, 0, dtype=torch.int64)}
    assert module(papers, short).item() == 0.0


def test_weights_masks_and_gradients() -> None:
    weight, mask = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64), torch.tensor([True, False, True, True, False])
    module = HeteroPReg({CITES: 0.4})
    expected = 0.4 * preg(Z["paper"], EDGES[CITES], weight, mask=mask)
    torch.testing.assert_close(module(Z, EDGES, {CITES: weight}, mask={"paper": mask}), expected)
    z = Z["paper"].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: HeteroPReg({CITES: 0.3, COAUTHORS: 0.5})({"paper": z}, EDGES), z)


def test_meta_tensors_and_compile_need_the_rows_of_every_type() -> None:
    module = HeteroPReg({CITES: 0.3, COAUTHORS: 0.5, BY: 0.7})
    edges = {kind: each.to("meta") for kind, each in EDGES.items()}
    assert module({name: each.to("meta") for name, each in Z.items()}, edges).is_meta
    torch.compiler.reset()
    fast = torch.compile(lambda p, a: module({"paper": p, "author": a}, EDGES), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(fast(Z["paper"], Z["author"]), module(Z, EDGES))


def test_graphs_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Propagation] = []
    original = Propagation.__init__

    def counting(self: Propagation, *args: Any, **kwargs: Any) -> None:
        made.append(self)
        original(self, *args, **kwargs)

    monkeypatch.setattr(Propagation, "__init__", counting)
    module = HeteroPReg({CITES: 0.3, COAUTHORS: 0.5})
    for _ in range(3):
        value = module(Z, EDGES)
    assert len(made) == 3
    changed = {**EDGES, CITES: EDGES[CITES].flip(0)}
    assert module(Z, changed).item() != value.item()
    assert len(made) == 4
    module.forget()
    module(Z, EDGES)
    assert len(made) == 7
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        torch.testing.assert_close(other(Z, EDGES), value)


def test_it_works_with_pyg_and_in_a_term() -> None:
    data = pyg("torch_geometric.data").HeteroData()
    for kind, edges in EDGES.items():
        data[kind].edge_index = edges
    data["paper"].x = Z["paper"]
    term = Term(HeteroPReg({CITES: 0.3, COAUTHORS: 0.5}), mu=2.0)
    value: Tensor = term(data.x_dict, data.edge_index_dict)
    torch.testing.assert_close(value, 2 * HeteroPReg({CITES: 0.3, COAUTHORS: 0.5})(Z, EDGES))
    zero = Term(HeteroPReg({CITES: 0.3}), mu=0.0)(data.x_dict, data.edge_index_dict)
    assert zero.item() == 0.0


def test_it_shows_its_relations() -> None:
    assert repr(HeteroPReg({CITES: 0.3, COAUTHORS: 0.5})) == (
        "HeteroPReg({paper –cites→ paper: 0.3, paper –by→ author –wrote→ paper: 0.5}, phi='cross_entropy')"
    )


@pytest.mark.parametrize(
    ("call", "kind", "sentence"),
    [
        (lambda: HeteroPReg({}), ValueError, "strengths is empty"),
        (lambda: HeteroPReg({CITES: -1.0}), ValueError, "strength of .*cites.* at least 0, got -1"),
        (
            lambda: HeteroPReg({(BY, CITES): 1.0}),
            ValueError,
            "metapath breaks: .* ends at 'author'.* starts at 'paper'",
        ),
        (lambda: HeteroPReg({"cites": 1.0}), TypeError, "a relation is an edge type"),  # type: ignore[dict-item]
        (lambda: HeteroPReg({("paper", "cites"): 1.0}), TypeError, "an edge type is .* three words"),  # type: ignore[dict-item]
        (lambda: HeteroPReg({CITES: 1.0}, phi="kll"), ValueError, "Did you mean 'kl'"),  # type: ignore[arg-type]
        (lambda: HeteroPReg({CITES: 1.0})({"author": Z["author"]}, EDGES), ValueError, "z has no logits of 'paper'"),
        (lambda: HeteroPReg({CITES: 1.0})(Z, {BY: E_BY}), ValueError, "edge_index has no edges of type .*cites"),
        (lambda: HeteroPReg({CITES: 1.0})(Z["paper"], EDGES), TypeError, "z must map node types to logits"),
        (
            lambda: HeteroPReg({CITES: 1.0})(Z, EDGES, mask={"papr": torch.ones(5, dtype=torch.bool)}),
            ValueError,
            r"mask has no use for 'papr': known are \['paper'\]",
        ),
        (
            lambda: HeteroPReg({CITES: 1.0})(Z, EDGES, {("paper", "cite", "paper"): torch.ones(3)}),
            ValueError,
            "edge_weight has no use for .*'cite'",
        ),
        (lambda: HeteroPReg({BY: 1.0})({**Z, "author": Z["author"][:, :2]}, EDGES), ValueError, "source must have"),
        (lambda: HeteroPReg({BY: 1.0})({**Z, "author": Z["author"][:2]}, EDGES), ValueError, "node 2 but z has 2 rows"),
    ],
)
def test_what_does_not_fit_is_one_sentence(call: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        call()
