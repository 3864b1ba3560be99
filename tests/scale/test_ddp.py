"""``examples/large_graph_ddp.py``: several processes train as one does, and a lost one ends the job with a sentence."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from torch import distributed

from propreg.data.formats.safetensors import read_safetensors
from propreg.data.own import write_stored
from propreg.data.own.pyg import graph_from_data
from propreg.data.synthetic import random_graph

EXAMPLE = Path(__file__).parents[2] / "examples" / "large_graph_ddp.py"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not distributed.is_available(), reason="torch is built without torch.distributed"),
]


def start(folder: Path, processes: int, *options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    return subprocess.Popen(
        [*command, str(EXAMPLE), "--nodes=2000", "--checkpoint=a.safetensors", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    )


def losses(folder: Path, processes: int, *options: str) -> dict[int, float]:
    """Each epoch's loss."""
    out, err = start(folder, processes, *options).communicate(timeout=300)
    found = {int(epoch): float(loss) for epoch, loss in re.findall(r"^epoch (\d+): loss (\S+)$", out, re.M)}
    assert found, err
    return found


def children(process: int) -> list[int]:
    """The processes that torchrun started, as Linux lists them."""
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_two_processes_have_the_losses_of_one(tmp_path: Path) -> None:
    one = losses(tmp_path, 1, "--epochs=3")
    two = losses(tmp_path, 2, "--epochs=3")
    assert list(one) == [1, 2, 3]
    assert two == pytest.approx(one, rel=1e-4)
    assert one[3] < one[1]


@pytest.mark.skipif(
    not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="needs Linux's list of children"
)
def test_a_lost_process_ends_the_job_and_it_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    job = start(tmp_path, 2, "--epochs=4000")
    assert job.stdout is not None
    while not job.stdout.readline().startswith("epoch 2"):
        assert job.poll() is None
    os.kill(children(job.pid)[1], signal.SIGKILL)
    began = time.monotonic()
    _, err = job.communicate(timeout=120)
    assert time.monotonic() - began < 60, "the others waited for it"
    assert job.returncode != 0
    assert "A process of this training ended, and the others with it: start it again with --resume." in err, err
    _, about = read_safetensors(tmp_path / "a.safetensors")
    done = int(about["epoch"])
    assert done >= 2
    resumed = losses(tmp_path, 2, "--resume", f"--epochs={done + 2}")
    assert list(resumed) == [done + 1, done + 2]
    through = losses(tmp_path / "whole", 1, f"--epochs={done + 2}")
    assert resumed == pytest.approx({epoch: through[epoch] for epoch in resumed}, rel=1e-3)


def test_a_stored_graph_is_trained_on_from_its_files(tmp_path: Path) -> None:
    write_stored(tmp_path / "graph", graph_from_data(random_graph(2000, 40_000, 64, 10, homophily=0.5)))
    drawn = losses(tmp_path, 1, "--epochs=2")
    assert losses(tmp_path, 1, "--epochs=2", "--graph=graph") == pytest.approx(drawn, rel=1e-4)
    (tmp_path / "graph" / "y.npy").unlink()
    _, err = start(tmp_path, 1, "--graph=graph").communicate(timeout=120)
    assert "y.npy: there is no such file" in err


def test_parts_that_do_not_divide_are_refused(tmp_path: Path) -> None:
    job = start(tmp_path, 2, "--parts=3")
    _, err = job.communicate(timeout=120)
    assert job.returncode != 0
    assert "--parts 3 cannot be divided among 2 processes: give a multiple of 2." in err
