"""Stage: copies between the host and the device, by size, direction and kind of host memory.

`pinned` memory is locked, so that the device reads and writes it by itself; `pageable` is not.
`both` are a copy each way at once, on two streams.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.gpu.hardware import finish
from benchmarks.gpu.process import Context, plain

SIZES = (64, 1 << 12, 1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28)
TINY_SIZES = (64, 1 << 16)

BLOCK = 1 << 20
"""Random bytes of a copy, which repeat: to draw them takes longer than to copy them."""

COPIES, SECONDS_A_SIZE = 25, 0.4
"""Copies of each size, and about the seconds that they may take; three at least."""


def measure(context: Context) -> None:
    """Median seconds of a copy; latency and bandwidth of each direction and kind of memory."""
    context.take_device()
    rows: list[dict[str, Any]] = []
    for memory in ("pinned", "pageable"):
        for direction in ("to device", "to host", "both"):
            for size in TINY_SIZES if context.tiny else SIZES:
                rows.append(_row(context, memory, direction, size))
            context.note(copies=rows, links=summary(rows))


def _row(context: Context, memory: str, direction: str, size: int) -> dict[str, Any]:
    copy = _copy(context, memory, direction, size)
    seconds = _seconds(context, copy)
    moved = size * (2 if direction == "both" else 1)
    return {
        "memory": memory,
        "direction": direction,
        "bytes": size,
        "seconds": statistics.median(seconds),
        "fastest": min(seconds),
        "bandwidth": moved / statistics.median(seconds),
    }


def _copy(context: Context, memory: str, direction: str, size: int) -> Callable[[], object]:
    """The function that queues a copy, of random bytes."""
    pinned = memory == "pinned" and context.on_gpu
    block = torch.randint(255, (min(size, BLOCK),), dtype=torch.uint8)
    hosts = [block.repeat(size // len(block)) for _ in range(2)]
    first, second = (host.pin_memory() if pinned else host for host in hosts)
    here, there = (torch.empty(size, dtype=torch.uint8, device=context.device) for _ in range(2))
    if direction == "to device":
        return lambda: here.copy_(first, non_blocking=pinned)
    if direction == "to host":
        return lambda: first.copy_(here, non_blocking=pinned)
    if not context.on_gpu:
        return lambda: (here.copy_(first), second.copy_(there))
    up, down = (torch.cuda.Stream() for _ in range(2))  # type: ignore[no-untyped-call]

    def both() -> None:
        with torch.cuda.stream(up):
            here.copy_(first, non_blocking=pinned)
        with torch.cuda.stream(down):
            second.copy_(there, non_blocking=pinned)

    return both


def _seconds(context: Context, copy: Callable[[], object]) -> list[float]:
    """Seconds of single copies, from the call until the device says that all is there."""
    seconds: list[float] = []
    copy()
    finish(context)
    end = time.perf_counter() + SECONDS_A_SIZE
    while len(seconds) < 3 or (len(seconds) < COPIES and time.perf_counter() < end):
        began = time.perf_counter()
        copy()
        finish(context)
        seconds.append(time.perf_counter() - began)
    return seconds


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """By memory and direction: the seconds of the smallest copy, and the bytes a second of the
    largest beside these."""
    kinds = dict.fromkeys((row["memory"], row["direction"]) for row in rows)
    links = []
    for kind in kinds:
        mine = [row for row in rows if (row["memory"], row["direction"]) == kind]
        small, large = min(mine, key=_size), max(mine, key=_size)
        seconds = max(large["seconds"] - small["seconds"], 1e-9)
        ways = 2 if kind[1] == "both" else 1
        links.append(
            {
                "memory": kind[0],
                "direction": kind[1],
                "latency": small["seconds"],
                "bandwidth": ways * large["bytes"] / seconds,
            }
        )
    return plain(links)  # type: ignore[no-any-return]


def _size(row: dict[str, Any]) -> int:
    return int(row["bytes"])
