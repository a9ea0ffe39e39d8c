"""Measurement of a model's ops on the devices of this machine, and of the links between them."""

from __future__ import annotations

import dataclasses
import datetime
import platform
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from situate.data.cluster import Cluster, Device, Link
from situate.data.cost_lookup import measured_as
from situate.data.costs import Costs, MeasuredDevice, MeasuredLink
from situate.data.cuts import Cuts
from situate.data.graph import Graph
from situate.data.slices import Slices
from situate.errors import SituateError
from situate.profiling import cuda
from situate.profiling.in_situ import InSitu, distinct_devices
from situate.profiling.workers import ProfilingWorkers
from situate.runtime.hardware import RealDevice, check_devices, real_devices
from situate.runtime.subject import Subject, find_subject
from situate.torch_capture import check_installed
from situate.version import VERSION

MAX_PROCESSES = 32
"""CPU devices measured at once: each holds a copy of the model."""


@dataclass(frozen=True)
class Profile:
    """Measured costs, and the graph of their step."""

    costs: Costs
    graph: Graph


def profile(
    model: str,
    cluster: Cluster,
    optimizer: str | None = None,
    slices: Slices | None = None,
    cuts: Cuts | None = None,
) -> Profile:
    """Measure the ops of a model on the devices of this machine, and the links between them.

    A process for each CPU device runs the whole step, op by op: one device of each sort alone, and
    all together, which shows how much they slow one another down. On a CUDA device each distinct op
    runs by itself on synthetic tensors.

    Args:
        model: a network of the zoo or `package.module:function`, with or without `:inference`.
        cluster: devices of this machine. Of devices with the same kind, model and threads the first
            is measured for all.
        optimizer: the update of the training step.
        slices: of its batch, at whose size the ops are measured.
        cuts: of its ops, at whose sizes their parts are measured.

    Raises:
        MissingExtra: PyTorch is not installed.
        SituateError: the model cannot be built, captured or run, or a device is missing.
    """
    check_installed()
    devices = list(zip(cluster.devices, real_devices(cluster), strict=True))
    cpus = [(device, real) for device, real in devices if real.torch == "cpu"]
    others = [(device, real) for device, real in devices if real.torch != "cpu"]
    if len(cpus) > MAX_PROCESSES:
        raise SituateError(
            f"cluster {cluster.name!r} has {len(cpus)} CPU devices; at most {MAX_PROCESSES} can "
            "be measured"
        )
    if others:
        check_devices([real for _, real in others], cluster)
    subject, device_costs, links, synchronisation, step = _profile_cpus(
        model, optimizer, slices, cuts, cpus
    )
    for i in distinct_devices([device for device, _ in others]):
        device_costs.append(cuda.measure_device(subject.program, *others[i]))
    links += cuda.measure_links([real for _, real in devices]) if others else []
    costs = Costs(
        machine=platform.node() or "this-machine",
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions=_versions(),
        devices=device_costs,
        links=links,
        synchronisation=synchronisation,
        step=step,
    )
    return Profile(costs, subject.program.graph)


def _profile_cpus(
    model: str,
    optimizer: str | None,
    slices: Slices | None,
    cuts: Cuts | None,
    cpus: Iterable[tuple[Device, RealDevice]],
) -> tuple[Subject, list[MeasuredDevice], list[MeasuredLink], float, float]:
    """The model, captured while the processes start, and their measurements."""
    pairs = list(cpus)
    with ProfilingWorkers([real for _, real in pairs]) as workers:
        import torch  # noqa: F401 - takes a core here, as in each worker

        workers.start_others()
        subject = find_subject(model, optimizer, slices, (), cuts)
        if not pairs:
            return subject, [], [], 0.0, 0.0
        measurement = InSitu(workers, subject, [d for d, _ in pairs], [real for _, real in pairs])
    return subject, measurement.device_costs(), *measurement.links(), measurement.overhead()


def _versions() -> dict[str, str]:
    import torch

    return {
        "situate": VERSION,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }


def cluster_from_costs(cluster: Cluster, costs: Costs) -> Cluster:
    """The same devices with measured launches, links and synchronisation; links without a
    measurement stay."""
    measured_links = tuple(
        Link(a.source, a.target, _three_digits(a.bandwidth), _three_digits(a.latency), both=False)
        for a in costs.links
    )
    # With all pairs measured, no link of the file is needed.
    complete = len(measured_links) == len(cluster.devices) * (len(cluster.devices) - 1)
    return dataclasses.replace(
        cluster,
        devices=tuple(_with_launch(device, costs) for device in cluster.devices),
        links=measured_links if complete else (*cluster.links, *measured_links),
        synchronisation=_three_digits(costs.synchronisation),
        description=f"measured on {costs.machine}, {costs.date[:10]}",
    )


def _with_launch(device: Device, costs: Costs) -> Device:
    measured_device = measured_as(device, costs)
    if measured_device is None:
        return device
    return msgspec.structs.replace(device, launch=_three_digits(measured_device.launch))


def _three_digits(value: float) -> float:
    """Three significant digits: no measurement is more precise."""
    return float(f"{value:.3g}")
