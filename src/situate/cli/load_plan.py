"""A plan with its model, ready to run."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from situate.cli.inputs import cluster_missing, model_and_plan
from situate.cli.language.clusters import find_cluster
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
from situate.torch_capture.updates.recipes import cast_model

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class LoadedPlan:
    """A plan with its model.

    Attributes:
        model, inputs, loss: of the step; inputs are a tuple, or a dict by name.
        rule: of the update; None for inference.
        prepared: the plan, ready to run.
        seed: of weights, inputs and random draws.
    """

    model: torch.nn.Module
    inputs: Any
    loss: Any
    rule: UpdateRule | None
    prepared: RunnablePlan
    seed: int

    def optimizer(self, parameters: list[torch.nn.Parameter]) -> torch.optim.Optimizer:
        """PyTorch's optimiser of the rule, with PyTorch's defaults."""
        assert self.rule is not None
        return optimizers.default_optimizer(self.rule.kind, parameters)

    def step(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> PlacedStep:
        """The placed step. If it fails, the model is no longer usable."""
        placed, devices = self.prepared.placed, self.prepared.devices
        return PlacedStep(placed, model, optimizer, devices, seed=self.seed, keep=False)

    def default_step(self) -> PlacedStep:
        """The step of the model with PyTorch's optimiser."""
        optimizer = self.optimizer(list(self.model.parameters())) if self.rule else None
        return self.step(self.model, optimizer)


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
        model, plan: as typed; a plan alone stands for both.
        cluster, costs: names or files; None for those that the plan names.
        optimizer: of the plan's kind; None for the plan's own.
        seed: of weights, inputs and random draws.

    Raises:
        SituateError: there is no plan; it belongs to another model, cluster or cost file; the model
            cannot run; or this machine lacks the devices.
    """
    name, path = model_and_plan(model, plan)
    if path is None and not os.path.isfile(name):
        check_model(name)
        raise SituateError(f"{name}: give the plan too, a file that 'plan --out' wrote")
    file = Plan.read(name if path is None else path)
    machine, measurements = _cluster(file, cluster), None if costs is None else Costs.read(costs)
    file.check_costs(measurements)
    _check_runs(name)
    check_installed()
    training = not name.endswith(INFERENCE)
    if optimizer and not training:
        raise SituateError(f"{name}: inference has no update: leave the optimizer out")
    rule = update_rule(optimizer) if optimizer else file.update_rule or DEFAULT
    devices = NamedDevices()
    with working(f"building {name}"), contextlib.redirect_stdout(sys.stderr):
        network, inputs, loss = _build(msgspec.structs.replace(file, graph=name), seed, devices)
        if rule.recipe is not None and rule.recipe.casts_model:
            cast_model(network)
    with working(f"capturing {name}"), contextlib.redirect_stdout(sys.stderr):
        program = capture_program(
            network,
            inputs,
            loss,
            training=training,
            optimizer=str(rule),
            name=name,
            named_devices=devices,
            slices=file.cut,
            recompute=file.again,
            cuts=file.op_cuts,
        )
    for warning in devices.warnings:
        note(f"warning: {warning}")
    prepared = prepare(file, program, machine, measurements)
    return LoadedPlan(network, inputs, loss, rule if training else None, prepared, seed)


def _cluster(plan: Plan, text: str | None) -> Cluster:
    if (name := text or plan.named_cluster) is None:
        raise cluster_missing(plan)
    return find_cluster(name)


def _check_runs(model: str) -> None:
    """
    Raises:
        SituateError: it builds no PyTorch model.
    """
    if is_file(model):
        raise SituateError(
            f"{model!r} is no PyTorch model that could run: give a network of the zoo or "
            "package.module:function"
        )
    check_model(model)


def _build(plan: Plan, seed: int, devices: NamedDevices) -> ModelParts:
    """The model, its inputs as a tuple or a dict, and its loss, with values from the seed."""
    import torch

    with explained(plan.graph, "building the model", "it is called without arguments"):
        # Weights and inputs are drawn in the order of the user's own code.
        torch.manual_seed(seed)
        model, inputs, loss = build_model(plan, devices)
        # PyTorch's tree functions tell lists from tuples; calls of a model do not.
        return model, tuple(inputs) if isinstance(inputs, list) else inputs, loss
