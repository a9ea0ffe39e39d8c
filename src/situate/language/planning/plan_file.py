"""The file of a plan of a language model, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Literal

import msgspec

from situate.errors import PlanError, ReadError
from situate.files.atomic import write_bytes
from situate.language.cache import CacheOptions
from situate.language.expert_kinds import expert_kind
from situate.language.home import Home
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel
from situate.language.planning.planner import HomePlan
from situate.language.planning.workload import Workload

LIMIT = 2**24
"""Largest file of a plan, in bytes."""


class LanguagePlan(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    tag_field="format",
    tag="situate-language-plan",
):
    """Where the parts of a language model lie, by the names of devices.

    Times are in seconds, sizes in bytes. `layers` and `experts` have one entry a layer; `moved` has
    the tensors that are elsewhere.
    """

    model: str
    parameters: int
    bytes: int
    cluster: str
    devices: list[str]
    order: list[str]
    layers: list[str]
    experts: list[str]
    output: str
    host_cache: bool
    split: Literal["layer", "tensor"]
    ubatch: int
    op_offload: bool
    cache: CacheOptions
    request: Workload
    prefill_seconds: float
    decode_seconds: float
    bound: float | None
    memory: dict[str, dict[str, float]]
    version: int = 1
    moved: dict[str, str] = {}

    def layout(self) -> Layout:
        """The layout with numbers of devices.

        Raises:
            PlanError: it names a device that is not in its list.
        """
        numbers = {name: i for i, name in enumerate(self.devices[:-1])}
        numbers[self.devices[-1]] = HOST

        def number(name: str) -> int:
            if name not in numbers:
                raise PlanError(f"the plan names a device {name!r} that it does not list")
            return numbers[name]

        return Layout(
            tuple(map(number, self.order)),
            tuple(map(number, self.layers)),
            tuple(map(number, self.experts)),
            number(self.output),
            self.host_cache,
            self.split,
            self.ubatch,
            self.op_offload,
            tuple((name, number(place)) for name, place in self.moved.items()),
        )

    def check(self, model: LanguageModel, home: Home) -> None:
        """
        Raises:
            PlanError: the plan is of another model or cluster.
        """
        if (self.parameters, self.bytes) != (model.parameters, model.size):
            raise PlanError(f"the plan is of {self.model}, and {model.name} has other tensors")
        experts = {weight.name for weight in model.weights if expert_kind(weight.name)}
        for name in self.moved.keys() - experts:
            raise PlanError(f"the plan moves {name!r}, which is none of {model.name}'s experts")
        if self.devices != [processor.name for processor in home.processors]:
            raise PlanError(
                f"the plan is for the devices of {self.cluster}, and {home.name} has others"
            )


def language_plan(plan: HomePlan, model: LanguageModel, home: Home) -> LanguagePlan:
    """A plan by the names of devices."""
    layout, names = plan.layout, [processor.name for processor in home.processors]
    memory = {
        name: asdict(part) | {"free": free}
        for name, part, free in zip(names, plan.memory, plan.free, strict=True)
    }
    return LanguagePlan(
        model.name,
        model.parameters,
        model.size,
        home.name,
        names,
        [names[i] for i in layout.order],
        [names[i] for i in layout.layers],
        [names[i] for i in layout.experts],
        names[layout.output],
        layout.host_cache,
        layout.split,
        layout.ubatch,
        layout.op_offload,
        plan.options,
        plan.work,
        plan.speed.prefill,
        plan.speed.decode,
        plan.bound,
        memory,
        moved={name: names[place] for name, place in layout.moved},
    )


def write_plan(plan: LanguagePlan, path: str | Path) -> None:
    """Write a plan.

    Raises:
        SituateError: the file cannot be written.
    """
    write_bytes(path, msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n")


def is_language_plan(path: str | Path) -> bool:
    """True if a file begins like a plan of a language model."""
    try:
        with open(path, "rb") as file:
            return b'"situate-language-plan"' in file.read(200)
    except (OSError, ValueError):
        return False


def read_plan(path: str | Path) -> LanguagePlan:
    """The plan in a file.

    Raises:
        ReadError: it cannot be read, or is no plan of a language model.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(LIMIT + 1)
        if len(data) > LIMIT:
            raise ReadError(f"{path}: is too large for a plan")
        plan = msgspec.json.decode(data, type=LanguagePlan)
    except OSError as error:
        raise ReadError(f"{path}: {error.strerror}") from None
    except msgspec.MsgspecError as error:
        raise ReadError(f"{path}: is no plan of a language model: {error}") from None
    if not plan.devices or not plan.layers or len(plan.experts) != len(plan.layers):
        raise ReadError(f"{path}: is no plan of a language model: its lists have no entries")
    return plan
