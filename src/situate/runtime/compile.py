"""From a plan and a model to the step that runs."""

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
from situate.runtime.hardware import RealDevice, check_here, real_devices
from situate.runtime.model_state import optimizers
from situate.runtime.programs.footprint import footprint
from situate.runtime.programs.placed import PlacedProgram, place
from situate.runtime.programs.program import Program, capture_program
from situate.runtime.step import PlacedStep
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import order_of
from situate.torch_capture import INFERENCE
from situate.torch_capture.build import really_built
from situate.torch_capture.function import current_directory, find_function
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.validation import check

if TYPE_CHECKING:
    import torch

Built = tuple[Any, Any, Callable[..., Any] | None]


@dataclass(frozen=True)
class Prepared:
    """A plan that is ready to run: what is predicted of it, and what its devices do."""

    problem: Problem
    schedule: Schedule
    placed: PlacedProgram
    devices: list[RealDevice]

    @property
    def peak(self) -> list[int]:
        """Bytes by device, at their most: of the program that is run where devices share the host's
        memory; of the schedule for one that receives into memory of its own."""
        held = footprint(self.placed, self.problem.workspace)
        planned = self.schedule.peak.tolist()
        return [planned[d] if device.mirrored else held[d] for d, device in enumerate(self.devices)]


def build_planned(plan: Plan, named: NamedDevices) -> Built:
    """Model, inputs and loss of the network or function that a plan was made for; devices that it
    names are noted.

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
        return really_built(function, name, named)


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

    What it returns is called in place of `loss(model, *inputs)`, `backward()` and
    `optimizer.step()`, or of the model where the plan is for inference.

    Args:
        plan: of the model's step.
        model: is moved into memory that the devices share, and trained there.
        inputs, loss: as the model was captured; by default those of the network or function that
            the plan is for.
        optimizer: `torch.optim.SGD`, `Adam` or `AdamW`; by default the planned one with PyTorch's
            defaults. A schedule may change its learning rate between steps.
        cluster: what was planned for; by default the preset of that name.
        costs: what was planned with.
        seed: of dropout and the like, which do not depend on the placement.
        keep: copy what a step is about to change, so that one that fails is undone.

    Raises:
        PlanError: the plan is for another model, cluster or costs, or for devices that are not
            here.
        SituateError: a model that cannot be captured, or an optimizer that is not supported.
    """
    check(plan, Plan, "plan", PlanError)
    check(cluster, Cluster | None, "cluster", PlanError)
    check(costs, Costs | None, "costs", PlanError)
    named = NamedDevices()
    if inputs is None:
        _, inputs, planned = build_planned(plan, named)
        loss = planned if loss is None else loss
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
        named=named,
        slices=plan.cut,
        recompute=plan.again,
    )
    prepared = prepare(plan, program, cluster or cluster_of(plan), costs)
    if training and optimizer is None:
        optimizer = optimizers.default(rule.kind, list(model.parameters()))
    return PlacedStep(prepared.placed, model, optimizer, prepared.devices, seed=seed, keep=keep)


def prepare(plan: Plan, program: Program, cluster: Cluster, costs: Costs | None) -> Prepared:
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
    placed = place(program, schedule.placement, order, problem.d)
    devices = real_devices(cluster)
    check_here([devices[d] for d in placed.used], cluster)
    return Prepared(problem, schedule, placed, devices)


def cluster_of(plan: Plan) -> Cluster:
    """The cluster of a plan that was made for a preset or for identical devices.

    Raises:
        PlanError: it was made for the cluster of a file.
    """
    if plan.named_cluster is None:
        raise PlanError(
            f"the plan was made for cluster {plan.cluster!r}, which is no preset: pass it, such as "
            "cluster=situate.Cluster.read(FILE)"
        )
    return Cluster.find(plan.named_cluster)


def _trains(plan: Plan) -> bool:
    """True for a plan that places updates; one that does not say is one of training."""
    return not plan.graph.endswith(INFERENCE) and plan.optimizer != ""
