"""The model that a plan was made for, and the step that runs it."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from situate.cli.inputs import cluster_missing, model_and_plan
from situate.cli.terminal import note, working
from situate.data.cluster import Cluster
from situate.data.costs import Costs
from situate.data.update_rule import DEFAULT, UpdateRule, update_rule
from situate.errors import SituateError
from situate.model import check_model, is_file
from situate.results.plan import Plan
from situate.runtime.compile import ModelParts, RunnablePlan, build_model, prepare
from situate.runtime.model_state import optimizers
from situate.runtime.programs.program import capture_program
from situate.runtime.step import PlacedStep
from situate.torch_capture import INFERENCE, check_installed
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.refusals.errors import explained

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class LoadedPlan:
    """A model that a plan was made for, and the plan ready to run.

    Attributes:
        inputs: a tuple, or a dict by name.
        rule: of the updates; None for inference.
    """

    model: torch.nn.Module
    inputs: Any
    loss: Any
    rule: UpdateRule | None
    prepared: RunnablePlan
    seed: int

    def optimizer(self, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """PyTorch's, with its own defaults."""
        assert self.rule is not None
        return optimizers.default_optimizer(self.rule.kind, parameters)

    def step(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> PlacedStep:
        """The step; one that fails leaves the model spoilt."""
        placed, devices = self.prepared.placed, self.prepared.devices
        return PlacedStep(placed, model, optimizer, devices, seed=self.seed, keep=False)

    def default_step(self) -> PlacedStep:
        """The step of the model with PyTorch's optimiser."""
        made = self.optimizer(list(self.model.parameters())) if self.rule else None
        return self.step(self.model, made)


def load_plan(
    model: str | None,
    plan: str | None,
    cluster: str | None,
    costs: str | None,
    optimizer: str | None,
    seed: int,
) -> LoadedPlan:
    """Read a plan, build its model from `seed`, capture and cut its step.

    Args:
        model, plan: as typed: a plan alone stands for both.
        optimizer: of the plan's own kind, which is also what None stands for.

    Raises:
        SituateError: no plan, or one for something else than the model, the cluster and the costs;
            a model that cannot run; or devices that are not here.
    """
    named, path = model_and_plan(model, plan)
    if path is None and not os.path.isfile(named):
        check_model(named)
        raise SituateError(f"{named}: give the plan too, a file that 'plan --out' wrote")
    read = Plan.read(named if path is None else path)
    chosen, measured = _cluster(read, cluster), None if costs is None else Costs.read(costs)
    read.check_costs(measured)
    _check_runs(named)
    check_installed()
    training = not named.endswith(INFERENCE)
    if optimizer and not training:
        raise SituateError(f"{named}: inference has no update: leave the optimizer out")
    rule = update_rule(optimizer) if optimizer else read.update_rule or DEFAULT
    devices = NamedDevices()
    with working(f"building {named}"), contextlib.redirect_stdout(sys.stderr):
        built, inputs, loss = _built(msgspec.structs.replace(read, graph=named), seed, devices)
    with working(f"capturing {named}"), contextlib.redirect_stdout(sys.stderr):
        program = capture_program(
            built,
            inputs,
            loss,
            training=training,
            optimizer=str(rule),
            name=named,
            named_devices=devices,
            slices=read.cut,
            recompute=read.again,
        )
    for warning in devices.warnings:
        note(f"warning: {warning}")
    prepared = prepare(read, program, chosen, measured)
    return LoadedPlan(built, inputs, loss, rule if training else None, prepared, seed)


def _cluster(plan: Plan, given: str | None) -> Cluster:
    if (name := given or plan.named_cluster) is None:
        raise cluster_missing(plan)
    return Cluster.find(name)


def _check_runs(model: str) -> None:
    """Raises SituateError for what builds no PyTorch model."""
    if is_file(model):
        raise SituateError(
            f"{model!r} is no PyTorch model that could run: give a network of the zoo or "
            "package.module:function"
        )
    check_model(model)


def _built(plan: Plan, seed: int, devices: NamedDevices) -> ModelParts:
    """Model, inputs as a tuple or a dict, and loss, all drawn from the seed."""
    import torch

    called = "it is called without arguments"
    with explained(plan.graph, "building the model", called):
        torch.manual_seed(seed)
        model, inputs, loss = build_model(plan, devices)
        # A list is called with like a tuple, and structured like none.
        return model, tuple(inputs) if isinstance(inputs, list) else inputs, loss
