"""PReg is preg with its options fixed: the same values, the same names, and nothing of it outlives a copy."""

import copy
import inspect
import io
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from propreg import PReg, Propagation, preg
from samples import LAYOUTS, ODD, PHIS, gaussian, layouts
from strategies import Case, cases, thorough


def squared_distance(z: torch.Tensor, propagated: torch.Tensor) -> torch.Tensor:
    return (z - propagated).square().sum(-1)


@given(
    phi=st.sampled_from((*PHIS, squared_distance)), case=cases(), detach=st.sampled_from((None, "self", "neighbours"))
)
@thorough
def test_function_and_module_agree(phi: Any, case: Case, detach: Any) -> None:
    z, graph = case.z.requires_grad_(), case.graph
    fixed = {k: v for k, v in case.options.items() if k not in ("source", "mask")}
    module = PReg(phi, detach=detach, **fixed)
    given_each_time = {k: case.options[k] for k in ("source", "mask")}
    expected = preg(z, graph.edge_index, graph.edge_weight, phi=phi, detach=detach, **case.options)
    for _ in range(2):  # the second time with the kept graph
        value = module(z, graph.edge_index, graph.edge_weight, **given_each_time)
        torch.testing.assert_close(value, expected, rtol=0, atol=0)
    if expected.requires_grad:
        ours, theirs = (torch.autograd.grad(v.sum(), z, allow_unused=True)[0] for v in (value, expected))
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_function_and_module_have_the_same_parameters() -> None:
    function = dict(inspect.signature(preg).parameters)
    fixed = {k: p for k, p in inspect.signature(PReg.__init__).parameters.items() if k != "self"}
    called = {k: p for k, p in inspect.signature(PReg.forward).parameters.items() if k != "self"}
    assert not fixed.keys() & called.keys()
    assert {**fixed, **called}.keys() == function.keys()
    for name, parameter in {**fixed, **called}.items():
        assert parameter.default == function[name].default, name
        assert parameter.annotation == function[name].annotation, name
    for name, parameter in called.items():
        assert parameter.kind == function[name].kind, name
    assert [k for k in function if k in called] == list(called)


def test_the_signature_of_the_function_is_the_one_that_was_agreed() -> None:
    parameters = inspect.signature(preg).parameters
    assert {k: p.default for k, p in parameters.items() if p.default is not inspect.Parameter.empty} == {
        "edge_weight": None,
        "phi": "cross_entropy",
        "norm": "rw",
        "add_self_loops": False,
        "source": None,
        "detach": None,
        "mask": None,
        "batch": None,
        "threshold": None,
        "reduction": "mean",
        "validate": None,
    }
    positional = [k for k, p in parameters.items() if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert positional == ["z", "edge_index", "edge_weight"]


def test_presets() -> None:
    paper, reference = PReg.preset("paper"), PReg.preset("reference")
    assert paper.options == PReg().options
    assert reference.options == PReg(norm="sym", add_self_loops=True).options
    assert reference.options.detach is None
    changed = PReg.preset("reference", phi="kl", reduction="sum").options
    assert (changed.phi, changed.norm, changed.add_self_loops, changed.reduction) == ("kl", "sym", True, "sum")


def test_repr_shows_the_options() -> None:
    assert repr(PReg()) == "PReg(phi='cross_entropy', norm='rw', add_self_loops=False)"
    shown = repr(PReg("kl", "sym", True, detach="self", threshold=0.5, validate=False))
    for part in ("phi='kl'", "norm='sym'", "detach='self'", "threshold=0.5", "validate=False"):
        assert part in shown
    assert "reduction='none'" in repr(PReg(reduction="none"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout(layout: str) -> None:
    module, z = PReg(norm="sym"), gaussian(6, 3)
    edge_index, weight = layouts(ODD)[layout]
    for _ in range(2):
        torch.testing.assert_close(module(z, edge_index, weight), preg(z, ODD.edge_index, ODD.edge_weight, norm="sym"))


def test_it_has_no_state() -> None:
    module = PReg()
    before = module.state_dict()
    module(gaussian(6, 3), ODD.edge_index)
    assert module._cached
    assert dict(module.state_dict()) == dict(before) == {}
    assert not list(module.parameters())
    assert not list(module.buffers())
    module.load_state_dict({})


def _saved(module: PReg) -> PReg:
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    loaded: PReg = torch.load(buffer, weights_only=False)
    return loaded


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), _saved])
def test_copies_leave_the_kept_graph_behind(copied: Any) -> None:
    module = PReg("kl", norm="sym", threshold=0.01)
    z = gaussian(6, 3)
    value = module(z, ODD.edge_index, ODD.edge_weight)
    other = copied(module)
    assert other._cached == []
    assert module._cached
    assert other.options == module.options
    assert other(z, ODD.edge_index, ODD.edge_weight).item() == value.item()
    assert repr(other) == repr(module)


def test_a_pickle_does_not_grow_with_the_graph() -> None:
    module = PReg()
    small = len(pickle.dumps(module))
    module(gaussian(2000, 3), torch.arange(2000).repeat(2, 1))
    assert len(pickle.dumps(module)) == small


def test_inside_a_larger_module() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 3)
            self.regularizer = PReg()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            loss: torch.Tensor = self.regularizer(self.linear(x), ODD.edge_index)
            return loss

    model = Model()
    x = gaussian(6, 4, dtype=torch.float32)
    model(x).backward()
    assert sorted(model.state_dict()) == ["linear.bias", "linear.weight"]
    for moved, tolerance in ((copy.deepcopy(model).double().to("cpu"), 1e-6), (copy.deepcopy(model).bfloat16(), 3e-2)):
        y = x.to(next(moved.parameters()).dtype)
        assert moved(y).item() == pytest.approx(model(x).item(), rel=tolerance)


def test_a_propagation_instead_of_edges() -> None:
    module, z = PReg("kl"), gaussian(6, 3)
    propagation = Propagation(ODD.edge_index, 6, ODD.edge_weight, norm="sym")
    value = module(z, propagation)
    assert value.item() == preg(z, ODD.edge_index, ODD.edge_weight, phi="kl", norm="sym").item()
    assert module._cached == []  # the caller keeps it
