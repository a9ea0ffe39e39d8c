"""Learning from this machine: Post places the CIFAR-10 CNN on two CPU devices, which run it.

The search is killed by `kill -9` halfway and goes on from its study; before that, the devices are
killed under one placement and stopped under another. In the end its plan, that of `single` and that
of `auto` (planned with measured costs) run step by step in turn.
"""

from __future__ import annotations

import argparse
import copy
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import astuple
from functools import partial
from pathlib import Path
from threading import Timer

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib import child
from benchmarks.lib.record import Row, Target, record
from benchmarks.runtime.runtime_cases import Turns, in_turn
from situate.data.cluster import Cluster
from situate.data.costs import Costs
from situate.data.problem import Problem
from situate.evaluators.hardware.machine import RealMachine
from situate.evaluators.measurements import OUTCOMES, Measurements
from situate.host.discover import discover, to_toml
from situate.profiling.profile import profile
from situate.results.plan import Plan
from situate.runtime.hardware import real_devices
from situate.runtime.model_state import optimizers
from situate.runtime.programs.placed import place
from situate.runtime.step import PlacedStep
from situate.runtime.subject import Subject, find_subject
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import order_of
from situate.solvers import solve
from situate.solvers.learned.learner import Learning
from situate.study import Study

MODEL = "cifar_cnn"
LIMIT = 20.0
WORST = 1.02
LONGEST = 15 * 60.0
AFTER = 1.0
"""Seconds into its measurement at which a placement is harmed."""

TIMES = 8
"""Number of times all plans are set up anew in the end: one plan's step takes a few percent more or
less by where its processes and tensors lie."""


def main(arguments: list[str] | None = None) -> None:
    """Learn, be killed, go on, compare and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=240, help="placements, at least 24")
    parser.add_argument(
        "--seconds", type=float, default=240.0, help="that the plans run in the end"
    )
    parser.add_argument("--folder", type=Path, help="keep cluster, costs, study and plan here")
    parser.add_argument("--search", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.search:
        _search(options.folder, options.samples)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        _measure(folder, options)


def _measure(folder: Path, options: argparse.Namespace) -> None:
    cluster = discover(2)
    (folder / "cluster.toml").write_text(to_toml(cluster))
    profile(MODEL, cluster).costs.write(folder / "costs.json")
    began = time.perf_counter()
    survivors = _killed_halfway(folder, options.samples)
    before = Study.read(folder / "study").measurements
    subprocess.run(_command(folder, options.samples), check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    after = Study.read(folder / "study").measurements
    plans = list(_plans(folder, options.seconds))
    search: Row = {
        "samples": len(after),
        "kept_through_kill": len(before),
        "failures": int((~after.ok).sum()),
        "first_60_best_s": float(after.seconds[:60].min()),
        "best_s": float(after.seconds.min()),
        "wall_s": seconds,
    }
    unchanged = np.array_equal(before.seconds, after.seconds[: len(before)])
    targets = list(_targets(plans, seconds, unchanged, survivors, after, options.samples))
    record("hardware_learning", {"search": [search], "plans": plans}, targets, options=options)


def _command(folder: Path, samples: int) -> list[str]:
    arguments = ("--search", f"--folder={folder}", f"--samples={samples}")
    return child.module("benchmarks.learning.hardware_learning", *arguments)


def _killed_halfway(folder: Path, samples: int) -> int:
    """Run the search and kill it; how many processes of devices run on."""
    with subprocess.Popen(_command(folder, samples), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if int(line) >= samples // 2:
                break
        time.sleep(AFTER)
        devices = _children(process.pid)
        process.send_signal(signal.SIGKILL)
    time.sleep(AFTER)
    return sum(map(_runs, devices))


def _runs(process: int) -> bool:
    """True if a process runs; one that ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(word) for task in tasks for word in task.read_text().split()]


def _subject(folder: Path) -> tuple[Subject, Problem]:
    subject = find_subject(MODEL)
    cluster, costs = Cluster.read(folder / "cluster.toml"), Costs.read(folder / "costs.json")
    return subject, Problem(subject.program.graph, cluster, costs=costs)


class Harmed:
    """A machine that is harmed while it measures two of the samples."""

    at_once, finalists = RealMachine.at_once, RealMachine.finalists

    def __init__(self, machine: RealMachine, samples: int) -> None:
        self._machine, self._signals = machine, _signals(samples)

    @property
    def name(self) -> str:
        """That of the machine."""
        return self._machine.name

    def measure(self, placements: NDArray[np.int32], first: int) -> Measurements:
        """One placement, or the finalists, whose number is that of no harmed one."""
        timer = Timer(AFTER, self._harm, [first])
        timer.start()
        result = self._machine.measure(placements, first)
        timer.cancel()
        timer.join()
        return result

    def _harm(self, number: int) -> None:
        if number in self._signals:
            for device in _children(os.getpid()):
                os.kill(device, self._signals[number])


def _signals(samples: int) -> dict[int, signal.Signals]:
    """By number of a sample, the messages to its devices."""
    return {samples // 8: signal.SIGKILL, samples // 3: signal.SIGSTOP}


def _search(folder: Path, samples: int) -> None:
    """Learn, telling how many samples there are after every batch."""
    subject, problem = _subject(folder)
    with RealMachine(problem, subject, LIMIT) as machine:
        learning = Learning(
            study=folder / "study",
            evaluator=Harmed(machine, samples),
            on_measured=lambda first, batch: print(first + len(batch), flush=True),
        )
        result = solve(problem, "post", evaluations=samples, learning=learning)
    result.plan.write(folder / "plan.json")


def _plans(folder: Path, seconds: float) -> Iterator[Row]:
    """The times of each plan's step, all of them in turn. The better of `single` and `auto` is the
    one whose median is less: that of every round would be the one with the luck."""
    subject, problem = _subject(folder)
    schedules = {name: solve(problem, name).schedule for name in ("single", "auto")}
    schedules["post"] = Plan.read(folder / "plan.json").schedule(problem)
    parts = [_turns(subject, problem, schedules.values(), seconds / TIMES) for _ in range(TIMES)]
    turns = Turns(*(np.concatenate(times) for times in zip(*map(astuple, parts), strict=True)))
    better = min((0, 1), key=turns.seconds)
    for k, (name, schedule) in enumerate(schedules.items()):
        low, high = np.quantile(turns.ratios(k, better), (0.25, 0.75))
        yield {
            "method": name,
            "devices": len(np.unique(schedule.placement)),
            "rounds": turns.rounds,
            "predicted_s": schedule.makespan,
            "measured_s": turns.seconds(k),
            "over_the_better": turns.ratio(k, better),
            "over_low": float(low),
            "over_high": float(high),
        }


def _turns(
    subject: Subject, problem: Problem, schedules: Iterable[Schedule], seconds: float
) -> Turns:
    with ExitStack() as stack:
        steps = [stack.enter_context(_placed(subject, problem, s)) for s in schedules]
        return in_turn([partial(step, *subject.caller_inputs) for step in steps], seconds)


def _placed(subject: Subject, problem: Problem, schedule: Schedule) -> PlacedStep:
    placed = place(
        subject.program, schedule.placement, order_of(problem, schedule).tolist(), problem.d
    )
    model = copy.deepcopy(subject.model)
    optimizer = optimizers.default_optimizer(subject.program.optimizer, list(model.parameters()))
    return PlacedStep(placed, model, optimizer, real_devices(problem.cluster), keep=False)


def _targets(
    plans: list[Row],
    seconds: float,
    unchanged: bool,
    survivors: int,
    after: Measurements,
    samples: int,
) -> Iterator[Target]:
    ratio = plans[-1]["over_the_better"]
    yield Target(
        "the learnt plan over the better of single and auto, as measured",
        f"at most {WORST:g}",
        f"{ratio:.3f}",
        ratio <= WORST,
    )
    yield Target(
        "samples kept through kill -9",
        "all, as they were",
        "all" if unchanged else "others",
        unchanged,
    )
    yield Target("processes of devices left after kill -9", "0", str(survivors), survivors == 0)
    for number, sent in _signals(samples).items():
        wanted = "crash" if sent == signal.SIGKILL else "timeout"
        result = OUTCOMES[after.outcome[number]]
        yield Target(f"devices that get {sent.name}", wanted, result, result == wanted)
    yield Target(
        "seconds of the whole search", f"under {LONGEST:g}", f"{seconds:.0f}", seconds < LONGEST
    )


if __name__ == "__main__":
    main()
