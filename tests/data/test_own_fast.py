"""The fast reader of plain edge lists and the exact one agree, in what they read and in what they say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from own_graphs import names
from propreg import DataError
from propreg.data.own.edges_csv import PlainIds, plain_lines, read_edges

integers = st.integers(0, 30).map(str)
weights = st.sampled_from(["0", "1", "0.5", ".5", "5.", "1e3", "2E-4", "+1", "0.1000000000000000055511151231257827"])
odd_cells = ["", "01", " 1", '"1"', "1.0", "-1", "x", "9" * 18, "1" * 19, "nan", "1e39", "1_0", ".", "é", "1\n1"]
odd = st.lists(st.sampled_from(odd_cells) | integers, max_size=4).map(",".join)
odd_heads = ["\ufeffsource,target", " Source , TARGET ", "target,source", '"source",target', ""]
heads = st.just("source,target") | st.sampled_from(odd_heads)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Mostly plain lines, a few odd ones among them."""
    weighted = draw(st.booleans())
    cells = [integers, integers, weights] if weighted else [integers, integers]
    lines = draw(st.lists(st.tuples(*cells).map(",".join), max_size=8))
    for line in draw(st.lists(odd, max_size=1)):
        lines.insert(draw(st.integers(0, len(lines))), line)
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n"]))
    text = end.join([draw(heads) + ",weight" * weighted, *lines])
    return (text + end * draw(st.booleans())).encode()


def outcome(path: Path, ids: dict[str, int], *, fast: bool) -> Any:
    try:
        found = read_edges(path, ids, fast=fast)
    except DataError as error:
        return str(error)
    return [None if part is None else part.tolist() for part in (found.nodes, found.weight, found.line)]


@settings(deadline=None, max_examples=300)
@given(
    content=files(),
    ids=st.just([str(node) for node in range(31)]) | st.lists(integers | names, max_size=30, unique=True),
)
def test_both_readers_agree(content: bytes, ids: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("edges") / "edges.csv"
    path.write_bytes(content)
    table = {node: place for place, node in enumerate(ids)}
    assert outcome(path, table, fast=True) == outcome(path, table, fast=False)


@pytest.mark.parametrize("odd", ["", " A,BW\n", '"A",BW\n', "\n", "A,BW\r\n"])
@pytest.mark.parametrize("weighted", [False, True])
def test_both_readers_agree_over_many_blocks(tmp_path: Path, odd: str, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    ids = {str(number): place for place, number in enumerate(rng.permutation(100_000)[:10_000].tolist())}
    known, path = list(ids), tmp_path / "edges.csv"
    pairs, numbers = rng.integers(0, 10_000, (60_000, 2)).tolist(), rng.random(60_000).tolist()
    rows = [
        f"{known[a]},{known[b]}" + f",{weight!r}" * weighted + "\n"
        for (a, b), weight in zip(pairs, numbers, strict=True)
    ]
    rows.insert(45_000, odd.replace("A", known[5]).replace("B", known[6]).replace("W", ",0.25" * weighted))
    path.write_text("source,target" + ",weight" * weighted + "\n" + "".join(rows), newline="")
    fast, exact = (read_edges(path, ids, fast=fast) for fast in (True, False))
    assert fast.nodes.shape[1] == 60_000 + ("A" in odd)
    for part in ("nodes", "weight", "line"):
        np.testing.assert_array_equal(getattr(fast, part), getattr(exact, part))
    assert (fast.weight is not None) == weighted


def test_plain_lines_take_the_fast_way(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target,weight\n" + "1,2,0.5\n" * 1000)
    plain = PlainIds.of(["1", "2"])
    assert plain is not None
    with open(tmp_path / "edges.csv", "rb") as file:
        assert plain_lines(file, plain).lines == 1001
        assert file.read() == b""
    assert PlainIds.of(["1", "02"]) is None
