"""Analyses need the arrays of a schedule and nothing that users hold."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from situate.data.rules import RULES
from situate.schedule.arrays import ScheduleArrays
from situate.schedule.load import device_seconds
from situate.schedule.memory import peaks
from situate.schedule.schedule import Schedule
from situate.schedule.verify import verify
from situate.simulation.decoding import decode
from tests.oracle.problems import random_decision, random_problem


def test_analyses_of_the_arrays_are_those_of_the_schedule():
    problem = replace(random_problem(7), rules=RULES["situate"])
    placement = random_decision(problem, 7).placement
    order = np.array(problem.graph.order, np.int32)
    schedule = decode(problem, placement, order, "eager")
    arrays = ScheduleArrays(
        **{field.name: getattr(schedule, field.name) for field in fields(schedule)}
    )
    verify(arrays, problem, allow_overflow=True)
    assert (peaks(arrays, problem) == schedule.peak).all()
    assert (device_seconds(arrays, problem) == schedule.busy(problem)).all()


def test_a_schedule_adds_no_field():
    assert [field.name for field in fields(Schedule)] == [f.name for f in fields(ScheduleArrays)]
