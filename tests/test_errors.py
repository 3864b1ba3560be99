"""Bad input: a ValueError or TypeError that names the parameter, what it got, and the fix."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from propreg import PReg, Propagation, laplacian, preg
from samples import PATH, compressed, edge_index_of_pyg, gaussian, pyg

E = PATH.edge_index
Z = gaussian(4, 3)
NAN, INF = float("nan"), float("inf")
Call = Callable[[], object]


def spoiled(z: torch.Tensor, *where: int, value: float = NAN) -> torch.Tensor:
    result = z.clone()
    for row in where:
        result[row, 0] = value
    return result


def weights(*values: float) -> torch.Tensor:
    return torch.tensor([*values, *[1.0] * (6 - len(values))])


def sparse(rows: int, columns: int) -> torch.Tensor:
    return torch.zeros(rows, columns).to_sparse()


# What is called, the kind of error, and the parts its message must have.
LOGITS: dict[str, tuple[Call, type[Exception], list[str]]] = {
    "a list": (lambda: preg([[1.0]], E), TypeError, ["z must be a tensor", "[N, C]", "got a list"]),  # type: ignore[arg-type]
    "an array": (lambda: preg(np.ones((4, 3)), E), TypeError, ["z must be a tensor", "ndarray"]),  # type: ignore[arg-type]
    "whole numbers": (lambda: preg(torch.ones(4, 3).long(), E), TypeError, ["z", "floating-point", "torch.int64"]),
    "complex": (lambda: preg(Z.to(torch.complex64), E), TypeError, ["z", "floating-point", "torch.complex64"]),
    "one dimension": (lambda: preg(Z[:, 0], E), ValueError, ["z must have two dimensions", "(4,)", "unsqueeze(-1)"]),
    "three dimensions": (lambda: preg(Z[None], E), ValueError, ["z", "(1, 4, 3)", "block-diagonal"]),
    "no rows": (lambda: preg(Z[:0], E), ValueError, ["z is empty", "(0, 3)"]),
    "no columns": (lambda: preg(Z[:, :0], E), ValueError, ["z is empty", "(4, 0)"]),
    "NaN": (lambda: preg(spoiled(Z, 2), E), ValueError, ["z has a NaN or infinite value in row 2", "validate=False"]),
    "infinite": (lambda: preg(spoiled(Z, 3, value=INF), E), ValueError, ["z", "row 3", "learning rate"]),
    "both infinities": (
        lambda: preg(spoiled(spoiled(Z, 1, value=-INF), 2, value=INF), E),
        ValueError,
        ["row 1", "1 more row"],
    ),
    "NaN in half": (lambda: preg(spoiled(Z, 1).half(), E), ValueError, ["z", "row 1"]),
    "source NaN": (lambda: preg(Z, E, source=spoiled(Z, 1)), ValueError, ["source has a NaN", "row 1"]),
    "source's shape": (lambda: preg(Z, E, source=Z[:, :2]), ValueError, ["source", "shape of z", "(4, 3)", "(4, 2)"]),
    "source's dtype": (lambda: preg(Z, E, source=Z.long()), TypeError, ["source", "floating-point", "torch.int64"]),
    "source a list": (lambda: preg(Z, E, source=[1.0]), TypeError, ["source must be a tensor", "list"]),  # type: ignore[arg-type]
}

EDGES: dict[str, tuple[Call, type[Exception], list[str]]] = {
    "a list": (lambda: preg(Z, [[0], [1]]), TypeError, ["edge_index must be an int64 tensor [2, E]", "got a list"]),  # type: ignore[arg-type]
    "none": (lambda: preg(Z, None), TypeError, ["edge_index", "NoneType"]),  # type: ignore[arg-type]
    "int16": (lambda: preg(Z, E.short()), TypeError, ["edge_index must be int64", "torch.int16", "edge_index.long()"]),
    "floats": (lambda: preg(Z, E.float()), TypeError, ["edge_index must be int64", "torch.float32"]),
    "transposed": (lambda: preg(Z, E.t()), ValueError, ["edge_index", "[2, E]", "(6, 2)", "edge_index.t()"]),
    "one dimension": (lambda: preg(Z, E[0]), ValueError, ["edge_index must have shape [2, E]", "(6,)"]),
    "three rows": (lambda: preg(Z, E[[0, 1, 1]]), ValueError, ["edge_index", "[2, E]", "(3, 6)"]),
    "dense": (
        lambda: preg(Z, torch.ones(4, 4)),
        ValueError,
        ["edge_index must have shape [2, E]", "(4, 4)", "to_sparse()"],
    ),
    "too large": (lambda: preg(Z, E + 1), ValueError, ["edge_index refers to node 4 but z has 4 rows", "relabel"]),
    "negative": (lambda: preg(Z, E - 1), ValueError, ["edge_index refers to node -1", "relabel"]),
    "subgraph's logits": (lambda: preg(Z[:3], E), ValueError, ["node 3 but z has 3 rows", "logits of the whole graph"]),
    "sparse of wrong size": (lambda: preg(Z, sparse(5, 5)), ValueError, ["sparse adjacency has 5 nodes", "z has 4"]),
    "sparse, not square": (lambda: preg(Z, sparse(4, 5)), ValueError, ["square", "[targets, sources]", "(4, 5)"]),
    "sparse blocks": (
        lambda: preg(Z, compressed(torch.eye(4), torch.sparse_bsr)),
        TypeError,
        ["COO, CSR or CSC", "sparse_bsr", "to_sparse_csr()"],
    ),
    "sparse and weights": (lambda: preg(Z, sparse(4, 4), weights()), ValueError, ["edge_weight", "as its values"]),
    "sparse, negative": (
        lambda: preg(Z, compressed(-torch.eye(4), torch.sparse_csr)),
        ValueError,
        ["edge_weight", "edge 0 has -1.0"],
    ),
    "EdgeIndex of wrong size": (
        lambda: preg(Z, edge_index_of_pyg(E, 7)),
        ValueError,
        ["EdgeIndex has 7 nodes", "z has 4 rows", "sparse_size"],
    ),
    "EdgeIndex of two sizes": (
        lambda: preg(Z, pyg("torch_geometric").EdgeIndex(E, sparse_size=(4, 5))),
        ValueError,
        ["EdgeIndex has the sizes (4, 5)", "two kinds of nodes", "one sparse_size"],
    ),
    "num_nodes missing": (lambda: Propagation(E), ValueError, ["num_nodes is missing", "num_nodes=z.shape[0]"]),
    "num_nodes negative": (lambda: Propagation(E, -1), ValueError, ["num_nodes", "-1"]),
    "num_nodes a word": (lambda: Propagation(E, "4"), TypeError, ["num_nodes", "whole number", "'4'"]),  # type: ignore[arg-type]
    "num_nodes a bool": (lambda: Propagation(E, True), TypeError, ["num_nodes", "True"]),
}

WEIGHTS: dict[str, tuple[Call, type[Exception], list[str]]] = {
    "a list": (lambda: preg(Z, E, [1.0] * 6), TypeError, ["edge_weight must be a tensor", "list"]),  # type: ignore[arg-type]
    "too few": (lambda: preg(Z, E, torch.ones(5)), ValueError, ["edge_weight", "(6,)", "(5,)"]),
    "a column": (lambda: preg(Z, E, torch.ones(6, 1)), ValueError, ["edge_weight", "(6, 1)", "squeezed"]),
    "complex": (lambda: preg(Z, E, weights().to(torch.complex64)), TypeError, ["edge_weight", "real", "complex64"]),
    "negative": (lambda: preg(Z, E, weights(1.0, -2.0)), ValueError, ["edge_weight", "edge 1 has -2.0", "drop"]),
    "NaN": (lambda: preg(Z, E, weights(1.0, 1.0, NAN)), ValueError, ["edge_weight", "edge 2 has nan"]),
    "infinite": (lambda: preg(Z, E, weights(INF)), ValueError, ["edge_weight must be finite", "edge 0 has inf"]),
    "with gradient": (lambda: preg(Z, E, weights(-1.0).requires_grad_()), ValueError, ["edge_weight", "edge 0"]),
}

MASKS: dict[str, tuple[Call, type[Exception], list[str]]] = {
    "a list": (lambda: preg(Z, E, mask=[0, 1]), TypeError, ["mask must be a bool or int64 tensor", "list"]),  # type: ignore[arg-type]
    "wrong length": (lambda: preg(Z, E, mask=torch.ones(3).bool()), ValueError, ["mask", "(4,)", "(3,)"]),
    "two dimensions": (lambda: preg(Z, E, mask=torch.ones(4, 1).bool()), ValueError, ["mask", "(4, 1)"]),
    "numbers in two dimensions": (lambda: preg(Z, E, mask=E), ValueError, ["mask", "one dimension", "(2, 6)"]),
    "floats": (lambda: preg(Z, E, mask=torch.ones(4)), TypeError, ["mask must be bool or int64", "torch.float32"]),
    "bytes": (lambda: preg(Z, E, mask=torch.ones(4).byte()), TypeError, ["mask must be bool or int64", "torch.uint8"]),
    "twice": (
        lambda: preg(Z, E, mask=torch.tensor([1, 2, 1])),
        ValueError,
        ["mask names a node twice", "unique()", "bool()"],
    ),
    "too large": (
        lambda: preg(Z, E, mask=torch.tensor([4])),
        ValueError,
        ["mask refers to node 4", "4 rows", "0 to 3"],
    ),
    "negative": (lambda: preg(Z, E, mask=torch.tensor([-1])), ValueError, ["mask refers to node -1"]),
}

OPTIONS: dict[str, tuple[dict[str, Any], type[Exception], list[str]]] = {
    "unknown phi": ({"phi": "cross_entrpy"}, ValueError, ["phi", "'cross_entrpy'", "Did you mean 'cross_entropy'?"]),
    "phi far off": ({"phi": "zzz"}, ValueError, ["phi must be one of 'cross_entropy', 'kl'", "callable", "'zzz'"]),
    "phi a number": ({"phi": 3}, TypeError, ["phi must be one of", "3"]),
    "phi none": ({"phi": None}, TypeError, ["phi must be one of", "None"]),
    "norm": ({"norm": "row"}, ValueError, ["norm must be one of 'rw', 'sym'", "'row'", "Did you mean 'rw'?"]),
    "norm none": ({"norm": None}, TypeError, ["norm must be one of 'rw', 'sym'", "None"]),
    "reduction": (
        {"reduction": "average"},
        ValueError,
        ["reduction must be one of 'mean', 'sum', 'none'", "'average'"],
    ),
    "reduction none": ({"reduction": None}, TypeError, ["reduction", "None"]),
    "detach": ({"detach": "neighbor"}, ValueError, ["detach", "Did you mean 'neighbors'?"]),
    "detach true": ({"detach": True}, TypeError, ["detach must be one of 'self', 'neighbors' or None", "True"]),
    "loops": ({"add_self_loops": 1}, TypeError, ["add_self_loops must be True or False", "1"]),
    "validate": ({"validate": "yes"}, TypeError, ["validate must be None, True or False", "'yes'"]),
    "threshold < 0": ({"threshold": -0.5}, ValueError, ["threshold must be a finite number of at least 0", "-0.5"]),
    "threshold NaN": ({"threshold": NAN}, ValueError, ["threshold", "nan"]),
    "threshold infinite": ({"threshold": INF}, ValueError, ["threshold", "inf"]),
    "threshold a word": ({"threshold": "0.5"}, TypeError, ["threshold must be a number or None", "'0.5'"]),
    "threshold true": ({"threshold": True}, TypeError, ["threshold", "True"]),
    "threshold of a sum": (
        {"threshold": 0.5, "reduction": "sum"},
        ValueError,
        ["threshold", "reduction='sum'", "use reduction='mean' or leave threshold out"],
    ),
    "threshold of nothing": ({"threshold": 0.0, "reduction": "none"}, ValueError, ["threshold", "reduction='none'"]),
}

PROPAGATIONS: dict[str, tuple[Call, type[Exception], list[str]]] = {
    "with weights": (
        lambda: preg(Z, Propagation(E, 4), weights()),
        ValueError,
        ["edge_weight goes into the Propagation", "Propagation(edge_index, num_nodes, edge_weight)"],
    ),
    "of wrong size": (
        lambda: preg(Z, Propagation(E, 5)),
        ValueError,
        ["Propagation has 5 nodes", "z has 4 rows", "pass"],
    ),
    "of another norm": (
        lambda: preg(Z, Propagation(E, 4), norm="sym"),
        ValueError,
        ["norm='sym'", "contradict", "norm='rw'", "build it with these, or pass edge_index"],
    ),
    "without loops": (
        lambda: preg(Z, Propagation(E, 4), add_self_loops=True),
        ValueError,
        ["add_self_loops=True", "contradict", "add_self_loops=False"],
    ),
    "in a preset": (lambda: PReg.preset("reference")(Z, Propagation(E, 4)), ValueError, ["norm='sym'", "contradict"]),
    "norm": (lambda: Propagation(E, 4, norm="symm"), ValueError, ["norm", "'symm'", "Did you mean 'sym'?"]),  # type: ignore[arg-type]
    "backend": (
        lambda: Propagation(E, 4, backend="cuda"),  # type: ignore[arg-type]
        ValueError,
        ["backend must be one of 'auto', 'csr', 'gather'", "'cuda'"],
    ),
    "loops": (lambda: Propagation(E, 4, add_self_loops="yes"), TypeError, ["add_self_loops", "'yes'"]),  # type: ignore[arg-type]
    "x of wrong size": (lambda: Propagation(E, 4)(Z[:3]), ValueError, ["graph has 4 nodes", "(3, 3)"]),
    "x a number": (lambda: Propagation(E, 4)(Z.sum()), ValueError, ["graph has 4 nodes", "()"]),
    "x whole numbers": (lambda: Propagation(E, 4)(Z.long()), TypeError, ["x must be a floating-point", "torch.int64"]),
    "csr for weights with gradient": (
        lambda: Propagation(E, 4, weights().requires_grad_(), backend="csr")(Z),
        ValueError,
        ["backend='csr'", "edge_weight", "backend='auto' or 'gather'", "edge_weight.detach()"],
    ),
    "preset": (
        lambda: PReg.preset("official"),
        ValueError,
        ["preset must be one of 'paper', 'reference'", "'official'"],
    ),
}

DEVICES: dict[str, tuple[Call, type[Exception], list[str]]] = {
    "edge_index": (lambda: preg(Z, E.to("meta")), ValueError, ["z is on cpu and edge_index on meta", ".to('cpu')"]),
    "z": (lambda: preg(Z.to("meta"), E), ValueError, ["z is on meta and edge_index on cpu", "edge_index.to('meta')"]),
    "edge_weight": (
        lambda: preg(Z, E, torch.ones(6, device="meta")),
        ValueError,
        ["edge_index is on cpu and edge_weight on meta", "edge_weight.to('cpu')"],
    ),
    "source": (lambda: preg(Z, E, source=Z.to("meta")), ValueError, ["z is on cpu and source on meta"]),
    "mask": (
        lambda: preg(Z, E, mask=torch.ones(4, device="meta").bool()),
        ValueError,
        ["z is on cpu and mask on meta"],
    ),
    "numbers": (lambda: preg(Z, E, mask=E[0, :1].to("meta")), ValueError, ["z is on cpu and mask on meta"]),
    "module": (lambda: PReg()(Z, E.to("meta")), ValueError, ["z is on cpu and edge_index on meta"]),
    "Propagation": (lambda: preg(Z, Propagation(E, 4).to("meta")), ValueError, ["z is on cpu", "on meta"]),
    "x": (lambda: Propagation(E, 4)(Z.to("meta")), ValueError, ["x is on meta and the graph on cpu"]),
}

SWAPPED = ["z is a graph and edge_index holds logits", "swap the two", "the logits come first"]
PLACES: dict[str, tuple[Call, type[Exception], list[str]]] = {
    "edge_index": (lambda: preg(E, Z), TypeError, SWAPPED),
    "by name": (lambda: preg(edge_index=Z, z=E), TypeError, SWAPPED),
    "one edge": (lambda: preg(E[:, :1], Z[:1]), TypeError, SWAPPED),
    "transposed": (lambda: preg(E.t(), Z), TypeError, SWAPPED),
    "half logits": (lambda: preg(E, Z.half()), TypeError, SWAPPED),
    "sparse": (lambda: preg(sparse(4, 4), Z), TypeError, SWAPPED),
    "EdgeIndex": (lambda: preg(edge_index_of_pyg(E, 4), Z), TypeError, SWAPPED),
    "Propagation": (lambda: preg(Propagation(E, 4), Z), TypeError, SWAPPED),  # type: ignore[arg-type]
    "module": (lambda: PReg()(E, Z), TypeError, SWAPPED),
    "module, Propagation": (lambda: PReg()(Propagation(E, 4), Z), TypeError, SWAPPED),
    "laplacian": (lambda: laplacian(E, Z), TypeError, SWAPPED),
    "twice the graph": (lambda: preg(E, E), TypeError, ["z must hold floating-point logits", "torch.int64"]),
    "twice the logits": (lambda: preg(Z, Z), ValueError, ["edge_index must have shape [2, E]", "(4, 3)"]),
}

ALL = {
    f"{group}: {name}": case
    for group, table in {
        "z": LOGITS,
        "edge_index": EDGES,
        "edge_weight": WEIGHTS,
        "mask": MASKS,
        "Propagation": PROPAGATIONS,
        "device": DEVICES,
        "places": PLACES,
    }.items()
    for name, case in table.items()
}


def refused(call: Call, kind: type[Exception], parts: list[str]) -> None:
    with pytest.raises(kind) as error:
        call()
    assert type(error.value) is kind
    for part in parts:
        assert part in str(error.value), f"{part!r} is not in {error.value!s}"
    assert str(error.value).endswith((".", "?"))


@pytest.mark.parametrize("name", ALL)
def test_bad_input_is_refused(name: str) -> None:
    refused(*ALL[name])


@pytest.mark.parametrize("name", OPTIONS)
def test_bad_options_are_refused_by_function_and_module(name: str) -> None:
    options, kind, parts = OPTIONS[name]
    refused(lambda: preg(Z, E, **options), kind, parts)
    refused(lambda: PReg(**options), kind, parts)


@pytest.mark.parametrize("returned", [lambda z, _: z, lambda z, _: z.sum(), lambda z, _: z[:2, 0], lambda *_: 3.0])
def test_a_phi_that_returns_no_value_per_node_is_refused(returned: Any) -> None:
    with pytest.raises(ValueError, match=r"phi must return one value per node, shape \(4,\), got .*"):
        preg(Z, E, phi=returned)


def test_a_phi_error_is_the_callers_own() -> None:
    def phi(*_: torch.Tensor) -> torch.Tensor:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        preg(Z, E, phi=phi)


def test_an_unknown_keyword_is_not_dropped() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'tau'"):
        preg(Z, E, tau=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'tau'"):
        PReg()(Z, E, tau=1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'tau'"):
        PReg(tau=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'ph'"):
        PReg.preset("paper", ph="kl")
