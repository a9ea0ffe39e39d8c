"""Problems in which layers become the stages of a pipeline, with degrees of parallelism."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from situate.errors import SituateError

SYNC_FACTOR = 4
"""Bytes that a replica exchanges for each byte of weights, but for its own share (PipeDream)."""


def neighbours(
    edges: Iterable[tuple[int, int]],
) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """By layer, the layers that it reads, and those that read it."""
    before: dict[int, list[int]] = defaultdict(list)
    after: dict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        before[b].append(a)
        after[a].append(b)
    return before, after


@dataclass(frozen=True)
class LayerOption:
    """A way to run a layer, with one degree of tensor parallelism.

    Attributes:
        name: such as `vanilla`, or `activation recomp`.
        seconds: of the forward and backward pass of a micro-batch.
        weight_bytes: weights, which replicas have to synchronise.
        batch_bytes: memory of each micro-batch in flight.
        fixed_bytes: memory besides.
        sync_in, sync_out: by the layer before or after, bytes exchanged on top of the edge's if
            the two are in different stages.
    """

    name: str
    seconds: float
    weight_bytes: float
    batch_bytes: float
    fixed_bytes: float
    sync_in: Mapping[int, float]
    sync_out: Mapping[int, float]


@dataclass(frozen=True)
class Layer:
    """A layer with its options by degree of tensor parallelism."""

    name: str
    options: Mapping[int, Sequence[LayerOption]]


@dataclass(frozen=True)
class Stage:
    """Layers that run on `data * tensor` devices.

    Attributes:
        layers: their ids.
        data, tensor: degrees of parallelism.
        options: by layer, the name of its option.
    """

    layers: tuple[int, ...]
    data: int
    tensor: int
    options: tuple[str, ...]


@dataclass(frozen=True)
class StageFigures:
    """The time and memory of a stage.

    Attributes:
        seconds: per micro-batch, computing and communicating.
        memory: bytes of each device.
        batches: micro-batches in flight on each replica.
    """

    seconds: float
    memory: float
    batches: int


@dataclass(frozen=True)
class StageProblem:
    """Layers of a network on equal devices (Piper, J. Tarnawski et al., NeurIPS 2021).

    A plan is a sequence of stages. The replicas of a stage share its micro-batches, and each
    replica is `tensor` devices. A stage takes as long as its layers, plus the exchange with other
    stages and of weights among its replicas. The value of a plan is the time of its slowest stage.

    Attributes:
        name: of the problem.
        devices: number of devices.
        memory: bytes of each.
        bandwidth: bytes a second between a device and all others.
        batches: micro-batches in a batch, a multiple of each stage's `data`.
        layers: by id.
        edges: by pair of ids, the bytes that the first layer sends to the second.
    """

    name: str
    devices: int
    memory: float
    bandwidth: float
    batches: int
    layers: Mapping[int, Layer]
    edges: Mapping[tuple[int, int], float]

    @property
    def most_replicas(self) -> int:
        """Replicas of all stages together at most."""
        return min(self.batches, self.devices)

    def figures(self, stages: Sequence[Stage]) -> tuple[StageFigures, ...]:
        """Time and memory of each stage; memory may exceed the devices'.

        Raises:
            SituateError: not a division of the layers into stages.
        """
        self._check(stages)
        replicas = [stage.data for stage in stages]
        # Micro-batches in flight: one for each replica of this stage and of those after it.
        followers = [sum(replicas[i:]) for i in range(len(stages))]
        before, after = neighbours(self.edges)
        return tuple(
            self._figures(stage, -(-count // stage.data), before, after)
            for stage, count in zip(stages, followers, strict=True)
        )

    def _figures(
        self,
        stage: Stage,
        batches: int,
        before: Mapping[int, Sequence[int]],
        after: Mapping[int, Sequence[int]],
    ) -> StageFigures:
        members = set(stage.layers)
        compute, exchange, sync, memory = [], [], [], []
        for layer, name in zip(stage.layers, stage.options, strict=True):
            option = self._option(stage, layer, name)
            compute.append(option.seconds)
            sync.append(option.weight_bytes)
            memory += [option.batch_bytes * batches, option.fixed_bytes]
            for end in before.get(layer, ()):
                if end not in members:
                    exchange.append(2 * (self.edges[end, layer] + option.sync_in[end]))
            for end in after.get(layer, ()):
                if end not in members:
                    exchange.append(2 * (self.edges[layer, end] + option.sync_out[end]))
        # Weights are synchronised once a batch, and each micro-batch bears its part.
        share = SYNC_FACTOR * (stage.data - 1) / stage.data / self.batches
        size = math.fsum(exchange) / stage.data + share * math.fsum(sync)
        # The replicas work at once on different micro-batches.
        seconds = math.fsum(compute) / stage.data + size / self.bandwidth
        return StageFigures(seconds, math.fsum(memory), batches)

    def _option(self, stage: Stage, layer: int, name: str) -> LayerOption:
        options = self.layers[layer].options.get(stage.tensor, ())
        for option in options:
            if option.name == name:
                return option
        raise SituateError(
            f"{self.name}: layer {layer} has no option {name!r} for a tensor degree of "
            f"{stage.tensor}"
        )

    def _check(self, stages: Sequence[Stage]) -> None:
        where = {layer: i for i, stage in enumerate(stages) for layer in stage.layers}
        if where.keys() != self.layers.keys() or len(where) != sum(len(s.layers) for s in stages):
            raise SituateError(f"{self.name}: the stages do not hold every layer once")
        for a, b in self.edges:
            if where[a] > where[b]:
                raise SituateError(f"{self.name}: layer {a} is in a stage after layer {b}'s")
        for i, stage in enumerate(stages):
            if stage.data < 1 or stage.tensor < 1 or self.batches % stage.data:
                raise SituateError(
                    f"{self.name}: stage {i}: {stage.data} replicas do not divide "
                    f"{self.batches} micro-batches"
                )
        if sum(stage.data * stage.tensor for stage in stages) > self.devices:
            raise SituateError(f"{self.name}: the stages need more than {self.devices} devices")
        if sum(stage.data for stage in stages) > self.batches:
            raise SituateError(f"{self.name}: the stages have more replicas than micro-batches")
