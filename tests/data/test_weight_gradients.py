"""Ops that only make gradients of parameters."""

from __future__ import annotations

from situate.bench.families.pipelines import pipeline
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.data.weight_gradients import weight_gradients
from tests.solvers.families import devices
from tests.solvers.slices import sliced


def gradient_names(problem: Problem) -> set[str]:
    marked = zip(problem.graph.ops, weight_gradients(problem), strict=True)
    return {op.name for op, is_weights in marked if is_weights}


def backward(*reads: tuple[str, str]) -> Problem:
    """A slice's backward pass by pairs of producer and reader; an op named `x` is forward, and
    `sum` runs once a step."""
    names = list(dict.fromkeys(name for pair in reads for name in pair))
    ops = tuple(
        Op(
            name,
            phase="forward" if name == "x" else "backward",
            slice=None if name == "sum" else 0,
            seconds={"*": 1.0},
        )
        for name in names
    )
    tensors = tuple(
        Tensor(
            name, number, 1, tuple(names.index(reader) for maker, reader in reads if maker == name)
        )
        for number, name in enumerate(names)
        if any(maker == name for maker, _ in reads)
    )
    return Problem(Graph("backward", ops, tensors, slices=Slices((1, 1))), devices(1))


def test_a_product_that_goes_to_a_sum_is_one_and_what_leads_on_is_none():
    problem = backward(
        ("gy", "gw"), ("x", "gw"), ("gw", "sum"), ("gy", "gx"), ("gx", "next"), ("x", "next")
    )  # fmt: skip
    assert gradient_names(problem) == {"gw", "next"}


def test_so_is_what_it_transposes_or_adds_up_for_it_alone():
    problem = backward(
        ("gy", "gw"), ("x", "gw"), ("gw", "t"), ("gy", "gv"), ("gv", "add"), ("t", "add"),
        ("add", "sum"), ("gy", "gx"), ("gx", "next"), ("x", "next"), ("x", "gv"),
    )  # fmt: skip
    assert gradient_names(problem) == {"gw", "t", "gv", "add", "next"}


def test_an_op_that_makes_both_gradients_is_none():
    assert gradient_names(
        backward(("both", "sum"), ("both", "before"), ("before", "sum"), ("x", "both"))
    ) == {"before"}


def test_in_uniform_pipelines_they_are_those_of_the_paper():
    problem = pipeline(3, 2)
    expected = {op.name for op in problem.graph.ops if op.name.startswith("W")}
    assert gradient_names(problem) == expected


def test_what_runs_once_is_none():
    assert not any("add" in name for name in gradient_names(Problem(sliced(1, 1), devices(1))))
