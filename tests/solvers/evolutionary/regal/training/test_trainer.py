"""REINFORCE on small graphs: it learns, and goes on to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.policies.arithmetic import arithmetic  # noqa: E402
from situate.policies.shapes import GraphShape  # noqa: E402
from situate.solvers.evolutionary.regal import weights  # noqa: E402
from situate.solvers.evolutionary.regal.settings import Proposed, RegalSettings  # noqa: E402
from situate.solvers.evolutionary.regal.training import instances  # noqa: E402
from situate.solvers.evolutionary.regal.training.instances import (  # noqa: E402
    Instances,
    ThreadTrials,
)
from situate.solvers.evolutionary.regal.training.trainer import (  # noqa: E402
    Trainer,
    flat,
    generator,
)
from tests.solvers.evolutionary.regal.training.test_data_set import TIME, graph  # noqa: E402

SMALL = RegalSettings(
    GraphShape(8, 1),
    Proposed(placement=2, scheduling=2),
    feature_evaluations=100,
    evaluations=120,
    batch=2,
    learning_rate=0.01,
)


def trainer(threads: int = 2, valid: bool = True, settings: RegalSettings = SMALL) -> Trainer:
    graphs = [graph(name, ops) for name, ops in (("a", 5), ("b", 6), ("c", 7))]
    policy = weights.new_policy("time", 2, settings, generator(0, 0))
    train = Instances(graphs[:2], TIME, settings, 1, 0)
    validation = Instances(graphs[2:], TIME, settings.in_validation, 0, 0) if valid else None
    return Trainer(policy, train, validation, settings, 0, ThreadTrials(threads))


def run(of: Trainer, steps: int, every: int = 3) -> list[Any]:
    points: list[Any] = []
    with arithmetic():
        of.run(steps, every, points.append)
    return points


def numbers(of: Trainer) -> dict[str, Any]:
    return {name: array.tolist() for name, array in of.state().items()}


def same(one: Trainer, other: Trainer) -> bool:
    return repr(numbers(one)) == repr(numbers(other))


# A training depends on its seed alone.


@pytest.mark.parametrize("samples", [1, 3])
def test_a_training_goes_on_to_the_last_bit(samples: int) -> None:
    settings = replace(SMALL, samples=samples)
    whole = trainer(settings=settings)
    run(whole, 9)
    first, second = trainer(settings=settings), trainer(settings=settings)
    run(first, 6)
    second.restore(first.state())
    run(second, 9)
    assert same(whole, second)
    assert [point.steps for point in whole.curve] == [3, 6, 9]


def test_threads_change_nothing() -> None:
    one, four = trainer(threads=1), trainer(threads=4)
    run(one, 5)
    run(four, 5)
    assert same(one, four)


def test_every_graph_is_drawn_once_before_one_is_drawn_again() -> None:
    of = trainer()
    drawn = [number for step in range(6) for number in of._numbers(step)]
    assert [sorted(drawn[at : at + 4]) for at in (0, 4, 8)] == [[0, 1, 2, 3]] * 3
    assert drawn[:4] != drawn[4:8] or drawn[4:8] != drawn[8:]


# It learns, and selects parameters by validation.


@pytest.mark.parametrize("samples", [1, 4])
def test_it_learns_what_is_rewarded(samples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reward is the share of ops whose priority has the larger mean."""
    monkeypatch.setattr(instances, "reward", lambda *arguments: float(arguments[3][:, 4].mean()))
    of = trainer(settings=replace(SMALL, samples=samples), valid=False)
    points = run(of, 100, every=5)
    assert points[0].reward < 0.7
    assert points[-1].reward > 0.85


def test_the_best_in_validation_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    of, rewards = trainer(), iter([-1.0, -0.5, -0.7])
    monkeypatch.setattr(of, "_validated", lambda: next(rewards))
    policies = []
    with arithmetic():
        of.run(9, 3, lambda _: policies.append(flat(of.policy)))
    np.testing.assert_array_equal(flat(of.best()), policies[1])


def test_without_validation_the_last_is_kept() -> None:
    of = trainer(valid=False)
    points = run(of, 6)
    assert all(np.isnan(point.validation) for point in points)
    np.testing.assert_array_equal(flat(of.best()), flat(of.policy))
