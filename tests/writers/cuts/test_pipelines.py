"""Pipelines of teams: a run of layers on each team."""

from __future__ import annotations

import dataclasses
import warnings

import msgspec
import pytest

from situate.data.graph import Graph, Op
from situate.errors import PlanError
from situate.writers.cuts.pipelines import pipeline_of_teams
from situate.writers.cuts.teams import Teams
from tests.writers.cuts.planned import by_layer, by_part, gpus, layer, on, products


def pipeline(graph: Graph, devices=by_layer) -> Teams | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pipeline_of_teams(*on(graph, devices, gpus(8)), "Tool")


# Layers on one team are no pipeline; layers on several teams are its stages.
def test_the_teams_of_runs_of_layers_are_stages() -> None:
    mesh = pipeline(products(layers=6))
    assert mesh is not None
    assert (mesh.devices, mesh.counts) == (((0, 1), (2, 3), (4, 5)), (2, 2, 2))
    assert (mesh.slices, mesh.batch) == (0, 0)
    assert pipeline(products(layers=4), by_part) is None


def test_slices_go_through_all_stages() -> None:
    mesh = pipeline(products(layers=4, slices=3))
    assert mesh is not None
    assert (mesh.counts, mesh.slices, mesh.samples, mesh.batch) == ((2, 2), 3, 1, 3)
    with pytest.warns(UserWarning, match="an order of slices of its own, and Tool runs 1F1B"):
        pipeline_of_teams(*on(products(layers=4, slices=3), by_layer, gpus(4)), "Tool")


def side_by_side(op: Op) -> int:
    """Odd slices go through a pipeline of their own."""
    return by_layer(op) + 4 * ((op.slice or 0) % 2)


def test_pipelines_side_by_side_share_out_the_slices() -> None:
    mesh = pipeline(products(layers=4, slices=4), side_by_side)
    assert mesh is not None
    # The teams of a stage follow one another.
    assert mesh.devices == ((0, 1), (4, 5), (2, 3), (6, 7))
    assert (mesh.counts, mesh.pipelines, mesh.copies) == ((2, 2), 2, 2)
    assert (mesh.slices, mesh.samples, mesh.batch) == (2, 1, 4)
    assert mesh.team_of == (0, 1, 0, 1)


def test_ops_that_are_elsewhere_are_said_with_the_figures_of_the_pipeline() -> None:
    def devices(op: Op) -> int:
        is_moved = op.module == "layers.0.down" and op.part == 0 and op.kind != "parameter"
        return 5 if is_moved else by_layer(op)

    with pytest.warns(UserWarning, match="of the mesh: predicted step"):
        pipeline_of_teams(*on(products(layers=4), devices, gpus(8)), "Tool")


# Plans that no pipeline of teams can express.
@pytest.mark.parametrize(
    ("devices", "message"),
    [
        (
            lambda op: layer(op) % 2 * 2 + (op.part or 0),
            r"'layers\.2' goes back to gpu0, gpu1",
        ),
        (lambda op: layer(op) // 2 + (op.part or 0), "teams of a mesh share no device"),
        (lambda op: layer(op) // 2, "2 parts on 1 device, and a mesh has a device for each"),
    ],
)
def test_other_plans_are_refused(devices, message) -> None:
    with pytest.raises(PlanError, match=message):
        pipeline(products(layers=4), devices)


def test_slices_through_pipelines_that_share_a_team_are_refused() -> None:
    def devices(op: Op) -> int:
        return by_layer(op) + (2 if op.slice == 1 else 0)

    with pytest.raises(
        PlanError, match=r"layer 0 runs on gpu0, gpu1 for slice 0 and on gpu2, gpu3 for slice 1"
    ):
        pipeline(products(layers=4, slices=2), devices)


def test_pipelines_of_unequal_stages_are_refused() -> None:
    def devices(op: Op) -> int:
        return 4 + 2 * (layer(op) > 0) + (op.part or 0) if op.slice == 1 else by_layer(op)

    with pytest.raises(PlanError, match="side by side have unequal numbers of layers"):
        pipeline(products(layers=4, slices=2), devices)


def test_pipelines_that_take_unequal_shares_of_the_slices_are_refused() -> None:
    with pytest.raises(PlanError, match="take unequal shares of the slices"):
        pipeline(products(layers=4, slices=3), side_by_side)


def test_whole_layers_are_refused() -> None:
    graph = products(layers=4)
    whole = [msgspec.structs.replace(op, part=None) if layer(op) == 3 else op for op in graph.ops]
    with pytest.raises(PlanError, match="cuts 3 of 4 layers, and a pipeline of teams has parts"):
        pipeline(dataclasses.replace(graph, ops=tuple(whole)))
