"""DOPPLER's op graphs (ICLR 2026) on identical devices: all text files of the folder."""

from __future__ import annotations

from pathlib import Path

from situate.bench.instances import Instance, ReferenceValue
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.errors import ReadError
from situate.readers import read

DEVICES = (4, 8)

CP_SAT = {
    ("chain_mm_112nodes", 4): ReferenceValue(1200.07, "CP-SAT in 60 s", 1200.07),
    ("ffnn_192nodes", 4): ReferenceValue(73.02, "CP-SAT in 60 s", 56.69),
}
"""By graph and devices."""


def instances(folder: Path) -> list[Instance]:
    """Each graph on four and on eight devices."""
    files = sorted(folder.glob("*.txt"))
    if not files:
        raise ReadError(f"{folder}: no .txt files of DOPPLER in it")
    return [_instance(path, devices) for path in files for devices in DEVICES]


def _instance(path: Path, devices: int) -> Instance:
    return Instance(
        "doppler",
        f"{path.stem} on {devices}",
        lambda: Problem(read(path), Cluster.identical(devices)),
        CP_SAT.get((path.stem, devices)),
    )
