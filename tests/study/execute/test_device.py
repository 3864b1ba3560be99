"""Devices by name, and the processor in the notes of a session."""

from pathlib import Path

import pytest
import torch

from propreg.devices import DeviceError, DeviceNameError, check_device, processor
from propreg.study.execute.trainer import Trainer

CPUINFO = """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 85
model name\t: Xeon
stepping\t: 7

processor\t: 1
model name\t: another
"""


@pytest.mark.parametrize("name", ["gpu5", "cpu:0", "cuda:x", ""])
def test_a_name_that_no_device_has_is_wrong_for_all(name: str) -> None:
    for refuses in (check_device, Trainer):
        with pytest.raises(DeviceNameError, match="--device must be auto, cpu, cuda or one GPU like cuda:0, got"):
            refuses(name)


def test_a_gpu_that_is_not_here_is_refused_by_all() -> None:
    name = f"cuda:{torch.cuda.device_count()}"
    for refuses in (check_device, Trainer):
        with pytest.raises(DeviceError, match=r"--device is .*, but torch sees "):
            refuses(name)


def test_processors_of_one_name_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    assert processor(file) == ""
    file.write_text("processor\t: 0\nCPU part\t: 0xd0c\n")
    assert processor(file) == ""
    file.write_text(CPUINFO)
    assert processor(file) == "Xeon, cpu family 6, model 85, stepping 7"
    file.write_text(CPUINFO.replace("85", "106"))
    assert processor(file) != "Xeon, cpu family 6, model 85, stepping 7"


def test_a_session_on_a_cpu_names_the_processor_where_the_system_does() -> None:
    assert Trainer("cpu").about().get("processor", "") == processor()
