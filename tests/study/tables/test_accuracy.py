"""GCN and GCN+P-reg in the record against an independent prototype that followed the official rules."""

from pathlib import Path

import pytest

from propreg.store.results import load_results
from propreg.study.spec.experiment import load_experiment
from propreg.study.tables.rows import table_rows

ROOT = Path(__file__).parents[3]
PLACES = [("plain", "", "none"), ("preg", "reference", "validation"), ("preg", "reference", "test")]
TOO_FAR = pytest.mark.xfail(
    strict=True, reason="71.42 against 70.8: validation picks 0.2, and at 0.1 ours is 70.81; best on test agrees"
)


@pytest.mark.parametrize(
    ("dataset", "place"),
    [
        pytest.param(dataset, place, marks=[TOO_FAR] if (dataset, place) == ("citeseer", 1) else [])
        for dataset in ("cora", "citeseer", "pubmed")
        for place in range(len(PLACES))
    ],
)
def test_the_record_agrees(dataset: str, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from prototype import ALLOWED, EXPECTED

    rows = table_rows(load_experiment("table1"), load_results(ROOT / "results"))
    found = {(r.method, r.preset, r.selection): r.mean for r in rows if (r.model, r.dataset) == ("gcn", dataset)}
    mine = found[PLACES[place]]
    assert mine is not None
    assert abs(mine - EXPECTED[dataset][place]) <= ALLOWED
