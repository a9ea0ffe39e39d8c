"""Remedies that are named were tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situate.cli import remedy as module
from situate.cli.remedy import one_of_each, pipeline
from situate.data import graph_json
from situate.report.slices.stages import NotAPipeline
from tests.writers.layered import network
from tests.writers.slices.staged import on, staged, staged_plan


@pytest.fixture
def scattered(situate, pair) -> str:
    """A plan of six layers that go from one device of the pair to the other and back."""
    graph_json.write(network().graph, "net.json")
    situate("plan", "net.json", "--cluster", pair, "--method", "single", "--out", "plan.json")
    plan = json.loads(Path("plan.json").read_text())
    plan["placement"] |= {"model.layers.2": "gpu1", "model.layers.4": "gpu1"}
    plan["placement"] |= {"model.layers.3": "gpu0", "model.layers.5": "gpu0"}
    Path("plan.json").write_text(json.dumps(plan))
    return "plan.json"


# A remedy is tried before it is named.
@pytest.mark.parametrize("target", ["torchtitan", "vllm", "megatron"])
def test_the_remedy_of_a_refused_plan_works(situate, pair, scattered, target):
    options = ("--cluster", pair, "--to", target, "--out", "out")
    run = situate("export", "net.json", scattered, *options)
    assert (run.status, Path("out").exists()) == (2, False)
    assert "goes back to 'gpu0'" in run.err
    remedy = run.err.strip().partition(": plan it with ")[2].split()
    second = situate("plan", "net.json", "--cluster", pair, *remedy, "--out", "new.json")
    assert second.status == 0
    assert situate("export", "net.json", "new.json", *options).status == 0


def test_a_script_of_llama_cpp_needs_none(situate, pair, scattered):
    options = ("--cluster", pair, "--to", "llamacpp", "--out", "out")
    assert situate("export", "net.json", scattered, *options).err == "wrote out\n"
    assert "-ot 'blk" in Path("out").read_text()


def test_the_method_is_named_that_gives_a_pipeline_which_fits():
    assert pipeline(network(memory=80)) == "plan it with --method pipeline"


def test_a_pipeline_that_would_not_fit_is_no_remedy():
    problem = network(kinds=("gpu", "gpu", "cpu"), memory=30)
    assert pipeline(problem).startswith("the best pipeline does not fit either (gpu")


def test_slices_that_are_data_parallel_go_to_accelerate():
    problem = on(staged(2))
    plan = staged_plan(problem, [0] * 6)
    plan.placement[["slice1" in op.name for op in problem.graph.ops]] = 1
    advice = module.remedy(problem, plan, NotAPipeline("no pipeline"))
    assert advice.startswith("the plan is data parallel: each of gpu0, gpu1 runs the whole model")
    assert advice.endswith(": export it to accelerate")


def test_the_method_is_named_that_gives_a_pipeline_of_slices():
    assert pipeline(on(staged(2))) == "plan it with --method one_f_one_b"


def test_without_a_list_of_layers_there_is_none():
    assert pipeline(network(("a", "b"))).startswith("no method places whole runs of layers")


@pytest.fixture
def two_gpus(situate, monkeypatch) -> str:
    """A cluster of two GPUs and a CPU; `p.json` is a plan of `model.onnx` for both GPUs."""
    monkeypatch.setattr(module, "TIME_LIMIT", 0.3)
    pytest.importorskip("onnx")
    from tests.readers.models import convolution, loaded

    Path("model.onnx").write_bytes(loaded(convolution()).SerializeToString())
    Path("two.toml").write_text(MACHINE.format(memory="1 GiB"))
    situate("plan", "model.onnx", "--cluster", "two.toml", "--method", "single", "--out", "p.json")
    plan = json.loads(Path("p.json").read_text())
    plan["placement"] = dict.fromkeys(plan["placement"], "b") | {"c": "a"}
    Path("p.json").write_text(json.dumps(plan))
    return "two.toml"


MACHINE = """
name = "two"
[[devices]]
name = "a"
memory = "{memory}"
flops = {{ float32 = 1e9 }}
bandwidth = 1e9
[[devices]]
name = "b"
memory = "2 GiB"
flops = {{ float32 = 1e9 }}
bandwidth = 1e9
[[devices]]
name = "host"
kind = "cpu"
flops = {{ float32 = 1e6 }}
bandwidth = 1e9
[[links]]
from = "a"
to = "b"
bandwidth = 1e9
[[links]]
from = "host"
to = "*"
bandwidth = 1e9
"""


def test_onnx_runtime_is_given_a_cluster_that_was_tried(situate, two_gpus):
    options = ("--to", "onnxruntime", "--out", "out.onnx")
    run = situate("export", "model.onnx", "p.json", "--cluster", two_gpus, *options)
    assert run.status == 2
    assert (
        "one gpu device: plan on a cluster with one device of each kind, such as b, host" in run.err
    )
    text = MACHINE.format(memory="1 GiB")
    one = (
        text[: text.index('[[devices]]\nname = "a"')]
        + text[text.index('[[devices]]\nname = "b"') :]
    )
    one = one[: one.index('[[links]]\nfrom = "a"')] + one[one.index('[[links]]\nfrom = "host"') :]
    Path("one.toml").write_text(one)
    plan = ("--cluster", "one.toml", "--evaluations", "200", "--out", "one.json")
    assert situate("plan", "model.onnx", *plan).status == 0
    run = situate("export", "model.onnx", "one.json", "--cluster", "one.toml", *options)
    assert run.status == 0
    assert run.err.endswith("wrote out.onnx\n")


def test_one_device_of_each_kind_on_which_nothing_fits_is_no_remedy(monkeypatch):
    monkeypatch.setattr(module, "TIME_LIMIT", 0.3)
    problem = network(kinds=("gpu", "gpu"), memory=50)
    assert one_of_each(problem) == (
        "the best plan on one device of each kind (gpu0) does not fit either (gpu0 by 56 B)"
    )
