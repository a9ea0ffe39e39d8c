"""A benchmark's answer: tables on stdout, and JSON with commit, machine and versions."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs
from rich.console import Console
from rich.table import Table

import situate
from situate.bench import provenance

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"

WRITTEN = ("benchmarks/results", "docs/images", "docs/papers.md", "docs/regal.md")
"""Files that benchmarks write: they may differ from the commit that the benchmarks are run at."""

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
) -> None:
    """Print the tables and the targets, and write benchmarks/results/NAME.json.

    Args:
        name: the benchmark's.
        tables: rows by title; the rows of one table have the same columns.
        targets: may be empty.
        options: what the benchmark was run with; folders are left out.
    """
    for title, rows in tables.items():
        show(f"{name}: {title}", rows)
    show(f"{name}: targets", [asdict(target) for target in targets])
    write(RESULTS / f"{name}.json", tables, targets, options=options)


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
        "tables": tables,
    }
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_suffix(".json.part")
    plain = msgspec.json.encode(content, enc_hook=lambda number: number.item())
    temporary.write_bytes(_in_lines(msgspec.json.format(plain, indent=1)) + b"\n")
    os.replace(temporary, path)


def _in_lines(text: bytes) -> bytes:
    """Lists of numbers on one line each."""
    numbers = rb"\[\s+((?:(?:null|[-+.\deE]+),?\s+)+)\]"
    return re.sub(numbers, lambda found: b"[" + b" ".join(found[1].split()) + b"]", text)


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
    given = {} if options is None else vars(options)
    return {key: value for key, value in given.items() if not isinstance(value, Path)}


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
