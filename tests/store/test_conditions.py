"""Whether equal bits may be expected of a run that is trained again."""

from typing import Any

import pytest

from propreg.store.provenance import compare_conditions

GPU = {"device": "cuda: H200", "torch": "2.11", "engine": "abc"}
CPU = {"device": "cpu: x86_64", "torch": "2.13", "processor": "EPYC, model 1"}


@pytest.mark.parametrize("today", [GPU, CPU])
def test_what_is_all_known_and_equal_is_the_same(today: dict[str, Any]) -> None:
    found = compare_conditions(today, [{**today, "runs": 3, "started": "then"}, today])
    assert (found.same, found.differs, found.untold) == (True, (), ())
    assert found.sentence().startswith("Equal bits were expected: ")


def test_what_has_changed_is_named() -> None:
    found = compare_conditions(GPU, [{**GPU, "torch": "2.10", "engine": "def"}])
    assert not found.same
    assert found.sentence() == ("Equal bits were not expected: torch was 2.10 and is 2.11; engine was def and is abc.")


def test_what_a_session_did_not_note_cannot_be_told() -> None:
    assert compare_conditions(GPU, []).untold == ("device", "torch", "engine")
    old = {name: value for name, value in GPU.items() if name != "engine"}
    assert compare_conditions(GPU, [GPU, old]).untold == ("engine",)
    found = compare_conditions(GPU, [{"device": "cuda: H200"}])
    assert not found.same
    assert found.sentence().endswith("; not recorded: torch and engine.")


def test_of_two_sessions_one_may_be_the_one() -> None:
    other = {**GPU, "torch": "2.10"}
    found = compare_conditions(GPU, [GPU, other])
    assert (found.same, found.mixed, found.untold) == (False, ("torch",), ())
    assert found.sentence().endswith("not the same in all sessions that may have trained it: torch.")
    assert compare_conditions({**GPU, "torch": "2.9"}, [GPU, other]).differs == ("torch was 2.10 or 2.11 and is 2.9",)


def test_a_processor_without_a_name_may_be_another() -> None:
    nameless = {name: value for name, value in CPU.items() if name != "processor"}
    assert compare_conditions(nameless, [nameless]).untold == ("processor",)
