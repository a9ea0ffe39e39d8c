"""Stage: the seconds to start an op that computes next to nothing."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch

from benchmarks.gpu.hardware import Call, between_events, finish, wall_seconds
from benchmarks.gpu.process import Context

OPS, ROUNDS = 1000, 7


def measure(context: Context) -> None:
    """For each op: the host's seconds to queue it, the seconds of one of many in a row, and those
    of one alone with the wait for it; then a graph of CUDA's, replayed."""
    context.take_device()
    rows = [_row(context, name, call) for name, call in calls(context).items()]
    context.note(launches=rows)
    if context.on_gpu:
        call = calls(context)["aten.add_"]
        context.note(
            between_events=statistics.median(between_events(context, call) for _ in range(101))
        )
        context.attempt("graph", lambda: context.note(replayed=_replayed(context)))


def calls(context: Context) -> dict[str, Call]:
    """Ops on tensors of a few numbers, by kind."""
    x, y = torch.ones(2, 16, device=context.device)
    table = torch.ones(16, 16, device=context.device)
    return {
        "aten.add_": lambda: x.add_(1.0),
        "aten.relu": lambda: torch.relu(x),
        "aten.mm": lambda: torch.mm(table, table),
        "aten.sum": lambda: x.sum(),
        "aten.copy_": lambda: y.copy_(x),
        "empty": lambda: torch.empty(16, device=context.device),
    }


def _row(context: Context, name: str, call: Call) -> dict[str, Any]:
    ops = OPS // 10 if context.tiny else OPS
    with torch.inference_mode():
        wall_seconds(context, call, ops)
        queued = [_queueing(context, call, ops) for _ in range(ROUNDS)]
        rows = [wall_seconds(context, call, ops) for _ in range(ROUNDS)]
        single = [wall_seconds(context, call) for _ in range(ops // 5)]
    return {
        "op": name,
        "queue_seconds": statistics.median(queued) / ops,
        "row_seconds": statistics.median(rows) / ops,
        "single_seconds": statistics.median(single),
    }


def _queueing(context: Context, call: Call, ops: int) -> float:
    """The host's seconds for so many calls, however long the device goes on after them."""
    finish(context)
    began = time.perf_counter()
    for _ in range(ops):
        call()
    return time.perf_counter() - began


def _replayed(context: Context) -> float:
    """Seconds of an op in a graph of many that is replayed as a whole."""
    x, graph = torch.ones(16, device=context.device), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(OPS):
            x.add_(1.0)
    wall_seconds(context, graph.replay)
    return statistics.median(wall_seconds(context, graph.replay) for _ in range(ROUNDS)) / OPS
