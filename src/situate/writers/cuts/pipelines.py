"""Pipelines of teams: each stage is a run of layers, and each device of its team has one part."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

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
            are unequal; slices differ in their sizes, or go through pipelines of unequal stages or
            shares; layers go back to a team; or devices are of several kinds.
    """
    check_parts(problem)
    network = layers(problem, schedule)
    of_slice = _teams_of_layers(problem, schedule, network)
    of_layer = next(iter(of_slice.values()), [])
    if len(set(of_layer)) < 2:
        return None
    slices_of = _slices_of_pipelines(of_slice)
    ways = [_runs(problem, network, way) for way in slices_of]
    _check_alike(problem, slices_of, ways)
    # Teams of one stage follow one another, as ranks of data parallelism do in these tools.
    stages = tuple(team for stage in zip(*ways, strict=True) for team, _ in stage)
    check_apart(problem, stages, "layers run")
    counts, is_whole = tuple(count for _, count in ways[0]), problem.graph.slices is None
    slices, samples = (0, 0) if is_whole else equal_slices(problem, tool)
    pipelines, order = len(ways), _order(slices_of)
    mesh = Teams(stages, slices // pipelines, samples, order, counts=counts, pipelines=pipelines)
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


def _slices_of_pipelines(
    of_slice: dict[int | None, list[Team]],
) -> dict[tuple[Team, ...], list[int | None]]:
    """By way through the teams, the slices that take it."""
    ways: dict[tuple[Team, ...], list[int | None]] = {}
    for piece, way in of_slice.items():
        ways.setdefault(tuple(way), []).append(piece)
    return ways


def _order(slices_of: dict[tuple[Team, ...], list[int | None]]) -> tuple[int, ...]:
    """By slice, the number of its pipeline."""
    numbers = {
        piece: number for number, pieces in enumerate(slices_of.values()) for piece in pieces
    }
    return tuple(number for _, number in sorted(numbers.items(), key=lambda pair: pair[0] or 0))


def _check_alike(
    problem: Problem,
    slices_of: dict[tuple[Team, ...], list[int | None]],
    ways: Sequence[Sequence[tuple[Team, int]]],
) -> None:
    """
    Raises:
        PlanError: pipelines side by side share a team, have unequal stages, or take unequal shares
            of the slices.
    """
    for (one, first), (other, second) in combinations(slices_of.items(), 2):
        if set(one) & set(other):
            layer = next(
                i for i, pair in enumerate(zip(one, other, strict=True)) if len({*pair}) > 1
            )
            raise PlanError(
                f"layer {layer} runs on {device_list(problem, one[layer])} for slice {first[0]} "
                f"and on {device_list(problem, other[layer])} for slice {second[0]}, and all "
                f"slices take one way through a pipeline of teams, or pipelines that share no "
                f"team: {RUNS}"
            )
    if len({tuple(count for _, count in way) for way in ways}) > 1:
        raise PlanError(
            f"pipelines of teams side by side have unequal numbers of layers in a stage, and a "
            f"mesh has equal ones: {RUNS}"
        )
    if len({len(pieces) for pieces in slices_of.values()}) > 1:
        raise PlanError(f"pipelines of teams take unequal shares of the slices: {RUNS}")


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
    of_part = {
        (pipeline, k): placement_by_module(
            problem,
            schedule,
            {p: mesh.devices[s * mesh.pipelines + pipeline][k] for p, s in of_path.items()},
        )
        for pipeline in range(mesh.pipelines)
        for k in range(mesh.parts)
    }
    placement: list[int] = schedule.placement.tolist()
    for j, op in enumerate(problem.graph.ops):
        if op.part is None or op.phase == "update" or op.kind == "parameter":
            continue
        if op.slice is not None or mesh.pipelines == 1:
            pipeline = 0 if op.slice is None else mesh.team_of[op.slice]
            placement[j] = of_part[pipeline, op.part][j]
    return placement
