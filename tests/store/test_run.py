"""A run's identity: canonical JSON, decimals, what is the same run, and keys that never change."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from propreg.engine.spec import Method, Model, Protocol
from propreg.store.errors import StudyError
from propreg.store.run import Cell, Run, decimal

GOLDEN = [
    "f882761d853f17e58c187f3b2d64c8c34861fa423e69f686eff74e33c49c73e9",
    "2c2d3003a24c1adbcf75af917d1fb7a821d54257096634b0cba8fbd1a200dff3",
    "ac886579d454b41b2c98e1b2b4795acf076ffa434a9386a0f443e7bd53aa5337",
    "331c2dee39ca8777a0ea1fa12e4c8cba20aabc20c03245e2c8bb2151d5145323",
]

finite = st.floats(min_value=1e-9, max_value=1e6, allow_nan=False)
models = st.builds(
    Model,
    name=st.sampled_from(["gcn", "mlp", "gat", "appnp"]),
    hidden=st.integers(1, 512),
    layers=st.integers(2, 8),
    input_dropout=st.floats(0, 0.9),
)
methods = st.builds(
    Method,
    name=st.sampled_from(["plain", "preg", "laplacian", "confidence_penalty", "label_smoothing"]),
    phi=st.sampled_from(["cross_entropy", "kl", "squared_error"]),
    norm=st.sampled_from(["rw", "sym"]),
    second_pass=st.booleans(),
    threshold=st.none() | finite,
    detach=st.sampled_from([None, "self", "neighbours"]),
)
cells = st.builds(
    Cell,
    dataset=st.sampled_from(["digits", "cora", "citeseer"]),
    digest=st.text("0123456789abcdef", min_size=64, max_size=64),
    labels=st.sampled_from(["pyg", "authors"]),
    split_kind=st.sampled_from(["official", "public", "random", "natural"]),
    train_nodes=st.none() | st.integers(1, 5000),
    per_class=st.none() | st.integers(1, 50),
    wrong_edges=st.sampled_from([0.0, 0.3]),
    wrong_labels=st.sampled_from([0.0, 0.1]),
    normalize=st.booleans(),
    model=models,
    method=methods,
    strength=st.just(0.0) | finite,
    protocol=st.builds(Protocol, rule=st.sampled_from(["official", "strict"]), max_epochs=st.integers(1, 10_000)),
    lr=finite,
    weight_decay=st.just(0.0) | finite,
    dropout=st.floats(0, 0.99),
    patience=st.integers(0, 1000),
    unmask=st.floats(0, 1),
    measure=st.sampled_from(["", "distance"]),
)


@settings(deadline=None)  # the first example pays for imports
@given(cells, st.integers(0, 99), st.integers(0, 99))
def test_text_round_trip(cell: Cell, split: int, seed: int) -> None:
    run = Run(cell, split, seed)
    again = Run.from_text(run.text)
    assert again == run
    assert again.text == run.text
    assert again.key == run.key
    assert json.dumps(json.loads(run.text), sort_keys=True, separators=(",", ":")) == run.text


@settings(deadline=None)
@given(st.integers(1, 10_000), st.integers(1, 9))
def test_decimals_do_not_show_how_they_were_computed(steps: int, places: int) -> None:
    step = 10.0**-places
    assert decimal("x", steps * step) == decimal("x", float(f"{steps}e-{places}"))


def test_defaults_are_left_out() -> None:
    assert (
        Cell("digits", "d").text == '{"dataset":"digits","digest":"d","method":{"name":"plain"},"model":{"name":"gcn"}}'
    )
    assert '"strength":0.15}' in Cell("digits", "d", method=Method("preg"), strength=3 * 0.05).text


def test_no_term_is_the_plain_run() -> None:
    plain = Cell("digits", "d")
    for other in (
        Cell("digits", "d", method=Method.preset("reference"), strength=0.0),
        Cell("digits", "d", method=Method.preset("paper"), strength=-0.0),
        Cell("digits", "d", method=Method("preg"), strength=0.5, unmask=0.0),
        Cell("digits", "d", method=Method("plain", norm="sym"), strength=0.5),
        Cell("digits", "d", method=Method("laplacian"), strength=0.3).plain,
    ):
        assert other == plain
        assert other.text == plain.text


def test_keys_never_change() -> None:
    """A changed key orphans every recorded run: change RECIPE and these together, and say why."""
    digest = "13868c94567074932804f0b7cb438d43ae4613e9ffd70a23e2cf688d3aec56f3"
    reference = Cell("digits", digest, method=Method.preset("reference"), strength=0.15)
    gat = Model("gat", hidden=16, input_dropout=0.6, attention_dropout=0.6)
    attention = Cell("digits", digest, model=gat, method=Method("laplacian"), strength=1e-5, dropout=0.6)
    strict = Cell("digits", digest, protocol=Protocol("strict"), normalize=False, measure="distance")
    assert [Run(cell, 1, 2).key for cell in (Cell("digits", digest), reference, attention, strict)] == GOLDEN


@pytest.mark.parametrize("spelling", ["neighbors", "neighbours"])
def test_a_detached_neighborhood_has_the_key_of_recorded_runs(spelling: Any) -> None:
    """They have the British spelling."""
    run = Run(Cell("digits", "0" * 8, method=Method("preg", detach=spelling), strength=0.5), 1, 2)
    assert run.key == "ebe0042816c6f59cf89ee19009dfca116aaf0596854fb30584a1ee5ee5666c6b"
    assert '"detach":"neighbours"' in run.text
    assert Run.from_text(run.text) == run
    assert run.cell.method.detach == "neighbors"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("not JSON", "must be JSON"),
        ("[1]", "must be JSON with cell, split and seed"),
        ('{"cell":{"dataset":"a"},"seed":0,"split":0}', "needs 'digest'"),
        ('{"cell":{"dataset":"a","digest":"b","depth":3},"seed":0,"split":0}', "has no setting 'depth'"),
        ('{"cell":{"dataset":"a","digest":"b"},"seed":-1,"split":0}', "seed must be a whole number"),
        ('{"cell":{"dataset":"a","digest":"b","lr":"fast"},"seed":0,"split":0}', "lr must be a number"),
        ('{"cell":{"dataset":"a","digest":"b","model":3},"seed":0,"split":0}', "Model must be a JSON object"),
    ],
)
def test_what_is_no_run_is_refused(text: str, says: str) -> None:
    with pytest.raises(StudyError, match=says):
        Run.from_text(text)


def test_infinite_numbers_are_refused() -> None:
    with pytest.raises(StudyError, match="strength must be finite"):
        Cell("digits", "d", strength=float("inf"))
