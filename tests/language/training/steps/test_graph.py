"""Steps as graphs: their time and their memory, simulated, against the prices of their layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.language.training.layout import Layout, Run
from situate.language.training.pricing import price
from situate.language.training.recipes import PRECISIONS, RECIPES, find_recipe
from situate.language.training.search import legal_layouts
from situate.language.training.steps.division import equal_division, unequal_division
from situate.language.training.steps.graph import StepGraph, step_graph
from situate.language.training.steps.site import find_site
from situate.language.training.transformer import Transformer
from situate.language.training.unequal import unequal_shares
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode, is_topological
from tests.language.training.runs import GPT, LLAMA_8B, MIXTRAL, run_of

H100 = find_site("h100-8")

SMALL = replace(LLAMA_8B, layers=8)

RUNS = {
    "1f1b": (SMALL, run_of(dp=2, pp=4, count=8, zero=1)),
    "interleaved": (SMALL, run_of(dp=2, pp=4, vp=2, count=8, zero=1)),
    "zero bubble": (SMALL, run_of(dp=2, pp=4, count=8, zero=1, schedule="zero-bubble")),
    "zero bubble, chunks": (
        SMALL,
        run_of("fsdp2", dp=2, pp=4, vp=2, count=8, zero=3, schedule="zero-bubble"),
    ),
    "zb-h2": (SMALL, run_of(dp=2, pp=4, count=8, zero=1, schedule="zero-bubble-h2")),
    "zb-v": (SMALL, run_of(dp=2, pp=4, vp=2, count=8, zero=1, schedule="zero-bubble-v")),
    "tied zb-v": (
        replace(SMALL, tied=True),
        run_of(pp=4, tp=2, vp=2, count=8, sp=True, schedule="zero-bubble-v"),
    ),
    "tensor": (SMALL, run_of(tp=8, count=2, sp=True)),
    "tensor in a pipeline": (SMALL, run_of(dp=2, tp=2, pp=2, count=4, sp=True, zero=1)),
    "context": (SMALL, run_of(dp=2, cp=2, tp=2, count=2, sp=True, zero=1)),
    "experts": (replace(MIXTRAL, layers=4), run_of(dp=8, ep=8, count=2, zero=1)),
    "sharded": (SMALL, run_of("fsdp2", dp=8, count=2, zero=3)),
    "gradients divided": (SMALL, run_of("deepspeed", dp=8, count=2, zero=2)),
    "replicas": (GPT, run_of("amp", dp=8, count=2, zero=0)),
    "full recompute": (SMALL, run_of(dp=2, pp=4, count=8, recompute="full", zero=1)),
}


def step_of(model: Transformer, run: Run) -> tuple[StepGraph, Problem, Schedule]:
    """A step on eight H100, its problem, and its schedule in the order of the programs."""
    step = step_graph(model, run, H100, equal_division(model, run.layout))
    problem = Problem(step.graph, H100.cluster)
    return step, problem, decode(problem, step.placement, step.order, "serial")


# Every layout is an ordinary problem, whose start follows the execution model.
@pytest.mark.parametrize("name", RUNS)
def test_a_step_is_a_valid_problem(name):
    step, problem, schedule = step_of(*RUNS[name])
    assert is_topological(problem, step.order)
    schedule.verify(problem)
    assert len(set(step.placement.tolist())) == 8


@pytest.mark.parametrize("name", RUNS)
def test_devices_run_their_programs(name):
    step, _, schedule = step_of(*RUNS[name])
    for device in set(step.placement.tolist()):
        own = np.flatnonzero(step.placement == device)
        assert (np.diff(schedule.start[own]) >= 0).all()


# Without a pipeline, simulated and priced seconds are of the same ops, one after the other.
def test_a_tensor_parallel_step_takes_its_price():
    model, run = RUNS["tensor"]
    _, _, schedule = step_of(model, run)
    assert schedule.makespan == pytest.approx(price(model, run, H100.machine).seconds, rel=1e-3)


# Devices of a sequence are replicas too, whose gradients overlap with passes in another way.
def test_a_context_parallel_step_is_near_its_price():
    run = run_of(cp=8, sequence=32768)
    _, _, schedule = step_of(SMALL, run)
    assert schedule.makespan == pytest.approx(price(SMALL, run, H100.machine).seconds, rel=0.03)


@pytest.mark.parametrize("name", RUNS)
def test_simulated_seconds_are_near_the_price(name):
    model, run = RUNS[name]
    _, _, schedule = step_of(model, run)
    assert schedule.makespan == pytest.approx(price(model, run, H100.machine).seconds, rel=0.15)


# The simulated peak of the fullest device is that of the formulas.
@pytest.mark.parametrize("name", RUNS)
def test_the_simulated_peak_is_the_price_s(name):
    model, run = RUNS[name]
    _, _, schedule = step_of(model, run)
    figures = price(model, run, H100.machine)
    expected = figures.allocated + figures.roles["communication"]
    assert float(schedule.peak.max()) == pytest.approx(expected, rel=0.08)


# Keys and values go around a ring before attention, and their gradients behind it.
def test_context_parallelism_sends_keys_and_values():
    step, _, _ = step_of(SMALL, run_of(cp=4, tp=2, sp=True, sequence=32768))
    ops, devices = step.graph.ops, step.placement
    hops = {
        (ops[tensor.producer].name.split(".")[-2], int(devices[reader] - devices[tensor.producer]))
        for tensor in step.graph.tensors
        if tensor.name.endswith(".context")
        for reader in tensor.consumers
    }
    assert hops == {("forward", 2), ("forward", -6), ("backward", 2), ("backward", -6)}
    assert {op.kind for op in ops} >= {"keys.forward", "keys.backward"}


# A zero-bubble order waits less than 1F1B, and chunks less than whole stages.
def test_schedules_rank_as_their_bubbles():
    seconds = {name: step_of(*RUNS[name])[2].makespan for name in ("1f1b", "interleaved")}
    late = step_of(*RUNS["zero bubble"])[2].makespan
    assert seconds["interleaved"] < seconds["1f1b"]
    assert late < seconds["1f1b"]


# Unequal GPUs.
@pytest.mark.parametrize("way", ["layers", "samples"])
def test_unequal_shares_are_steps_too(way):
    site = find_site("unequal-24-12")
    run = run_of("amp", 1024)
    model = replace(GPT, layers=24)
    rows = unequal_shares(model, run, site.machine, 16)
    row = next(row for row in rows if row.way == way and not row.equal)
    step = step_graph(model, run, site, unequal_division(model, row, 16))
    problem = Problem(step.graph, site.cluster)
    schedule = decode(problem, step.placement, step.order, "serial")
    schedule.verify(problem)
    assert schedule.makespan == pytest.approx(row.seconds, rel=0.3)
    # A device's seconds are those of its own model.
    assert len(step.graph.ops[-1].seconds or {}) == 2


def test_one_gpu_is_a_step_too():
    site = find_site("RTX 4090")
    run = Run(Layout(count=4), 1024, run_of("amp").recipe)
    step = step_graph(GPT, run, site, equal_division(GPT, run.layout))
    schedule = decode(Problem(step.graph, site.cluster), step.placement, step.order, "serial")
    assert schedule.makespan == pytest.approx(price(GPT, run, site.machine).seconds, rel=1e-6)


# All layouts of the search, by recipe: a sample of them.
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("model", [replace(LLAMA_8B, layers=8), replace(MIXTRAL, layers=8)])
def test_any_legal_layout_is_a_valid_problem(model, recipe):
    run = run_of(recipe, 2048)
    table = legal_layouts(model, run, H100.machine, 24)
    for i in np.random.default_rng(0).permutation(len(table))[:5]:
        layout = table.layout(int(i))
        _, problem, schedule = step_of(model, replace(run, layout=layout))
        schedule.verify(problem, allow_overflow=True)
        figures = price(model, replace(run, layout=layout), H100.machine)
        expected = figures.allocated + figures.roles["communication"]
        assert float(schedule.peak.max()) == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_precision_has_a_step(precision):
    run = Run(Layout(dp=8, zero=1, count=2), 1024, find_recipe(None, precision, None))
    step, problem, schedule = step_of(GPT, run)
    schedule.verify(problem)
    assert {op.dtype for op in step.graph.ops} == {PRECISIONS[precision]}


def test_equal_layouts_have_equal_graphs():
    model, run = RUNS["1f1b"]
    assert step_of(model, run)[0].graph.hash == step_of(model, run)[0].graph.hash
