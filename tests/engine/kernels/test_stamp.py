"""The stamp of the last GPU run belongs to the kernels as they are; a skipped test says so where it does not."""

import json
from pathlib import Path

import pytest

from engine.kernels import stamp


def test_the_kernels_are_those_of_the_last_gpu_run() -> None:
    """CI has no GPU: changed kernels are no failure here, but the summary shows that they need a run on one."""
    reason = stamp.staleness(stamp.STAMP, stamp.sources())
    if reason:
        pytest.skip(reason)
    known = json.loads(stamp.STAMP.read_text())
    assert set(known) == {"digest", "device", "torch", "triton", "tests"}
    assert known["tests"]["passed"] > 0


def test_every_kernel_counts_and_what_it_is_the_twin_of() -> None:
    names = {path.relative_to(stamp.ENGINE).as_posix() for path in stamp.sources()}
    assert {"kernels/spmm/product.py", "kernels/attention/kernels.py", "ops/sparse.py", "ops/dropout.py"} <= names


def test_a_change_of_text_or_of_a_name_makes_a_stamp_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamp, "ROOT", tmp_path)
    one, other, written = tmp_path / "a.py", tmp_path / "b.py", tmp_path / "stamp.json"
    one.write_text("x = 1\n")
    assert "no GPU run" in stamp.staleness(written, [one])
    written.write_text(json.dumps({"digest": stamp.digest([one])}))
    assert stamp.staleness(written, [one]) == ""
    one.write_bytes(b"x = 1\r\n")  # a checkout on another system
    assert stamp.staleness(written, [one]) == ""
    one.write_text("x = 2\n")
    assert "kernels changed since the last GPU run" in stamp.staleness(written, [one])
    one.write_text("x = 1\n")
    one.rename(other)
    assert "kernels changed" in stamp.staleness(written, [other])


def test_counts_are_read_from_the_reports(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    suite = '<testsuite tests="7" skipped="2" failures="0" errors="0"/>'
    report.write_text(f'<?xml version="1.0"?><testsuites>{suite}{suite}</testsuites>')
    assert stamp.counts([report]) == {"passed": 10, "skipped": 4}
    assert stamp.counts([report, report]) == {"passed": 20, "skipped": 8}
