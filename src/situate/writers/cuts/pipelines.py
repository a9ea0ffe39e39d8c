"""Pipelines of teams: each stage is a run of layers, and each device of its team has one part."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence

from situate.data.problem import Problem
from situate.errors import PlanError
from situate.report.text import printable
from situate.schedule.schedule import Schedule
from situate.writers.cuts.teams import (
    ONE_ORDER,
    RUNS,
    Homes,
    Teams,
    check_apart,
    check_kinds,
    check_parts,
    device_list,
    team_of_parts,
    warn_of_moves,
)
from situate.writers.exported import placement_by_module
from situate.writers.layers import Layers, layer_of, layers, runs_forward
from situate.writers.slices.pipeline import equal_slices

Team = tuple[int, ...]
"""The device of each part."""


def pipeline_of_teams(problem: Problem, schedule: Schedule, tool: str) -> Teams | None:
    """The stages of a plan whose layers are on several teams; None if one team has all layers.

    Warns about ops that the plan has elsewhere, and about the order of its slices.

    Args:
        tool: its name, in errors and warnings.

    Raises:
        PlanError: the graph names no list of layers; parts share a device, lie in several orders or
            are unequal; slices differ in their teams or sizes; layers go back to a team; or devices
            are of several kinds.
    """
    check_parts(problem)
    network = layers(problem, schedule)
    of_slice = _teams_of_layers(problem, schedule, network)
    of_layer = next(iter(of_slice.values()), [])
    if len(set(of_layer)) < 2:
        return None
    _check_slices(problem, of_slice)
    runs = _runs(problem, network, of_layer)
    stages, counts = tuple(team for team, _ in runs), tuple(count for _, count in runs)
    check_apart(problem, stages, "layers run")
    is_whole = problem.graph.slices is None
    slices, samples = (0, 0) if is_whole else equal_slices(problem, tool)
    mesh = Teams(stages, slices, samples, counts=counts)
    check_kinds(problem, mesh, tool)
    warn_of_moves(problem, schedule, _placement(problem, schedule, network, mesh), tool)
    if slices:
        warnings.warn(
            f"the plan has an order of slices of its own, and {tool} runs 1F1B", stacklevel=3
        )
    return mesh


def _teams_of_layers(
    problem: Problem, schedule: Schedule, network: Layers
) -> dict[int | None, list[Team]]:
    """By slice, the team of each layer: for each part, the device of most forward seconds."""
    busy: dict[int | None, dict[int, dict[int, dict[int, float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(lambda: defaultdict(float)))
    )
    for j, op in enumerate(problem.graph.ops):
        layer = layer_of(op, network.path)
        if layer is not None and op.part is not None and runs_forward(op):
            device = int(schedule.placement[j])
            busy[op.slice][layer][op.part][device] += float(problem.seconds[j, device])
    result = {}
    for piece, of_layer in sorted(busy.items(), key=lambda entry: entry[0] or 0):
        homes = {layer: _homes(of_part) for layer, of_part in sorted(of_layer.items())}
        result[piece] = [
            team_of_parts(problem, f"most ops of layer {layer}", own)
            for layer, own in homes.items()
        ]
    return result


def _homes(busy: dict[int, dict[int, float]]) -> Homes:
    """By part, the device with most seconds; of equal ones the first."""
    return {
        part: max(seconds, key=lambda device: (seconds[device], -device))
        for part, seconds in busy.items()
    }


def _check_slices(problem: Problem, of_slice: dict[int | None, list[Team]]) -> None:
    (first, teams), *others = of_slice.items()
    for piece, own in others:
        for layer, (one, other) in enumerate(zip(teams, own, strict=True)):
            if one != other:
                raise PlanError(
                    f"layer {layer} runs on {device_list(problem, one)} for slice {first} and on "
                    f"{device_list(problem, other)} for slice {piece}, and all slices take one way "
                    f"through a pipeline of teams: {RUNS}"
                )


def _runs(problem: Problem, network: Layers, of_layer: Sequence[Team]) -> list[tuple[Team, int]]:
    """The team and the number of layers of each stage.

    Raises:
        PlanError: some layers are whole, or the layers of a team are not contiguous.
    """
    if len(of_layer) < len(network.parts):
        raise PlanError(
            f"the plan cuts {len(of_layer)} of {len(network.parts)} layers, and a pipeline of "
            f"teams has parts in all: {RUNS}"
        )
    runs: list[tuple[Team, int]] = []
    for layer, team in enumerate(of_layer):
        if runs and runs[-1][0] == team:
            runs[-1] = (team, runs[-1][1] + 1)
        elif team in (other for other, _ in runs):
            path = printable(network.parts[layer].path, 60)
            raise PlanError(
                f"layer {path!r} goes back to {device_list(problem, team)}, and a pipeline has "
                f"contiguous layers on each team: {ONE_ORDER}"
            )
        else:
            runs.append((team, 1))
    return runs


def _placement(problem: Problem, schedule: Schedule, network: Layers, mesh: Teams) -> list[int]:
    """(n,) ops of parts on the devices of their stages; other ops as in the plan.

    Modules before the layers are in the first stage, those after them in the last.
    """
    stages = [stage for stage, count in enumerate(mesh.counts) for _ in range(count)]
    of_path = {part.path: stage for part, stage in zip(network.parts, stages, strict=True)}
    of_path |= {part.path: 0 for part in network.before}
    of_path |= {part.path: len(mesh.counts) - 1 for part in network.after}
    of_part = [
        placement_by_module(problem, schedule, {p: mesh.devices[s][k] for p, s in of_path.items()})
        for k in range(mesh.parts)
    ]
    placement: list[int] = schedule.placement.tolist()
    for j, op in enumerate(problem.graph.ops):
        if op.part is not None and op.phase != "update" and op.kind != "parameter":
            placement[j] = of_part[op.part][j]
    return placement
