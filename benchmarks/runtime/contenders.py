"""Steps of one network on this machine, by situate and by other tools, ready to be called."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import torch

import situate
from benchmarks.lib import child
from benchmarks.runtime.runtime_cases import Case, cpus, one_cpu, profiled
from benchmarks.runtime.served import Served
from situate.host.machine import usable_cpus

MICROBATCHES = 2
PIPELINED = "chain"
"""The network that is a sequence, of which torch.distributed.pipelining takes halves."""

OURS = "situate, auto, 2 devices"
WHOLE = "situate, 1 device, all threads"
ONE_THREAD = "PyTorch, 1 thread"
ALL_THREADS = "PyTorch, all threads"
PIPELINE = "torch.distributed.pipelining, 2 processes"
BALANCED = "accelerate, balanced map"
TORRENT = "TensorTorrent"
SAME_KERNELS = "TensorTorrent, PyTorch's kernels"

Step = Callable[[], object]


@dataclass(frozen=True)
class Contender:
    """A tool's step; None where it has none for this network and machine, which `note` explains."""

    name: str
    step: Step | None
    note: str


def contenders(case: Case, time_limit: float, seed: int, stack: ExitStack) -> Iterator[Contender]:
    """All but TensorTorrent; their processes end with `stack`."""
    everything = usable_cpus()
    yield Contender(ONE_THREAD, with_threads(1, case.unplaced()), "what a device has")
    yield Contender(ALL_THREADS, with_threads(everything, case.unplaced()), f"{everything} threads")
    yield _alone(case, "situate, 1 device", 1, stack)
    note = f"{everything} threads, a process of its own"
    yield Contender(WHOLE, apart(case, everything, stack), note)
    yield _ours(case, time_limit, seed, stack)
    yield _accelerate(case)
    yield Contender(
        BALANCED, None, "without a GPU get_balanced_memory changes no limit: auto's map"
    )
    if case.name == PIPELINED:
        yield _pipelined(case, stack)
    else:
        why = (
            "it takes stages that a person cuts; only the network that is a sequence has equal ones"
        )
        yield Contender(PIPELINE, None, why)


def with_threads(count: int, step: Step) -> Step:
    """The step, with so many threads for PyTorch's kernels."""

    def call() -> None:
        torch.set_num_threads(count)
        step()

    return call


def _alone(case: Case, name: str, threads: int, stack: ExitStack) -> Contender:
    """All of it on one device of so many threads, in this process."""
    cluster = one_cpu(threads)
    single = situate.solve(case.problem(cluster), "single").schedule
    step = stack.enter_context(case.placed(single, cluster))
    note = f"{threads} thread{'s' if threads > 1 else ''}"
    return Contender(name, with_threads(threads, lambda: step(*case.inputs)), note)


def apart(case: Case, threads: int, stack: ExitStack) -> Served:
    """The same in a process of its own, as TensorTorrent's is."""
    command = child.module(
        "benchmarks.runtime.alone",
        case.name,
        "training" if case.training else "inference",
        str(threads),
    )
    return stack.enter_context(Served([command], {"OMP_NUM_THREADS": str(threads)}))


def _ours(case: Case, time_limit: float, seed: int, stack: ExitStack) -> Contender:
    problem = case.problem(*profiled(case, cpus(2)))
    result = situate.solve(problem, time_limit=time_limit, seed=seed)
    step = stack.enter_context(case.placed(result.schedule, problem.cluster))
    used = len(result.devices_used)
    note = f"1 thread each; uses {used}, predicted {result.makespan:.4g} s"
    return Contender(OURS, lambda: step(*case.inputs), note)


def _accelerate(case: Case) -> Contender:
    """As `from_pretrained(device_map="auto")` makes the map, and `dispatch_model` applies it."""
    logging.getLogger("accelerate").setLevel(logging.ERROR)
    from accelerate import dispatch_model, infer_auto_device_map
    from accelerate.utils import get_balanced_memory

    model = case.copied()
    devices = infer_auto_device_map(model, get_balanced_memory(model))
    model = dispatch_model(model, devices)
    step = case.step_of(model)
    note = f"its map: {devices}; it knows one CPU, all of whose threads it has"
    return Contender("accelerate, auto map", with_threads(usable_cpus(), step), note)


def _pipelined(case: Case, stack: ExitStack) -> Contender:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    arguments = [case.name, str(MICROBATCHES)]
    commands = [
        child.module("benchmarks.runtime.pipelined", *arguments, str(rank), f"{folder}/store")
        for rank in range(2)
    ]
    served = stack.enter_context(Served(commands, {"OMP_NUM_THREADS": "1"}))
    return Contender(PIPELINE, served, f"halves, 1F1B, {MICROBATCHES} microbatches, gloo, 1 thread")


def torrent(case: Case, folder: Path, stack: ExitStack, *kernels: str) -> tuple[Served, int]:
    """TensorTorrent's step from a cold start, and the threads it has; `folder` is where it is
    installed, `kernels` see `benchmarks.runtime.torrent`."""
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    cache = stack.enter_context(tempfile.TemporaryDirectory())
    threads = usable_cpus()
    command = child.module("benchmarks.runtime.torrent", case.name, str(threads), *kernels)
    environment = {"PYTHONPATH": path, "TT_CACHE_DIR": cache, "OMP_NUM_THREADS": str(threads)}
    return stack.enter_context(Served([command], environment)), threads
