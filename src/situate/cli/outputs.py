"""The files a command writes: checked before long work, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import math
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from situate.cli.terminal import note
from situate.data.problem import Problem
from situate.errors import MissingExtra, SituateError
from situate.files.atomic import write_failure
from situate.report.pictures.formats import format_of
from situate.results.result import Result
from situate.schedule.schedule import Schedule
from situate.writers import schedule_json


def check_outputs(inputs: Iterable[str | None], outputs: Iterable[str | None]) -> None:
    """Raise unless every output can be written and no file is used twice; None is no file."""
    taken = {os.path.realpath(path) for path in inputs if path and os.path.isfile(path)}
    for path in outputs:
        if path is None:
            continue
        target = _writable(path)
        if target in taken:
            raise SituateError(f"cannot write {path!r}: it is used twice in this command")
        taken.add(target)


def check_graph(path: str) -> None:
    """Raise unless a graph can be written to `path`."""
    if not path.endswith((".json", ".json.gz")):
        raise SituateError(f"graph {path!r}: must end in .json or .json.gz")


def check_picture(path: str | None, what: str = "picture") -> None:
    """Raise unless a picture can be drawn to `path`."""
    if path is None:
        return
    format_of(path, what)
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra("matplotlib", "report")


def check_trace(path: str | None) -> None:
    """Raise unless a Perfetto trace can be written."""
    if path is not None and importlib.util.find_spec("perfetto") is None:
        raise MissingExtra("perfetto", "report")


def check_tensorboard(folder: str | None) -> None:
    """Raise unless TensorBoard's files can be written into `folder`."""
    check_folder(folder)
    if folder is not None and importlib.util.find_spec("tensorboard") is None:
        raise MissingExtra("tensorboard", "report")


def check_folder(path: str | None) -> None:
    """Raise unless files can be written into the folder, which may have to be made."""
    if path is None:
        return
    try:
        if not path:
            raise FileNotFoundError(errno.ENOENT, "it has no name")
        there = Path(os.path.realpath(path))
        while not _exists(str(there)):
            there = there.parent
        tempfile.TemporaryFile(dir=there).close()
    except (OSError, ValueError) as error:
        raise SituateError(f"cannot write into {path!r}: {write_failure(path, error)}") from None


def _writable(path: str) -> str:
    """Where `path` leads; raises unless a file can be written there.

    Nothing that situate writes is Python: a source that is there, such as the model's, stays.
    """
    try:
        if not path:
            raise OSError(errno.ENOENT, "it has no name")
        if path == "-":
            raise OSError(errno.EINVAL, "give /dev/stdout, or ./- for a file of that name")
        target = os.path.realpath(path)
        if os.path.isdir(target) or path.endswith(os.sep):
            raise IsADirectoryError(errno.EISDIR, "it is a directory")
        if target.endswith(".py") and os.path.isfile(target):
            raise OSError(errno.EEXIST, "it is Python source")
        if _exists(path) and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "no permission")
        if not _exists(path) or os.path.isfile(path):
            tempfile.TemporaryFile(dir=os.path.dirname(target)).close()
        return target
    except (OSError, ValueError) as error:
        raise SituateError(f"cannot write {path!r}: {write_failure(path, error)}") from None


def _exists(path: str) -> bool:
    """True if the file exists; raises where no file can have that name."""
    with contextlib.suppress(FileNotFoundError):
        os.stat(path)
        return True
    return False


def write_outputs(
    result: Result, out: str | None, picture: str | None, schedule: str | None
) -> None:
    """Write the plan, its schedule and its picture, each where it was asked for; the plan alone
    where its schedule never ends."""
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
    """Write every op and transfer, where it was asked for."""
    if path is not None:
        schedule_json.write(problem, schedule, path)
        note(f"wrote {path}")


def draw_picture(problem: Problem, schedule: Schedule, path: str | None, **heading: Any) -> None:
    """Draw a schedule, where it was asked for; `heading` as in `report.picture.draw`."""
    if path is not None:
        from situate.report.pictures.picture import draw

        draw(problem, schedule, path, **heading)
        note(f"wrote {path}")
