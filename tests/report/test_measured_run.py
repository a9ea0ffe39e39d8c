"""A plan that ran, as values and as text."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console, RenderableType

from situate.report.measured_run import (
    equality_figures,
    equality_table,
    measured_run,
    run_figures,
    run_table,
)
from situate.runtime.device import StepRecord
from situate.runtime.equality import Equality
from situate.runtime.measure import StepTimes
from tests.report.handmade import HOSTILE, chain, schedule


def device_step(busy: float, waited: float) -> StepRecord:
    return StepRecord(0.0, busy + waited, waited, {}, {})


STEP_TIMES = StepTimes(
    9.0, (4.0, 6.0), ((device_step(2, 1), device_step(3, 0)),) * 2, (7.0, 6.5, 6.25)
)


def table_text(table: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in text
    return str(text)


def row(text: str, name: str) -> str:
    return next(" ".join(line.split()) for line in text.splitlines() if line.split()[:1] == [name])


# Measured times beside predicted ones.
def test_measured_stands_beside_predicted():
    problem = chain(4, devices=3)
    result = measured_run(problem, schedule(problem, [0, 0, 2, 2]), STEP_TIMES, [0, 2], [150, 1100])
    assert (result.mean, result.predicted, result.error) == (5.0, 5.0, 0.0)
    assert result.loss == (7.0, 6.25)
    first, unused, last = result.devices
    assert (first.busy, first.waited, first.predicted_busy, first.predicted_waited) == (2, 1, 2, 3)
    assert (first.peak, first.predicted_peak, first.limit) == (150, 221, 1000)
    assert (unused.busy, unused.waited, unused.predicted_waited, unused.peak) == (0, 0, 0, None)
    assert (last.busy, last.waited, last.peak) == (3, 0, 1100)


def test_the_table_gives_times_shares_and_memory():
    problem = chain(4)
    text = table_text(
        run_table(measured_run(problem, schedule(problem, [0, 0, 1, 1]), STEP_TIMES, [0, 1]))
    )
    assert row(text, "gpu0") == ("gpu0 2.00 s 2.00 s 40.0 % 40.0 % 1.00 s 3.00 s - 221 B 1,000 B")
    assert row(text, "measured") == "measured 5.00 s, the mean of 2 steps"
    assert row(text, "first") == "first step 9.00 s, not counted"
    assert row(text, "loss") == "loss 7, in the last step 6.25"


@pytest.mark.parametrize(("count", "says"), [(2, "60.0 % shorter"), (8, "60.0 % longer")])
def test_the_error_has_a_direction(count, says):
    problem = chain(count)
    result = measured_run(problem, schedule(problem, [0] * count), STEP_TIMES, [0])
    assert says in table_text(run_table(result))


def test_pace_parts_the_error_of_the_ops_from_that_of_their_order():
    """Four ops of a second each were to take 5 s with a transfer; they took 5 s alone."""
    problem = chain(4)
    result = measured_run(problem, schedule(problem, [0, 0, 1, 1]), STEP_TIMES, [0, 1])
    assert (result.pace, result.error, result.error_at_pace) == (1.25, 0.0, 0.25)
    text = table_text(run_table(result))
    assert "ops took 1.25 times as long as predicted; at that pace 6.25 s, 25.0 % longer" in text
    assert run_figures(result)["error_at_pace"] == 0.25


def test_figures_are_numbers_by_device():
    problem = chain(4, memory=None)
    result = measured_run(problem, schedule(problem, [0, 0, 1, 1]), STEP_TIMES, [0, 1])
    content = msgspec.json.decode(msgspec.json.encode(run_figures(result)))
    assert content["seconds"] == [4.0, 6.0]
    assert content["error"] == 0.0
    assert content["devices"]["gpu1"]["busy"] == 3.0
    assert content["devices"]["gpu1"]["limit"] is None


@pytest.mark.parametrize("name", HOSTILE)
def test_names_do_nothing(name):
    plain = name.translate(str.maketrans("", "", "*?[]"))
    problem = chain(1, device_names=[plain, "other"])
    table_text(run_table(measured_run(problem, schedule(problem, [0]), STEP_TIMES, [0])))
    equality = Equality((0.0,), {name: 1.0}, 1, (1.0,))
    assert "\n\n\n" not in table_text(equality_table(equality, name, 0.0, "as given"))


# Equality of a placed step and the unplaced one.
@pytest.mark.parametrize(
    ("difference", "tolerance", "says"),
    [(0.0, 0.0, "to the last bit"), (0.5, 1.0, "within the tolerance"), (2.0, 1.0, "differs from")],
)
def test_the_verdict(difference, tolerance, says):
    equality = Equality((0.0, difference), {"a": 0.0}, 1, (1.0, 1.0))
    text = table_text(equality_table(equality, "net", tolerance, "as given"))
    assert says in text.splitlines()[-1]
    assert equality_figures(equality, tolerance)["equal"] is (difference <= tolerance)


def test_the_largest_difference_is_placed():
    equality = Equality((0.0, 0.25), {"a": 0.0, "b": 0.5}, 2, (1.0, 1.0))
    text = table_text(equality_table(equality, "net", 0.0, "as given"))
    assert row(text, "loss") == "loss differs by up to 0.25, in step 2"
    assert row(text, "parameters,") == "parameters, buffers differs by up to 0.5, in b"
    assert row(text, "changed") == "changed by the steps 2 of 2"
    figures = equality_figures(equality, 0.0)
    assert (figures["loss_step"], figures["parameter"]) == (2, "b")


def test_inputs_are_a_row_where_one_is_written_over():
    assert "inputs" not in table_text(
        equality_table(Equality((0.0,), {}, 0, ()), "net", 0.0, "as given")
    )
    equality = Equality((0.0,), {"a": 0.0}, 1, (1.0,), inputs={0: 0.0, 2: 0.5})
    text = table_text(equality_table(equality, "net", 0.0, "as given"))
    assert row(text, "inputs") == "inputs differs by up to 0.5, in input 2"
    figures = equality_figures(equality, 0.0)
    assert (figures["equal"], figures["input_difference"], figures["input"]) == (False, 0.5, 2)


def test_what_a_placed_step_leaves_out_is_a_row():
    equality = Equality((0.0,), {}, 0, (), left_out=("model.a", "model.b", "model.c", "model.d"))
    text = table_text(equality_table(equality, "net", 0.0, "as given"))
    assert row(text, "left") == (
        "left out what steps keep in model.a, model.b, model.c and 1 more, as no placed one does"
    )
    assert equality_figures(equality, 0.0)["left_out"] == equality.left_out


def test_what_the_optimizer_keeps_is_a_row_where_it_keeps_something():
    state = {"a step": 0.0, "a exp_avg": 0.5}
    equality = Equality((0.0,), {"a": 0.0}, 1, (1.0,), optimizer_state=state)
    text = table_text(equality_table(equality, "net", 0.0, "as given"))
    assert row(text, "optimizer") == "optimizer state differs by up to 0.5, in a exp_avg"
    figures = equality_figures(equality, 0.0)
    assert (figures["optimizer_difference"], figures["optimizer_state"]) == (0.5, "a exp_avg")
    plain = Equality((0.0,), {"a": 0.0}, 1, (1.0,))
    assert "optimizer state" not in table_text(equality_table(plain, "net", 0.0, "as given"))
