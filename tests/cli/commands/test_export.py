"""`situate export`."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from msgspec import structs

from situate.cli.commands.export import TARGETS
from situate.data import graph_json
from tests.cli.conftest import diamond
from tests.writers.layered import network


@pytest.fixture
def plan(situate, model, pair) -> str:
    """A plan for the diamond on the pair."""
    situate("plan", model, "--cluster", pair, "--out", "plan.json", "--evaluations", "200")
    return "plan.json"


# Every target has a writer and gets a file.
@pytest.mark.parametrize(
    ("target", "package"), [("perfetto", "perfetto"), ("accelerate", None), ("dot", None)]
)
def test_every_target_is_written(situate, model, pair, plan, target, package):
    if package is not None:
        pytest.importorskip(package)
    run = situate("export", model, plan, "--cluster", pair, "--to", target, "--out", "out")
    assert run.status == 0, run.err
    assert Path("out").stat().st_size > 0


@pytest.mark.parametrize(
    ("target", "network"),
    [("vllm", "gpt2"), ("megatron", "gpt2"), ("llamacpp", "gpt2"), ("torchtitan", "llama_7b")],
)
def test_a_pipeline_is_written(situate, target, network):
    situate("plan", network, "--cluster", "h100-8", "--method", "expert", "--out", "plan.json")
    run = situate("export", network, "plan.json", "--to", target, "--out", "out")
    assert run.status == 0
    own = "warning: of the script: "  # llama.cpp has the embedding on the CPU
    assert run.err.startswith(own if target == "llamacpp" else "wrote out\n")
    assert "8" in Path("out").read_text()


TRAINS = "warning: the plan is of a training step, and {} infers: plan {}:inference\n"


# Warnings about plans that a tool can run only in part.
@pytest.mark.parametrize("target", ["vllm", "llamacpp", "megatron"])
def test_a_step_that_trains_is_not_for_tools_that_infer(situate, target):
    situate("plan", "gpt2", "--cluster", "h100-8", "--method", "expert", "--out", "plan.json")
    run = situate("export", "plan.json", "--to", target, "--out", "out")
    warned = run.err.endswith(f"wrote out\n{TRAINS.format(target, 'gpt2')}")
    assert (run.status, warned) == (0, target != "megatron")


@pytest.mark.parametrize("last", ["forward", "update"])
def test_a_file_of_a_step_that_infers_is_for_tools_that_do(situate, pair, last):
    graph = network().graph
    ops = (*graph.ops[:-1], structs.replace(graph.ops[-1], phase=last))
    graph_json.write(replace(graph, ops=ops), "layers.json")
    cluster = ("--cluster", pair)
    situate("plan", "layers.json", *cluster, "--method", "pipeline", "--out", "plan.json")
    run = situate("export", "layers.json", "plan.json", *cluster, "--to", "vllm", "--out", "out")
    assert run.status == 0, run.err
    assert run.err.endswith(TRAINS.format("vllm", "MODEL")) == (last == "update")


def test_a_plan_that_does_not_fit_is_written_with_a_warning(situate, model, tight_pair):
    situate("plan", model, "--cluster", tight_pair, "--method", "single", "--out", "plan.json")
    options = ("--cluster", tight_pair, "--to", "dot", "--out", "out")
    run = situate("export", model, "plan.json", *options)
    assert run.status == 0
    assert run.err.startswith("wrote out\nwarning: the plan does not fit: ")


# A plan stands alone if it names its model.
def test_a_plan_alone_names_its_network_and_its_optimizer(situate):
    pytest.importorskip("torch")
    options = ("--cluster", "k80-2", "--optimizer", "adam", "--method", "single")
    assert situate("plan", "cifar_cnn", *options, "--out", "plan.json").status == 0
    run = situate("export", "plan.json", "--to", "dot", "--out", "out")
    assert (run.status, run.err) == (0, "wrote out\n")


def test_a_model_alone_is_refused(situate):
    run = situate("export", "gpt2", "--to", "dot", "--out", "out")
    assert run.status == 2
    assert "give the plan too: situate export gpt2 PLAN --to dot --out out" in run.err


def test_a_plan_alone_that_is_not_there_is_named(situate):
    run = situate("export", "nosuchplan.json", "--to", "vllm", "--out", "out")
    assert (run.status, run.err) == (2, "error: nosuchplan.json: no such file\n")


def test_a_plan_that_is_no_pipeline_is_refused(situate, model, pair, plan):
    run = situate("export", model, plan, "--cluster", pair, "--to", "vllm", "--out", "out")
    assert run.status == 2
    assert run.err.startswith("error: graph 'diamond' names no layers")
    assert not Path("out").exists()


def test_the_help_names_every_target(situate):
    assert all(target in situate("export", "--help").out for target in TARGETS)


def test_every_target_has_a_writer():
    assert all(callable(import_module(f"situate.writers.{t}").write) for t in TARGETS)


def test_an_onnx_file_is_annotated(situate):
    pytest.importorskip("onnx")
    from tests.readers.models import convolution

    Path("model.onnx").write_bytes(convolution())
    arguments = ("model.onnx", "--cluster", "k80-2", "--method", "single", "--out", "plan.json")
    situate("plan", *arguments, "--evaluations", "200")
    for out in ("placed.onnx", "placed.json"):
        run = situate("export", "model.onnx", "plan.json", "--to", "onnxruntime", "--out", out)
        assert run.status == 0, run.err
        assert b"layer_ann" in Path(out).read_bytes()


def test_an_unknown_target_is_refused_with_the_nearest(situate, model, pair, plan):
    run = situate("export", model, plan, "--cluster", pair, "--to", "dott", "--out", "out")
    assert run.status == 2
    assert "'dot'" in run.err
    assert not Path("out").exists()


def test_a_plan_for_another_graph_is_refused(situate, tmp_path, pair, plan):
    graph_json.write(diamond(control=((1, 2),)), tmp_path / "other.json")
    run = situate("export", "other.json", plan, "--cluster", pair, "--to", "dot", "--out", "out")
    assert (run.status, run.out) == (2, "")
    assert "not what the plan was made for" in run.err
    assert not Path("out").exists()


def test_the_plan_is_not_overwritten(situate, model, pair, plan):
    before = Path(plan).read_bytes()
    run = situate("export", model, plan, "--cluster", pair, "--to", "dot", "--out", plan)
    assert run.status == 2
    assert Path(plan).read_bytes() == before


def test_a_missing_plan_is_refused(situate, model, pair):
    run = situate("export", model, "no.json", "--cluster", pair, "--to", "dot", "--out", "out")
    assert run.status == 2
    assert run.err.startswith("error: no.json: ")


# Slices and recompute go only to tools that can run them.
def test_a_plan_of_slices_goes_to_tools_that_train(situate):
    pytest.importorskip("torch")
    options = ("tests.branches:build", "--slices", "2", "--cluster", "k80-2")
    situate("plan", *options, "--method", "data_parallel", "--out", "plan.json")
    run = situate("export", "plan.json", "--to", "vllm", "--out", "out")
    assert (run.status, run.err.count("\n")) == (2, 1)
    assert "the plan is of slices 2, and vllm takes no op of a slice" in run.err
    run = situate("export", "plan.json", "--to", "pipelining", "--out", "out.json")
    assert run.status == 2
    assert "of a pipeline runs all slices of its modules: the plan is data parallel" in run.err
    assert run.err.endswith("export it to accelerate\n")
    assert not Path("out.json").exists()
    run = situate("export", "plan.json", "--to", "accelerate", "--out", "out")
    assert run.status == 0, run.err
    assert "wrote out\nthe plan is data parallel: each of gpu0, gpu1 runs" in run.err
    assert situate("export", "plan.json", "--to", "dot", "--out", "out").status == 0


def test_the_schedule_beside_overwrites_nothing_of_this_command(situate):
    pytest.importorskip("torch")
    options = ("tests.branches:build", "--slices", "2", "--cluster", "k80-2")
    situate("plan", *options, "--method", "data_parallel", "--out", "plan.csv")
    run = situate("export", "plan.csv", "--to", "pipelining", "--out", "plan.json")
    assert (run.status, run.err) == (
        2,
        "error: cannot write 'plan.csv': it is used twice in this command\n",
    )


def test_a_plan_that_runs_modules_again_is_not_handed_over(situate):
    pytest.importorskip("torch")
    options = ("tests.torch_capture.recompute.models:blocks", "--recompute", "layers.0")
    situate("plan", *options, "--cluster", "k80-2", "--method", "single", "--out", "plan.json")
    run = situate("export", "plan.json", "--to", "accelerate", "--out", "out")
    assert (run.status, run.err.count("\n")) == (2, 1)
    assert (
        "the plan runs layers.0 again before its backward pass, which accelerate cannot" in run.err
    )


# Plans of parts go to tools that cut modules over a mesh, and to drawings.
def test_parts_go_to_tools_that_cut_modules(situate) -> None:
    pytest.importorskip("torch")
    step = ("tests.torch_capture.cuts.networks:perceptron", "--cuts", "features=2")
    method = ("--method", "tensor_parallel")
    situate("plan", *step, "--cluster", "k80-2", *method, "--out", "p.json")
    run = situate("export", "p.json", "--to", "vllm", "--out", "run.sh")
    assert (run.status, run.err.count("error: ")) == (2, 1)
    assert "the plan cuts ops (features=2), which vllm cannot say: export it to dtensor," in run.err
    run = situate("export", "p.json", "--to", "dtensor", "--out", "cut.py")
    assert run.status == 0, run.err
    assert "wrote cut.py\nthe plan is tensor parallel by 2: the parts of features=2" in run.err
    assert " has transfers; with collectives in place of 2 exchanges, the step takes " in run.err
    assert "ColwiseParallel(" in Path("cut.py").read_text()
    assert situate("export", "p.json", "--to", "dot", "--out", "t.dot").status == 0


def test_parts_that_no_mesh_can_express_are_refused_with_the_reason(situate) -> None:
    pytest.importorskip("torch")
    step = ("tests.torch_capture.cuts.networks:perceptron", "--cuts", "features=2")
    situate("plan", *step, "--cluster", "k80-2", "--method", "single", "--out", "p.json")
    run = situate("export", "p.json", "--to", "dtensor", "--out", "cut.py")
    assert (run.status, run.err.count("error: ")) == (2, 1)
    assert "2 parts on 1 device, and a mesh has a device for each" in run.err
    assert run.err.endswith("situate run runs it\n")
    assert not Path("cut.py").exists()


def test_a_file_of_a_step_in_parts_is_exported_too(situate) -> None:
    pytest.importorskip("torch")
    step = "tests.torch_capture.cuts.networks:perceptron"
    situate("convert", step, "cut.json", "--cuts", "features=2")
    options = ("--cluster", "k80-2", "--method", "tensor_parallel", "--out", "p.json")
    situate("plan", "cut.json", *options)
    run = situate("export", "cut.json", "p.json", "--to", "dtensor", "--out", "cut.py")
    assert run.status == 0, run.err
