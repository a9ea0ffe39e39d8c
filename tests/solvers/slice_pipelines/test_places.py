"""Places along the forward pass of a slice."""

from __future__ import annotations

import numpy as np
from msgspec import structs

from situate.bench.families.pipelines import pipeline
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.solvers.slice_pipelines.places import places
from tests.solvers.families import devices
from tests.solvers.parts import training
from tests.solvers.slices import sliced


def found(problem: Problem) -> dict[str, int]:
    ops = problem.graph.ops
    slices = np.array([-1 if op.slice is None else op.slice for op in ops])
    backward = (slices >= 0) & np.array([op.phase == "backward" for op in ops])
    place = places(problem, slices, backward).tolist()
    return dict(zip([op.name for op in ops], place, strict=True))


def test_all_slices_a_parameter_and_their_backward_ops_have_the_place_of_a_layer():
    place = found(Problem(sliced(1, 1, 2), devices(1)))
    for layer, wanted in (("a", 0), ("b", 1)):
        ops = [layer, *(f"slice{s}/{op}{layer}" for s in range(3) for op in ("", "g"))]
        assert {place[name] for name in ops} == {wanted}


def test_sums_and_updates_have_none():
    place = found(Problem(sliced(1, 1), devices(1)))
    assert {place[f"{layer}/{op}"] for layer in "ab" for op in ("add1", "sgd")} == {-1}


def test_without_modules_a_backward_op_is_beside_what_was_kept_for_it():
    place = found(pipeline(3, 2))
    for name, at in place.items():
        assert at == int(name[1])


def test_of_two_backward_ops_the_one_that_reads_the_other_stands_nowhere_behind_it():
    problem = Problem(sliced(1, 1), devices(1))
    swapped = {"slice0/gb": "a", "slice0/ga": "b", "slice1/gb": "a", "slice1/ga": "b"}
    ops = tuple(
        structs.replace(op, module=swapped.get(op.name, op.module)) for op in problem.graph.ops
    )
    graph = Graph("swapped", ops, problem.graph.tensors, slices=problem.graph.slices)
    place = found(Problem(graph, problem.cluster))
    assert place["slice0/gb"] >= place["slice0/ga"]


def test_an_op_that_only_one_slice_has_keeps_to_the_order_of_places():
    problem = Problem(sliced(1, 1), devices(1))
    ops = tuple(
        structs.replace(op, kind="another") if op.name in ("slice1/b", "slice1/gb") else op
        for op in problem.graph.ops
    )
    graph = Graph("unlike", ops, problem.graph.tensors, slices=problem.graph.slices)
    place = found(Problem(graph, problem.cluster))
    assert place["slice1/b"] == place["slice1/a"]
    assert place["slice1/gb"] >= place["slice1/ga"]


def test_a_backward_op_that_reads_a_parameter_alone_is_beside_the_forward_op_that_reads_it():
    """As the gradient of a product's input, of which nothing is kept."""
    ops = (
        Op("w", seconds={"*": 0.0}, persistent=1),
        *(
            Op(name, seconds={"*": 1.0}, phase=phase, slice=0)
            for name, phase in (
                ("f0", "forward"),
                ("f1", "forward"),
                ("f2", "forward"),
                ("g2", "backward"),
                ("g1", "backward"),
            )
        ),
    )
    tensors = (
        Tensor("w", 0, 1, (2, 5), resident=True),
        Tensor("f0", 1, 1, (2,)),
        Tensor("f1", 2, 1, (3,)),
        Tensor("f2", 3, 1, (4,)),
        Tensor("g2", 4, 1, (5,)),
    )
    place = found(Problem(Graph("product", ops, tensors, slices=Slices((1, 1))), devices(1)))
    assert place == {"w": 1, "f0": 0, "f1": 1, "f2": 2, "g2": 2, "g1": 1}


def test_all_parts_of_an_op_have_one_place():
    place = found(Problem(training(3, 2, slices=2), devices(*[1] * 6)))
    for layer in range(2):
        names = (
            "0/weight",
            *(f"{s}/{name}" for s in "01" for name in ("forward", "input", "late")),
        )
        assert {place[f"{name}{layer}/{k}"] for name in names for k in range(3)} == {layer}
