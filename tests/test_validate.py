"""validate: what None, True and False look at. Shapes and dtypes are checked whatever it says."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from propreg import PReg, Propagation, preg
from samples import PATH, gaussian

E = PATH.edge_index
Z = gaussian(4, 3)
BAD_Z = Z.clone().index_fill(0, torch.tensor([2]), float("nan"))
BAD_WEIGHT = torch.tensor([1.0, -0.5, 1.0, 1.0, 1.0, 1.0])
TWICE = torch.tensor([1, 1, 2])
NOBODY = torch.zeros(4, dtype=torch.bool)

VALUES: dict[str, tuple[Callable[[Any], object], str]] = {
    "z": (lambda validate: preg(BAD_Z, E, validate=validate), "row 2"),
    "source": (lambda validate: preg(Z, E, source=BAD_Z, validate=validate), "source"),
    "edge_weight": (lambda validate: preg(Z, E, BAD_WEIGHT, validate=validate), "edge 1 has -0.5"),
    "mask twice": (lambda validate: preg(Z, E, mask=TWICE, validate=validate), "twice"),
    "module": (lambda validate: PReg(validate=validate)(BAD_Z, E), "row 2"),
    "module's edge_weight": (lambda validate: PReg(validate=validate)(Z, E, BAD_WEIGHT), "edge 1"),
    "Propagation": (lambda validate: Propagation(E, 4, BAD_WEIGHT, validate=validate), "edge 1"),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("validate", [None, True])
def test_values_are_checked_in_eager_mode_on_the_cpu(name: str, validate: bool | None) -> None:
    call, message = VALUES[name]
    with pytest.raises(ValueError, match=message):
        call(validate)


@pytest.mark.parametrize("name", VALUES)
def test_false_does_not_look_at_values(name: str) -> None:
    call, _ = VALUES[name]
    call(False)


def test_nan_passes_through_without_validation() -> None:
    assert preg(BAD_Z, E, validate=False).isnan()
    assert preg(Z, E, mask=NOBODY, validate=False) == 0


@pytest.mark.parametrize("validate", [None, True, False])
def test_shapes_and_dtypes_are_always_checked(validate: bool | None) -> None:
    calls: tuple[tuple[Callable[[], object], type[Exception]], ...] = (
        (lambda: preg(Z[0], E, validate=validate), ValueError),
        (lambda: preg(Z.long(), E, validate=validate), TypeError),
        (lambda: preg(Z, E.short(), validate=validate), TypeError),
        (lambda: preg(Z, E.t(), validate=validate), ValueError),
        (lambda: preg(Z, E, torch.ones(5), validate=validate), ValueError),
        (lambda: preg(Z, E, mask=torch.ones(3).bool(), validate=validate), ValueError),
        (lambda: preg(Z, E, mask=torch.ones(4), validate=validate), TypeError),
        (lambda: preg(Z, E, source=Z[:3], validate=validate), ValueError),
        (lambda: preg(Z, Propagation(E, 5), validate=validate), ValueError),
        (lambda: preg(Z, E.to("meta"), validate=validate), ValueError),
    )
    for call, kind in calls:
        with pytest.raises(kind):
            call()


@pytest.mark.parametrize("validate", [None, True])
def test_node_numbers_are_checked_when_the_propagation_is_made(validate: bool | None) -> None:
    for bad in (E + 1, E - 1):
        with pytest.raises(ValueError, match="edge_index refers to node"):
            Propagation(bad, 4, validate=validate)


def test_a_propagation_checks_its_values_when_it_is_made_and_not_again(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Propagation(E, 4, torch.ones(6))
    monkeypatch.setattr(torch, "aminmax", lambda *_: pytest.fail("the node numbers were checked again"))
    preg(Z, graph)
    preg(Z, graph, validate=True)


def test_logits_that_sum_to_an_overflow_are_fine() -> None:
    large = torch.full((4, 3), 3e38)
    assert preg(large, E).isfinite()
    assert preg(torch.full((4, 3), 6e4, dtype=torch.float16), E).isfinite()
