"""Ray: whatever breaks, the export has the bytes of a local run; and one sentence for a cluster that cannot be used."""

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli.app import app
from propreg.engine.training import memory
from propreg.store.errors import StudyError
from propreg.store.integrity import check_store
from propreg.store.store import Store
from propreg.study.execute.cluster import Share, _no_cluster, _places, _refuse_other_versions, _versions, connect
from study.sweeping import exported, sweep

PATIENCE = 120.0
PROGRAM = Path(__file__).with_name("ray_nodes.py")
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'propreg[cluster]'"
)


@contextmanager
def three_nodes() -> "Iterator[tuple[str, subprocess.Popen[str]]]":
    paths = os.pathsep.join([str(PROGRAM.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ |= {"PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAM), "cluster"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nodes:
        assert nodes.stdout is not None
        address = nodes.stdout.readline().strip()
        assert address, "the cluster did not start"
        try:
            yield address, nodes
        finally:
            nodes.communicate(timeout=PATIENCE)


def recorded(path: Path) -> int:
    with Store(path, "read") as store:
        return len(store.keys())


@pytest.mark.slow
@needs_ray
def test_whatever_breaks_the_bytes_are_those_of_a_local_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    path, here = tmp_path / "store.sqlite", tmp_path / "here.sqlite"
    with three_nodes() as (address, nodes):
        drive = [sys.executable, str(PROGRAM), "drive", address, str(path), str(tmp_path)]

        # A driver with other code than its workers': nothing is trained.
        done = subprocess.run([*drive, "other-engine"], capture_output=True, text=True, check=False)
        assert "and the driver another: install the same propreg on all nodes" in done.stderr, done.stderr
        assert (done.returncode, len(done.stderr.splitlines()), recorded(path)) == (1, 1, 0)

        # A full disk, and meanwhile a worker that is killed.
        done = subprocess.run([*drive, "full"], capture_output=True, text=True, check=False)
        assert "cannot grow, the disk is full: free some space and run again" in done.stderr, done.stderr
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
        before = recorded(path)
        assert 0 < before < 150
        assert check_store(path) == (before, [])

        # A driver that is killed, and meanwhile a node that is removed.
        with subprocess.Popen(drive, stdout=subprocess.PIPE, text=True) as driver:
            wait_for(path, before + 10)
            print("remove", file=nodes.stdin, flush=True)
            assert nodes.stdout is not None
            assert nodes.stdout.readline() == "removed\n"
            wait_for(path, before + 25)
            driver.kill()
            said = driver.communicate(timeout=PATIENCE)[0]
        between = recorded(path)
        assert before + 25 <= between < 200
        assert check_store(path) == (between, [])

        # The rest.
        done = subprocess.run(drive, capture_output=True, text=True, check=False, timeout=2 * PATIENCE)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        *losses, last = (said + done.stdout).splitlines()
        assert last == "done"
        assert len(losses) >= 1, "the node that was removed, and the worker that was killed if it was not before"
        assert all(line.endswith(") was lost; its unfinished runs are trained again") for line in losses)
    assert (tmp_path / "killed").exists()
    sweep(here)
    assert exported(path) == exported(here)
    with Store(path, "read") as store:
        sessions = store.sessions()
    assert sum(session["runs"] for session in sessions) == 200
    assert all(session["node"].startswith(socket.gethostname()) for session in sessions)
    assert {session["device"] for session in sessions} == {sessions[0]["device"]}
    assert len({session["node"] for session in sessions if session["runs"]}) == 3


def wait_for(path: Path, runs: int) -> None:
    until = time.monotonic() + PATIENCE
    while recorded(path) < runs:
        assert time.monotonic() < until
        time.sleep(0.02)


@needs_ray
def test_an_address_without_a_cluster() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(StudyError) as raised:
            connect(address)
    assert str(raised.value) == (
        f"There is no Ray cluster at {address} that this process can use (Connection refused): start one with ray "
        "start --head, or leave --address out to use this machine alone."
    )


@needs_ray
@pytest.mark.parametrize("address", ["head", "ray://head:10001", "head:x"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(StudyError, match="--address must be like host:6379, as ray start --head prints it, got"):
        connect(address)


def test_other_versions() -> None:
    _refuse_other_versions({**_versions(), "node": "n1"})
    with pytest.raises(StudyError, match=r"The worker on n1 has propreg 0\.0\.1, and the driver .*install the same"):
        _refuse_other_versions({**_versions(), "propreg": "0.0.1", "node": "n1"})
    said = _no_cluster(
        "h:1", RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 1.0\n    Python: 3")
    )
    assert said == (
        "The Ray cluster has other versions than this process: install the same on all nodes. Version mismatch: The "
        "cluster was started with: Ray: 1.0 Python: 3."
    )


def test_options_of_a_cluster_need_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["reproduce", "digits-smoke", "--address", "head:6379"])
    assert (done.exit_code, done.stderr) == (
        2,
        "--address, --gpus and --memory are for a Ray cluster: add --engine ray.\n",
    )


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'propreg\[cluster\]'"):
        connect(None)


def test_places_are_counted_by_node() -> None:
    """A worker's share has to fit into one node: two halves on two nodes are none."""
    node = {"Alive": True, "Resources": {"CPU": 16.0, "GPU": 4.0, "memory": 64.0 * 2**30}}
    gone = {"Alive": False, "Resources": node["Resources"]}
    assert _places([node, gone], Share(gpus=0.5).resources()) == 8
    assert _places([node, node], Share(gpus=1.0, memory=40.0).resources()) == 2
    assert _places([node], Share(gpus=0.0, memory=96.0).resources()) == 0
    assert _places([node], Share(gpus=0.1, cpus=1.0).resources()) == 16


def test_a_share_of_memory_is_all_that_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    free = memory.available_bytes()
    assert free is not None
    monkeypatch.setattr(memory, "SHARE", memory.Share(memory=2**40))
    assert memory.available_bytes() == pytest.approx(free, rel=0.2), "a share larger than the machine changes nothing"
    status = "VmRSS:\t  1048576 kB\n"
    monkeypatch.setattr(memory, "_text", lambda path: status if path == memory.STATUS else "")
    monkeypatch.setattr(memory, "SHARE", memory.Share(memory=3 * 2**30))
    assert memory.available_bytes() == 2 * 2**30
    monkeypatch.setattr(memory, "SHARE", memory.Share(memory=2**29))
    assert memory.available_bytes() == 0


def test_a_share_of_a_gpu_is_all_that_counts_as_free(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (90, 100))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 20)
    device = torch.device("cuda")
    assert memory.Share().free_on_gpu(device) == 90
    assert memory.Share(gpu=0.5).free_on_gpu(device) == 30
    assert memory.Share(gpu=0.1).free_on_gpu(device) == 0
