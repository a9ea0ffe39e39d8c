"""Families of problems, one file each; a new one is a record here and one file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType

from situate.bench.families import regal
from situate.bench.instances import Instance


@dataclass(frozen=True)
class Family:
    """Problems of one kind.

    Attributes:
        name: as `situate bench` takes it.
        summary: the family in a line.
        instances: makes the list of its instances; the problems are made later.
    """

    name: str
    summary: str
    instances: Callable[[], list[Instance]]


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
)

FAMILIES = MappingProxyType({family.name: family for family in _ALL})
"""All families by name, in the order in which lists show them."""
