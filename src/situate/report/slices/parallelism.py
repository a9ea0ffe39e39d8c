"""The kind of parallelism that a plan of slices is, where it is one that has a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from situate.data.problem import Problem
from situate.report.slices.slice_use import slice_uses
from situate.report.slices.stages import NotAPipeline, slice_stages
from situate.report.text import plural, printable
from situate.schedule.schedule import Schedule

MOST = 0.9
"""Least share of a slice's seconds on one device for which it is said to run there."""

MOST_SENT = 0.5
"""Share of the parameters' bytes that slices read from other devices below which each device has a
copy of its own."""

MAX_NAMED = 8
"""Most devices that are named."""


@dataclass(frozen=True)
class DataParallel:
    """Slices that each run on one device, on several or all on the same.

    Attributes:
        device: (slices,) name of each.
        samples: of the batch, by device that runs slices, in the cluster's order.
        homes: those of these devices that hold parameters.
        copied: whether slices read parameters, for the most part, on their own devices, each of
            which has a copy.
        exact: whether no op of a slice takes time elsewhere.
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
    """The devices of slices that are not spread over several; None where one is, or where the step
    takes its batch whole."""
    uses = slice_uses(problem, schedule)
    if not uses or not all(_on_one(use.busy) for use in uses):
        return None
    device = tuple(next(iter(use.busy)) for use in uses)
    samples: Counter[str] = Counter()
    for name, use in zip(device, uses, strict=True):
        samples[name] += use.samples
    held = {problem.cluster.names[d] for d in schedule.placement[problem.persistent > 0].tolist()}
    used = [name for name in problem.cluster.names if name in samples]
    return DataParallel(
        device,
        {name: samples[name] for name in used},
        tuple(name for name in used if name in held),
        _share_sent(problem, schedule) < MOST_SENT,
        all(len(use.busy) == 1 for use in uses),
    )


def _on_one(busy: dict[str, float]) -> bool:
    """True if one device, the first, takes most of the seconds."""
    return bool(busy) and next(iter(busy.values())) >= MOST * sum(busy.values())


def _share_sent(problem: Problem, schedule: Schedule) -> float:
    """The share of the bytes of parameters that slices read, once a device, from another one."""
    ops, placement = problem.graph.ops, schedule.placement.tolist()
    own = sent = 0
    for tensor in problem.graph.tensors:
        if ops[tensor.producer].kind == "parameter":
            readers = {placement[j] for j in tensor.consumers if ops[j].slice is not None}
            at_home = placement[tensor.producer] in readers
            own += tensor.size * at_home
            sent += tensor.size * (len(readers) - at_home)
    return sent / (own + sent) if own + sent else 0.0


def parallelism_text(problem: Problem, schedule: Schedule) -> str:
    """A plan of slices in a line, such as `data parallel: ...`; empty where it has no such name, or
    takes its batch whole."""
    if problem.graph.slices is None:
        return ""
    if found := data_parallel(problem, schedule):
        return _data_parallel_text(found)
    try:
        stages = slice_stages(problem, schedule)
    except NotAPipeline:
        return ""
    used = dict.fromkeys(problem.cluster.names[stage.device] for stage in stages)
    return (
        f"a pipeline: every slice goes through {plural(len(stages), 'stage')} on "
        f"{plural(len(used), 'device')}, {_names(used)}"
    )


def _data_parallel_text(found: DataParallel) -> str:
    names = _names(found.samples)
    if len(found.samples) == 1:
        return f"gradient accumulation: {names} runs {len(found.device)} slices one by one"
    if not found.equal:
        shares = _listed(
            f"{samples:,} on {printable(d, 40)}" for d, samples in found.samples.items()
        )
        return f"data parallel in unequal shares, which DDP and FSDP do not have: samples {shares}"
    each = next(iter(found.samples.values()))
    return (
        f"data parallel: each of {names} runs the whole model on {plural(each, 'sample')}; "
        f"{_parameters_text(found)}"
    )


def _parameters_text(found: DataParallel) -> str:
    if found.copied:
        return "each has a copy of the parameters, as DDP does"
    if found.sharded:
        return "parameters are spread over them, as FSDP does"
    home = _names(found.homes) or "another device"
    return f"parameters are on {home}, where DDP has a copy on each device"


def _names(names: Iterable[str]) -> str:
    return _listed(printable(name, 40) for name in names)


def _listed(texts: Iterable[str]) -> str:
    found = list(texts)
    return ", ".join(islice(found, MAX_NAMED)) + (", ..." if len(found) > MAX_NAMED else "")
