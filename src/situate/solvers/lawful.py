"""Whether a placement keeps groups together, pins where they are, and ops where they can run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.errors import SituateError
from situate.problem import Problem

Placement = NDArray[np.int32]


def check_placement(problem: Problem, placement: Placement) -> None:
    """Refuse a placement that no plan may have.

    One that holds more than a device has passes: it does not fit, and is reported so.

    Args:
        problem: of n ops.
        placement: (n,) device indices.

    Raises:
        SituateError: the first op that is where it must not be, and its device.
    """
    _check_indices(problem, placement)
    of_unit = np.empty(problem.units, np.int32)
    of_unit[problem.unit] = placement
    if not (of_unit[problem.unit] == placement).all():
        _refuse_split(problem, placement)
    if not problem.allowed[np.arange(problem.units), of_unit].all():
        _refuse_device(problem, placement)


def _check_indices(problem: Problem, placement: Placement) -> None:
    if placement.shape != (problem.n,):
        raise SituateError(
            f"a placement has {problem.n} devices, one an op; got an array of shape "
            f"{placement.shape}"
        )
    outside = (placement < 0) | (placement >= problem.d)
    if outside.any():
        op = int(outside.argmax())
        raise SituateError(f"{_op(problem, op)} is on device {placement[op]} of {problem.d}")


def _refuse_split(problem: Problem, placement: Placement) -> None:
    first: dict[int, int] = {}
    for op, unit in enumerate(problem.unit.tolist()):
        other = first.setdefault(unit, op)
        if placement[op] != placement[other]:
            raise SituateError(
                f"group {problem.graph.ops[op].group!r} is split: {_op(problem, other)} runs on "
                f"{_device(problem, placement[other])}, {_op(problem, op)} on "
                f"{_device(problem, placement[op])}"
            )


def _refuse_device(problem: Problem, placement: Placement) -> None:
    for op in np.flatnonzero(~problem.allowed[problem.unit, placement]).tolist():
        pin, device = problem.graph.ops[op].device, problem.cluster.devices[placement[op]]
        if pin is not None and pin not in (device.name, device.kind):
            raise SituateError(
                f"{_op(problem, op)} is pinned to {pin!r}, but runs on {device.name!r}"
            )
        if not np.isfinite(problem.seconds[op, placement[op]]):
            raise SituateError(f"{_op(problem, op)} cannot run on {device.name!r}")


def _op(problem: Problem, op: int) -> str:
    return f"op {problem.graph.ops[op].name!r}"


def _device(problem: Problem, device: int) -> str:
    return repr(problem.cluster.names[device])
