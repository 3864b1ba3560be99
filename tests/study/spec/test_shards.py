"""Shards: every batch in one of them, of about equal cost, and merged they give the bytes of a single machine."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from propreg.cli import reproduce as command
from propreg.cli.app import app
from propreg.store.errors import UsageError
from propreg.store.integrity import check_store
from propreg.store.store import Store
from propreg.study.execute.runner import reproduce
from propreg.study.spec.shards import Shard
from study.sweeping import MadeUp, batches, exported

SLURM = {"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_MIN": "0", "SLURM_ARRAY_TASK_MAX": "3"}
SLURM |= {"SLURM_ARRAY_TASK_COUNT": "4"}


@pytest.mark.parametrize(("name", "count"), [("table1", 8), ("digits-smoke", 1), ("digits-smoke", 12)])
def test_every_batch_is_in_one_shard(name: str, count: int) -> None:
    every = batches(name)
    shards = [Shard(i, count).of(every) for i in range(count)]
    assert sorted(batch.id for shard in shards for batch in shard) == sorted(batch.id for batch in every)
    assert Shard(0, count).of(every[::-1]) == shards[0], "in whatever order they come"
    costs = [sum(batch.cost for batch in shard) for shard in shards]
    assert max(costs) - min(costs) <= max(batch.cost for batch in every), "the bound of the greedy rule"
    if name == "table1":
        assert max(costs) < 1.01 * min(costs)


def test_merged_shards_give_the_bytes_of_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "make_trainer", lambda *_: MadeUp())
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    for index in (2, 0, 1):
        done = runner.invoke(app, ["reproduce", "digits-smoke", "--shard", f"{index}/3"])
        assert done.exit_code == 0, done.output
        assert f"shard {index}/3: " in done.stderr
        assert f"of 10 batches, stored in propreg-study.{index}-of-3.sqlite" in done.stderr
        assert done.stdout.endswith(f"; all runs of shard {index}/3 are recorded.\n")
    stores = sorted(tmp_path.glob("*.sqlite"))
    assert [path.name for path in stores] == [f"propreg-study.{i}-of-3.sqlite" for i in range(3)]
    merged = runner.invoke(app, ["store", "merge", *map(str, stores), "--store", "all.sqlite"])
    assert merged.exit_code == 0, merged.output
    with Store(tmp_path / "one.sqlite") as store:
        reproduce(batches(), store, MadeUp)
    for name in ("one", "all"):
        assert check_store(Path(f"{name}.sqlite")) == (200, [])
        runner.invoke(app, ["store", "export", f"{name}.jsonl.gz", "--store", f"{name}.sqlite"], catch_exceptions=False)
    assert Path("one.jsonl.gz").read_bytes() == Path("all.jsonl.gz").read_bytes()
    assert exported(Path("one.sqlite"))


def test_the_status_counts_the_stores_of_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "make_trainer", lambda *_: MadeUp())
    monkeypatch.chdir(tmp_path)
    done = 0
    for index in (2, 0):
        _invoke("reproduce", "digits-smoke", "--shard", f"{index}/3")
        done += sum(len(batch.runs) for batch in Shard(index, 3).of(batches()))
        assert f"{done} of 200 runs done" in _invoke("status", "digits-smoke")
    shards = [f"propreg-study.{index}-of-3.sqlite" for index in (0, 2)]
    said = f"2 stores of shards. To join them: propreg store merge {' '.join(shards)} --store propreg-study.sqlite."
    assert f"Read from {said}" in _invoke("status", "digits-smoke")
    assert f"{done:,} of " in next(line for line in _invoke("status").splitlines() if line.startswith("digits-smoke "))
    assert '"done": 0' in _invoke("status", "digits-smoke", "--json", "--store", "other.sqlite")
    _invoke("reproduce", "digits-smoke")
    assert f"Read from propreg-study.sqlite. Also counted: {said}" in _invoke("status", "digits-smoke")
    one = json.loads(_invoke("status", "digits-smoke", "--json", "--results", shards[0]))["done"]
    assert one == sum(len(batch.runs) for batch in Shard(0, 3).of(batches()))


def _invoke(*words: str) -> str:
    return CliRunner().invoke(app, words, catch_exceptions=False).stdout


@pytest.mark.parametrize(
    ("text", "job", "is_"),
    [
        ("0/1", {}, Shard(0, 1)),
        ("7/8", SLURM, Shard(7, 8)),
        ("auto", SLURM, Shard(2, 4)),
        ("auto/8", SLURM, Shard(2, 8)),
        # Sent again by itself, a task keeps its number.
        ("auto/4", SLURM | {"SLURM_ARRAY_TASK_MIN": "2", "SLURM_ARRAY_TASK_COUNT": "1"}, Shard(2, 4)),
        ("auto/4", {"JOB_COMPLETION_INDEX": "0"}, Shard(0, 4)),
    ],
)
def test_what_shards_are_given_by(text: str, job: dict[str, str], is_: Shard) -> None:
    assert Shard.parse(text, job) == is_


@pytest.mark.parametrize(
    ("text", "job", "says"),
    [
        ("three", {}, "--shard must be like 3/8, auto/8 or auto, got 'three'."),
        ("-1/8", {}, "--shard must be like 3/8, auto/8 or auto, got '-1/8'."),
        ("8/8", {}, "--shard counts from 0: of 8 shards the last is 7, got 8."),
        ("0/0", {}, "--shard needs at least one shard, got '0/0'."),
        ("auto/2", SLURM, "--shard counts from 0: of 2 shards the last is 1, got 2 (SLURM_ARRAY_TASK_ID)."),
        ("auto", {}, "--shard auto needs SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX, and neither is set: give a "),
        ("auto", SLURM | {"JOB_COMPLETION_INDEX": "0"}, "and both are set: give a number, as in 3/8."),
        ("auto", {"JOB_COMPLETION_INDEX": "0"}, "Kubernetes does not tell a job how many there are: write auto/N"),
        ("auto", SLURM | {"SLURM_ARRAY_TASK_MIN": "2", "SLURM_ARRAY_TASK_MAX": "2", "SLURM_ARRAY_TASK_COUNT": "1"},
         "the array of SLURM has 1 tasks from 2 to 2, not from 0: write auto/N with the number of shards."),
        ("auto/8", {"JOB_COMPLETION_INDEX": "x"}, "JOB_COMPLETION_INDEX must be a whole number, got 'x'."),
    ],
)  # fmt: skip
def test_no_shard(text: str, job: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError) as raised:
        Shard.parse(text, job)
    assert says in str(raised.value)
