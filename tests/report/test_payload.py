"""Data inside the page: nothing breaks out of it, everything comes back, and 200,000 runs fit."""

import base64
import gzip
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from propreg.report.page import packed, script_json
from propreg.study.spec.experiment import load_experiment
from report.samples import HOSTILE


@given(st.recursive(st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists))
def test_json_comes_back(value: object) -> None:
    assert json.loads(script_json(value)) == value


@pytest.mark.parametrize("text", HOSTILE)
def test_json_holds_no_sign_that_html_knows(text: str) -> None:
    written = script_json({text: [text]})
    assert not set(written) & set("<>&\u2028\u2029")
    written.encode()  # also where the text was half a surrogate pair
    assert json.loads(written) == {text: [text]}


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        script_json(float("nan"))


def test_what_is_packed_comes_back_and_is_the_same_every_time() -> None:
    value = {"text": "</script>", "numbers": [1, 2.5, None]}
    assert packed(value) == packed(value)
    assert json.loads(gzip.decompress(base64.b64decode(packed(value)))) == value


def test_two_hundred_thousand_runs_stay_small() -> None:
    """8,000 cells of 25 runs whose counts scatter as real ones do: under 3 MB, which leaves 1 MB for the rest."""
    noise = random.Random(0)
    cells = [cell.text for line in load_experiment("table1").lines for cell in line.cells]
    grids = [
        {
            "cell": cells[i % len(cells)].replace("gcn", f"gcn{i // len(cells)}"),
            "val": [int(noise.gauss(400, 12)) for _ in range(25)],
            "test": [int(noise.gauss(15_000, 200)) for _ in range(25)],
            "epoch": [int(noise.expovariate(1 / 200)) for _ in range(25)],
            "sum": [noise.random() for _ in range(4)],
        }
        for i in range(8000)
    ]
    assert len(packed(grids)) < 3_000_000
