"""Plans of paced pipelines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers.budget import Budget
from situate.solvers.heuristics.baselines import single
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.paced_offering import offer_paced_pipelines
from tests.solvers.families import chain, devices
from tests.solvers.slice_pipelines.uniform import uniform
from tests.solvers.slices import sliced


def planned(problem: Problem) -> Search:
    search = Search(problem, budget=Budget(evaluation_limit=500), threads=1)
    single(search)
    offer_paced_pipelines(search)
    return search


def test_a_step_that_takes_its_batch_whole_is_refused():
    with pytest.raises(SituateError, match="takes its batch whole"):
        planned(Problem(chain(3), devices(1, 1)))


def test_stages_on_all_devices_beat_one_device():
    problem = uniform(4, 8, chunks=2)
    search = planned(problem)
    best = search.incumbent
    best.schedule.verify(problem)
    assert best.feasible
    assert len(np.unique(best.placement)) > 1
    assert best.value < 0.5 * problem.seconds.min(axis=1).sum()


@pytest.mark.parametrize("memory", [24, 40])
def test_plans_fit_little_memory(memory: int):
    problem = uniform(2, 6, chunks=2, memory=memory)
    assert planned(problem).incumbent.feasible


def test_cpus_may_hold_and_update_parameters_to_make_room():
    graph = sliced(4, 4, 4, 4, update=0.1, held=(40, 40))
    cluster = devices(1, 1, memory=62)
    cpu = devices(1, memory=10_000).devices[0]
    spare = structs.replace(cpu, name="host", kind="cpu")
    problem = Problem(graph, replace(cluster, devices=(*cluster.devices, spare)))
    search = planned(problem)
    assert search.incumbent.feasible
