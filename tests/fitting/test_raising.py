"""A run that raises: the others are kept, and ``fit`` raises only if nothing is left."""

import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fitting.own_modules import DATA, QUICK, Base
from propreg.fitting.fit import fit
from propreg.fitting.result import FitResult

RUNS = 4  # of QUICK: two strengths, two seeds


class BrokenError(RuntimeError):
    """Raised by a module."""


class Raises(Base):
    """Raises in its third training pass if it was made for seed 1."""

    error: BaseException = BrokenError("the second seed")
    seeds: tuple[int, ...] = (1,)

    def __init__(self) -> None:
        super().__init__()
        self.raises, self.passes = torch.initial_seed() in self.seeds, 0

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.passes += self.training
        if self.raises and self.passes > 2:
            raise self.error
        return super().forward(x, edge_index)


class RaisesAlways(Raises):
    """Both seeds."""

    seeds = (0, 1)


class NoMemory(RaisesAlways):
    """Asks for more memory than there is."""

    error = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.")


def test_a_run_that_raises_is_a_failed_run_and_the_others_are_as_without_it() -> None:
    threads = threading.active_count()  # other tests may have left one
    with pytest.warns(
        UserWarning, match=r"2 of 4 runs \(seed 1\) raised an exception \(.*BrokenError: the second seed\)"
    ) as said:
        result = fit(DATA, Raises, **QUICK)
    assert said[0].filename == __file__
    assert result.finished
    assert len(result.runs) == RUNS
    assert [run.failed for run in result.runs] == [False, True] * 2
    for run in result.runs[1::2]:
        assert run.error.startswith("Traceback")
        assert "raise self.error" in run.error
        assert (run.failed_at, run.weights) == (None, {})
    assert np.isnan(result.test[..., 1]).all()
    np.testing.assert_array_equal(result.test[..., 0], fit(DATA, Base, **QUICK).test[..., 0])
    assert (result.predicted[0.0][:, 1] == -1).all()
    assert "2 of 4 runs (seed 1) raised an exception" in result.summary()
    assert "NaN" not in result.summary()
    assert threading.active_count() <= threads


@pytest.mark.parametrize("factory", [RaisesAlways, NoMemory])
def test_if_all_raise_so_does_fit(factory: type[Raises]) -> None:
    with pytest.raises(type(factory.error)) as caught:
        fit(DATA, factory, **QUICK)
    assert caught.value is factory.error


def test_raise_ends_at_the_first_with_what_is_finished() -> None:
    with pytest.raises(BrokenError) as caught:
        fit(DATA, Raises, on_error="raise", **QUICK)
    partial: Any = vars(caught.value)["partial_result"]
    assert isinstance(partial, FitResult)
    assert not partial.finished
    assert [run.replica.seed for run in partial.runs] == [0, 0]
    assert partial.model(DATA.x, DATA.edge_index).shape == (DATA.num_nodes, 3)
    with pytest.raises(BrokenError) as caught:
        fit(DATA, RaisesAlways, on_error="raise", **QUICK)
    assert vars(caught.value)["partial_result"] is None


def test_an_interruption_is_no_failed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Raises, "error", KeyboardInterrupt())
    result = fit(DATA, Raises, **QUICK)
    assert not result.finished
    assert [run.failed for run in result.runs] == [False, False]


def test_another_word_is_refused() -> None:
    with pytest.raises(ValueError, match="on_error must be"):
        fit(DATA, Base, on_error="ignore", **QUICK)  # type: ignore[arg-type]
