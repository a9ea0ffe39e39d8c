"""Rows of `situate bench` for a family of shardings, with the processor's seconds of each."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from situate.bench.best_known import BestKnown
from situate.bench.families import FAMILIES
from situate.bench.rows import Row, RowFile
from situate.bench.run import Bench, LimitShare, Runs


def rows(
    family: str, data: Path, share: float, seed: int, threads: int
) -> Iterator[tuple[Row, float]]:
    """The row of every instance and its processor seconds, reading of the file included.

    Args:
        data: holds the family's folder.
        share: of the published time limits.
    """
    for instance in FAMILIES[family].instances(data):
        runs = Runs([instance], ["auto"], [LimitShare(share)], [seed], threads)
        begin = time.process_time()
        [row] = Bench(runs, RowFile(), BestKnown()).run()
        yield row, time.process_time() - begin
