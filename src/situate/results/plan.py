"""The plan: the file users keep. It names ops and devices, never indices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import msgspec
import numpy as np

from situate.data.arrays import Placement
from situate.data.cluster import Cluster
from situate.data.costs import Costs
from situate.data.cuts import Cuts
from situate.data.placements import Restrictions
from situate.data.problem import Objective, Problem
from situate.data.slices import Slices
from situate.data.update_rule import UpdateRule, update_rule
from situate.errors import PlanError, ReadError, SituateError, nearest
from situate.files.strict_json import plain
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import DecoderName, scheduled
from situate.simulation.simulator import Simulator
from situate.simulation.transfer_order import TransferOrder, transfer_pairs
from situate.validation import check
from situate.version import VERSION

if TYPE_CHECKING:
    from situate.data.graph import Graph

LIMIT = 2**30
"""Largest file of a plan, in bytes."""

NOT_NEGATIVE = msgspec.Meta(ge=0)
Seconds = Annotated[float, NOT_NEGATIVE]


class ControlEdges(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tensor of size zero for all control edges of the op `control`; it has no name of its
    own."""

    control: str


PlannedTransfer = tuple[str | ControlEdges, str, Annotated[int, NOT_NEGATIVE]]
"""A tensor, the receiving device, and the number of more urgent ops."""


class Plan(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="format", tag="situate-plan"
):
    """The device of every op, and the predicted figures of the step.

    `placement` maps op names to device names, the most urgent op first: its order is the priority
    that `decoder` turns into a schedule. `transfers` has the most urgent transfer first; where it
    is unset, each is as urgent as its most urgent consumer. Times are in the graph's `unit`, sizes
    in bytes. The hashes name the graph, the cluster and the measured costs that the plan was made
    for; that of the costs is empty where there were none. `optimizer` is that of the graph: empty
    where the step updates no parameters, None where that is not known. `slices` is unset where the
    step takes its batch whole, `recompute` where no module runs its forward pass again, and `cuts`
    where all ops are whole. A plan that does not fit has no lower bound.

    Raises:
        PlanError: an unknown optimizer or decoder; a lower bound that is negative or above the
            value, one of a plan that does not fit, or none of a plan that does.
    """

    graph: str
    graph_hash: str
    cluster: str
    cluster_hash: str
    rules: str
    unit: str
    objective: Objective
    method: str
    decoder: DecoderName
    seed: int
    evaluations: Annotated[int, NOT_NEGATIVE]
    seconds: Seconds
    value: Annotated[float, NOT_NEGATIVE] | None
    lower_bound: Annotated[float, NOT_NEGATIVE] | None
    feasible: bool
    makespan: Seconds | None
    peak_memory: dict[str, Annotated[int, NOT_NEGATIVE]]
    placement: dict[str, str]
    transfers: list[PlannedTransfer] | msgspec.UnsetType = msgspec.UNSET
    costs_hash: str = ""
    optimizer: str | None = None
    slices: Slices | msgspec.UnsetType = msgspec.UNSET
    recompute: list[str] | msgspec.UnsetType = msgspec.UNSET
    cuts: Cuts | msgspec.UnsetType = msgspec.UNSET
    version: int = 1
    made_by: str = f"situate {VERSION}"

    def __post_init__(self) -> None:
        self._check_optimizer()
        if self.decoder not in (decoders := get_args(DecoderName)):
            raise PlanError(
                f"unknown decoder {self.decoder!r}{nearest(str(self.decoder), decoders)}"
            )
        bound, value = self.lower_bound, self.value
        if not self.feasible:
            if bound is not None:
                raise PlanError("lower_bound: must be null where the plan does not fit")
        elif bound is None or value is None:
            raise PlanError("lower_bound and value: must be numbers where the plan fits")
        elif not 0 <= bound <= value < float("inf"):
            raise PlanError(
                f"lower_bound: must be between 0 and the plan's value, {value}, got {bound}"
            )

    def _check_optimizer(self) -> None:
        if not self.optimizer:
            return
        try:
            update_rule(self.optimizer)
        except SituateError as error:
            raise PlanError(f"optimizer: {error}") from None

    def __repr__(self) -> str:
        about = f"{self.graph} on {self.cluster}, {self.method}"
        return f"<Plan: {about}, {self.objective} {self.value}, {len(self.placement):,} ops>"

    def write(self, path: str | Path) -> None:
        """Write the plan as JSON; the file is complete or not there.

        Raises:
            SituateError: the path cannot be written.
        """
        from situate.files.atomic import write_bytes

        content = msgspec.json.encode(self, enc_hook=plain)
        write_bytes(Path(path), msgspec.json.format(content, indent=1))

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read a plan.

        Raises:
            PlanError: no such file, or no valid plan; names the file and the field.
        """
        from situate.files.contents import packed, reason_of
        from situate.files.strict_json import decode as decode_json

        try:
            plan = decode_json(packed(Path(path), LIMIT), cls)
        except ReadError as error:
            raise PlanError(f"{path}: not a plan: {error}") from None
        except (OSError, ValueError) as error:
            raise PlanError(f"{path}: {reason_of(error)}") from None
        if plan.version != 1:
            raise PlanError(f"{path}: plan version {plan.version}; this situate reads version 1")
        return plan

    @property
    def update_rule(self) -> UpdateRule | None:
        """The update of the parameters in the planned step; None if it has none or the update is
        unknown."""
        return update_rule(self.optimizer) if self.optimizer else None

    @property
    def named_cluster(self) -> str | None:
        """The cluster's name if `Cluster.find` knows it; None for a cluster from a file."""
        is_named = self.cluster in Cluster.presets() or self.cluster.startswith("identical:")
        return self.cluster if is_named else None

    @property
    def cut(self) -> Slices | None:
        """The slices of the planned step's batch; None if the batch is whole."""
        return None if self.slices is msgspec.UNSET else self.slices

    @property
    def again(self) -> tuple[str, ...]:
        """Paths of the modules that run their forward pass again in the step that was planned."""
        return () if self.recompute is msgspec.UNSET else tuple(self.recompute)

    @property
    def op_cuts(self) -> Cuts | None:
        """The cuts of ops in the step that was planned; None if all ops are whole."""
        return None if self.cuts is msgspec.UNSET else self.cuts

    def schedule(self, problem: Problem) -> Schedule:
        """The schedule of this plan.

        Raises:
            PlanError: the plan was made for another graph or cluster, with other costs or under
                other rules; it lacks an op, names an unknown op or device, or places an op on a
                forbidden device; its transfers are not those of its placement.
        """
        check(problem, Problem, "problem", PlanError)
        self._check_slices(problem.graph)
        self._check_recompute(problem.graph)
        self._check_cuts(problem.graph)
        self._check(problem)
        index = {op.name: j for j, op in enumerate(problem.graph.ops)}
        devices = {name: d for d, name in enumerate(problem.cluster.names)}
        if missing := index.keys() - self.placement.keys():
            raise PlanError(f"the plan places no op {min(missing)!r}")
        placement = np.empty(problem.n, np.int32)
        order = np.empty(problem.n, np.int32)
        for place, (op, device) in enumerate(self.placement.items()):
            if op not in index:
                raise PlanError(f"the plan places op {op!r}, which the graph does not have")
            if device not in devices:
                raise PlanError(f"the plan uses device {device!r}{nearest(device, devices)}")
            order[place] = index[op]
            placement[index[op]] = devices[device]
        try:
            Restrictions(problem).check(placement[None], lambda _: "the plan: ")
        except SituateError as error:
            raise PlanError(str(error)) from None
        transfers = None
        if self.transfers is not msgspec.UNSET:
            transfers = _transfer_order(problem, placement, self.transfers)
        return scheduled(Simulator(problem), placement, order, self.decoder, transfers)

    def check_costs(self, costs: Costs | None) -> None:
        """
        Raises:
            PlanError: the plan was made with other costs.
        """
        check(costs, Costs | None, "costs", PlanError)
        if self.costs_hash != (costs.hash if costs else ""):
            reason = "no measured costs: leave them out"
            if self.costs_hash:
                other = "other measured costs" if costs else "measured costs, and none are given"
                reason = f"{other}: give those (--costs, costs=)"
            raise PlanError(f"the plan was made with {reason} or plan again")

    def _check_slices(self, graph: Graph) -> None:
        if self.cut != graph.slices:
            of_plan, of_graph = (
                f"slices {s}" if s else "a whole batch" for s in (self.cut, graph.slices)
            )
            raise PlanError(
                f"the plan is of {of_plan}, and the graph of {of_graph}: give those of the plan "
                "(--slices, slices=) or plan again"
            )

    def _check_recompute(self, graph: Graph) -> None:
        if {*self.again} != {*graph.recompute}:
            of_plan, of_graph = (", ".join(b) or "nothing" for b in (self.again, graph.recompute))
            raise PlanError(
                f"the plan recomputes {of_plan}, and the graph {of_graph}: give the modules of the "
                "plan (--recompute, recompute=) or plan again"
            )

    def _check_cuts(self, graph: Graph) -> None:
        if self.op_cuts != graph.cuts:
            of_plan, of_graph = (
                f"cuts {cuts}" if cuts else "whole ops" for cuts in (self.op_cuts, graph.cuts)
            )
            raise PlanError(
                f"the plan is of {of_plan}, and the graph of {of_graph}: give those of the plan "
                "(--cuts, cuts=) or plan again"
            )

    def _check(self, problem: Problem) -> None:
        if self.graph_hash != problem.graph.hash and self.graph == problem.graph.name:
            raise PlanError(_changed(self, problem.graph))
        for noun, of_plan, of_graph, name in (
            ("graph", self.graph_hash, problem.graph.hash, problem.graph.name),
            ("cluster", self.cluster_hash, problem.cluster.hash, problem.cluster.name),
        ):
            if of_plan != of_graph:
                raise PlanError(_another(noun, getattr(self, noun), name))
        if self.rules != problem.rules.name:
            raise PlanError(
                f"the plan was made for rules {self.rules!r}, not for this "
                f"{problem.rules.name!r}: give those (rules=) or plan again"
            )
        self.check_costs(problem.costs)
        if self.decoder == "calls" and problem.transfers != "atomic":
            raise PlanError(f"decoder 'calls' is not for rules {problem.rules.name!r}: plan again")


def _transfer_order(
    problem: Problem, placement: Placement, transfers: Sequence[PlannedTransfer]
) -> TransferOrder:
    """The order of a placement's transfers, as a plan names them.

    Raises:
        PlanError: they are not the transfers of the placement, or not the most urgent first.
    """
    names = tensor_names(problem)
    tensors = {name: t for t, name in enumerate(names)}
    devices = {name: d for d, name in enumerate(problem.cluster.names)}
    needed = set(zip(*(ends.tolist() for ends in transfer_pairs(problem, placement)), strict=True))
    rows = list[tuple[int, int, int]]()
    for tensor, device, place in transfers:
        ends = tensors.get(tensor, -1), devices.get(device, -1)
        if ends not in needed:
            raise PlanError(
                f"the plan sends {_tensor_label(tensor)} to device {device!r} twice, or in vain: "
                f"plan again, or leave 'transfers' out"
            )
        if place < (rows[-1][2] if rows else 0) or place > problem.n:
            raise PlanError(f"the plan sends {_tensor_label(tensor)} out of its place: plan again")
        needed.remove(ends)
        rows.append((*ends, place))
    if needed:
        first, target = min(needed)
        raise PlanError(
            f"the plan's transfers leave out that of {_tensor_label(names[first])} to "
            f"{problem.cluster.names[target]!r}: plan again, or leave 'transfers' out"
        )
    # The shape is given for the sake of no rows, which still are three columns.
    columns = np.array(rows, np.int32).reshape(-1, 3).T
    return TransferOrder(*columns)


def tensor_names(problem: Problem) -> list[str | ControlEdges]:
    """(m,) the tensors' names in a plan, with those of control edges last."""
    tensors, ops = problem.graph.tensors, problem.graph.ops
    controls = [ops[op].name for op in problem.producer[len(tensors) :].tolist()]
    return [*(tensor.name for tensor in tensors), *map(ControlEdges, controls)]


def _tensor_label(tensor: str | ControlEdges) -> str:
    if isinstance(tensor, ControlEdges):
        return f"the control edges of op {tensor.control!r}"
    return f"tensor {tensor!r}"


def _changed(plan: Plan, graph: Graph) -> str:
    """Why a graph of the plan's own name is another one."""
    of_plan, of_graph = plan.optimizer, graph.optimizer
    if of_plan and of_graph and of_plan != of_graph:
        return (
            f"the plan is for optimizer {of_plan}, the one given is {of_graph}: give {of_plan} "
            f"(--optimizer, optimizer=), or plan with --optimizer {of_graph}"
        )
    unsaid = ", or another optimizer is asked for" if None in (of_plan, of_graph) else ""
    other = f"its model or inputs have changed{unsaid}: plan again"
    if graph.source == "onnx":
        other = "its model has changed, or --dim gives other sizes: give the plan's or plan again"
    elif _holds_for_values(graph):
        other += (
            ". The step depends on values of its inputs, as its warning says: if they are drawn, "
            "planning again does not help: give them, from a file or of a torch.Generator with a "
            "seed"
        )
    return f"{graph.name!r} is not what the plan was made for: {other}"


def _holds_for_values(graph: Graph) -> bool:
    """True if the graph was captured for some values of its inputs alone."""
    from situate.torch_capture.values.required import HOLDS

    return any(warning.startswith(HOLDS) for warning in graph.warnings)


def _another(noun: str, made_for: str, name: str) -> str:
    if made_for == name:
        return f"the plan was made for another {noun} of the name {name!r}: plan again"
    return f"the plan was made for {noun} {made_for!r}, not for this {name!r}: plan again"
