"""Placements measured on real devices, for a command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import inf, isfinite
from statistics import median
from typing import TYPE_CHECKING

from situate.cli.learning_options import LearningOptions
from situate.cli.terminal import note, working
from situate.data.problem import Problem
from situate.report.text import plural
from situate.report.units import share_text, time_text
from situate.results.result import Result

if TYPE_CHECKING:
    from situate.evaluators.hardware.machine import Measurement, RealMachine
    from situate.evaluators.hardware.machines import RealMachines

    Hardware = RealMachine | RealMachines

ROUNDS = 3
"""Runs of each plan. Plans take turns, so that a disturbance slows all of them."""


@contextmanager
def machine_for(
    options: LearningOptions, problem: Problem, model: str, optimizer: str | None
) -> Iterator[Hardware | None]:
    """The machine that measures placements, with the model ready to run; None for the simulator.

    Raises:
        MissingExtra: PyTorch is not installed.
        SituateError: the model cannot run, or the machine lacks the cluster's devices.
    """
    if not options.on_hardware:
        yield None
        return
    make = _this_machine if options.workers is None else _by_workers
    with make(options, problem, model, optimizer) as machine:
        yield machine
        _note_measurements(machine.log)


@contextmanager
def _this_machine(
    options: LearningOptions, problem: Problem, model: str, optimizer: str | None
) -> Iterator[RealMachine]:
    from situate.evaluators.hardware.machine import MEASUREMENT_LIMIT_SECONDS, RealMachine
    from situate.runtime.subject import find_subject

    with working(f"building {model}"):
        subject = find_subject(
            model, optimizer, problem.graph.slices, problem.graph.recompute, problem.graph.cuts
        )
    with RealMachine(problem, subject, options.timeout or MEASUREMENT_LIMIT_SECONDS) as machine:
        yield machine


@contextmanager
def _by_workers(
    options: LearningOptions, problem: Problem, model: str, optimizer: str | None
) -> Iterator[RealMachines]:
    from situate.evaluators.hardware.machine import MEASUREMENT_LIMIT_SECONDS
    from situate.evaluators.hardware.machines import RealMachines

    assert options.workers is not None
    limit = options.timeout or MEASUREMENT_LIMIT_SECONDS
    with RealMachines(
        problem, model, options.workers, optimizer=optimizer, limit=limit, steps=options.steps
    ) as machines:
        yield machines
        for worker in machines.met:
            note(f"the reference step took {time_text(worker.reference)} by {worker.place}")
        if failures := machines.counts.failures_text():
            note(failures)


def with_measurements(results: Sequence[Result], machine: Hardware | None) -> list[Result]:
    """The results, with the median step time of their plans on the machine, if there is one."""
    if machine is None:
        return list(results)
    with working("measuring the plans"):
        # Transposed below: the median over rounds of each result.
        rounds = [
            [machine.run(result.schedule).seconds for result in results] for _ in range(ROUNDS)
        ]
    return [
        replace(result, measured=median(seconds))
        for result, seconds in zip(results, zip(*rounds, strict=True), strict=True)
    ]


def _note_measurements(log: Sequence[Measurement]) -> None:
    """Report the precision of measurements, and the reasons of failures."""
    successes = [one for one in log if one.outcome == "ok"]
    if successes:
        errors = [one.error for one in successes if isfinite(one.error)]
        steps, error = median(one.steps for one in successes), median(errors or [inf])
        note(
            f"measured {plural(len(successes), 'time')}: {steps:g} steps each, standard "
            f"error {share_text(error)} (medians)"
        )
    for outcome, failure in {one.outcome: one.failure for one in reversed(log)}.items():
        if outcome != "ok":
            count = sum(one.outcome == outcome for one in log)
            note(f"{outcome.replace('_', ' ')}, {plural(count, 'time')}, the first: {failure}")
