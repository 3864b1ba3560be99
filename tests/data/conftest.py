"""What several data tests need."""

import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from data.server import Site, certificate, serve
from propreg.data.benchmarks import download

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PyG's own import warns of its use of torch.jit
    import torch_geometric.data
    import torch_geometric.io  # noqa: F401


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and no PROPREG_DATA: nothing is found but what the test puts there."""
    monkeypatch.delenv("PROPREG_DATA", raising=False)
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr("propreg.data.benchmarks.locate.sys.platform", "linux")
    return cache / "propreg"


@pytest.fixture
def benchmarks() -> Path:
    """The folder of benchmark files; the test is skipped where there is none."""
    folder = os.environ.get("PROPREG_DATA")
    if not folder or not (Path(folder) / "cora.npz").exists():
        pytest.skip("the benchmark files are not there: set PROPREG_DATA to the folder that holds cora.npz")
    return Path(folder)


@pytest.fixture(scope="session")
def pem(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not there to make a certificate")
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def site(pem: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An HTTPS server that the system's trust store trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    monkeypatch.setattr(download, "PAUSE", 0.001)
    monkeypatch.setattr(download, "TIMEOUT", 5.0)
    with serve(pem) as running:
        yield running
