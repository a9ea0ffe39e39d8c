"""Steps on which candidates are compared."""

from __future__ import annotations

import pytest

from situate import Cluster, Graph, Problem
from situate.data.cluster import Device, Link
from situate.data.cuts import Cuts
from situate.data.graph import Op
from situate.errors import SituateError
from situate.solvers.cut_choice.cut_step import CutStep
from situate.solvers.cut_choice.trial import MANY_OPS, ROOM, smallest_problem, trial_of

UNITS = {"features": [24]}


def blocks(count: int, held: int = 100) -> CutStep:
    """A step of so many ops of these bytes, and shorter ones."""
    gpus = tuple(Device(f"gpu{k}", memory=10_000_000) for k in range(2))
    cluster = Cluster("two", gpus, (Link("*", "*", 1.0),))

    def problem_of(cuts: Cuts | None) -> Problem:
        ops = (Op(f"op{k}", seconds={"*": 1.0}, persistent=held) for k in range(count))
        return Problem(Graph("blocks", tuple(ops), cuts=cuts), cluster)

    return CutStep(problem_of, UNITS, lambda most: blocks(most, held) if most < count else None)


# Small steps are compared as they are, large ones on fewer blocks.
def test_a_small_step_is_its_own_trial() -> None:
    step = blocks(10)
    trial = trial_of(step, step.problem_of(None))
    assert trial.step is step
    assert trial.problem_of(None).capacity.tolist() == [10_000_000] * 2


def test_a_large_step_is_compared_on_fewer_blocks_with_as_much_less_memory() -> None:
    step = blocks(MANY_OPS)
    trial = trial_of(step, step.problem_of(None))
    fraction = trial.problem.n / MANY_OPS
    assert trial.problem.n < MANY_OPS
    assert trial.problem_of(None).capacity.tolist() == [int(10_000_000 * fraction)] * 2


def test_a_device_has_room_for_the_largest_parameters() -> None:
    step = blocks(MANY_OPS, held=100_000)
    trial = trial_of(step, step.problem_of(None))
    assert trial.problem_of(None).capacity.tolist() == [ROOM * 100_000] * 2


# Where a whole op fits no device, the step begins in parts.
def test_the_fewest_parts_that_fit_are_the_smallest_problem() -> None:
    def problem_of(cuts: Cuts | None) -> Problem:
        if cuts is None or len(cuts.cuts[0].shares) < 4:
            raise SituateError("fits no device")
        return blocks(1).problem_of(cuts)

    cuts = smallest_problem(CutStep(problem_of, UNITS)).graph.cuts
    assert cuts is not None
    assert str(cuts) == "features=4"


def test_a_step_that_fits_in_no_parts_is_refused() -> None:
    def problem_of(cuts: Cuts | None) -> Problem:
        raise SituateError("fits no device")

    with pytest.raises(SituateError, match="fits no device"):
        smallest_problem(CutStep(problem_of, UNITS))
