"""A few devices that stand for all of a cluster."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.data.problem import Problem
from situate.language.training.layout import Layout, Run
from situate.language.training.steps.division import Division, equal_division
from situate.language.training.steps.graph import step_graph
from situate.language.training.steps.representatives import is_too_large, representatives
from situate.language.training.steps.site import Site, find_site
from situate.language.training.transformer import Transformer
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode
from tests.language.training.runs import LLAMA_8B, MIXTRAL, run_of

SMALL = replace(LLAMA_8B, layers=8)


def schedule_of(model: Transformer, run: Run, site: Site, division: Division) -> Schedule:
    """The schedule of a step in the order of its program."""
    step = step_graph(model, run, site, division)
    problem = Problem(step.graph, site.cluster)
    schedule = decode(problem, step.placement, step.order, "serial")
    schedule.verify(problem, allow_overflow=True)
    return schedule


# They take the seconds and the bytes of the whole step, here with all of its devices simulated.
@pytest.mark.parametrize(
    ("model", "run"),
    [
        (SMALL, run_of(dp=16, count=2, zero=1)),
        (SMALL, run_of("fsdp2", dp=16, count=2, zero=3)),
        (SMALL, run_of(dp=4, tp=4, count=2, zero=1, sp=True)),
        (SMALL, run_of(dp=8, pp=2, count=4, zero=0)),
        (SMALL, run_of(dp=4, pp=2, tp=2, vp=2, count=4, zero=1, sp=True)),
        (SMALL, run_of(dp=4, cp=2, tp=2, count=2, zero=1, sp=True, sequence=16384)),
        (replace(MIXTRAL, layers=4), run_of(dp=8, pp=2, ep=8, count=4, zero=1)),
    ],
)
def test_the_step_takes_as_long_and_as_much_as_on_all_devices(model, run):
    site = find_site("2x8xH100")
    division = equal_division(model, run.layout)
    part_site, part = representatives(site.machine, division)
    whole = schedule_of(model, run, site, division)
    few = schedule_of(model, run, part_site, part)
    assert few.makespan == pytest.approx(whole.makespan, rel=0.02)
    assert float(few.peak.max()) == pytest.approx(float(whole.peak.max()), rel=0.05)
    assert part.devices < division.devices


# Replicas go first, then devices of a replica.
def test_two_replicas_stand_for_all():
    machine = find_site("2x8xH100").machine
    division = equal_division(SMALL, Layout(dp=64, tp=4, pp=8, count=8))
    _, part = representatives(machine, division)
    assert (part.layout.dp, part.layout.tp, part.layout.pp) == (2, 4, 8)
    assert part.counts == (8, 8)
    assert part.priced == division.layout


def test_two_devices_of_a_replica_stand_for_all_if_need_be():
    division = equal_division(SMALL, Layout(dp=2, tp=8, cp=8, pp=8, count=128))
    _, part = representatives(find_site("2x8xH100").machine, division)
    assert (part.layout.tp, part.layout.cp) == (2, 2)


def test_each_device_keeps_its_share_of_the_network():
    machine = find_site("2x8xH100").machine
    division = equal_division(SMALL, Layout(dp=128, tp=4, count=8))
    site, _ = representatives(machine, division)
    hop = (0, 4)
    assert site.cluster.bandwidth[hop] == pytest.approx(machine.network / 2)
    assert site.machine == machine


# Only steps beyond the limits of graphs and clusters are made smaller.
@pytest.mark.parametrize(
    ("layout", "large"),
    [
        (Layout(dp=64, pp=2, count=16), False),
        (Layout(dp=512, count=1), True),
        (Layout(dp=2, tp=8, pp=8, vp=1, count=512), True),
    ],
)
def test_large_steps(layout, large):
    assert is_too_large(equal_division(SMALL, layout)) == large
