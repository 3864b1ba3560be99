"""``propreg doctor``: what it finds, what it says is missing, and that the fix is a command."""

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from propreg import doctor as examination
from propreg.cli.app import app
from propreg.data.benchmarks import catalog
from propreg.doctor import Devices, Gpu, Package, numbers, probe_devices


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without data."""
    monkeypatch.delenv("PROPREG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("propreg.data.benchmarks.locate.sys.platform", "linux")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache" / "propreg"


def doctor(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["doctor", *arguments])


@pytest.mark.usefixtures("nowhere")
def test_a_healthy_machine_without_data() -> None:
    done = doctor()
    assert done.exit_code == 0
    assert f"torch            {metadata.version('torch')}" in done.stdout
    assert "digits           scikit-learn" in done.stdout
    assert "cora             not on disk" in done.stdout
    assert "Hint: 12 datasets are not on disk" in done.stdout
    assert "\n  propreg data fetch\n" in done.stdout, "without names it fetches all"
    assert done.stdout.endswith("Everything that propreg needs is installed.\n")


def test_data_that_is_there_is_named_with_its_place(nowhere: Path) -> None:
    nowhere.mkdir(parents=True)
    for name in ("cora.npz", "cora_splits.npz", "photo.npz", "amazon_photo.npz"):
        (nowhere / name).touch()
    found = {row["name"]: row for row in json.loads(doctor("--json").stdout)["data"]}
    assert found["cora"] == {"name": "cora", "where": str(nowhere / "cora.npz"), "splits": True}
    assert found["photo"] == {"name": "photo", "where": str(nowhere / "amazon_photo.npz"), "splits": False}
    said = doctor().stdout
    assert "amazon_photo.npz, but not its official splits" in said
    fetch = next(line for line in said.splitlines() if line.startswith("  propreg data fetch")).split()
    assert set(fetch[3:]) == set(catalog.fetchable()) - {"digits", "cora"}


def test_a_root_and_propreg_data_are_looked_at(nowhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not nowhere.exists()
    (tmp_path / "cora.npz").touch()
    by_root = {
        row["name"]: row["where"] for row in json.loads(doctor("--root", str(tmp_path), "--json").stdout)["data"]
    }
    assert by_root["cora"] == str(tmp_path / "cora.npz")
    monkeypatch.setenv("PROPREG_DATA", str(tmp_path))
    assert f"PROPREG_DATA     {tmp_path}\n" in doctor().stdout


@pytest.mark.usefixtures("nowhere")
def test_a_data_folder_that_is_not_there_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROPREG_DATA", "/no/such/folder")
    done = doctor()
    assert done.exit_code == 1
    assert "Problem: PROPREG_DATA names /no/such/folder, which is not a folder" in done.stdout
    assert "unset PROPREG_DATA" in done.stdout
    assert "Everything" not in done.stdout


@pytest.mark.usefixtures("nowhere")
def test_packages_that_are_missing_or_old_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    real = examination._version
    fake = {"torch_geometric": None, "rich": "1.2"}
    monkeypatch.setattr(examination, "_version", lambda name: fake.get(name, real(name)))
    done = doctor()
    assert done.exit_code == 1
    assert "Problem: torch_geometric is missing, rich 1.2 is older than 13." in done.stdout
    assert "pip install --upgrade 'propreg[all]'" in done.stdout
    found = json.loads(doctor("--json").stdout)
    assert found["healthy"] is False
    assert next(p for p in found["packages"] if p["name"] == "torch_geometric")["version"] is None


@pytest.mark.usefixtures("nowhere")
def test_without_an_optional_package_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    real = examination._version
    monkeypatch.setattr(examination, "_version", lambda name: None if name == "rdkit" else real(name))
    done = doctor()
    assert done.exit_code == 0, done.stdout
    assert "  rdkit            –            molecules from SMILES\n" in done.stdout
    assert "Everything that propreg needs is installed." in done.stdout


def test_every_package_of_the_all_extra_is_looked_at() -> None:
    lines = metadata.requires("propreg") or []
    users = [
        line for line in lines if "extra ==" not in line or re.search(r"extra == .all.", line)
    ]  # not dev, not docs
    wanted = {line.split(">")[0].split(";")[0].strip() for line in users}
    assert {examination._plain(name) for name in wanted} == {examination._plain(name) for name in examination.PURPOSES}
    assert all(package.least for package in examination.packages())


def test_versions_are_compared_as_numbers() -> None:
    assert Package("a", "", "2.11.0+cpu", "2.11").fine
    assert Package("a", "", "10.0", "9.5").fine
    assert not Package("a", "", "2.9", "2.11").fine
    assert Package("a", "", "2.9", None).fine
    assert not Package("a", "", None, None).fine
    assert numbers("3.0.0rc1") == (3, 0, 0)


@pytest.mark.slow
def test_the_probe_runs_torch_elsewhere() -> None:
    import torch

    found = probe_devices()
    assert found.error is None
    assert len(found.gpus) == torch.cuda.device_count()
    assert found.built_for == torch.version.cuda


def _answer(monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str = "", code: int = 0) -> Devices:
    done = subprocess.CompletedProcess([sys.executable], code, stdout, stderr)
    monkeypatch.setattr("propreg.doctor.subprocess.run", lambda *_, **__: done)
    return probe_devices()


def test_what_the_probe_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = '{"torch": "2", "built_for": "12.6", "devices": [{"name": "H200", "memory": 150000000000}]}'
    assert _answer(monkeypatch, f"a warning\n{gpu}\n") == Devices("12.6", (Gpu("H200", 150000000000),))
    broken = '{"torch": "2", "built_for": "12.6", "devices": [], "error": "driver too old"}'
    assert _answer(monkeypatch, broken).error == "driver too old"
    crashed = _answer(monkeypatch, "", "Traceback …\nModuleNotFoundError: No module named 'torch'\n", 1)
    assert crashed.error == "ModuleNotFoundError: No module named 'torch'"
    assert _answer(monkeypatch, "", "", -11).error == "exit code -11"
    assert _answer(monkeypatch, "[]\n").error is not None


def test_a_probe_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examination, "_PROBE", "import time; time.sleep(60)")
    assert "did not end" in (probe_devices(timeout=0.5).error or "")


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    ("found", "driver", "code", "says"),
    [
        (Devices("12.6", (Gpu("H200", 150 << 30),)), True, 0, "  H200, 150 GiB\n"),
        (Devices(), False, 0, "  no GPU that torch can use (built for CPUs only)\n"),
        (Devices(), True, 0, "Hint: There is an NVIDIA driver, but torch sees no GPU."),
        (Devices(error="driver too old"), True, 1, "cannot be used: driver too old.\n  propreg run --device cpu"),
        (Devices(error="ModuleNotFoundError: No module named 'torch'"), False, 1, "pip install 'propreg[all]'"),
    ],
)  # fmt: skip
def test_devices_are_shown_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, found: Devices, driver: bool, code: int, says: str
) -> None:
    monkeypatch.setattr(examination, "probe_devices", lambda: found)
    monkeypatch.setattr(examination, "has_nvidia_driver", lambda: driver)
    done = doctor("--devices")
    assert done.exit_code == code
    assert says in done.stdout
    assert "GPUs are not checked" in doctor().stdout


@pytest.mark.usefixtures("nowhere")
def test_a_cache_that_cannot_be_written_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("propreg.doctor.os.access", lambda *_: False)
    done = doctor()
    assert done.exit_code == 1
    assert "cannot be written" in done.stdout
    assert "export XDG_CACHE_HOME=" in done.stdout
