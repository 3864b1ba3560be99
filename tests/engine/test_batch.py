"""A run is the same run alone, in a batch of any size, and after others have left it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.follow import Run, check_near, drawn
from engine.graphs import problem
from propreg.engine import Method, Model, Protocol, Replica

LOOK_AT = (1, 10, 50, 100)
TOLERANCE = {torch.float64: 1e-8, torch.float32: 1e-3}
GAT = Model("gat", hidden=4, heads=2, input_dropout=0.6, attention_dropout=0.6)
CASES: dict[str, tuple[Model, Method, str]] = {
    "gcn": (Model("gcn", hidden=16), Method.preset("reference"), "plain"),
    "gcn, dense features": (Model("gcn", hidden=16, layers=3), Method.preset("paper"), "dense"),
    "gcn, input dropout": (Model("gcn", hidden=16, input_dropout=0.3), Method.preset("reference"), "odd"),
    "mlp": (Model("mlp", hidden=16, input_dropout=0.2), Method("preg", phi="kl", schedule="annealed"), "plain"),
    "appnp": (Model("appnp", hidden=16, steps=4), Method("laplacian"), "plain"),
    "gat": (GAT, Method.preset("paper"), "plain"),
    "gat, averaged heads": (replace(GAT, out_heads=2), Method("label_smoothing"), "dense"),
}


def sweep(number: int) -> list[Replica]:
    """Runs that differ in everything a replica may differ in."""
    return [
        Replica(
            seed=i // 3,
            split="ab"[i % 2],
            strength=(0.0, 0.1, 0.3, 0.6)[i % 4],
            lr=(0.01, 0.005, 0.02)[i % 3],
            weight_decay=(5e-4, 0.0)[i // 2 % 2],
            dropout=(0.5, 0.2, 0.0, 0.6)[i % 4],
            unmask=(1.0, 0.5)[i // 5 % 2],
        )
        for i in range(number)
    ]


ALL = sweep(64)
WATCHED = (0, 5, 63)
SEVEN = (11, 63, 2, 0, 40, 5, 9)


def trajectory(name: str, dtype: torch.dtype, members: Sequence[int], leave: dict[int, list[int]] | None = None) -> Any:
    """{run: [its logits at the epochs looked at]}; ``leave`` says who goes after which epoch."""
    model, method, kind = CASES[name]
    run = Run(problem(kind, dtype), model, method, [ALL[i] for i in members], Protocol())
    here, seen = list(members), {i: list[Tensor]() for i in members}
    for epoch in range(1, LOOK_AT[-1] + 1):
        run.step()
        if epoch in LOOK_AT:
            for i, logits in zip(here, run.logits(), strict=True):
                seen[i].append(logits)
        if leave and epoch in leave:
            stay = [row for row, i in enumerate(here) if i not in leave[epoch]]
            run.state.keep(np.array(stay))
            here = [here[row] for row in stay]
    return seen


@cache
def alone(name: str, dtype: torch.dtype, i: int) -> list[Tensor]:
    found: list[Tensor] = trajectory(name, dtype, [i])[i]
    return found


def check_same(name: str, dtype: torch.dtype, seen: dict[int, list[Tensor]]) -> None:
    for i in WATCHED:
        assert len(seen[i]) == len(LOOK_AT)
        for epoch, logits, expected in zip(LOOK_AT, seen[i], alone(name, dtype, i), strict=True):
            check_near(logits, expected, TOLERANCE[dtype], f"run {i}, epoch {epoch}")


DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name != "gat, averaged heads"])
@DTYPES
def test_alone_or_among_64(name: str, dtype: torch.dtype) -> None:
    check_same(name, dtype, trajectory(name, dtype, range(64)))


@pytest.mark.parametrize("name", CASES)
@DTYPES
def test_alone_or_among_7_of_which_some_leave(name: str, dtype: torch.dtype) -> None:
    check_same(name, dtype, trajectory(name, dtype, SEVEN))
    check_same(name, dtype, trajectory(name, dtype, SEVEN, leave={1: [11], 30: [2], 70: [40, 9]}))


def weights_after(method: Method, replicas: list[Replica], model: Model, epochs: int = 100, kind: str = "odd") -> Any:
    run = Run(problem(kind), model, method, replicas, Protocol())
    run.step(epochs)
    return run.weights


SMALL = Model("gcn", hidden=16)
PLAIN = [Replica(seed=s, split="ab"[s % 2], strength=0.0) for s in range(3)]


@cache
def plain_weights() -> Any:
    return weights_after(Method(), PLAIN, SMALL)


@pytest.mark.parametrize(
    "method",
    [
        Method.preset("paper"),
        Method.preset("reference"),
        Method("preg", schedule="annealed"),
        Method("preg", threshold=0.3, second_pass=True),
        Method("preg", phi="l2_probability", detach="self"),
        Method("preg", phi="squared_error", detach="neighbours", phi_scale=0.25),
        Method("preg", phi="bernoulli", norm="sym"),
        Method("preg", phi="reverse_kl"),
        Method("laplacian", reduction="sum"),
        Method("confidence_penalty"),
        Method("label_smoothing"),
    ],
    ids=lambda m: f"{m.name} {m.phi} {m.norm} {m.detach} {m.schedule} {m.second_pass}",
)
def test_strength_0_is_the_plain_run_to_the_last_bit(method: Method) -> None:
    silent = weights_after(method, PLAIN, SMALL)
    # A sweep is the same program: its plain run among others has the same neighbors' shapes and so the same bits.
    swept = weights_after(method, [PLAIN[0], replace(PLAIN[1], strength=0.3), replace(PLAIN[2], strength=0.9)], SMALL)
    for name, w in plain_weights().items():
        assert torch.equal(silent[name], w), name
        assert torch.equal(swept[name][0], w[0]), name
        if not name.startswith("b"):
            assert not torch.equal(swept[name][1], w[1]), name


@pytest.mark.parametrize("model", [Model("mlp", hidden=8, input_dropout=0.2), Model("appnp", hidden=8), GAT])
def test_strength_0_is_the_plain_run_of_every_model(model: Model) -> None:
    plain = [Replica(seed=s, strength=0.0, split="a") for s in range(2)]
    expected = weights_after(Method(), plain, model)
    for method in (Method.preset("paper"), Method.preset("reference")):
        for name, w in weights_after(method, plain, model).items():
            assert torch.equal(w, expected[name]), name


PAIRED = {
    "strength": replace(ALL[0], strength=0.9),
    "lr": replace(ALL[0], lr=0.5),
    "weight_decay": replace(ALL[0], weight_decay=0.1),
    "patience": replace(ALL[0], patience=3),
    "unmask": replace(ALL[0], unmask=0.3),
}
OTHERS = {"seed": replace(ALL[0], seed=99), "split": replace(ALL[0], split="b")}
PLACES = ("input", "hidden1", "attention0", "attention1")


def started(replicas: list[Replica], model: Model = GAT, method: Method | None = None) -> Run:
    return Run(problem(), model, method or Method(), replicas, Protocol())


def test_paired_runs_share_weights_and_masks_and_others_do_not() -> None:
    for replicas, shared in (([ALL[0], *PAIRED.values()], True), ([ALL[0], *OTHERS.values()], False)):
        run = started(replicas)
        for name, w in run.weights.items():
            if name.startswith("b"):
                assert not w.any(), "biases start at 0"
                continue
            assert all(torch.equal(w[0], other) == shared for other in w[1:]), name
        for place in PLACES:
            factors = drawn(run.state, 7, 1, place).factors(500, torch.float64)
            assert all(torch.equal(factors[0], other) == shared for other in factors[1:]), place


def test_the_method_has_no_say_in_weights_and_masks() -> None:
    for method in (Method.preset("reference"), Method("laplacian"), Method("label_smoothing")):
        plain, other = started([ALL[0]]), started([ALL[0]], method=method)
        assert all(torch.equal(w, other.weights[name]) for name, w in plain.weights.items())
        for place in PLACES:
            here, there = (drawn(run.state, 7, 0, place).factors(500, torch.float64) for run in (plain, other))
            assert torch.equal(here, there)


def test_models_of_another_width_start_elsewhere() -> None:
    narrow, wide = started([ALL[0]], Model("gcn", hidden=8)), started([ALL[0]], Model("gcn", hidden=16))
    assert not torch.equal(narrow.weights["w0"], wide.weights["w0"][..., :8])


def test_the_share_of_counted_nodes() -> None:
    shares = (1.0, 0.75, 0.5, 0.1, 0.0)
    counted = started([replace(ALL[0], unmask=share) for share in shares]).state.counted
    assert counted is not None
    nodes = counted.shape[1]
    for row, share in zip(counted, shares, strict=True):
        chosen = row > 0
        assert int(chosen.sum()) == round(share * nodes)
        assert float(row.sum()) == pytest.approx(1.0 if share else 0.0)
        assert len(row[chosen].unique()) <= 1
    for larger, smaller in pairwise(counted):
        assert not bool(((smaller > 0) & (larger == 0)).any()), "a larger share holds the smaller one"
