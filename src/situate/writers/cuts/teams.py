"""The mesh of a plan of parts: teams of devices, with one part of every cut op on each device."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from situate.data.graph import Op
from situate.data.problem import Problem
from situate.errors import PlanError
from situate.report.slices.parallelism import list_text
from situate.report.text import plural, printable
from situate.report.units import size_text
from situate.schedule.schedule import Schedule
from situate.writers.exported import device_names, differences, exported
from situate.writers.slices.pipeline import equal_slices

ACTIVATIONS = ("sequence", "batch")
"""Kinds of classes without parameters, which cuts can name only by their kind."""

RUNS = "situate run runs it"
"""The end of a refusal."""

ONE_ORDER = f"plan with --method tensor_parallel; {RUNS}"
"""The end of a refusal of a plan that places parts in several orders."""

STAGES = "teams that take turns are stages of a pipeline"
"""The reason for a refusal of a plan whose modules are on several teams."""

LEAST = 0.6
"""Least share of a part's seconds on one device that counts as running there."""

Homes = dict[int, int]
"""By part, its device."""


@dataclass(frozen=True)
class Teams:
    """Teams of as many devices as there are parts, that share out slices or layers.

    Attributes:
        devices: by team, the device of each part. Teams of one stage follow one another.
        slices: of the batch that each team runs; 0 if the batch is whole.
        samples: of each slice.
        team_of: by slice, the number of its team.
        is_sharded: true if parameters are spread over the teams, as by FSDP; false if each team
            has a copy, or there is one team.
        counts: layers of each stage, if teams are stages of a pipeline that slices go through.
        pipelines: number of pipelines side by side, with equal stages and as many slices each.
    """

    devices: tuple[tuple[int, ...], ...]
    slices: int = 0
    samples: int = 0
    team_of: tuple[int, ...] = ()
    is_sharded: bool = False
    counts: tuple[int, ...] = ()
    pipelines: int = 1

    @property
    def parts(self) -> int:
        """The number of parts."""
        return len(self.devices[0])

    @property
    def ranks(self) -> tuple[int, ...]:
        """The device of each rank, team after team."""
        return tuple(device for team in self.devices for device in team)

    @property
    def batch(self) -> int:
        """The samples of all teams; 0 if the batch is whole."""
        return self.copies * self.slices * self.samples

    @property
    def copies(self) -> int:
        """The number of teams, or of pipelines of teams, that share out the slices."""
        return self.pipelines if self.counts else len(self.devices)


def teams(problem: Problem, schedule: Schedule, tool: str) -> Teams:
    """The teams of a plan; warns about ops that the plan has elsewhere.

    Args:
        tool: its name, in errors and warnings.

    Raises:
        PlanError: parts are unequal, of several numbers, share a device or lie in several orders;
            teams take turns; slices are not shared out evenly; or devices are of several kinds.
    """
    check_parts(problem)
    members = _Members(problem, schedule)
    whole = problem.graph.slices is None
    mesh = members.one_team() if whole else members.teams_of_slices(tool)
    check_kinds(problem, mesh, tool)
    warn_of_moves(problem, schedule, _placement(problem, schedule, mesh), tool)
    return mesh


def check_parts(problem: Problem) -> None:
    """
    Raises:
        PlanError: the graph does not say how its parameters are cut, or parts are unequal or of
            several numbers.
    """
    graph = problem.graph
    assert graph.cuts is not None
    if not graph.cut_parameters and any(map(_is_part_of_parameter, graph.ops)):
        raise PlanError(
            f"graph {graph.name!r} does not say along which dimensions its parameters are cut: "
            "capture it again"
        )
    for cut in graph.cuts.cuts:
        if len(set(cut.shares)) > 1:
            uneven = (p.name for p in graph.cut_parameters if not _is_even(p.bounds))
            raise PlanError(
                f"the plan cuts {_text(next(uneven, cut.name))} into unequal parts ({cut}), and a "
                f"mesh has equal ones: {RUNS}"
            )
    numbers = {p.name: p.parts for p in graph.cut_parameters}
    numbers |= {cut.name: len(cut.shares) for cut in graph.cuts.cuts if cut.name in ACTIVATIONS}
    first, count = next(iter(numbers.items()), ("", 0))
    for name, other in numbers.items():
        if other != count:
            raise PlanError(
                f"the plan cuts {_text(first)} into {count} parts and {_text(name)} into {other}, "
                f"and a mesh has one size: {RUNS}"
            )
    for p in graph.cut_parameters:
        # Tools pad a vocabulary, or give its last part fewer rows.
        if p.kind != "vocabulary" and not _is_even(p.bounds):
            ends = ", ".join(map(str, p.bounds[1:]))
            raise PlanError(
                f"the parts of {_text(p.name)} end at {ends}, and a mesh has equal ones: {RUNS}"
            )


def _is_even(bounds: Sequence[int]) -> bool:
    # In whole numbers: bound i is i of all parts.
    return all(bound * (len(bounds) - 1) == i * bounds[-1] for i, bound in enumerate(bounds))


def _is_part_of_parameter(op: Op) -> bool:
    return op.kind == "parameter" and op.part is not None


def parameter_name(op: Op) -> str:
    """The name of the parameter that an op holds, whole or a part."""
    return op.name.removeprefix(f"replica{op.replica}/").removeprefix(f"part{op.part}/")


class _Members:
    """The devices of parts in a plan.

    Attributes:
        homes: by name and replica of a parameter, the device of each part.
        work: by slice, the device with most seconds of each part.
    """

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self._problem = problem
        self.homes: dict[tuple[str, int | None], Homes] = defaultdict(dict)
        seconds: dict[tuple[int | None, int], dict[int, float]] = defaultdict(dict)
        placement = schedule.placement.tolist()
        for j, op in enumerate(problem.graph.ops):
            device = placement[j]
            if op.part is None or op.phase == "update":
                continue
            if op.kind == "parameter":
                self.homes[parameter_name(op), op.replica][op.part] = device
            else:
                busy = seconds[op.slice, op.part]
                busy[device] = busy.get(device, 0.0) + float(problem.seconds[j, device])
        self.work: dict[int | None, Homes] = defaultdict(dict)
        for (piece, part), busy in seconds.items():
            device = max(busy, key=lambda device: (busy[device], -device))
            if piece is not None and busy[device] < LEAST * sum(busy.values()):
                raise PlanError(
                    f"part {part} of slice {piece} runs on {self._list(sorted(busy))}, and "
                    f"{STAGES}: {RUNS}"
                )
            self.work[piece][part] = device

    def _list(self, devices: Sequence[int]) -> str:
        return device_list(self._problem, devices)

    def one_team(self) -> Teams:
        """The team of a step that takes its batch whole."""
        parts = {f"the parts of {_text(name)}": own for (name, _), own in self.homes.items()}
        if None in self.work:
            parts["most ops of the parts"] = self.work[None]
        (first, team), *others = (
            (name, team_of_parts(self._problem, name, own)) for name, own in parts.items()
        )
        for name, other in others:
            if other != team:
                more = f"plan for {len(team)} devices, or with --slices; {RUNS}"
                is_order = set(team) & set(other)
                end = f"a mesh has one order: {ONE_ORDER}" if is_order else f"{STAGES}: {more}"
                raise PlanError(
                    f"{name} are on {self._list(other)}, {first} on {self._list(team)}, and {end}"
                )
        return Teams((team,))

    def teams_of_slices(self, tool: str) -> Teams:
        """The teams that share out the slices of a batch."""
        count, samples = equal_slices(self._problem, tool)
        team_of = {
            piece: team_of_parts(self._problem, f"most ops of slice {piece}", own)
            for piece, own in self.work.items()
            if piece is not None
        }
        meshes = list(dict.fromkeys(team_of[piece] for piece in sorted(team_of)))
        check_apart(self._problem, meshes, "slices run")
        counts = [list(team_of.values()).count(team) for team in meshes]
        if len(set(counts)) > 1:
            shares = list_text(
                f"{slices} on {self._list(team)}"
                for slices, team in zip(counts, meshes, strict=True)
            )
            raise PlanError(f"teams take unequal shares of the slices ({shares}): {RUNS}")
        # By part, its device in each team; and the teams that hold parameters.
        columns, in_use = list(zip(*meshes, strict=True)), set()
        for (name, _), own in self.homes.items():
            for part, device in own.items():
                if device not in columns[part]:
                    raise PlanError(
                        f"part {part} of {_text(name)} is on {self._list([device])}, and that "
                        f"part of the slices on {self._list(columns[part])}: {ONE_ORDER}"
                    )
                in_use.add(columns[part].index(device))
        slices = self._problem.graph.slices
        is_copied = slices is not None and len(slices.replicas) > 1
        # Without copies, parameters in several teams are shards.
        is_sharded = not is_copied and len(in_use) > 1
        order = tuple(meshes.index(team_of[piece]) for piece in sorted(team_of))
        return Teams(tuple(meshes), count // len(meshes), samples, order, is_sharded)


def check_apart(problem: Problem, meshes: Sequence[tuple[int, ...]], work: str) -> None:
    """
    Args:
        work: the work of the teams, such as `slices run`.

    Raises:
        PlanError: two teams have a device in common.
    """
    for i, team in enumerate(meshes):
        for other in meshes[:i]:
            if set(team) & set(other):
                raise PlanError(
                    f"{work} on {device_list(problem, other)} and on {device_list(problem, team)}, "
                    f"and teams of a mesh share no device: {ONE_ORDER}"
                )


def team_of_parts(problem: Problem, name: str, own: Homes) -> tuple[int, ...]:
    """The devices of all parts in their order.

    Raises:
        PlanError: two parts share a device.
    """
    team = tuple(own[part] for part in sorted(own))
    if len(set(team)) < len(team):
        count = len(set(team))
        raise PlanError(
            f"{name} are on {device_list(problem, team)}: {len(team)} parts on "
            f"{plural(count, 'device')}, and a mesh has a device for each: {ONE_ORDER}"
        )
    return team


def device_list(problem: Problem, devices: Sequence[int]) -> str:
    """The names of devices as a list for a sentence."""
    names = problem.cluster.names
    return list_text(printable(names[device], 40) for device in devices)


def _text(name: str) -> str:
    return repr(printable(name, 60))


def check_kinds(problem: Problem, mesh: Teams, tool: str) -> None:
    """
    Raises:
        PlanError: the devices are of several kinds, or no GPUs for a tool that needs them.
    """
    devices = problem.cluster.devices
    kinds = {devices[rank].kind for rank in mesh.ranks}
    if len(kinds) > 1:
        raise PlanError(f"the parts are on devices of several kinds ({', '.join(sorted(kinds))})")
    numbers = device_names(problem.cluster)
    if tool != "dtensor" and not all(isinstance(numbers[rank], int) for rank in mesh.ranks):
        name = problem.cluster.names[mesh.ranks[0]]
        raise PlanError(
            f"the parts are on {_text(name)}, and {tool} cuts modules over accelerators"
        )


def warn_of_moves(
    problem: Problem, schedule: Schedule, placement: Sequence[int], tool: str
) -> None:
    """Warn with the predicted figures of parts on their teams, if the plan has some elsewhere; and
    of whole parameters, which lie on every device.

    Args:
        placement: (n,) of the ops on the mesh.
    """
    moved = exported(problem, schedule, placement)
    for line in differences(problem, schedule, moved, "mesh"):
        warnings.warn(line, stacklevel=3)
    ops = problem.graph.ops
    whole = [op for op in ops if op.kind == "parameter" and op.part is None]
    if whole:
        size = size_text(sum(op.persistent for op in whole))
        warnings.warn(
            f"{plural(len(whole), 'whole parameter')}, {size} with their state, lie on every "
            f"device in {tool}, such as {_text(whole[0].name)}",
            stacklevel=3,
        )


def _placement(problem: Problem, schedule: Schedule, mesh: Teams) -> list[int]:
    """(n,) ops of parts on the devices of their teams; other ops as in the plan."""
    placement: list[int] = schedule.placement.tolist()
    for j, op in enumerate(problem.graph.ops):
        if op.part is not None and op.phase != "update" and op.kind != "parameter":
            if op.slice is not None:
                placement[j] = mesh.devices[mesh.team_of[op.slice]][op.part]
            elif len(mesh.devices) == 1:
                placement[j] = mesh.devices[0][op.part]
    return placement
