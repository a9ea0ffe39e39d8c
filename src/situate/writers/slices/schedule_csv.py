"""The schedule of a pipeline as the CSV that torch.distributed.pipelining's runtime loads."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.report.text import printable
from situate.writers.slices.passes import Pass


def csv_path(path: str | Path) -> Path:
    """The file of a schedule beside that of its stages.

    Raises:
        SituateError: the two would be the same file.
    """
    csv = Path(path).with_suffix(".csv") if Path(path).name else Path(path)
    if csv == Path(path):
        raise SituateError(
            f"cannot write {str(path)!r}: the schedule goes to the file of this name in .csv: give "
            "the stages another ending, such as .json"
        )
    return csv


def csv_bytes(rows: Iterable[Sequence[Pass]]) -> bytes:
    """A line a rank, of its passes in order (`compute_only`): `0F0,0F1,0B0,0B1`."""
    return "".join(",".join(map(str, row)) + "\n" for row in rows).encode()


def warn_of_axes(problem: Problem) -> None:
    """Warn of inputs that are not cut along dimension 0, as the runtime cuts all."""
    axes = problem.graph.slices.axes if problem.graph.slices else {}
    if other := [name for name, axis in axes.items() if axis != 0]:
        names = ", ".join(repr(printable(name, 60)) for name in other[:3])
        warnings.warn(
            f"the plan does not cut {names} along dimension 0: tell the runtime so "
            "(args_chunk_spec, kwargs_chunk_spec)",
            stacklevel=3,
        )
