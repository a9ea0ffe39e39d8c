"""The files of a command: checked before long work, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import math
import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from situate.cli.terminal import note
from situate.data.problem import Problem
from situate.errors import MissingExtra, SituateError
from situate.files.atomic import write_failure
from situate.report.learning_curve import Curve
from situate.report.pictures.formats import format_of
from situate.results.result import Result
from situate.schedule.schedule import Schedule
from situate.writers import schedule_json

if TYPE_CHECKING:
    from situate.report.view.plan_report import PlanReport


def check_outputs(inputs: Iterable[str | None], outputs: Iterable[str | None]) -> None:
    """Check that outputs can be written, and that no file is used twice. None is no file.

    Raises:
        SituateError: for the first output that cannot.
    """
    files = {os.path.realpath(path) for path in inputs if path and os.path.isfile(path)}
    for path in outputs:
        if path is None:
            continue
        target = _writable(path)
        if target in files:
            raise SituateError(f"cannot write {path!r}: it is used twice in this command")
        files.add(target)


def check_graph(path: str) -> None:
    """
    Raises:
        SituateError: no graph can be written to a file of that name.
    """
    if not path.endswith((".json", ".json.gz")):
        raise SituateError(f"graph {path!r}: must end in .json or .json.gz")


def check_picture(path: str | None, option: str = "picture") -> None:
    """
    Raises:
        MissingExtra: matplotlib is not installed.
        SituateError: pictures have no such format.
    """
    if path is None:
        return
    format_of(path, option)
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "report")


def check_report(path: str | None) -> None:
    """
    Raises:
        SituateError: no browser would show a file of that name.
    """
    if path is not None and not path.endswith((".html", ".htm")):
        raise SituateError(f"report {path!r}: must end in .html")


def check_trace(path: str | None) -> None:
    """
    Raises:
        MissingExtra: the package that writes Perfetto traces is not installed.
    """
    if path is not None and importlib.util.find_spec("perfetto") is None:
        raise MissingExtra("perfetto", "report")


def check_tensorboard(folder: str | None) -> None:
    """
    Raises:
        MissingExtra: TensorBoard is not installed.
        SituateError: no file can be written into the folder.
    """
    check_folder(folder)
    if folder is not None and importlib.util.find_spec("tensorboard") is None:
        raise MissingExtra("tensorboard", "report")


def check_folder(path: str | None) -> None:
    """Check a folder, which need not exist yet.

    Raises:
        SituateError: no file can be written into it.
    """
    if path is None:
        return
    try:
        if not path:
            raise FileNotFoundError(errno.ENOENT, "it has no name")
        folder = Path(os.path.realpath(path))
        while not _exists(str(folder)):
            folder = folder.parent
        # Permissions alone do not show a full or read-only file system.
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, ValueError) as error:
        raise SituateError(f"cannot write into {path!r}: {write_failure(path, error)}") from None


def _writable(path: str) -> str:
    """The real path of an output.

    Raises:
        SituateError: no file can be written there. Python source, such as the model's, is never
            overwritten.
    """
    try:
        if not path:
            raise OSError(errno.ENOENT, "it has no name")
        if path == "-":
            raise OSError(errno.EINVAL, "give /dev/stdout, or ./- for a file of that name")
        target = os.path.realpath(path)  # two names of one file count as one
        if os.path.isdir(target) or path.endswith(os.sep):
            raise IsADirectoryError(errno.EISDIR, "it is a directory")
        if target.endswith(".py") and os.path.isfile(target):
            raise OSError(errno.EEXIST, "it is Python source")
        # A read-only file shows by os.access, a read-only folder only by creating a file in it.
        if _exists(path) and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "no permission")
        if not _exists(path) or os.path.isfile(path):
            tempfile.TemporaryFile(dir=os.path.dirname(target)).close()
        return target
    except (OSError, ValueError) as error:
        raise SituateError(f"cannot write {path!r}: {write_failure(path, error)}") from None


def _exists(path: str) -> bool:
    """True if the file exists; raises OSError if no file can have that name."""
    with contextlib.suppress(FileNotFoundError):
        os.stat(path)
        return True
    return False


def write_outputs(
    result: Result, out: str | None, picture: str | None, schedule: str | None
) -> None:
    """Write the plan, its schedule and its picture, except for those that are None. A schedule that
    never ends has no times to write or draw."""
    if out is not None:
        result.plan.write(out)
        note(f"wrote {out}")
    if not math.isfinite(result.makespan):
        for path in filter(None, (schedule, picture)):
            note(f"did not write {path}: a schedule that never ends has no times")
        return
    write_schedule(result.problem, result.schedule, schedule)
    heading: dict[str, Any] = {"method": result.method}
    if result.problem.objective == "time":
        heading |= {"lower_bound": result.lower_bound, "gap": result.gap}
    draw_picture(result.problem, result.schedule, picture, **heading)


def write_schedule(problem: Problem, schedule: Schedule, path: str | None) -> None:
    """Write every op and transfer, unless `path` is None."""
    if path is not None:
        schedule_json.write(problem, schedule, path)
        note(f"wrote {path}")


def draw_picture(problem: Problem, schedule: Schedule, path: str | None, **heading: Any) -> None:
    """Draw a schedule, unless `path` is None; `heading` as in `report.pictures.picture.draw`."""
    if path is not None:
        from situate.report.pictures.picture import draw

        draw(problem, schedule, path, **heading)
        note(f"wrote {path}")


def write_report(reports: Sequence[PlanReport], path: str | None) -> None:
    """Write the report of plans for a browser, unless `path` is None or a schedule never ends."""
    if path is None:
        return
    if not all(math.isfinite(report.schedule.makespan) for report in reports):
        note(f"did not write {path}: a schedule that never ends has no times")
        return
    from situate.report.view.document import write

    write(reports, path)
    note(f"wrote {path}")


def draw_curves(results: Sequence[Result], curves: Sequence[Curve], path: str | None) -> None:
    """Draw the learning curves of several results, unless `path` is None.

    Horizontal lines show the other methods, `single`, `expert`, and the lower bound.
    """
    if path is None:
        return
    from situate.report.pictures.curves import draw
    from situate.solvers import LEARNERS

    problem = results[0].problem
    colours = [*LEARNERS, "random"]
    by_method = {r.method: curve for r, curve in zip(results, curves, strict=True)}
    draw(
        [by_method[method] for method in colours if method in by_method],
        levels(results),
        path,
        f"{problem.graph.name} on {problem.cluster.name}",
        problem.graph.unit,
    )
    note(f"wrote {path}")


def levels(results: Sequence[Result]) -> dict[str, float]:
    """The step times of horizontal lines, by method. Infeasible plans have none."""
    from situate.solvers import LEARNERS, solve

    curved = {*LEARNERS, "random"}
    others = {result.method: result for result in results if result.method not in curved}
    references: dict[str, Result] = {}
    for method in ("single", "expert"):
        with contextlib.suppress(SituateError):
            references[method] = others.get(method) or solve(results[0].problem, method)
    times = {name: result.value for name, result in references.items() if result.feasible}
    bounds = [result.lower_bound for result in results if result.lower_bound is not None]
    times |= {"lower bound": max(bounds)} if bounds else {}
    return times | {name: result.value for name, result in others.items() if result.feasible}
