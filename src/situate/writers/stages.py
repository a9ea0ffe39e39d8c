"""The stages of a pipeline: runs of layers, one an accelerator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.report.slices.stages import NotAPipeline
from situate.report.text import plural, printable
from situate.schedule.schedule import Schedule
from situate.writers.exported import device_names, differences, exported, placement_by_module
from situate.writers.layers import Layers, Part, layers


@dataclass(frozen=True)
class Stages:
    """A pipeline.

    Attributes:
        layers: the network.
        counts: layers of each stage.
        names: the device of each stage.
        environment: numbers the accelerators in the order of the stages.
    """

    layers: Layers
    counts: tuple[int, ...]
    names: tuple[str, ...]
    environment: dict[str, str]


def stages(problem: Problem, schedule: Schedule) -> Stages:
    """The pipeline of a plan; warns about parts on other devices than in the plan.

    Raises:
        PlanError: the graph names no list of layers.
        NotAPipeline: a layer is on no accelerator, or a device's layers are not contiguous.
    """
    network = layers(problem, schedule)
    for part in network.parts:
        check_accelerator(problem, f"layer {part.path!r}", part.device)
    runs = _runs(problem, network.parts)
    warn_of_ends(problem, network.before, runs[0][0], "first")
    warn_of_ends(problem, network.after, runs[-1][0], "last")
    warn_of_splits(network)
    replanned = stage_schedule(problem, schedule, network)
    for line in differences(problem, schedule, replanned, "pipeline"):
        warnings.warn(line, stacklevel=2)
    return Stages(
        network,
        tuple(count for _, count in runs),
        tuple(problem.cluster.names[device] for device, _ in runs),
        visible(problem.cluster, [device for device, _ in runs]),
    )


def check_accelerator(problem: Problem, format_name: str, device: int) -> None:
    """
    Raises:
        NotAPipeline: the device of a stage is no accelerator.
    """
    if not isinstance(device_names(problem.cluster)[device], int):
        raise NotAPipeline(
            f"{format_name} is on {problem.cluster.names[device]!r}, and a stage of this target is "
            "an accelerator"
        )


def stage_schedule(problem: Problem, schedule: Schedule, network: Layers) -> Schedule | None:
    """The schedule of whole layers, with the modules before and after them in the first and the
    last stage; None if an op cannot run on its device."""
    first, last = network.parts[0].device, network.parts[-1].device
    devices = {part.path: part.device for part in network.parts}
    devices |= {part.path: first for part in network.before}
    devices |= {part.path: last for part in network.after}
    return exported(problem, schedule, placement_by_module(problem, schedule, devices))


def _runs(problem: Problem, parts: Sequence[Part]) -> list[tuple[int, int]]:
    """Device and number of layers of each stage.

    Raises:
        NotAPipeline: a device's layers are not contiguous.
    """
    runs: list[tuple[int, int]] = []
    for part in parts:
        if runs and runs[-1][0] == part.device:
            runs[-1] = (part.device, runs[-1][1] + 1)
        elif part.device in (device for device, _ in runs):
            here, before = (problem.cluster.names[d] for d in (part.device, runs[-1][0]))
            raise NotAPipeline(
                f"layer {part.path!r} goes back to {here!r} after layers on {before!r}: a pipeline "
                "has contiguous layers on each device"
            )
        else:
            runs.append((part.device, 1))
    return runs


def visible(cluster: Cluster, devices: Sequence[int]) -> dict[str, str]:
    """The environment that numbers these accelerators in their order; empty if they are in order
    already. Devices of other kinds do not count."""
    kinds = [device.kind for device in cluster.devices]
    same_kind = [device for device, kind in enumerate(kinds) if kind in {kinds[d] for d in devices}]
    # CUDA numbers the GPUs that it sees, whatever other devices the cluster lists between them.
    ranks = [same_kind.index(device) for device in devices]
    if ranks == list(range(len(ranks))):
        return {}
    return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, ranks))}


def warn_of_ends(problem: Problem, beside: Sequence[Part], device: int, stage: str) -> None:
    """Warn of modules beside the layers that are not on the device of the stage they go to."""
    moved = [part for part in beside if part.device != device]
    if moved:
        names = ", ".join(printable(part.path, 60) for part in moved[:3])
        there = printable(problem.cluster.names[moved[0].device], 40)
        warnings.warn(
            f"the {stage} stage takes what the plan puts elsewhere: {names} (on {there})",
            stacklevel=3,
        )


def warn_of_splits(network: Layers) -> None:
    """Warn of modules that the plan splits over devices."""
    if names := network.split:
        first_names = ", ".join(printable(name, 60) for name in names[:3])
        more = ", ..." if len(names) > 3 else ""
        warnings.warn(
            f"layers go whole, but the plan splits {plural(len(names), 'module')} over devices "
            f"({first_names}{more}): each goes where most of it is",
            stacklevel=3,
        )
