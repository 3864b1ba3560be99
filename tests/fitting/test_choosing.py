"""Which strength is chosen, also from runs that are not all there."""

import numpy as np
import pytest

from propreg.fitting.selection import Scores, choose, matched

NAN = float("nan")


def chosen(val: list[list[list[float]]], failed: list[int] | None = None) -> int:
    values = np.array(val)
    mask = np.zeros(values.shape, bool)
    for strength in failed or []:
        mask[strength] = np.isnan(values[strength])
    return choose(Scores(values, values, mask))


def test_the_best_mean_wins_and_ties_go_to_the_smaller_strength() -> None:
    assert chosen([[[0.5, 0.6]], [[0.7, 0.5]], [[0.6, 0.6]]]) == 1
    assert chosen([[[0.1 + 0.2]], [[0.3]]]) == 0


def test_only_shared_runs_are_compared() -> None:
    """The second strength has an easy split more: that must not make it win."""
    assert chosen([[[0.6], [NAN]], [[0.5], [0.9]]]) == 0


def test_without_a_shared_run_those_are_compared_that_have_one_with_the_plain_model() -> None:
    assert chosen([[[0.1], [NAN]], [[NAN], [0.9]], [[0.2], [0.3]]]) == 2, "the second cannot be compared with plain"
    assert chosen([[[0.6], [NAN]], [[NAN], [0.9]], [[NAN], [0.8]]]) == 0, "none can"
    assert chosen([[[NAN], [NAN]], [[NAN], [0.7]], [[0.9], [0.8]]]) == 2, "plain has no run: those that share one"


def test_a_failure_at_every_strength_leaves_the_runs_that_all_have() -> None:
    val = [[[0.5, NAN]], [[0.7, NAN]], [[0.6, NAN]]]
    assert chosen(val, failed=[0, 1, 2]) == 1


def test_a_failed_strength_is_left_out_and_the_others_are_compared() -> None:
    assert chosen([[[0.5], [0.5]], [[0.9], [NAN]], [[0.6], [0.5]]], failed=[1]) == 2


def test_nothing_to_choose_from() -> None:
    with pytest.raises(RuntimeError, match="let the fit run for longer"):
        chosen([[[NAN], [NAN]], [[NAN], [NAN]]])
    with pytest.raises(RuntimeError, match="lower lr"):
        chosen([[[NAN]], [[NAN]]], failed=[0, 1])


def test_matched_runs_are_whole_splits_then_seeds_then_one_of_each_split() -> None:
    first = np.array([[1.0, 2.0], [3.0, NAN]])
    assert [r.tolist() for r in matched(first, first + 1)] == [[[1.0, 2.0]], [[2.0, 3.0]]]
    second = np.array([[1.0, NAN], [3.0, NAN]])
    assert [r.tolist() for r in matched(second)] == [[[1.0], [3.0]]]
    third = np.array([[1.0, NAN], [NAN, 4.0], [NAN, NAN]])
    assert [r.tolist() for r in matched(third)] == [[[1.0], [4.0]]]
    assert matched(np.array([[NAN]]))[0].size == 0
