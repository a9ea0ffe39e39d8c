"""Graphs of the Standard Task Graph set (Tobita and Kasahara, 2002) on identical processors.

The folder holds `50/` with the random graphs of 50 tasks, `Case50_M_OPT.csv` for M processors with
lines `file,M,optimum`, or `file,M,lower,upper` where the optimum is open, and `apps/` with the
applications.
"""

from __future__ import annotations

import csv
from pathlib import Path

from situate.bench.instances import Instance, ReferenceValue
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.errors import ReadError
from situate.files.contents import reason_of
from situate.readers import read

PROCESSORS = (2, 4, 8, 16)
SOURCE = "Standard Task Graph set, Kasahara Laboratory, Waseda University"
SOLVED = "Standard Task Graph set, CP-SAT"

APPLICATIONS = {
    ("robot", 2): (1244, None),
    ("robot", 4): (662, None),
    ("robot", 8): (569, 569),
    ("robot", 16): (569, 569),
    ("sparse", 2): (970, 968),
    ("sparse", 4): (484, 484),
    ("sparse", 8): (244, 242),
    ("sparse", 16): (122, 122),
    ("fpppp", 8): (1062, 1062),
    ("fpppp", 16): (1062, 1062),
}
"""Best known values of applications on so many processors, and the bounds that are proved."""


def closed(folder: Path) -> list[Instance]:
    """The random graphs of 50 tasks whose optimum is published."""
    return [
        _instance("stg", folder / name, int(processors), float(best), float(best), SOURCE)
        for m in PROCESSORS
        for name, processors, best in _closed_rows(folder / f"Case50_{m}_OPT.csv")
    ]


def applications(folder: Path) -> list[Instance]:
    """Robot control, a sparse matrix solver and SPEC's fpppp."""
    return [
        _instance("stg_applications", folder / "apps" / name, m, best, bound, SOLVED)
        for (name, m), (best, bound) in APPLICATIONS.items()
    ]


def _closed_rows(path: Path) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8") as file:
            return [row for row in csv.reader(file) if len(row) == 3]
    except OSError as error:
        raise ReadError(f"{path}: {reason_of(error)}") from None


def _instance(
    family: str, path: Path, processors: int, best: float, bound: float | None, source: str
) -> Instance:
    return Instance(
        family,
        f"{path.name} on {processors}",
        lambda: Problem(read(path), Cluster.identical(processors)),
        ReferenceValue(best, source, bound),
    )
