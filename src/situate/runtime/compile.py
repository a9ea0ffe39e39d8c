"""Compilation of a plan and a model into a step that runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.costs import Costs
from situate.data.problem import Problem
from situate.data.rules import find_rules
from situate.data.update_rule import DEFAULT
from situate.errors import PlanError
from situate.results.plan import Plan
from situate.runtime.hardware import RealDevice, check_devices, real_devices
from situate.runtime.model_state import optimizers
from situate.runtime.programs.footprint import footprint
from situate.runtime.programs.placed import PlacedProgram, place
from situate.runtime.programs.program import Program, capture_program
from situate.runtime.step import PlacedStep
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import order_of
from situate.torch_capture import INFERENCE
from situate.torch_capture.build import build_real
from situate.torch_capture.function import current_directory, find_function
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.validation import check

if TYPE_CHECKING:
    import torch

ModelParts = tuple[Any, Any, Callable[..., Any] | None]
"""A model, its inputs and its loss."""


@dataclass(frozen=True)
class RunnablePlan:
    """A plan ready to run: its predicted schedule, and the programs of its devices."""

    problem: Problem
    schedule: Schedule
    placed: PlacedProgram
    devices: list[RealDevice]

    @property
    def peak(self) -> list[int]:
        """Peak bytes by device: of the running program on devices that share the host's memory, and
        of the schedule on devices with memory of their own."""
        program_peaks = footprint(self.placed, self.problem.workspace)
        schedule_peaks = self.schedule.peak.tolist()
        return [
            schedule_peaks[d] if device.mirrored else program_peaks[d]
            for d, device in enumerate(self.devices)
        ]


def build_model(plan: Plan, named_devices: NamedDevices) -> ModelParts:
    """Model, inputs and loss of a plan's network or function; notes the devices that they name.

    Raises:
        PlanError: the plan was made for something else.
    """
    name = plan.graph.removesuffix(INFERENCE)
    if name in zoo.names():
        return zoo.build(name)
    if ":" not in name:
        raise PlanError(
            f"the plan was made for {plan.graph!r}, which builds no model: give the inputs and the "
            "loss that it was captured with"
        )
    with current_directory():
        function, _ = find_function(name)
        return build_real(function, name, named_devices)


def compile(
    plan: Plan,
    model: torch.nn.Module,
    inputs: Any = None,
    loss: Callable[..., Any] | None = None,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    cluster: Cluster | None = None,
    costs: Costs | None = None,
    seed: int = 0,
    keep: bool = True,
) -> PlacedStep:
    """The step of a model that runs on this machine's devices as a plan says.

        step = situate.compile(plan, model, (images, labels), loss, optimizer=optimizer)
        for images, labels in batches:
            print(step(images, labels))

    Call the step in place of `loss(model, *inputs)`, `backward()` and `optimizer.step()`, or of the
    model for inference.

    Args:
        plan: of the model's step.
        model: moves into memory that the devices share, and is trained there.
        inputs, loss: as at the model's capture; by default those of the plan's network or function.
        optimizer: `torch.optim.SGD`, `Adam` or `AdamW`; by default the planned one with PyTorch's
            defaults. A schedule may change its learning rate between steps.
        cluster: the plan's cluster; by default the preset of that name.
        costs: the plan's costs.
        seed: of dropout and other random ops, whose draws do not depend on the placement.
        keep: copy the state that a step is about to change, so that a failed step is undone.

    Raises:
        PlanError: the plan is for another model, cluster or costs, or for devices that are not
            here.
        SituateError: the model cannot be captured, or the optimizer is not supported.
    """
    check(plan, Plan, "plan", PlanError)
    check(cluster, Cluster | None, "cluster", PlanError)
    check(costs, Costs | None, "costs", PlanError)
    named_devices = NamedDevices()
    if inputs is None:
        _, inputs, planned_loss = build_model(plan, named_devices)
        loss = planned_loss if loss is None else loss
    training = _trains(plan)
    rule = plan.update_rule or DEFAULT
    if optimizer is not None:
        rule = replace(rule, kind=optimizers.kind_of(optimizer))
    program = capture_program(
        model,
        inputs,
        loss,
        training=training,
        optimizer=str(rule),
        name=plan.graph,
        named_devices=named_devices,
        slices=plan.cut,
        recompute=plan.again,
        cuts=plan.op_cuts,
    )
    prepared = prepare(plan, program, cluster or cluster_of(plan), costs)
    if training and optimizer is None:
        optimizer = optimizers.default_optimizer(rule.kind, list(model.parameters()))
    return PlacedStep(prepared.placed, model, optimizer, prepared.devices, seed=seed, keep=keep)


def prepare(plan: Plan, program: Program, cluster: Cluster, costs: Costs | None) -> RunnablePlan:
    """Cut a program along a plan.

    Raises:
        PlanError: the plan is for another graph, cluster or costs, or for devices that are not
            here.
    """
    if plan.decoder == "calls":
        raise PlanError(f"a plan under rules {plan.rules!r} is not run: plan with --rules situate")
    problem = Problem(program.graph, cluster, plan.objective, find_rules(plan.rules), costs)
    schedule = plan.schedule(problem)
    order = order_of(problem, schedule).tolist()
    placed_program = place(program, schedule.placement, order, problem.d)
    devices = real_devices(cluster)
    check_devices([devices[d] for d in placed_program.used], cluster)
    return RunnablePlan(problem, schedule, placed_program, devices)


def cluster_of(plan: Plan) -> Cluster:
    """The cluster of a plan for a preset or for identical devices.

    Raises:
        PlanError: the plan is for the cluster of a file.
    """
    if plan.named_cluster is None:
        raise PlanError(
            f"the plan was made for cluster {plan.cluster!r}, which is no preset: pass it, such as "
            "cluster=situate.Cluster.read(FILE)"
        )
    return Cluster.find(plan.named_cluster)


def _trains(plan: Plan) -> bool:
    """True for a plan that places updates, or does not say."""
    return not plan.graph.endswith(INFERENCE) and plan.optimizer != ""
