"""A case: a network of the zoo on so many GPUs of a preset, its op costs calibrated."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace

import msgspec

from research.papers import cifar_tensorflow, published
from situate import zoo
from situate.data.cluster import Cluster
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.data.topology import accelerators
from situate.torch_capture import capture
from situate.torch_capture.cache import cached
from situate.torch_capture.function import versions


@dataclass(frozen=True)
class Case:
    """`network` on `gpus` GPUs of `machine` (`k80`, `k40`), every op's seconds times `factor`."""

    network: str
    gpus: int
    machine: str
    factor: float = 1.0

    @property
    def name(self) -> str:
        """Such as `resnet50/2`."""
        return f"{self.network}/{self.gpus}"

    def problem(self) -> Problem:
        """The step to be placed."""
        cluster = slower(Cluster.preset(f"{self.machine}-{self.gpus}"), self.factor)
        return Problem(graph(self.network), cluster)


def slower(cluster: Cluster, factor: float) -> Cluster:
    """The cluster on which every op of the roofline takes `factor` times as long, and every
    transfer as long as before."""
    devices = (
        msgspec.structs.replace(
            device,
            flops={dtype: rate / factor for dtype, rate in device.flops.items()},
            bandwidth=device.bandwidth / factor,
            launch=device.launch * factor,
        )
        for device in cluster.devices
    )
    return replace(cluster, devices=tuple(devices))


def calibrated(case: Case) -> Case:
    """The case with the factor that makes its network take the published time on one GPU.

    The mean of the network's single-GPU figures over its seconds by the roofline; 1 where the
    paper has none, because the network did not fit.
    """
    wanted = published.single_gpu(case.machine, case.network)
    if not wanted:
        return replace(case, factor=1.0)
    return replace(case, factor=statistics.fmean(wanted) / uncalibrated(case))


def uncalibrated(case: Case) -> float:
    """Seconds of all ops on one GPU, by the roofline."""
    problem = replace(case, factor=1.0).problem()
    return float(problem.seconds[:, accelerators(problem)[0]].sum())


def graph(network: str) -> Graph:
    """A network of the zoo, `resnet50:batchN` of another batch than the zoo's, or the CIFAR-10
    CNN at the size of Spotlight's slides."""
    if network == cifar_tensorflow.NAME:
        return cifar_tensorflow.cifar_tensorflow()
    _, _, batch = network.partition(":batch")
    if not batch:
        return zoo.load(network)
    key = {"benchmark": network, "packages": versions("torch")}
    return cached(key, lambda: _resnet50(network, int(batch)))


def _resnet50(name: str, batch: int) -> Graph:
    from situate.zoo import resnet

    def build() -> object:
        return resnet.build(3, 4, 6, 3, batch=batch)

    return capture(build, optimizer="momentum", name=name)
