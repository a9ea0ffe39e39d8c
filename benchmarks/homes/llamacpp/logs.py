"""The buffers and layers that llama.cpp reports with `-v`, one line at a time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["model", "KV", "RS", "compute", "output"]

BUFFER = re.compile(r"(\S+)\s+(model|KV|RS|compute|output) buffer size = +([\d.]+) MiB")
LAYER = re.compile(r"layer +(\d+) assigned to device (\S+?),")
HOST_BUFFERS = re.compile(r"CPU|.*_Host$|Host$|AMX")


@dataclass
class Report:
    """A run as llama.cpp reports it.

    Attributes:
        buffers: MiB by kind and by the name of the device, which is `host` for host memory.
        layers: device of each layer, and of the output behind them.
        pipeline: several ubatches are under way at once.
    """

    buffers: dict[tuple[Kind, str], float] = field(default_factory=lambda: defaultdict(float))
    layers: list[str] = field(default_factory=list)
    pipeline: bool = False


def read_report(lines: Iterable[str]) -> Report:
    """The report of the last load in a log; buffers of one kind on a device are added up."""
    report = Report()
    for line in lines:
        if match := BUFFER.search(line):
            name, kind, size = match[1], match[2], float(match[3])
            key: tuple[Kind, str] = (kind, _device(name))  # type: ignore[assignment]
            report.buffers[key] += size
        elif match := LAYER.search(line):
            if int(match[1]) == 0:
                # A load of its own; one before it may have been a dry run.
                report = Report()
            report.layers.append(_device(match[2]))
        elif "pipeline parallelism enabled" in line:
            report.pipeline = True
    return report


def _device(name: str) -> str:
    """A device's name by that of one of its buffers."""
    return "host" if HOST_BUFFERS.match(name) else name
