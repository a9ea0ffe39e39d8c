"""Uniform pipelines, and the schedules that meet their known values."""

from __future__ import annotations

import numpy as np
import pytest

from situate.bench.families.pipelines import instances, one_f_one_b, pipeline, zero_bubble
from situate.bounds.lower_bound import lower_bound
from situate.solvers.evaluate import evaluate

FEW = [instance for instance in instances() if instance.make().n < 200]


def by_hand(stages: int, batches: int, split: bool) -> list[str]:
    """Ops in the order of their start where every stage takes a forward pass if few micro-batches
    are behind it, else a backward pass, else the gradients of weights that wait."""
    counts = {kind: [0] * stages for kind in "FBW"}
    end: dict[str, int] = {}
    free = [0] * stages
    order: list[str] = []
    for now in range(10 * batches):
        for stage in [stage for stage in range(stages) if free[stage] <= now]:
            forward, backward, weights = (counts[kind][stage] for kind in "FBW")
            before = {
                f"F{stage}.{forward}": f"F{stage - 1}.{forward}" if stage else None,
                f"B{stage}.{backward}": f"B{stage + 1}.{backward}"
                if stage + 1 < stages
                else f"F{stage}.{backward}",
                f"W{stage}.{weights}": f"B{stage}.{weights}",
            }
            may = {
                "F": forward < batches and forward - backward < stages - stage,
                "B": backward < forward,
                "W": split and weights < backward,
            }
            may["F"] &= not split or forward - weights < stages
            for op, needed in before.items():
                kind = op[0]
                if may[kind] and (needed is None or end.get(needed, np.inf) <= now):
                    counts[kind][stage] += 1
                    free[stage] = end[op] = now + (1 if split or kind == "F" else 2)
                    order.append(op)
                    break
    return order


@pytest.mark.parametrize("instance", FEW, ids=lambda instance: instance.name)
def test_the_schedule_of_the_paper_fits_and_takes_what_is_said(instance):
    problem = instance.make()
    split, batches = "split" in instance.name, int(instance.name.split()[2][:-1])
    names = [op.name for op in problem.graph.ops]
    order = np.array([names.index(op) for op in by_hand(problem.d, batches, split)], np.int32)
    placement = np.array([int(op.device[1:]) for op in problem.graph.ops], np.int32)
    result = evaluate(problem, placement, order)
    assert result.value == instance.reference.value
    assert result.feasible


@pytest.mark.parametrize("instance", FEW, ids=lambda instance: instance.name)
def test_no_plan_is_faster_than_is_said(instance):
    assert lower_bound(instance.make()) == instance.reference.bound


def test_the_known_value_of_a_few_micro_batches_is_not_claimed():
    """With fewer than the stages the first backward passes come too late for it."""
    assert lower_bound(pipeline(4, 2)) > zero_bubble(4, 2).value
    assert lower_bound(pipeline(4, 4)) == zero_bubble(4, 4).value
    assert lower_bound(pipeline(4, 2, split=False)) == one_f_one_b(4, 2).value


def test_stages_may_take_times_of_their_own():
    times = {"F": 1.0, "B": 2.0, "W": 0.5}
    of_stage = {"seconds": lambda kind, stage: times[kind] * (stage + 1)}
    split, whole = (pipeline(2, 3, split=split, **of_stage) for split in (True, False))
    assert split.seconds[:, 0].sum() == whole.seconds[:, 0].sum() == 3 * (3.5 + 7.0)
