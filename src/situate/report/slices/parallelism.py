"""The kind of parallelism of a plan of slices, where it has a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from situate.data.problem import Problem
from situate.report.slices.stages import NotAPipeline, slice_stages
from situate.report.slices.use import slice_uses
from situate.report.text import plural, printable
from situate.schedule.schedule import Schedule

MOST = 0.9
"""Least share of a slice's seconds on one device that counts as running there."""

MAX_REMOTE_SHARE = 0.5
"""Share of remote parameter bytes that slices read, below which each device has its own copy."""

MAX_NAMED = 8
"""Most devices in a list of names."""


@dataclass(frozen=True)
class DataParallel:
    """Slices that each run on one device, on several or all on the same.

    Attributes:
        device: (slices,) device name of each slice.
        samples: of the batch, by device that runs slices, in the cluster's order.
        homes: those of these devices that hold parameters.
        copied: true if slices read most parameters on their own devices, each with a copy.
        exact: true if no op of a slice takes time elsewhere.
    """

    device: tuple[str, ...]
    samples: dict[str, int]
    homes: tuple[str, ...]
    copied: bool
    exact: bool

    @property
    def equal(self) -> bool:
        """True if every device has as many samples."""
        return len(set(self.samples.values())) == 1

    @property
    def sharded(self) -> bool:
        """True if the parameters are spread over the devices, as by FSDP."""
        return not self.copied and len(self.homes) > 1


def data_parallel(problem: Problem, schedule: Schedule) -> DataParallel | None:
    """The device of each slice; None if a slice spans several devices, or there are no slices."""
    uses = slice_uses(problem, schedule)
    if not uses or not all(_on_one(use.busy) for use in uses):
        return None
    device = tuple(next(iter(use.busy)) for use in uses)
    samples: Counter[str] = Counter()
    for name, use in zip(device, uses, strict=True):
        samples[name] += use.samples
    homes = {problem.cluster.names[d] for d in schedule.placement[problem.persistent > 0].tolist()}
    in_use = [name for name in problem.cluster.names if name in samples]
    return DataParallel(
        device,
        {name: samples[name] for name in in_use},
        tuple(name for name in in_use if name in homes),
        _remote_share(problem, schedule) < MAX_REMOTE_SHARE,
        all(len(use.busy) == 1 for use in uses),
    )


def _on_one(busy: dict[str, float]) -> bool:
    """True if one device, the first, takes most of the seconds."""
    return bool(busy) and next(iter(busy.values())) >= MOST * sum(busy.values())


def _remote_share(problem: Problem, schedule: Schedule) -> float:
    """The share of parameter bytes that slices read from another device, once a device."""
    ops, placement = problem.graph.ops, schedule.placement.tolist()
    local = remote = 0
    for tensor in problem.graph.tensors:
        if ops[tensor.producer].kind == "parameter":
            readers = {placement[j] for j in tensor.consumers if ops[j].slice is not None}
            at_home = placement[tensor.producer] in readers
            local += tensor.size * at_home
            remote += tensor.size * (len(readers) - at_home)
    return remote / (local + remote) if local + remote else 0.0


def parallelism_text(problem: Problem, schedule: Schedule) -> str:
    """A plan of slices in a line, such as `data parallel: ...`; empty where it has no name."""
    if problem.graph.slices is None:
        return ""
    if plan := data_parallel(problem, schedule):
        return _data_parallel_text(plan)
    try:
        stages = slice_stages(problem, schedule)
    except NotAPipeline:
        return ""
    devices = dict.fromkeys(problem.cluster.names[stage.device] for stage in stages)
    return (
        f"a pipeline: every slice goes through {plural(len(stages), 'stage')} on "
        f"{plural(len(devices), 'device')}, {_names(devices)}"
    )


def _data_parallel_text(plan: DataParallel) -> str:
    names = _names(plan.samples)
    if len(plan.samples) == 1:
        return f"gradient accumulation: {names} runs {len(plan.device)} slices one by one"
    if not plan.equal:
        shares = list_text(
            f"{samples:,} on {printable(d, 40)}" for d, samples in plan.samples.items()
        )
        return f"data parallel in unequal shares, which DDP and FSDP do not have: samples {shares}"
    samples_each = next(iter(plan.samples.values()))
    return (
        f"data parallel: each of {names} runs the whole model on {plural(samples_each, 'sample')}; "
        f"{_parameters_text(plan)}"
    )


def _parameters_text(plan: DataParallel) -> str:
    if plan.copied:
        return "each has a copy of the parameters, as DDP does"
    if plan.sharded:
        return "parameters are spread over them, as FSDP does"
    home = _names(plan.homes) or "another device"
    return f"parameters are on {home}, where DDP has a copy on each device"


def _names(names: Iterable[str]) -> str:
    return list_text(printable(name, 40) for name in names)


def list_text(texts: Iterable[str]) -> str:
    items = list(texts)
    return ", ".join(islice(items, MAX_NAMED)) + (", ..." if len(items) > MAX_NAMED else "")
