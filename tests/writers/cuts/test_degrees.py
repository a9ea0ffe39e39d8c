"""Degrees of parallelism, for tools that cut all layers alike."""

from __future__ import annotations

import dataclasses
import warnings

import msgspec
import pytest

from situate.data.cuts import parse_cuts
from situate.data.graph import Graph
from situate.errors import PlanError
from situate.writers.cuts.degrees import Degrees, degrees
from tests.writers.cuts.planned import by_part, gpus, of_kind, on, products


def quiet_degrees(graph: Graph, *allowed: str) -> Degrees:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return degrees(*on(graph, by_part, gpus(2)), "Tool", *allowed)


# The kinds of the classes decide which degree a plan has.
def test_features_are_tensor_parallel_also_under_the_name_of_a_module() -> None:
    assert quiet_degrees(products()).tensor == 2
    plan = quiet_degrees(dataclasses.replace(products(), cuts=parse_cuts(["layers.*=2"])))
    assert (plan.tensor, plan.context, plan.expert, plan.has_sequence) == (2, 1, 1, False)


def test_a_sequence_is_context_parallel_alone_and_of_norms_beside_products() -> None:
    assert quiet_degrees(of_kind("features", "sequence=2")).has_sequence
    graph = products(cuts="sequence=2")
    whole = [
        op if op.kind != "parameter" else msgspec.structs.replace(op, part=None) for op in graph.ops
    ]
    graph = dataclasses.replace(graph, ops=tuple(whole), cut_parameters=())
    plan = quiet_degrees(graph, "context")
    assert (plan.tensor, plan.context, plan.has_sequence) == (1, 2, False)
    with pytest.raises(PlanError, match="cuts the sequence alone, which Tool does not"):
        quiet_degrees(graph)


def test_experts_need_others_beside_them() -> None:
    assert quiet_degrees(of_kind("experts", "sequence=2"), "context", "expert").expert == 2
    with pytest.raises(PlanError, match="cuts experts, which Tool does not"):
        quiet_degrees(of_kind("experts"))
    with pytest.raises(
        PlanError, match=r"experts alone, and Tool .* --cuts heads=2 and features=2"
    ):
        quiet_degrees(of_kind("experts"), "expert")


def grouped(whole: str) -> Graph:
    """Layers whose products are those of experts; one weight is whole."""
    graph = products(whole=whole)
    ops = [
        msgspec.structs.replace(op, kind="aten._grouped_mm") if op.kind == "aten.mm" else op
        for op in graph.ops
    ]
    return dataclasses.replace(graph, ops=tuple(ops))


# A tool that cuts all layers alike takes no other plan.
@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (of_kind("channels"), r"'layers\.0\.up\.weight' along its channels, and Tool cuts heads,"),
        (of_kind("features", "batch=2"), r"cuts the batch of single ops.* --slices in place of"),
        (products(whole="layers.1.up.weight"), r"'layers\.1\.up\.weight' whole, and Tool cuts"),
        (grouped("layers.1.up.weight"), r"'layers\.1\.up\.weight' whole, and Tool cuts"),
    ],
)
def test_other_classes_and_whole_products_are_refused(graph, message) -> None:
    with pytest.raises(PlanError, match=f"{message}.*situate run runs it$"):
        quiet_degrees(graph)


def test_layers_that_are_cut_in_two_ways_are_refused() -> None:
    graph = products()
    parameters = [
        msgspec.structs.replace(p, dim=1) if p.name == "layers.1.up.weight" else p
        for p in graph.cut_parameters
    ]
    graph = dataclasses.replace(graph, cut_parameters=tuple(parameters))
    message = r"cuts 'layers\.0\.up\.weight' and 'layers\.1\.up\.weight' in two ways"
    with pytest.raises(PlanError, match=message):
        quiet_degrees(graph)


def test_a_whole_head_is_said() -> None:
    graph = products(whole="layers.1.down.weight")
    ops = [
        msgspec.structs.replace(
            op,
            name=op.name.replace("layers.1.down", "head"),
            module=op.module.replace("layers.1.down", "head"),
        )
        for op in graph.ops
    ]
    graph = dataclasses.replace(graph, ops=tuple(ops))
    message = r"Tool also cuts 'head\.weight', which the plan has whole"
    with pytest.warns(UserWarning, match=message):
        degrees(*on(graph, by_part, gpus(2)), "Tool")
