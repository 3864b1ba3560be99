"""A table of molecules: what is read, and one sentence with file and line for what cannot be."""

from pathlib import Path

import numpy as np
import pytest

from propreg.data.errors import DataError
from propreg.molecules.smiles import scaffold_split
from propreg.molecules.table import read_table

TEXT = "name,smiles,logp,active\na,CCO,-0.3,1\nb,c1ccccc1,2.1,\nc,CC(=O)O,,nan\nd,C1CC1,1.7,0\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(TEXT)
    return path


def test_empty_cells_are_missing_labels(file: Path) -> None:
    table = read_table(file, targets=["logp", "active"])
    expected = np.array([[-0.3, 1], [2.1, np.nan], [np.nan, np.nan], [1.7, 0]], np.float32)
    np.testing.assert_array_equal(table.y, expected)
    assert table.smiles == ("CCO", "c1ccccc1", "CC(=O)O", "C1CC1")
    assert (table.lines, table.labeled.tolist()) == ((2, 3, 4, 5), [0, 1, 3])


def test_the_split_is_ogbs_of_the_labeled_rows(file: Path) -> None:
    pytest.importorskip("rdkit")
    rings = ["C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1", "c1ccncc1", "c1ccoc1", "C1CCOC1", "C1CCNC1"]
    file.write_text(TEXT + "".join(f"r,{ring},1,\n" for ring in rings))
    table = read_table(file, targets=["logp"])
    expected = scaffold_split(["CCO", "c1ccccc1", "C1CC1", *rings])
    rows = np.array([0, 1, *range(3, 12)])
    assert {part: chosen.tolist() for part, chosen in table.scaffold_split().items()} == {
        part: rows[chosen].tolist() for part, chosen in expected.items()
    }


def test_too_few_scaffolds_are_named(file: Path) -> None:
    pytest.importorskip("rdkit")
    with pytest.raises(DataError, match=r"data\.csv: the scaffold split leaves no molecule for the valid part"):
        read_table(file, targets=["logp"]).scaffold_split()


def test_readable_rows_are_told_from_the_others(file: Path) -> None:
    pytest.importorskip("rdkit")
    file.write_text(TEXT.replace("c1ccccc1", "c1ccc").replace("CC(=O)O", ""))
    table, problems = read_table(file, labeled=False).readable()
    assert (table.smiles, table.lines, table.y.shape) == (("CCO", "C1CC1"), (2, 5), (2, 0))
    assert list(problems) == [3, 4]
    assert "RDKit cannot read the SMILES in line 3, 'c1ccc'" in problems[3]
    assert "line 4 ('') has no atom" in problems[4]
    assert table.graphs().names == ("CCO", "C1CC1")


def test_targets_of_0_and_1_are_questions(file: Path) -> None:
    pytest.importorskip("rdkit")
    assert read_table(file, targets=["active"]).graphs().kind == "binary classification"
    both = read_table(file, targets=["logp", "active"]).graphs()
    assert (both.kind, both.tasks, both.split) == ("regression", ("logp", "active"), {})


@pytest.mark.parametrize(
    ("text", "settings", "sentence"),
    [
        (
            TEXT,
            {"smiles_column": "SMILES"},
            "has no column 'SMILES': its columns are name, smiles, logp, active; name it",
        ),
        (TEXT, {"targets": []}, "no target is named: give --target once or several times, of the columns name, logp"),
        (TEXT, {"targets": ["mass"]}, "has no column 'mass' to learn: the columns are name, logp, active"),
        (TEXT, {"targets": ["logp", "logp"]}, "a target is named twice"),
        (TEXT, {"targets": ["name"]}, r"data\.csv, line 2: target 'name' is 'a', not a number"),
        (TEXT.replace("2.1", "inf"), {}, r"data\.csv, line 3: target 'logp' is inf"),
        (TEXT.replace("2.1,", "2.1"), {}, r"data\.csv, line 3: has 3 values but the header has 4 columns"),
        ("", {}, "is empty: give a header line"),
        ("smiles,logp\n", {}, "has a header and no molecule"),
    ],
)
def test_bad_tables_are_refused(file: Path, text: str, settings: dict[str, str], sentence: str) -> None:
    file.write_text(text)
    with pytest.raises(DataError, match=sentence):
        read_table(file, **{"targets": ["logp"], **settings})  # type: ignore[arg-type]


def test_an_unreadable_smiles_is_named_with_its_line(file: Path) -> None:
    pytest.importorskip("rdkit")
    file.write_text(TEXT.replace("C1CC1", "C1CC"))
    with pytest.raises(DataError, match=r"data\.csv: RDKit cannot read the SMILES in line 5, 'C1CC': fix it"):
        read_table(file, targets=["logp"]).molecules()
