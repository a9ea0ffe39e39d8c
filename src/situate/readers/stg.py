"""The Standard Task Graph Set's format (Tobita and Kasahara, 2002). See docs/formats/stg.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from situate.data.graph import Graph, Op
from situate.errors import ReadError
from situate.files.contents import lines
from situate.files.strict_json import Keys
from situate.readers.quantity import amount, whole

Line = tuple[int, list[str]]
"""Number of the line in the file, its columns."""


def recognises(data: bytes, keys: Keys) -> bool:
    """True if the content is a count alone on its line, then lines of three or more columns."""
    # Empty lines and comments may stand before every line.
    blank = rb"(?:\s|#[^\n]*\n)*"
    head = blank + rb"\d+[ \t]*(?:#[^\n]*)?\r?\n" + blank + rb"\d+[ \t]+[\d.]+[ \t]+\d+"
    return bool(re.match(head, data[:65536]))


def read(data: bytes, name: str) -> Graph:
    """The graph: an op per line, the two dummies included; their names are the ids of the tasks.

    Times have no unit. Edges carry nothing, so they are control edges.

    Raises:
        ReadError: a line that is none, an id out of order, a predecessor that is not there.
        GraphError: the graph breaks its own rules.
    """
    rows = _rows(data)
    count = _count(*next(rows, (1, "")))
    # The file states its number of tasks first, which bounds the lines and columns to keep.
    tasks = [(number, row.split(maxsplit=count + 5)) for number, row in islice(rows, count + 3)]
    _check_count(count, tasks)
    control = [
        (before, task)
        for task, (number, columns) in enumerate(tasks)
        for before in _predecessors(task, number, columns, len(tasks))
    ]
    return Graph(
        name=name,
        ops=tuple(_op(task, number, columns) for task, (number, columns) in enumerate(tasks)),
        control=tuple(control),
        unit="",
        source="stg",
    )


def _rows(data: bytes) -> Iterator[tuple[int, str]]:
    """Number and text of the non-empty lines, without comments."""
    for number, line in enumerate(lines(data), start=1):
        if row := line.partition("#")[0].strip():
            yield number, row


def _count(number: int, row: str) -> int:
    if len(row.split(maxsplit=1)) != 1:
        raise ReadError(f"line {number}: must be the number of tasks alone")
    return whole(row, f"line {number}: number of tasks")


def _check_count(count: int, tasks: list[Line]) -> None:
    """The random graphs count the tasks without the two dummies, the applications with them."""
    if len(tasks) not in (count, count + 2):
        raise ReadError(
            f"says {count} tasks, so {count} or (with two dummies) {count + 2} lines must follow; "
            f"there are {'more' if len(tasks) > count + 2 else len(tasks)}"
        )
    number, columns = tasks[-1] if tasks else (1, ["", ""])
    if len(columns) < 2 or amount(columns[1], f"line {number}: time") != 0:
        raise ReadError("ends without its dummy exit task, whose time is 0: is it truncated?")


def _op(task: int, number: int, columns: list[str]) -> Op:
    where = f"line {number}"
    if len(columns) < 3:
        raise ReadError(f"{where}: must be: id time count-of-predecessors predecessors...")
    if whole(columns[0], f"{where}: id") != task:
        raise ReadError(f"{where}: id must be {task}, got {columns[0]}")
    return Op(columns[0], kind="task", seconds={"*": amount(columns[1], f"{where}: time")})


def _predecessors(task: int, number: int, columns: list[str], tasks: int) -> list[int]:
    where = f"line {number}: task {task}"
    if len(columns) - 3 > tasks:
        raise ReadError(f"{where}: lists more predecessors than there are tasks")
    before = [whole(column, f"{where}: predecessor") for column in columns[3:]]
    if len(columns) > 2 and whole(columns[2], f"{where}: number of predecessors") != len(before):
        raise ReadError(f"{where}: says {columns[2]} predecessors and lists {len(before)}")
    for predecessor in before:
        if predecessor >= tasks:
            raise ReadError(f"{where}: predecessor {predecessor} does not exist")
    return before
