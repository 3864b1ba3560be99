"""The p-values of P-reg's cells of Table 1 together: Holm's by hand, and only where all cells are there."""

from pathlib import Path

import pytest

from propreg.names import DATASETS
from propreg.store.results import load_results
from propreg.study.spec.experiment import load_experiment
from propreg.study.tables.rows import Row, decimals, table_rows
from propreg.study.tables.together import listings

TABLE = load_experiment("table1")


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return table_rows(TABLE, load_results(Path(__file__).parents[3] / "results"))


def test_they_are_holms(rows: list[Row]) -> None:
    found = listings(TABLE, rows)
    assert [each.title.partition(":")[0] for each in found] == ["P-reg (official-code form)", "P-reg (paper form)"]
    for listing, preset in zip(found, ("reference", "paper"), strict=True):
        mine = [row for row in rows if (row.method, row.preset, row.selection) == ("preg", preset, "validation")]
        by_p = sorted((row.p_value or 0.0, row.model, row.dataset) for row in mine)
        expected, largest = {}, 0.0
        for rank, (p, model, dataset) in enumerate(by_p):
            largest = max(largest, min(1.0, (21 - rank) * p))
            expected[model, dataset] = largest
        assert listing.head == ("", *DATASETS.values())
        shown = [[name, *cells] for name, *cells in listing.rows]
        assert shown == [
            [model.upper(), *(decimals(expected[model, dataset], 3) for dataset in DATASETS)]
            for model in ("gcn", "gat", "mlp")
        ]
        assert f"all 21 cells together; {sum(p < 0.05 for p in expected.values())} are below 0.05" in listing.title


def test_of_a_part_of_the_table_there_are_none(rows: list[Row]) -> None:
    assert listings(TABLE, [row for row in rows if row.model == "gcn"]) == []
    assert listings(load_experiment("ablation"), rows) == []
