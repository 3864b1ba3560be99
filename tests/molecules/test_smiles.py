"""SMILES read as OGB's raw files have them, and OGB's scaffold split."""

import os
from pathlib import Path

import numpy as np
import pytest

import propreg
from propreg.data.benchmarks.molecules import MoleculeDataset
from propreg.data.errors import DataError
from propreg.molecules.smiles import read_smiles, scaffold_split

pytest.importorskip("rdkit")


def dataset(name: str) -> MoleculeDataset:
    if not (Path(os.environ.get("PROPREG_DATA", "")) / f"{name}.npz").exists():
        pytest.skip(f"the benchmark files are not there: set PROPREG_DATA to the folder that holds {name}.npz")
    data = propreg.load_dataset(name)
    assert isinstance(data, MoleculeDataset)
    return data


@pytest.mark.parametrize(
    "name", ["ogbg_molfreesolv", "ogbg_molesol", pytest.param("ogbg_molbbbp", marks=pytest.mark.slow)]
)
def test_features_and_split_are_ogbs(name: str) -> None:
    known = dataset(name).arrays
    made = read_smiles(known.smiles, known.y, known.task_names, known.split)
    for field in ("num_nodes", "num_bonds", "atom_features", "bonds", "bond_features"):
        np.testing.assert_array_equal(getattr(made, field), getattr(known, field), err_msg=field)
    split = scaffold_split(known.smiles)
    for part, chosen in known.split.items():
        assert sorted(split[part]) == sorted(chosen)


def test_an_unreadable_smiles_is_named_with_its_row() -> None:
    with pytest.raises(DataError, match=r"data\.csv: RDKit cannot read the SMILES in row 2, 'C1CC'"):
        read_smiles(["CC", "C1CC"], np.zeros((2, 1), np.float32), ["t"], {}, where="data.csv")


def test_a_molecule_without_atoms_is_refused() -> None:
    with pytest.raises(DataError, match=r"row 1 .* has no atom"):
        read_smiles([""], np.zeros((1, 1), np.float32), ["t"], {})
