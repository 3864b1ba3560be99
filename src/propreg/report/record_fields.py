"""The fields of a record from an untrusted file: numbers, lists and text, each checked with one sentence."""

from collections.abc import Mapping
from typing import Any

from propreg.data.errors import DataError
from propreg.report.text import clean, clip

NAME = 120  # letters of a name that are kept
MOST = {"mus": 1000, "notes": 100, "runs": 50, "settings": 50}
MOST |= dict.fromkeys(("splits", "seeds", "classes", "dots"), 10_000)


def wrong(name: str, should: str) -> DataError:
    """The error of a field that is not what it should be."""
    return DataError(f"The record's {name} should {should}: the file is damaged, run propreg run again.")


def field_of(record: Mapping[str, Any], name: str) -> Any:
    """A field that has to be there."""
    if name not in record:
        raise wrong(name, "be there")
    return record[name]


def list_of(record: Mapping[str, Any], name: str, most: int) -> list[Any]:
    """A field that is a list."""
    value = field_of(record, name)
    if not isinstance(value, list | tuple) or len(value) > most:
        raise wrong(name, f"be a list of at most {most}")
    return list(value)


def number_of(name: str, value: Any, least: float) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < 1e300:
        raise wrong(name, f"be a number of at least {least:g}")
    return float(value)


def text_of(name: str, value: Any, length: int = NAME) -> str:
    """Text, cleaned of what HTML and XML cannot hold."""
    if not isinstance(value, str):
        raise wrong(name, "be text")
    return clip(clean(value).strip(), length) or "(no name)"


def texts_of(name: str, value: Any) -> dict[str, str]:
    """A small object of numbers and words, as text."""
    if not isinstance(value, Mapping) or len(value) > MOST["settings"]:
        raise wrong(name, f"be an object of at most {MOST['settings']} entries")
    return {
        text_of(name, key): text_of(name, f"{each:g}" if type(each) is float else str(each))
        for key, each in value.items()
    }
