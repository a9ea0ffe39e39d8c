"""A folder of graphs in any format that situate reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from situate.bench.instances import Instance
from situate.data.cluster import OWN_MACHINE, Cluster
from situate.data.problem import Objective, Problem
from situate.errors import ReadError, SituateError
from situate.files.contents import contents
from situate.readers import read
from situate.readers.recognise import recognise


def instances(folder: Path, cluster: Cluster | None, objective: Objective) -> list[Instance]:
    """One a file, hidden files left out; the family is called after the folder.

    Args:
        folder: of files; folders in it are not looked into.
        cluster: None for the machine that each graph's own file brings.
        objective: of all problems.

    Raises:
        ReadError: no such folder, no file in it, or a file that is no graph.
    """
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise ReadError(f"{folder}: {error.strerror}: give a folder of graphs") from None
    files = [path for path in paths if path.is_file() and not path.name.startswith(".")]
    if not files:
        raise ReadError(f"{folder}: no files in it: give a folder of graphs")
    for path in files:
        _check(path)
    return [Instance(folder.resolve().name, p.name, _maker(p, cluster, objective)) for p in files]


def _check(path: Path) -> None:
    """Raise for a file of no known format, before hours of runs end at it."""
    try:
        recognise(contents(path))
    except ReadError as error:
        raise ReadError(f"{path}: {error}; a folder of graphs holds nothing else") from None


def _maker(path: Path, cluster: Cluster | None, objective: Objective) -> Callable[[], Problem]:
    def make() -> Problem:
        graph = read(path)
        if cluster is None and not graph.machine:
            raise SituateError("brings no machine of its own: give --cluster, such as identical:4")
        machine = cluster or Cluster.of_machine(OWN_MACHINE, graph.machine)
        return Problem(graph, machine, objective)

    return make
