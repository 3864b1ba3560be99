"""Dataclasses as canonical JSON: defaults are left out, types are checked, a new field changes no old text."""

from dataclasses import dataclass, field, make_dataclass
from typing import Any, Literal

import pytest

from propreg.jsonio import canonical, from_json, to_json


@dataclass(frozen=True)
class Inner:
    name: str = "a"
    size: int = 3


@dataclass(frozen=True)
class Outer:
    title: str
    rate: float = 0.5
    kind: Literal["x", "y"] | None = None
    inner: Inner = field(default_factory=Inner)


def test_defaults_are_left_out_but_names() -> None:
    assert to_json(Outer("t")) == {"title": "t", "inner": {"name": "a"}}
    assert to_json(Outer("t", 0.25, "y", Inner("b", 4))) == {
        "title": "t", "rate": 0.25, "kind": "y", "inner": {"name": "b", "size": 4}
    }  # fmt: skip
    assert canonical({"b": [1], "a": 0.1}) == '{"a":0.1,"b":[1]}'


def test_a_field_that_is_added_with_a_default_changes_no_text() -> None:
    more = make_dataclass("Inner", [("depth", int, field(default=2))], bases=(Inner,), frozen=True)
    assert to_json(more("b", 4)) == to_json(Inner("b", 4))


@pytest.mark.parametrize("value", [Outer("t"), Outer("t", 1.0, "x", Inner("b"))])
def test_what_is_written_is_read(value: Outer) -> None:
    found: dict[str, Any] = to_json(value)
    assert from_json(Outer, found | {"inner": from_json(Inner, found["inner"])}) == value


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([1], r"Outer must be a JSON object, got '\[1\]'"),
        ({}, "Outer needs 'title', which is missing"),
        ({"title": "t", "colour": 1}, "Outer has no setting 'colour'"),
        ({"title": 3}, "title must be text, got a whole number"),
        ({"title": "t", "rate": True}, "rate must be a number, got true or false"),
        ({"title": "t", "rate": 10**400}, "rate is far too large"),
        ({"title": "t", "kind": []}, "kind must be text or null, got something else"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(value: object, says: str) -> None:
    with pytest.raises(KeyError, match=says):
        from_json(Outer, value, KeyError)


def test_not_a_number_is_not_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))
