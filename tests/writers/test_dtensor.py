"""The file for torch.distributed.tensor; tests of its functions run it."""

from __future__ import annotations

import ast
import dataclasses
import py_compile
import warnings

import msgspec
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.errors import PlanError
from situate.writers.cuts.styles import EMBEDDING
from situate.writers.dtensor import write
from tests.writers.cuts.planned import FLOPS, by_part, gpus, on, products


def text_of(problem, schedule, path) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(problem, schedule, path)
    py_compile.compile(str(path), doraise=True)
    return path.read_text(encoding="utf-8")


def constant(text: str, name: str):
    """The value of a constant."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and target.id == name:
                return ast.literal_eval(node.value)
    raise KeyError(name)


# The constants are the mesh and a style for each module.
def test_a_file_names_styles_by_pattern_and_the_mesh(tmp_path) -> None:
    text = text_of(*on(products(), by_part, gpus(2)), tmp_path / "cut.py")
    columns = "input_layouts=Replicate(), output_layouts=Shard(-1), use_local_output=False"
    rows = "input_layouts=Replicate(), output_layouts=Replicate(), use_local_output=False"
    assert f"    'layers.*.up': ColwiseParallel({columns}),\n" in text
    assert f"    'layers.*.down': RowwiseParallel({rows}),\n" in text
    assert constant(text, "MESH") == {"tp": 2}
    assert constant(text, "BLOCKS") == ("layers.0", "layers.1")
    assert constant(text, "DEVICE_TYPE") == "cuda"
    assert "# ranks: 0 gpu0, 1 gpu1\n" in text


@pytest.mark.parametrize(
    ("spread", "mesh"),
    [(True, {"dp_shard": 2, "tp": 2}), (False, {"dp_replicate": 2, "dp_shard": 1, "tp": 2})],
)
def test_teams_are_data_parallel(tmp_path, spread, mesh) -> None:
    def device(op) -> int:
        team = (op.slice or 0) // 2 if op.slice is not None else spread and "layers.1" in op.name
        return 2 * team + (op.part or 0)

    text = text_of(*on(products(slices=4), device, gpus(4)), tmp_path / "cut.py")
    assert constant(text, "MESH") == mesh
    assert "# each team takes 2 slices of 1 samples: divide the loss of each by 2\n" in text


def test_devices_in_another_order_are_numbered_by_the_environment(tmp_path) -> None:
    text = text_of(*on(products(), lambda op: 1 - by_part(op), gpus(2)), tmp_path / "cut.py")
    assert "# ranks: 0 gpu1, 1 gpu0\n# set CUDA_VISIBLE_DEVICES=1,0, which numbers" in text
    cpus = text_of(*on(products(), lambda op: 1 - by_part(op), gpus(2, "cpu")), tmp_path / "c.py")
    assert constant(cpus, "DEVICE_TYPE") == "cpu"
    assert "CUDA_VISIBLE" not in cpus


# Names of the user cannot leave their strings and comments.
def test_names_are_escaped(tmp_path) -> None:
    evil = 'up\'\n"""\nraise SystemExit\n#\u2028'
    graph = products(layers=1)
    parameters = [
        msgspec.structs.replace(p, readers=((evil, EMBEDDING),)) for p in graph.cut_parameters
    ]
    graph = dataclasses.replace(graph, name=evil, cut_parameters=tuple(parameters))
    devices = tuple(Device(f"{evil}{i}", flops=FLOPS) for i in range(2))
    cluster = Cluster(evil, devices, (Link("*", "*", 5e10),))
    text = text_of(*on(graph, by_part, cluster), tmp_path / "cut.py")
    assert "\nraise SystemExit" not in text
    assert ascii(evil) in text


def test_a_plan_of_whole_ops_is_refused(tmp_path) -> None:
    plain = [msgspec.structs.replace(op, part=None) for op in products().ops]
    graph = dataclasses.replace(products(), cuts=None, cut_parameters=(), ops=tuple(plain))
    with pytest.raises(PlanError, match="cuts no op, and dtensor cuts the modules of a plan"):
        write(*on(graph, by_part, gpus(2)), tmp_path / "cut.py")
    assert not list(tmp_path.iterdir())
