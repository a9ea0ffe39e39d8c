"""Teams of devices of plans of parts, and plans that no mesh can express."""

from __future__ import annotations

import dataclasses
import warnings

import msgspec
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.cuts import parse_cuts
from situate.errors import PlanError
from situate.writers.cuts.teams import Teams, teams
from tests.writers.cuts.planned import by_part, gpus, on, plan, products


def quiet_teams(problem, schedule, tool: str = "dtensor") -> Teams:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return teams(problem, schedule, tool)


# One team has a device for each part, and several share out the slices.
def test_parts_in_one_order_are_a_team() -> None:
    assert quiet_teams(*on(products(), by_part, gpus(2))) == Teams(((0, 1),))
    swapped = on(products(), lambda op: 1 - (op.part or 0), gpus(2))
    assert quiet_teams(*swapped).ranks == (1, 0)


@pytest.mark.parametrize("is_sharded", [False, True])
def test_slices_on_teams_are_data_parallel(is_sharded) -> None:
    graph = products(slices=4)

    def device(op) -> int:
        number = (op.slice or 0) // 2
        if op.slice is None:
            number = is_sharded and op.module.startswith("layers.1")
        return 2 * number + (op.part or 0)

    mesh = quiet_teams(*on(graph, device, gpus(4)))
    assert mesh == Teams(((0, 1), (2, 3)), 2, 1, (0, 0, 1, 1), is_sharded)
    assert mesh.batch == 4


# A refusal names the module at fault, and says that situate runs the plan.
@pytest.mark.parametrize(
    ("device", "message"),
    [
        (lambda op: 0, r"'layers\.0\.up\.weight' are on gpu0, gpu0: 2 parts on 1 device, and"),
        (
            lambda op: (op.part or 0) ^ ("1.down" in op.name),
            r"parts of 'layers\.1\.down\.weight' are on gpu1, gpu0, the parts of .* one order",
        ),
        (
            lambda op: (op.part or 0) + 2 * ("layers.1" in op.name),
            r"'layers\.1\.up\.weight' are on gpu2, gpu3, .* teams that take turns are stages",
        ),
        (
            lambda op: by_part(op) if op.kind == "parameter" else 1 - by_part(op),
            r"most ops of the parts are on gpu1, gpu0, the parts of 'layers\.0\.up",
        ),
    ],
)
def test_parts_in_several_orders_are_refused(device, message) -> None:
    with pytest.raises(PlanError, match=f"{message}.*situate run runs it$"):
        quiet_teams(*on(products(), device, gpus(4)))


@pytest.mark.parametrize(
    ("slices", "device", "message"),
    [
        (3, lambda op: 2 * (op.slice == 2) + by_part(op), "unequal shares of the slices"),
        (2, lambda op: (op.slice or 0) + by_part(op), "teams of a mesh share no device"),
        (
            2,
            lambda op: 2 * (op.slice or 0) + (by_part(op) if op.slice is not None else 0),
            r"part 1 of 'layers\.0\.up\.weight' is on gpu0, and that part of the slices on gpu1",
        ),
        (
            2,
            lambda op: 2 * ("layers.1" in op.name) + by_part(op),
            "part 0 of slice 0 runs on gpu0, gpu2, and teams that take turns are stages of a",
        ),
    ],
)
def test_slices_that_teams_do_not_share_out_are_refused(slices, device, message) -> None:
    with pytest.raises(PlanError, match=f"{message}.*situate run runs it$"):
        quiet_teams(*on(products(slices=slices), device, gpus(4)))


def test_parts_of_unequal_sizes_are_refused() -> None:
    graph = products(cuts="features=3:1")
    uneven = [msgspec.structs.replace(p, bounds=(0, 6, 8)) for p in graph.cut_parameters]
    graph = dataclasses.replace(graph, cut_parameters=tuple(uneven))
    message = r"'layers\.0\.up\.weight' into unequal parts \(features=3:1\).* situate run runs it"
    with pytest.raises(PlanError, match=message):
        quiet_teams(*on(graph, by_part, gpus(2)))


def test_parts_of_nearly_equal_sizes_are_for_vocabularies_alone() -> None:
    graph = products()
    near = [msgspec.structs.replace(p, bounds=(0, 4, 7)) for p in graph.cut_parameters]
    changed = dataclasses.replace(graph, cut_parameters=tuple(near))
    with pytest.raises(PlanError, match=r"'layers\.0\.up\.weight' end at 4, 7, and a mesh"):
        quiet_teams(*on(changed, by_part, gpus(2)))
    vocabulary = [msgspec.structs.replace(p, kind="vocabulary") for p in near]
    changed = dataclasses.replace(graph, cut_parameters=tuple(vocabulary))
    assert quiet_teams(*on(changed, by_part, gpus(2))).parts == 2


def test_several_numbers_of_parts_are_refused() -> None:
    graph = dataclasses.replace(products(), cuts=parse_cuts(["features=2", "sequence=4"]))
    with pytest.raises(PlanError, match=r"up\.weight' into 2 parts and 'sequence' into 4"):
        quiet_teams(*on(graph, by_part, gpus(2)))


def test_a_graph_that_does_not_say_how_parameters_are_cut_is_refused() -> None:
    graph = dataclasses.replace(products(), cut_parameters=())
    with pytest.raises(PlanError, match=r"does not say along which dimensions .* capture it again"):
        quiet_teams(*on(graph, by_part, gpus(2)))


def test_devices_of_several_kinds_are_refused_and_cpus_for_tools_of_accelerators() -> None:
    mixed = Cluster("mixed", (Device("a"), Device("b", "tpu")), (Link("*", "*", 1.0),))
    with pytest.raises(PlanError, match=r"devices of several kinds \(gpu, tpu\)"):
        quiet_teams(*on(products(), by_part, mixed))
    cpus = on(products(), by_part, gpus(2, "cpu"))
    assert quiet_teams(*cpus).parts == 2
    with pytest.raises(PlanError, match="'gpu0', and DeepSpeed cuts modules over accelerators"):
        quiet_teams(*cpus, "DeepSpeed")


# Warnings give the figures of the file, where it differs from the plan.
def test_ops_elsewhere_and_whole_parameters_are_said() -> None:
    graph = products(layers=3)
    plain = on(graph, by_part, gpus(2))
    with pytest.warns(UserWarning, match="3 whole parameters, 24 B with their state, lie on every"):
        teams(*plain, "dtensor")
    stray = on(graph, lambda op: 0 if "part1/layers.2.down/mm" in op.name else by_part(op), gpus(2))
    with pytest.warns(UserWarning, match="of the mesh: predicted step"):
        teams(*stray, "dtensor")


def test_plans_by_tensor_parallel_are_teams() -> None:
    assert quiet_teams(*plan(products(parts=4), 4)).devices == ((0, 1, 2, 3),)
    assert quiet_teams(*plan(products(slices=4), 4)).slices == 2
