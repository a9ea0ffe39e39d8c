"""Learned policies in the core give equal numbers on any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from situate import _core

H, K, G, D, A, U, M = 72, 6, 45, 3, 10, 2500, 2
"""Hidden units, samples, groups, devices, width of attention, units, groupings. None is a multiple
of the core's block sizes, and all are large enough for several threads."""


def numbers(*shape: int) -> np.ndarray:
    """Around zero, the same for a shape."""
    return np.random.default_rng(shape).normal(size=shape).astype(np.float32) / 4


def forward() -> dict[str, np.ndarray]:
    layer = {"recurrent": numbers(4 * H, H), "projected": numbers(G, K, 4 * H)}
    return layer | {"hidden": numbers(K, H), "cell": numbers(K, H)}


def backward() -> dict[str, np.ndarray]:
    arguments = forward()
    gate, cells, _ = _core.nn.lstm_forward(**arguments, threads=1)
    gradients = {"d_hidden": numbers(G, K, H), "d_last_cell": numbers(K, H)}
    return {
        "recurrent": arguments["recurrent"],
        "cell": arguments["cell"],
        "gate": gate,
        "cells": cells,
    } | gradients


WEIGHTS = {"embedding", "recurrent", "inputs", "biases", "query", "v", "head"}


def draw(threads: int, *, temperature: float, bound: float, **arrays: Any) -> Any:
    """Devices, with the arrays in the two groups that the core takes."""
    weights = {name: array for name, array in arrays.items() if name in WEIGHTS}
    inputs = {name: array for name, array in arrays.items() if name not in WEIGHTS}
    return _core.nn.sample_devices(
        _core.nn.SamplerWeights(**weights),
        _core.nn.SamplerInputs(**inputs),
        temperature=temperature,
        bound=bound,
        threads=threads,
    )


def draws(layers: int = 2, memories: int = 1) -> dict[str, Any]:
    return {
        "embedding": numbers(D + 1, 4 * H),
        "recurrent": [numbers(4 * H, H)] * layers,
        "inputs": [numbers(4 * H, H)] * (layers - 1),
        "biases": [numbers(4 * H)] * (layers - 1),
        "hidden": numbers(layers, K, H),
        "cell": numbers(layers, K, H),
        "outputs": numbers(memories, G, H),
        "keys": numbers(memories, G, A),
        "query": numbers(A, H),
        "v": numbers(A),
        "head": numbers(D, 2 * H),
        "own": numbers(K, G, D),
        "gumbel": numbers(K, G, D),
        "noise": numbers(K, G, D),
        "temperature": 1.5,
        "bound": 2.0,
    }


def layer() -> dict[str, Any]:
    start = np.arange(U) % G
    return {
        "states": numbers(U, A),
        "weight": numbers(G, A),
        "bias": numbers(G),
        "start": start,
        "trust": 0.5,
    }


def thread_counts() -> dict[str, np.ndarray]:
    return {"queries": numbers(2, 70, A), "keys": numbers(2, G, A), "v": numbers(A)}


CALLS: dict[str, tuple[Callable[..., Any], Callable[[], dict[str, Any]]]] = {
    "lstm_forward": (_core.nn.lstm_forward, forward),
    "lstm_backward": (_core.nn.lstm_backward, backward),
    "sample_devices": (draw, draws),
    "sample_devices, each its memory": (draw, lambda: draws(memories=K)),
    "sample_devices by products": (
        draw,
        lambda: draws() | {"keys": numbers(1, G, H), "query": None, "v": None},
    ),
    "sample_groups": (_core.nn.sample_groups, lambda: layer() | {"m": M, "seed": 5, "noise": 0.5}),
    "group_gradients": (
        _core.nn.group_gradients,
        lambda: layer() | {"groups": np.arange(M * U).reshape(M, U) % G, "weights": numbers(M)},
    ),
    "additive_scores": (_core.nn.additive_scores, thread_counts),
    "additive_gradients": (
        _core.nn.additive_gradients,
        lambda: thread_counts() | {"d_scores": numbers(2, 70, G)},
    ),
}


def flat(result: Any) -> list[np.ndarray]:
    if isinstance(result, (tuple, list)):
        return [tensor for part in result for tensor in flat(part)]
    return [np.asarray(result)]


# Every function of the core, on one thread and on several.
@pytest.mark.parametrize("name", CALLS)
def test_threads_change_no_bit(name: str) -> None:
    function, arguments = CALLS[name]
    alone = flat(function(**arguments(), threads=1))
    for threads in (2, 5):
        for one, other in zip(alone, flat(function(**arguments(), threads=threads)), strict=True):
            np.testing.assert_array_equal(one, other)
    assert all(np.isfinite(tensor).all() for tensor in alone)


FREE = {
    "lstm_forward": {("projected", 0)},
    "additive_scores": {("queries", 1), ("keys", 1)},
}
"""Lengths that one argument alone has."""


def shorter(name: str) -> Iterator[dict[str, Any]]:
    """The arguments of a call, one array an entry short each time."""
    arguments = CALLS[name][1]()
    for argument, value in arguments.items():
        for axis in range(getattr(value, "ndim", 0)):
            if value.shape[axis] > 1 and (argument, axis) not in FREE.get(name, ()):
                short = np.ascontiguousarray(value.take(range(value.shape[axis] - 1), axis))
                yield arguments | {argument: short}


# Arrays with wrong shapes, types or contents are refused.
@pytest.mark.parametrize("name", CALLS)
def test_arrays_that_do_not_belong_together_are_refused(name: str) -> None:
    for arguments in shorter(name):
        with pytest.raises(ValueError, match=r"differs?|in one space|every (score|sample)"):
            CALLS[name][0](**arguments, threads=1)


@pytest.mark.parametrize("argument", ["recurrent", "inputs", "biases"])
def test_a_layer_without_weights_is_refused(argument: str) -> None:
    with pytest.raises(ValueError, match="every layer has weights"):
        draw(**(draws() | {argument: draws()[argument][1:]}), threads=1)


@pytest.mark.parametrize("argument", ["embedding", "head", "keys", "gumbel"])
def test_arrays_of_two_types_are_refused(argument: str) -> None:
    with pytest.raises(TypeError, match="differ in their type"):
        draw(**(draws() | {argument: draws()[argument].astype(np.float64)}), threads=1)


@pytest.mark.parametrize("group", [-1, G])
def test_a_group_that_does_not_exist_is_refused(group: int) -> None:
    wrong = np.full(U, group)
    with pytest.raises(ValueError, match="does not exist"):
        _core.nn.sample_groups(**(layer() | {"start": wrong}), m=1, seed=0, noise=0.0, threads=1)
    with pytest.raises(ValueError, match="does not exist"):
        _core.nn.group_gradients(**layer(), groups=wrong[None], weights=numbers(1), threads=1)


# Draws match their probabilities.
def test_devices_without_any_probability_are_not_drawn() -> None:
    arguments = draws()
    arguments["gumbel"][:, :, 1] = -np.inf
    devices, _ = draw(**arguments, threads=1)
    assert set(np.unique(devices)) == {0, 2}


@pytest.mark.parametrize("noise", [0.0, 1.0, 2.0])
def test_noise_of_logits_is_normal(noise: float) -> None:
    """Two groups with logits 1 and -1, whose root mean square is 1: how often the first is drawn is
    the mean of sigmoid(2 + noise (z - z')) over normal z and z'."""
    units, z = 40_000, np.random.default_rng(0).normal(size=(2, 400_000))
    groups = _core.nn.sample_groups(
        states=np.ones((units, 1), np.float32),
        weight=np.array([[1.0], [-1.0]], np.float32),
        bias=np.zeros(2, np.float32),
        start=None,
        trust=0.0,
        m=1,
        seed=3,
        noise=noise,
        threads=2,
    )
    expected = (1 / (1 + np.exp(-2 - noise * (z[0] - z[1])))).mean()
    assert (groups == 0).mean() == pytest.approx(expected, abs=4 * 0.5 / units**0.5)
