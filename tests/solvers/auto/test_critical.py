"""The critical path is shortened first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from situate import solve, zoo
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers.auto.critical import critical_transfers, move_critical, phase_lines
from situate.solvers.budget import Budget
from situate.solvers.search import Search

SIZES = (9, 9, 9, 9, 1, 9, 9)
"""Bytes of what each op of a chain hands on."""


def chain(memory: int | None = None, sizes: tuple[int, ...] = SIZES) -> Problem:
    """Ops of a second, one after the other, on two GPUs with a byte a second between them."""
    ops = tuple(Op(f"op{j}", seconds={"gpu": 1.0}, persistent=1) for j in range(len(sizes) + 1))
    tensors = tuple(Tensor(f"t{j}", j, size, (j + 1,)) for j, size in enumerate(sizes))
    devices = (Device("a", memory=memory), Device("b", memory=memory))
    return Problem(Graph("chain", ops, tensors), Cluster("two", devices, (Link("*", "*", 1.0),)))


def searched(problem: Problem, placement: list[int], evaluations: int = 1000) -> Search:
    """A search that knows a plan."""
    search = Search(problem, budget=Budget(evaluation_limit=evaluations), threads=1)
    order = np.array(problem.graph.order, np.int32)
    search.offer(np.array(placement, np.int32), order, ["eager"])
    return search


def critical(problem: Problem, placement: list[int]) -> list[str]:
    """Names of what is moved by the critical transfers."""
    found = searched(problem, placement).best
    assert found is not None
    transfers = critical_transfers(problem, found.schedule)
    return [problem.graph.tensors[found.schedule.tensor[k]].name for k in transfers]


def test_the_longest_critical_transfer_comes_first() -> None:
    assert critical(chain(), [0, 0, 0, 0, 0, 1, 0, 0]) == ["t5", "t4"]


def test_what_nothing_waits_for_is_not_critical() -> None:
    short = Problem(
        Graph(
            "branches",
            tuple(Op(f"op{j}", seconds={"gpu": s}) for j, s in enumerate((1.0, 50.0, 1.0, 1.0))),
            (*(Tensor(f"t{j}", j, 5, (3,)) for j in (1, 2)), Tensor("t0", 0, 5, (1, 2))),
        ),
        chain().cluster,
    )
    assert critical(short, [0, 0, 1, 0]) == []
    assert critical(short, [0, 1, 0, 0]) == ["t1", "t0"]


def test_a_transfer_that_holds_up_the_channel_is_critical() -> None:
    ops = tuple(Op(f"op{j}", seconds={"gpu": 1.0}) for j in range(4))
    tensors = (Tensor("large", 0, 20, (3,)), Tensor("small", 1, 1, (2,)))
    problem = Problem(Graph("queue", ops, tensors), chain().cluster)
    assert critical(problem, [0, 0, 1, 0]) == ["small"]
    assert critical(problem, [0, 0, 1, 1]) == ["large", "small"]


def test_what_holds_up_a_device_is_critical() -> None:
    ops = tuple(Op(f"op{j}", seconds={"gpu": s}) for j, s in enumerate((1.0, 1.0, 30.0, 2.0)))
    tensors = (Tensor("t0", 0, 1, (1,)), Tensor("t3", 3, 1, (2,)))
    problem = Problem(Graph("busy", ops, tensors), chain().cluster)
    assert critical(problem, [0, 1, 1, 1]) == ["t0"]


@pytest.mark.parametrize(
    ("sizes", "before", "after"),
    [
        (SIZES, [0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 1, 1, 1]),
        (SIZES[::-1], [0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1]),
    ],
)
def test_a_border_is_shifted_past_what_no_step_alone_gets_past(
    sizes: tuple[int, ...], before: list[int], after: list[int]
) -> None:
    search = searched(chain(24, sizes), before)
    move_critical(search, phase_lines(search.problem))
    assert search.best is not None
    assert search.best.placement.tolist() == after
    assert search.best.value == 8 + 1


def test_there_is_a_line_of_all_units_and_one_of_each_phase() -> None:
    phases = ["forward", "forward", "backward", "update"]
    ops = tuple(Op(f"op{j}", phase=phase) for j, phase in enumerate(phases))
    tensors = tuple(Tensor(f"t{j}", j, 1, (j + 1,)) for j in range(3))
    whole, *parts = phase_lines(Problem(Graph("step", ops, tensors), chain().cluster))
    assert sorted(whole.tolist()) == [0, 1, 2, 3]
    assert [part.tolist() for part in parts] == [[0, 1], [2], [3]]


def test_only_a_plan_that_fits_is_shifted() -> None:
    search = searched(chain(memory=2), [0, 0, 0, 1, 1, 1, 1, 1])
    before = search.budget.evaluations
    move_critical(search, phase_lines(search.problem))
    assert search.budget.evaluations == before


def test_a_share_of_the_budget_ends_it() -> None:
    search = searched(chain(24), [0, 0, 0, 0, 0, 1, 1, 1], evaluations=30)
    move_critical(search, phase_lines(search.problem))
    assert search.budget.evaluations <= 1 + 0.1 * 30


def test_auto_spares_a_full_gpu_a_transfer_of_12_ms() -> None:
    """ResNet-50 where the larger GPU holds nine tenths of it: without critical moves 86.8 ms."""
    preset = Cluster.preset("unequal-24-12")
    sizes = dict(zip(preset.names, (2_780_000_000, 1_390_000_000), strict=False))
    devices = tuple(structs.replace(d, memory=sizes.get(d.name, d.memory)) for d in preset.devices)
    problem = Problem(zoo.load("resnet50"), replace(preset, devices=devices))
    assert solve(problem, evaluations=20_000).makespan < 0.082
