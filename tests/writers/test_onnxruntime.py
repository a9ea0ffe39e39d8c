"""ONNX Runtime's layer annotations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("onnx")

import onnx

from situate.data.cluster import Cluster, Device, Link
from situate.data.problem import Problem
from situate.errors import PlanError, SituateError
from situate.readers import read
from situate.schedule.schedule import Schedule
from situate.writers.onnxruntime import SeveralOfAKind, layer_annotations, write
from tests.readers.models import convolution, graph, loaded, model, node, value
from tests.report.handmade import chain, schedule

SETTING = "session.layer_assignment_settings"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file with Conv, Relu, Reshape and Gemm, their names left out but for two that are alike."""
    proto = loaded(convolution())
    proto.graph.node[0].name = proto.graph.node[1].name = "twice"
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    return tmp_path / "model.onnx"


def model_plan(source: Path, kinds: tuple[str, ...] = ("cpu", "gpu")) -> tuple[Problem, Schedule]:
    """Conv is on the last device and all else on the first."""
    devices = tuple(Device(f"{k}{i}", kind=k, flops={"float32": 1e9}) for i, k in enumerate(kinds))
    graph = read(source)
    problem = Problem(graph, Cluster("c", devices, (Link("*", "*", 1e9),)))
    last = len(kinds) - 1
    return problem, schedule(problem, [last * (op.kind == "onnx.Conv") for op in graph.ops])


def annotated(path: Path) -> dict[str, str]:
    """The annotation of every node by its type."""
    result = onnx.load(path, load_external_data=False)
    return {n.op_type: p.value for n in result.graph.node for p in n.metadata_props}


# Annotations in a copy of the model, which is otherwise unchanged.
def test_every_node_of_the_copy_is_annotated(source: Path):
    write(*model_plan(source), source.with_name("placed.onnx"), source)
    assert annotated(source.with_name("placed.onnx")) == {
        "Conv": "situate-gpu",
        "Relu": "situate-cpu",
        "Reshape": "situate-cpu",
        "Gemm": "situate-cpu",
    }


def test_nodes_of_a_branch_that_is_planned_in_place_of_its_op_are_annotated(tmp_path: Path):
    """One without an annotation goes with the op that holds it."""
    branch = graph([node("Neg", "r", "n"), node("Exp", "n", "t")], [], [value("t", [4])])
    both = {"then_branch": branch, "else_branch": graph([], [], [value("r", [4])])}
    yes = onnx.helper.make_tensor("yes", onnx.TensorProto.BOOL, [], [True])
    nodes = [node("Relu", "x", "r"), node("If", "yes", "s", **both), node("If", "c", "y", **both)]
    inputs = [value("x", [4]), value("c", [], onnx.TensorProto.BOOL)]
    data = model(nodes, inputs, [value("s", [4]), value("y", [4])], [yes])
    (tmp_path / "model.onnx").write_bytes(data)
    problem, _ = model_plan(tmp_path / "model.onnx")
    plan = schedule(problem, [int(op.kind == "onnx.Exp") for op in problem.graph.ops])
    write(problem, plan, tmp_path / "placed.onnx", tmp_path / "model.onnx")
    relu, listed, unknown = onnx.load(tmp_path / "placed.onnx").graph.node
    inner = [n for a in listed.attribute if a.name == "then_branch" for n in a.g.node]
    results = [[p.value for p in n.metadata_props] for n in (relu, listed, *inner, unknown)]
    gpu, cpu = ["situate-gpu"], ["situate-cpu"]
    assert results == [cpu, gpu, cpu, [], cpu]
    assert not any(n.metadata_props for a in unknown.attribute for n in a.g.node)


def test_the_copy_holds_the_setting_and_is_else_the_same(source: Path):
    write(*model_plan(source), source.with_name("placed.onnx"), source)
    copy = onnx.load(source.with_name("placed.onnx"))
    onnx.checker.check_model(copy)
    assert {p.key: p.value for p in copy.metadata_props} == {
        SETTING: "cpu(=situate-cpu); gpu(=situate-gpu)"
    }
    del copy.metadata_props[:]
    for result in copy.graph.node:
        del result.metadata_props[:]
    assert copy == onnx.load(source)


def test_a_copy_of_a_copy_has_the_new_annotations(source: Path):
    once, twice = source.with_name("once.onnx"), source.with_name("twice.onnx")
    write(*model_plan(source), once, source)
    problem, _ = model_plan(source)
    write(problem, schedule(problem, [0] * problem.n), twice, once)
    assert set(annotated(twice).values()) == {"situate-cpu"}


def test_json_names_the_ops_of_the_graph(source: Path):
    problem, plan = model_plan(source)
    write(problem, plan, source.with_name("placed.json"))
    content = json.loads(source.with_name("placed.json").read_text())
    assert content[SETTING] == "cpu(=situate-cpu); gpu(=situate-gpu)"
    nodes = [op.name for op in problem.graph.ops if op.kind.startswith("onnx.")]
    assert list(content["layer_ann"]) == nodes
    assert content["layer_ann"]["twice"] == "situate-gpu"
    assert content["layer_ann"]["twice#2"] == "situate-cpu"


# Names of devices in ONNX Runtime.
def test_a_second_gpu_alone_goes_by_its_number(source: Path):
    problem, _ = model_plan(source, ("gpu", "gpu"))
    names, setting = layer_annotations(problem, schedule(problem, [1] * problem.n))
    assert set(names.values()) == {"situate-gpu:1"}
    assert setting == "gpu:1(=situate-gpu:1)"


def test_the_number_of_a_gpu_counts_gpus_alone(source: Path):
    problem, _ = model_plan(source, ("npu", "gpu"))
    names, _ = layer_annotations(problem, schedule(problem, [1] * problem.n))
    assert set(names.values()) == {"situate-gpu"}


def test_devices_of_other_kinds_are_accelerators(source: Path):
    problem, _ = model_plan(source, ("tpu",))
    assert layer_annotations(problem, schedule(problem, [0] * problem.n))[1] == (
        "accelerator(=situate-accelerator)"
    )


def test_two_devices_of_one_kind_are_refused(source: Path):
    with pytest.raises(SeveralOfAKind, match=r"'gpu0' and 'gpu1'.*one gpu device"):
        layer_annotations(*model_plan(source, ("gpu", "gpu")))


# Models that cannot be annotated; external weights.
def test_a_graph_of_another_format_is_refused(tmp_path: Path):
    with pytest.raises(PlanError, match="not read from ONNX"):
        write(chain(2), schedule(chain(2), [0, 0]), tmp_path / "out.json")


def external(folder: Path) -> Path:
    """A model whose one weight lies in `weights.bin`, which is not there."""
    proto = loaded(convolution())
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    (folder / "external.onnx").write_bytes(proto.SerializeToString())
    return folder / "external.onnx"


def test_external_weights_stay_where_they_are(tmp_path: Path):
    source = external(tmp_path)
    write(*model_plan(source), tmp_path / "placed.onnx", source)
    copy = onnx.load(tmp_path / "placed.onnx", load_external_data=False)
    assert copy.graph.initializer[0].external_data[0].value == "weights.bin"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["external.onnx", "placed.onnx"]


def test_a_copy_that_would_lose_its_weights_is_refused(tmp_path: Path):
    source = external(tmp_path)
    (tmp_path / "other").mkdir()
    with pytest.raises(SituateError, match="weights lie in files beside"):
        write(*model_plan(source), tmp_path / "other" / "placed.onnx", source)
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize("content", [None, b"no ONNX at all"])
def test_only_an_onnx_file_can_be_annotated(source: Path, content: bytes | None):
    other = source.with_name("other.json")
    if content is not None:
        other.write_bytes(content)
    with pytest.raises(SituateError, match="no ONNX file"):
        write(*model_plan(source), source.with_name("placed.onnx"), other)


def test_functions_are_annotated_by_their_nodes(tmp_path: Path):
    """A plan places the nodes inside of a local function."""
    helper = onnx.helper
    inner = helper.make_function(
        "local", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], [helper.make_opsetid("", 18)]
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
    call = node("Twice", "x", "y", domain="local")
    data = model(
        [call, node("Relu", "y", "z")],
        [value("x", [4])],
        [value("z", [4])],
        functions=[inner],
        opset_imports=opsets,
    )
    source = tmp_path / "model.onnx"
    source.write_bytes(data)
    problem, _ = model_plan(source)
    write(problem, schedule(problem, [0] * problem.n), tmp_path / "placed.onnx", source)
    assert annotated(tmp_path / "placed.onnx") == {"Add": "situate-cpu", "Relu": "situate-cpu"}
