"""torchtitan's modules of each stage."""

from __future__ import annotations

import dataclasses
import tomllib
import warnings
from pathlib import Path
from typing import Any

import pytest

from situate.data.cuts import parse_cuts
from situate.data.graph import Op
from situate.errors import PlanError
from situate.writers.torchtitan import write
from tests.report.handmade import HOSTILE, schedule
from tests.writers.cuts.planned import by_layer, by_part, gpus, products
from tests.writers.cuts.planned import on as planned_on
from tests.writers.layered import layered_plan, network
from tests.writers.slices.staged import on, staged, staged_plan


def export_of(problem: Any, plan: Any, folder: Path) -> dict[str, Any]:
    write(problem, plan, folder / "stages.toml")
    parallelism: dict[str, Any] = tomllib.loads((folder / "stages.toml").read_text())["parallelism"]
    return parallelism


def test_a_model_of_transformers_gets_torchtitans_names(tmp_path: Path):
    assert export_of(*layered_plan([0, 0, 0, 0, 0, 1, 1, 1, 1]), tmp_path) == {
        "pipeline_parallel_degree": 2,
        "module_fqns_per_model_part": [
            ["tok_embeddings", "layers.0", "layers.1", "layers.2", "layers.3"],
            ["layers.4", "layers.5", "norm", "output"],
        ],
    }


def test_other_models_keep_their_names(tmp_path: Path):
    problem = network(("tok", "layers.0", "layers.1", "out.norm", "out.head"))
    result = export_of(problem, schedule(problem, [0, 0, 1, 1, 1]), tmp_path)
    assert result["module_fqns_per_model_part"] == [["tok", "layers.0"], ["layers.1", "out"]]


@pytest.mark.parametrize("path", ["transformer.h", "bert.encoder.layer", "decoder.layers"])
def test_layers_that_torchtitan_would_leave_out_are_refused(path: str, tmp_path: Path):
    """And taken from a model without the modules around them."""
    outer, _, own = path.rpartition(".")
    problem = network((f"{path}.0", f"{path}.1", "head"))
    with pytest.raises(PlanError, match=rf"layers are '{path}'.*'{own}'.*without '{outer}'"):
        write(problem, schedule(problem, [0, 1, 1]), tmp_path / "stages.toml")
    assert not (tmp_path / "stages.toml").exists()
    problem = network((f"{own}.0", f"{own}.1", "head"))
    stages = export_of(problem, schedule(problem, [0, 1, 1]), tmp_path)[
        "module_fqns_per_model_part"
    ]
    assert stages == [[f"{own}.0"], [f"{own}.1", "head"]]


def test_every_module_is_in_one_stage(tmp_path: Path):
    problem, plan = layered_plan([0, 0, 0, 1, 1, 2, 2, 2, 2])
    stages = export_of(problem, plan, tmp_path)["module_fqns_per_model_part"]
    names = [name for stage in stages for name in stage]
    assert len(names) == len(set(names)) == problem.n


def test_hostile_names_are_kept(tmp_path: Path):
    names = [name.replace(".", "") for name in (*HOSTILE, "\x7f")]
    problem = network((*names, "layers.0"))
    stages = export_of(problem, schedule(problem, [0] * problem.n), tmp_path)
    assert stages["module_fqns_per_model_part"] == [
        [name.replace("/", ".").split(".")[0] for name in names] + ["layers.0"]
    ]


def test_slices_come_with_their_schedule_beside(tmp_path: Path):
    problem = on(staged())
    write(problem, staged_plan(problem, (0, 0, 1, 0, 1, 1)), tmp_path / "stages.toml")
    result = tomllib.loads((tmp_path / "stages.toml").read_text())
    assert result["training"] == {"local_batch_size": 8}
    assert result["parallelism"] == {
        "pipeline_parallel_degree": 2,
        "module_fqns_per_model_part": [
            ["embed", "layers.0"],
            ["layers.1"],
            ["layers.2"],
            ["layers.3", "head"],
        ],
        "pipeline_parallel_schedule": "PipelineScheduleMulti",
        "pipeline_parallel_schedule_csv": str(tmp_path / "stages.csv"),
        "pipeline_parallel_microbatch_size": 2,
    }
    first, second = (tmp_path / "stages.csv").read_text().splitlines()
    assert first.startswith("0F0,0F1,2F0,")
    assert second.startswith("1F0,1F1,3F0,")


def test_stages_that_are_not_in_turn_are_refused(tmp_path: Path):
    problem = on(staged())
    with pytest.raises(PlanError, match="on ranks 0, 1, 0, and torchtitan deals them out in turn"):
        write(problem, staged_plan(problem, (0, 0, 1, 1, 0, 0)), tmp_path / "stages.toml")
    assert not list(tmp_path.iterdir())


# Parts are degrees of parallelism, and teams data parallel.
def test_parts_are_degrees(tmp_path: Path):
    cut = planned_on(products(), by_part, gpus(2))
    with pytest.warns(UserWarning, match="2 whole parameters"):
        assert export_of(*cut, tmp_path) == {
            "tensor_parallel_degree": 2,
            "context_parallel_degree": 1,
            "expert_parallel_degree": 1,
            "data_parallel_replicate_degree": 1,
            "data_parallel_shard_degree": 1,
            "enable_sequence_parallel": False,
        }


@pytest.mark.parametrize("is_spread", [False, True])
def test_teams_are_copies_or_shards(tmp_path: Path, is_spread: bool):
    def device(op) -> int:
        spread = is_spread and op.module.startswith("layers.1")
        return 2 * (op.slice if op.slice is not None else spread) + (op.part or 0)

    graph = dataclasses.replace(products(slices=2), cuts=parse_cuts(["features=2", "sequence=2"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        degrees = export_of(*planned_on(graph, device, gpus(4)), tmp_path)
    names = ("replicate", "shard")
    assert [degrees[f"data_parallel_{name}_degree"] for name in names] == (
        [1, 2] if is_spread else [2, 1]
    )
    assert "enable_sequence_parallel" not in degrees
    training = tomllib.loads((tmp_path / "stages.toml").read_text())["training"]
    assert training == {"local_batch_size": 1, "global_batch_size": 2}


# Teams that take turns are stages, and slices their micro-batches.
@pytest.mark.parametrize("slices", [0, 3])
def test_a_pipeline_of_teams_has_stages_and_tensor_parallelism(tmp_path: Path, slices: int):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cut = planned_on(products(layers=4, slices=slices), by_layer, gpus(4))
        table = export_of(*cut, tmp_path)
    assert (table["tensor_parallel_degree"], table["pipeline_parallel_degree"]) == (2, 2)
    assert table["data_parallel_replicate_degree"] == table["data_parallel_shard_degree"] == 1
    assert table["module_fqns_per_model_part"] == [
        ["layers.0", "layers.1"],
        ["layers.2", "layers.3"],
    ]
    training = tomllib.loads((tmp_path / "stages.toml").read_text()).get("training")
    if slices:
        assert table["pipeline_parallel_schedule"] == "1F1B"
        assert table["pipeline_parallel_microbatch_size"] == 1
        assert training == {"local_batch_size": 3, "global_batch_size": 3}
    else:
        assert training is None


def test_pipelines_side_by_side_are_data_parallelism(tmp_path: Path):
    def device(op: Op) -> int:
        return by_layer(op) + 4 * ((op.slice or 0) % 2)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cut = planned_on(products(layers=4, slices=4), device, gpus(8))
        table = export_of(*cut, tmp_path)
    assert (table["tensor_parallel_degree"], table["pipeline_parallel_degree"]) == (2, 2)
    assert table["data_parallel_replicate_degree"] == 2
    training = tomllib.loads((tmp_path / "stages.toml").read_text())["training"]
    assert training == {"local_batch_size": 2, "global_batch_size": 4}
