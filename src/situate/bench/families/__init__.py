"""Families of problems, one file each; a new one is a record here and one file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from situate.bench.families import (
    dnn_partitioning,
    doppler,
    iopddl,
    pipelines,
    piper,
    regal,
    stg,
    unequal,
    zoo,
)
from situate.bench.instances import Instance
from situate.errors import SituateError


@dataclass(frozen=True)
class Family:
    """Problems of one kind.

    Attributes:
        name: as `situate bench` takes it.
        summary: the family in a line.
        make: makes the list of its instances, whose problems are made later; of files, from their
            folder.
        folder: the name of that folder, of files that do not come with situate; else empty.
    """

    name: str
    summary: str
    make: Callable[..., list[Instance]]
    folder: str = ""

    def instances(self, data: Path | None = None) -> list[Instance]:
        """The instances.

        Args:
            data: holds the folders of all families of files.

        Raises:
            SituateError: the family's folder is not there.
        """
        if not self.folder:
            return self.make()
        if data is None or not (data / self.folder).is_dir():
            suffix = "" if data is None else f"; there is none in {str(data)!r}"
            raise SituateError(
                f"family {self.name!r}: its files do not come with situate: give --data DIR with "
                f"a folder {self.folder!r}{suffix} (docs/bench.md says where to find them)"
            )
        return self.make(data / self.folder)


_ALL = (
    Family(
        "regal_zero_cost",
        "REGAL's synthetic graphs on 2 and 4 devices, transfers that take no time",
        regal.zero_cost,
    ),
    Family(
        "regal_bandwidth",
        "the same, transfers that take as long as their tensor has units",
        regal.bandwidth,
    ),
    Family(
        "unequal",
        "random graphs on 2 to 16 unequal devices, with tight memory or a shared medium",
        unequal.instances,
    ),
    Family(
        "pipelines",
        "micro-batches through 4 to 16 pinned stages, with 1F1B's activation memory and twice that",
        pipelines.instances,
    ),
    Family(
        "zoo",
        "training steps of the zoo on the papers' clusters and on current ones",
        zoo.on_clusters,
    ),
    Family(
        "zoo_memory",
        "the memory of the zoo's steps on one device",
        zoo.on_one_device,
    ),
    Family(
        "stg",
        "Standard Task Graph set: 50 tasks on 2 to 16 processors, optima published",
        stg.closed,
        "stg",
    ),
    Family(
        "stg_applications",
        "Standard Task Graph set: robot control, a sparse solver, fpppp",
        stg.applications,
        "stg",
    ),
    Family(
        "doppler",
        "DOPPLER's op graphs on 4 and 8 devices",
        doppler.instances,
        "doppler",
    ),
    Family(
        "dnn_throughput",
        "dnn-partitioning: seconds between steps, the best contiguous splits published",
        dnn_partitioning.throughput,
        "dnn-partitioning",
    ),
    Family(
        "dnn_latency",
        "dnn-partitioning: steps in which a device runs its ops as one call",
        dnn_partitioning.latency,
        "dnn-partitioning",
    ),
    Family(
        "iopddl",
        "the ASPLOS 2025 contest on sharding: costs, the best of contest and later runs published",
        iopddl.instances,
        "iopddl",
    ),
    Family(
        "piper",
        "Piper's BERT-32 on 8 to 2,048 devices: seconds per micro-batch, Piper's own published",
        piper.instances,
        "piper",
    ),
)

FAMILIES = MappingProxyType({family.name: family for family in _ALL})
"""All families by name, in the order in which lists show them."""
