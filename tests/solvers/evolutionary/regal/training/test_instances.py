"""Instances of graphs and their copies, rewards of actions on them, and trials in parallel."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op
from situate.solvers.evolutionary.regal.proposals import derived, plain
from situate.solvers.evolutionary.regal.settings import RegalSettings
from situate.solvers.evolutionary.regal.training import instances
from situate.solvers.evolutionary.regal.training.instances import (
    Instances,
    reward,
    trials,
    value,
)
from tests.solvers.evolutionary.regal.training.test_data_set import TIME, filled, graph

SMALL_DEVICES = replace(
    TIME,
    cluster=Cluster(
        "small", tuple(Device(name, memory=100) for name in "ab"), (Link("*", "*", 1e9),)
    ),
)
QUICK = RegalSettings(feature_evaluations=100, evaluations=220)


def three_graphs(copies: int = 0) -> Instances:
    return Instances([graph("a", 8), graph("b", 9)], TIME, QUICK, copies, 5)


# Copies can be planned, and instances outside the cache are built again as they were.


def test_copy_zero_is_the_graph_itself() -> None:
    of = three_graphs(copies=2)
    assert len(of) == 6
    names = [of[i].simulator.problem.graph.ops[0].name for i in range(6)]
    assert names == ["a0", "a0", "a0", "b0", "b0", "b0"]
    hashes = [of[i].simulator.problem.graph.hash for i in range(6)]
    assert len(set(hashes)) == 6
    assert hashes[3] == graph("b", 9).hash


def test_a_copy_that_holds_more_than_its_device_is_drawn_anew() -> None:
    large = Graph("g", (Op("a", seconds={"*": 1.0}, persistent=90), Op("b", seconds={"*": 1.0})))
    of = Instances([large], SMALL_DEVICES, QUICK, 40, 5)
    persistent = [of.simulator(i).problem.persistent[0] for i in range(41)]
    assert max(persistent) <= 100
    assert len(set(persistent)) > 20


def test_a_graph_that_fills_its_device_stands_for_copies_that_hold_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(instances, "copied", lambda *_: graph("x", 3, persistent=101))
    of = Instances([graph("a", 3)], SMALL_DEVICES, QUICK, 1, 5)
    assert of.simulator(1).problem.graph.hash == graph("a", 3).hash


def test_the_plain_value_is_that_of_plain_brkga_and_is_kept() -> None:
    of = three_graphs()
    assert np.isnan(of.values).all()
    instance = of[1]
    population = plain(instance.simulator, QUICK, derived(5, 1, 1))
    population.run(220, inf, 1)
    assert instance.plain == of.values[1] == population.best()[1]


def test_a_value_that_is_known_is_not_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    of = three_graphs()
    of.values[0] = 77.0
    monkeypatch.setattr(instances, "plain", None)
    assert of[0].plain == 77


def test_what_is_not_kept_is_made_again_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instances, "KEPT_OPS", 10)
    of = three_graphs()
    first = of[0]
    assert of[1] is of[1]
    again = of[0]
    assert again is not first
    np.testing.assert_array_equal(again.encoded.nodes, first.encoded.nodes)


# A reward compares with plain BRKGA at the same number of evaluations.


def test_a_reward_is_minus_the_ratio_to_plain_brkga() -> None:
    instance = three_graphs()[0]
    actions = np.zeros((8, 6), np.int64)
    result = reward(instance.simulator, instance.plain, QUICK, actions, 1)
    # A chain: no plan is better than all ops one after the other, and no tensor takes time.
    assert result == -8 / instance.plain
    assert three_graphs().rewards(0, instance.plain, np.stack([actions] * 2), 1) == [result, result]


@pytest.mark.parametrize(("free", "evaluations"), [(False, 120), (True, 220)])
def test_evaluations_for_features_may_come_on_top(
    free: bool, evaluations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance, begun = three_graphs()[0], []
    run = instances.proposed

    def counted(*arguments: Any) -> Any:
        begun.append(run(*arguments))
        return begun[-1]

    monkeypatch.setattr(instances, "proposed", counted)
    settings = replace(QUICK, free_features=free)
    reward(instance.simulator, instance.plain, settings, np.zeros((8, 6), np.int64), 1)
    assert begun[0].evaluations == evaluations


def test_what_does_not_fit_counts_twice() -> None:
    class Full:
        def best(self) -> tuple[int, float]:
            return 3, 5.0

    assert value(Full()) == 10  # type: ignore[arg-type]


# Workers compute the same as threads.


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_find_what_threads_find(workers: int) -> None:
    result = []
    for where in (None, workers):
        train = Instances([graph("a", 8), graph("b", 9)], TIME, QUICK, 1, 5)
        valid = Instances([graph("c", 7)], TIME, QUICK, 0, 5)
        with trials(where, 2, [train, valid]) as running:
            encoded = [*running.encoded(train, [0, 3, 0]), *running.encoded(valid, [0])]
            actions = [
                np.stack([np.zeros((n, 6), np.int64), np.ones((n, 6), np.int64)]) for n in (8, 9)
            ]
            rewards = running.rewards(train, [0, 3], actions, 7)()
        assert rewards.shape == (2, 2)
        values = [*train.values, *valid.values]
        result.append(
            ([instance.nodes.tolist() for instance in encoded], rewards.tolist(), repr(values))
        )
    assert result[0] == result[1]


def test_a_training_by_workers_writes_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from situate.solvers.evolutionary.regal.training import train as module
    from tests.solvers.evolutionary.regal.training.test_trainer import SMALL

    monkeypatch.setattr(module, "SETTINGS", {("tuned", "time"): SMALL})
    filled(tmp_path / "data", a=graph("a", 5), b=graph("b", 6))

    def trained(workers: int | None) -> bytes:
        data, out = tmp_path / "data", tmp_path / str(workers)
        options = module.Options(data, out, TIME, steps=4, workers=workers)
        return module.train(options, lambda _: None, lambda _: None).read_bytes()

    assert trained(None) == trained(2)
