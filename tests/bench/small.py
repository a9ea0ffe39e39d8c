"""Small instances, solved in a moment, with their reference values."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from situate.bench.best_known import Entry, Finding
from situate.bench.instances import Instance, ReferenceValue
from situate.bench.provenance import provenance
from situate.bench.rows import Row
from situate.bench.run import Runs
from situate.data.problem import Problem
from tests.solvers.families import chain, devices, fork


def instance(name: str = "fork", reference: ReferenceValue | None = None) -> Instance:
    """A fork of six ops on two equal devices, or a chain."""
    graph = {"fork": fork(6), "chain": chain(4)}[name]
    return Instance("small", name, lambda: Problem(graph, devices(1, 1)), reference)


def runs(*instances: Instance, methods: tuple[str, ...] = ("heft",), seeds: int = 1) -> Runs:
    """Runs of a tenth of a second on one thread."""
    return Runs(instances or (instance(),), methods, (0.1,), range(seeds), 1)


def entry(best: float | None = None, bound: float | None = None, by: str = "heft") -> Entry:
    """Findings of this situate on one problem."""
    values = (None if v is None else Finding(v, by, version="0.1.0") for v in (best, bound))
    return Entry("f00", "small", "fork", *values)


def row(method: str = "heft", value: float | None = 10.0, **changes: Any) -> Row:
    """A run of a tenth of a second on a problem; without a value its plan does not fit."""
    plain = Row(
        family="small", instance="fork", problem="f00", ops=6, devices=2, objective="time",
        method=method, time_limit=0.1, seed=0, threads=1, value=value, feasible=value is not None,
        lower_bound=None, bounded_by=None, evaluations=3, seconds=0.1, history=[], refused="",
        date="2026-01-01T00:00:00+00:00", made_by=provenance(),
    )  # fmt: skip
    return structs.replace(plain, **changes)
