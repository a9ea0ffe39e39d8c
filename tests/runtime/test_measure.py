"""The protocol of measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from situate.runtime.device import StepRecord  # noqa: E402
from situate.runtime.measure import NotFinite, measure, timeline  # noqa: E402
from tests import branches  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402


class Fake:
    """A step that returns given losses; device k of two is there for 10 s and waits k of them."""

    def __init__(self, *losses: float) -> None:
        self.records: list[StepRecord] = []
        self.losses = list(losses)
        self.calls: list[tuple[Any, ...]] = []

    def __call__(self, *inputs: Any, timed: bool = False) -> Any:
        self.calls.append(inputs)
        start = 100.0 * len(self.calls)
        self.records = [StepRecord(start, start + 10, float(k), {}, {}) for k in range(2)]
        return torch.tensor(self.losses.pop(0))


# The protocol, with a scripted step.
def test_the_first_of_eleven_steps_is_dropped():
    step = Fake(*range(11))
    times = measure(step, ("x", "y"))
    assert step.calls == [("x", "y")] * 11
    assert len(times.seconds) == len(times.records) == 10
    assert times.records[0][0].start == 200.0
    assert times.losses == tuple(map(float, range(11)))


def test_mean_median_and_deviation_are_of_the_others():
    times = measure(Fake(1, 1, 1), ("x",), 3)
    one, two = times.seconds
    assert times.mean == times.median == pytest.approx((one + two) / 2)
    assert times.deviation == pytest.approx(abs(one - two) / 2**0.5)


def test_a_single_step_has_no_deviation():
    assert measure(Fake(1, 1), ("x",), 2).deviation == 0.0


def test_busy_is_what_is_not_waited():
    times = measure(Fake(1, 1, 1), ("x",), 3)
    assert times.busy == (10.0, 9.0)
    assert times.waited == (0.0, 1.0)


# Inputs and losses.
def test_a_lone_tensor_is_one_argument():
    step, x = Fake(1, 1), torch.ones(3, 2)
    measure(step, x, 2)
    assert all(call == (x,) for call in step.calls)


def test_inputs_by_name_are_one_argument():
    step = Fake(1, 1)
    measure(step, {"a": 1}, 2)
    assert step.calls == [({"a": 1},)] * 2


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_an_error_that_names_the_step(loss):
    with pytest.raises(NotFinite, match=f"the loss of step 2 is {loss}") as caught:
        measure(Fake(1, loss, 1), ("x",), 3)
    assert caught.value.outcome == "nan"


def test_one_step_is_too_few():
    with pytest.raises(SituateError, match="2 are the least, got 1"):
        measure(Fake(1), ("x",), 1)


def test_steps_are_announced():
    numbers: list[int] = []
    measure(Fake(1, 1), ("x",), 2, numbers.append)
    assert numbers == [1, 2]


def test_inference_has_no_losses():
    model, inputs, _ = branches.build()
    with placed_step(model, None) as step:
        times = measure(step, inputs, 2)
    assert times.losses == ()
    assert len(times.busy) == 1


# The timeline of a timed step.
def test_a_timeline_starts_with_the_first_device():
    record = [
        StepRecord(5.0, 9.0, 0.0, {0: 6.0}, {0: 7.0}),
        StepRecord(4.0, 9.0, 0.0, {2: 8.0}, {2: 8.5}),
    ]
    start, end = timeline(record, 3)
    np.testing.assert_array_equal(start, [2.0, np.nan, 4.0])
    np.testing.assert_array_equal(end, [3.0, np.nan, 4.5])


def test_a_timed_step_has_every_op_in_order():
    model, inputs, _ = branches.build()
    with placed_step(model, sgd(list(model.parameters()))) as step:
        step.timed(*inputs)
        start, end = timeline(step.records, len(step.records[0].op_starts))
    assert len(start) > 20
    assert (start <= end).all()
    assert np.sort(start)[0] >= 0
