"""Remedies that are named were tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situate.cli.remedy import remedy
from situate.writers import situate_json
from tests.writers.layered import network


@pytest.fixture
def scattered(situate, pair) -> str:
    """A plan of six layers that go from one device of the pair to the other and back."""
    situate_json.write(network().graph, "net.json")
    situate("plan", "net.json", "--cluster", pair, "--method", "single", "--out", "plan.json")
    plan = json.loads(Path("plan.json").read_text())
    plan["placement"] |= {"model.layers.2": "gpu1", "model.layers.4": "gpu1"}
    plan["placement"] |= {"model.layers.3": "gpu0", "model.layers.5": "gpu0"}
    Path("plan.json").write_text(json.dumps(plan))
    return "plan.json"


@pytest.mark.parametrize("target", ["torchtitan", "vllm", "megatron"])
def test_the_remedy_of_a_refused_plan_works(situate, pair, scattered, target):
    options = ("--cluster", pair, "--to", target, "--out", "out")
    run = situate("export", "net.json", scattered, *options)
    assert (run.status, Path("out").exists()) == (2, False)
    assert "goes back to 'gpu0'" in run.err
    remedy = run.err.strip().partition(": plan it with ")[2].split()
    made = situate("plan", "net.json", "--cluster", pair, *remedy, "--out", "new.json")
    assert made.status == 0
    assert situate("export", "net.json", "new.json", *options).status == 0


def test_a_script_of_llama_cpp_needs_none(situate, pair, scattered):
    options = ("--cluster", pair, "--to", "llamacpp", "--out", "out")
    assert situate("export", "net.json", scattered, *options).err == "wrote out\n"
    assert "-ot 'blk" in Path("out").read_text()


def test_the_method_is_named_that_gives_a_pipeline_which_fits():
    assert remedy(network(memory=80)) == "plan it with --method pipeline"


def test_a_pipeline_that_would_not_fit_is_no_remedy():
    problem = network(kinds=("gpu", "gpu", "cpu"), memory=30)
    assert remedy(problem).startswith("the best pipeline that was found does not fit either (gpu")


def test_without_a_list_of_layers_there_is_none():
    assert remedy(network(("a", "b"))).startswith("no plan of whole runs of layers was found")
