"""The table of published measurements, as the benchmarks of homes read it."""

from __future__ import annotations

import argparse
import csv
import hashlib
from collections.abc import Mapping
from pathlib import Path

Row = Mapping[str, str]
"""A measurement by the names of the columns."""


def read_cells(description: str | None) -> tuple[argparse.Namespace, list[Row]]:
    """The options of a command line `CELLS.csv [--record]`, and the rows of the table.

    The options hold the table's SHA-256, which records name.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("cells", type=Path, metavar="CELLS.csv")
    parser.add_argument("--record", action="store_true", help="write the record")
    options = parser.parse_args()
    data = options.cells.read_bytes()
    options.cells_sha256 = hashlib.sha256(data).hexdigest()
    return options, list(csv.DictReader(data.decode().splitlines()))
