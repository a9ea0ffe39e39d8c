"""A benchmark's answer: tables on stdout, and JSON with commit, machine and versions."""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import structs
from rich.console import Console
from rich.table import Table

import situate
from situate.bench import provenance

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"

WRITTEN = (
    "benchmarks/results",
    "docs/images",
    "research/results",
    "research/images",
    "research/*.md",
)
"""Files that benchmarks write: they may differ from the commit that the benchmarks are run at."""

DIGITS = 9
"""Significant digits of the numbers of a record."""

LEVELS = 3
"""Levels of a record's objects that have a line for each key."""

Row = dict[str, Any]
"""Figures by column: text, numbers, yes or no, or None where there is none."""


@dataclass(frozen=True)
class Target:
    """A target, and the figure that was measured."""

    what: str
    wanted: str
    measured: str
    met: bool


def record(
    name: str,
    tables: Mapping[str, Sequence[Row]],
    targets: Sequence[Target] = (),
    *,
    options: argparse.Namespace | None = None,
    folder: Path | None = None,
) -> None:
    """Print the tables and the targets, and write NAME.json.

    Args:
        name: the benchmark's.
        tables: rows by title; the rows of one table have the same columns.
        targets: may be empty.
        options: of the run; folders are left out.
        folder: for the file; None for benchmarks/results.
    """
    for title, rows in tables.items():
        show(f"{name}: {title}", rows)
    show(f"{name}: targets", [asdict(target) for target in targets])
    write((folder or RESULTS) / f"{name}.json", tables, targets, options=options)


def write(
    path: Path,
    tables: Mapping[str, Sequence[Row]],
    targets: Sequence[Target] = (),
    *,
    options: argparse.Namespace | None = None,
) -> None:
    """Write the file of a benchmark, which is named after it; nothing is printed."""
    origin = {
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": {"situate": situate.__version__, **provenance.versions()},
        "options": _plain(options),
    }
    write_origin(path, origin, tables, targets)


def write_origin(
    path: Path,
    origin: Mapping[str, Any],
    tables: Mapping[str, Sequence[Row]],
    targets: Sequence[Target] = (),
) -> None:
    """The same of a benchmark that ran elsewhere.

    Args:
        origin: its commit, date, machine, versions and options.
    """
    content = {
        "benchmark": path.stem,
        **origin,
        "targets": [asdict(target) for target in targets],
        "tables": {title: _columns(rows) for title, rows in tables.items()},
    }
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".json.part")
    temporary.write_text(_lines(_rounded(content)) + "\n")
    os.replace(temporary, path)


def read_record(path: Path) -> dict[str, Any]:
    """A record that `write` wrote, with each row of its tables by column."""
    content: dict[str, Any] = json.loads(path.read_bytes())
    content["tables"] = {title: _rows(table) for title, table in content["tables"].items()}
    return content


def rows_at_commit(path: Path, table: str) -> list[Row]:
    """Rows that an earlier, perhaps interrupted run recorded at this very commit; else none."""
    if not path.is_file() or (now := commit()).endswith("+dirty"):
        return []
    record = read_record(path)
    return list(record["tables"].get(table, [])) if record["commit"] == now else []


def _columns(rows: Sequence[Row]) -> dict[str, Any] | Sequence[Row]:
    """A table whose rows repeat no names; rows of unequal columns stay as they are."""
    names = list(rows[0]) if rows else []
    if any(row.keys() != rows[0].keys() for row in rows):
        return rows
    return {"columns": names, "rows": [[row[name] for name in names] for row in rows]}


def _rows(table: Any) -> list[Row]:
    if isinstance(table, list):
        return table
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def _rounded(value: Any) -> Any:
    """The value with at most `DIGITS` significant digits in each number."""
    match value:
        case bool() | int() | str() | None:
            return value
        case Mapping():
            return {key: _rounded(item) for key, item in value.items()}
        case list() | tuple():
            return [_rounded(item) for item in value]
        case float() if math.isfinite(value):
            return float(f"{value:.{DIGITS}g}")
        case float():
            return None  # JSON has no infinities
    return _rounded(value.item())  # of numpy


def _lines(value: Any, depth: int = 0) -> str:
    """JSON with a line for each key of the first levels and for each row of a table."""
    if depth < LEVELS and isinstance(value, dict) and value:
        items = [f"{json.dumps(key)}: {_lines(item, depth + 1)}" for key, item in value.items()]
        return "{\n" + ",\n".join(items) + "\n}"
    if depth < LEVELS + 1 and isinstance(value, list) and any(map(_is_nested, value)):
        return "[\n" + ",\n".join(_lines(item, LEVELS + 1) for item in value) + "\n]"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | dict)


def commit() -> str:
    """The commit, with `+dirty` where the working tree differs from it, `WRITTEN` aside."""
    try:
        return provenance.commit(ROOT, (".", *(f":!{path}" for path in WRITTEN)))
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> dict[str, Any]:
    """The machine, and how busy it is."""
    return structs.asdict(provenance.machine()) | {"load_average": round(os.getloadavg()[0], 2)}


def _plain(options: argparse.Namespace | None) -> dict[str, Any]:
    fields = {} if options is None else vars(options)
    return {key: value for key, value in fields.items() if not isinstance(value, Path)}


def show(title: str, rows: Sequence[Row]) -> None:
    """Print rows as a table."""
    if not rows:
        return
    table = Table(title=title, title_justify="left")
    for column in rows[0]:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(_text(value) for value in row.values()))
    Console(width=200, highlight=False, markup=False).print(table)


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
