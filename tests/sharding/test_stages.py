"""Problems of stages: the time, the memory and the validity of a plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.errors import SituateError
from situate.sharding import Stage, StageProblem
from situate.sharding.stages import Layer, LayerOption

PROBLEM = StageProblem(
    "two layers",
    devices=6,
    memory=100.0,
    bandwidth=10.0,
    batches=4,
    layers={
        7: Layer(
            "first",
            {
                1: (LayerOption("plain", 8.0, 20.0, 3.0, 5.0, {}, {9: 0.0}),),
                2: (LayerOption("plain", 4.0, 10.0, 2.0, 4.0, {}, {9: 6.0}),),
            },
        ),
        9: Layer("second", {1: (LayerOption("plain", 2.0, 0.0, 1.0, 0.0, {7: 0.0}, {}),)}),
    },
    edges={(7, 9): 30.0},
)


def stages(first=(2, 1), second=(1, 1)):
    return (Stage((7,), *first, ("plain",)), Stage((9,), *second, ("plain",)))


# By hand: computing and exchange are shared by replicas; weights are exchanged once a batch.
def test_one_stage_exchanges_nothing():
    [figures] = PROBLEM.figures([Stage((7, 9), 1, 1, ("plain", "plain"))])
    assert (figures.seconds, figures.memory, figures.batches) == (10.0, 9.0, 1)


def test_replicas_share_the_work_and_exchange_weights():
    first, second = PROBLEM.figures(stages())
    # 2 x 30 bytes for the edge and 4 (2 - 1) 20 / 2 / 4 = 10 bytes of weights, 10 bytes a second.
    assert first.seconds == 8 / 2 + 60 / 2 / 10 + 10 / 10
    assert second.seconds == 2 + 60 / 10


def test_the_replicas_that_follow_decide_the_batches_in_flight():
    first, second = PROBLEM.figures(stages((1, 1), (2, 1)))
    assert (first.batches, second.batches) == (3, 1)
    assert (first.memory, second.memory) == (3 * 3 + 5, 1)


def test_tensor_parallel_layers_exchange_more_between_stages():
    first, _ = PROBLEM.figures(stages((1, 2)))
    assert first.seconds == 4 + 2 * (30 + 6) / 10


# What is no plan is refused by name.
@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (stages()[:1], "do not hold every layer once"),
        ((*stages(), stages()[0]), "do not hold every layer once"),
        (stages()[::-1], "layer 7 is in a stage after layer 9's"),
        (stages((3, 1)), "stage 0: 3 replicas do not divide 4 micro-batches"),
        (stages((4, 2)), "more than 6 devices"),
        (stages((4, 1)), "more replicas than micro-batches"),
        (stages((1, 1), (1, 2)), "layer 9 has no option 'plain' for a tensor degree of 2"),
    ],
)
def test_an_impossible_plan_is_refused(plan, message):
    with pytest.raises(SituateError, match=message):
        PROBLEM.figures(plan)


def test_replicas_are_at_most_devices_and_batches():
    assert PROBLEM.most_replicas == 4
    assert replace(PROBLEM, devices=3).most_replicas == 3
