"""The machine that placements are measured on, for a command, and what it says of plans."""

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
"""Number of times that compared plans are run, in turn: a disturbance then slows all of them."""


@contextmanager
def machine_for(
    options: LearningOptions, problem: Problem, model: str, optimizer: str | None
) -> Iterator[Hardware | None]:
    """This machine, with the model ready to run, or the workers' where hardware was asked for; else
    None.

    Raises:
        MissingExtra: PyTorch is not installed.
        SituateError: the model is none that runs, or the cluster is not here.
    """
    if not options.on_hardware:
        yield None
        return
    make = _here if options.workers is None else _by_workers
    with make(options, problem, model, optimizer) as machine:
        yield machine
        _say(machine.log)


@contextmanager
def _here(
    options: LearningOptions, problem: Problem, model: str, optimizer: str | None
) -> Iterator[RealMachine]:
    from situate.evaluators.hardware.machine import MEASUREMENT_LIMIT_SECONDS, RealMachine
    from situate.runtime.subject import find_subject

    with working(f"building {model}"):
        subject = find_subject(model, optimizer, problem.graph.slices, problem.graph.recompute)
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


def measured(results: Sequence[Result], machine: Hardware | None) -> list[Result]:
    """The results, with what their plans take on the machine: the median of `ROUNDS`."""
    if machine is None:
        return list(results)
    with working("measuring the plans"):
        rounds = [
            [machine.run(result.schedule).seconds for result in results] for _ in range(ROUNDS)
        ]
    return [
        replace(result, measured=median(seconds))
        for result, seconds in zip(results, zip(*rounds, strict=True), strict=True)
    ]


def _say(log: Sequence[Measurement]) -> None:
    """Say how exact the measurements were, and why some failed."""
    ran = [one for one in log if one.outcome == "ok"]
    if ran:
        known = [one.error for one in ran if isfinite(one.error)]
        steps, error = median(one.steps for one in ran), median(known or [inf])
        note(
            f"measured {plural(len(ran), 'time')}: {steps:g} steps each, standard "
            f"error {share_text(error)} (medians)"
        )
    for outcome, failure in {one.outcome: one.failure for one in reversed(log)}.items():
        if outcome != "ok":
            count = sum(one.outcome == outcome for one in log)
            note(f"{outcome.replace('_', ' ')}, {plural(count, 'time')}, the first: {failure}")
