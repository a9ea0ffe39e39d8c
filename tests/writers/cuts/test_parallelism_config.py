"""Scripts with the sizes of accelerate's `ParallelismConfig`."""

from __future__ import annotations

import dataclasses
import shlex
import warnings
from pathlib import Path

import msgspec
import pytest

from situate.data.cuts import parse_cuts
from situate.errors import PlanError
from situate.writers.accelerate import write
from tests.writers.cuts.planned import by_part, gpus, on, products


def lines_of(graph, folder: Path, count: int = 2, device=by_part) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(*on(graph, device, gpus(count)), folder / "run.sh")
    return (folder / "run.sh").read_text().splitlines()


def spread(op) -> int:
    """Two teams with two slices each, over which parameters are spread."""
    team = op.slice // 2 if op.slice is not None else op.module.startswith("layers.1")
    return 2 * team + (op.part or 0)


def sizes_of(lines: list[str], patch) -> tuple[int, ...]:
    """The sizes that accelerate reads from a script: data, tensor and context parallelism."""
    accelerate = pytest.importorskip("accelerate")
    from accelerate.commands.launch import launch_command_parser
    from accelerate.utils.launch import prepare_extend_env_parallelism_config

    words = shlex.split(lines[-1].removeprefix("exec "))
    assert words[:2] == ["accelerate", "launch"]
    assert words[-1] == "$@"
    options = launch_command_parser().parse_args([*words[2:-1], "train.py"])
    environment: dict[str, str] = {}
    if options.use_parallelism_config:
        prepare_extend_env_parallelism_config(options, environment)
    exports = (line.removeprefix("export ") for line in lines if line.startswith("export "))
    environment |= dict(line.split("=", 1) for line in exports)
    for name, value in environment.items():
        patch.setenv(name, value)
    assert environment["ACCELERATE_USE_PARALLELISM_CONFIG"] == "true"
    config = accelerate.ParallelismConfig()
    return config.dp_shard_size, config.tp_size, config.cp_size


# accelerate's own parser reads the sizes.
def test_one_team_is_tensor_parallel_without_fsdp(tmp_path: Path, monkeypatch) -> None:
    lines = lines_of(products(), tmp_path)
    assert lines[-1] == 'exec accelerate launch --num_processes 2 --multi_gpu "$@"'
    assert "distributed_config=DistributedConfig(tp_size=2)" in lines[2]
    assert sizes_of(lines, monkeypatch) == (1, 2, 1)


def test_teams_are_fsdp_beside_tensor_parallelism(tmp_path: Path, monkeypatch) -> None:
    lines = lines_of(products(slices=4), tmp_path, 4, spread)
    assert "each team takes batches of 1 and adds the gradients of 2 up" in lines[2]
    assert sizes_of(lines, monkeypatch) == (2, 2, 1)


def test_parts_of_the_sequence_are_context_parallel(tmp_path: Path, monkeypatch) -> None:
    graph = products(cuts="sequence=2")
    whole = [
        msgspec.structs.replace(op, part=None) if op.kind == "parameter" else op for op in graph.ops
    ]
    graph = dataclasses.replace(graph, ops=tuple(whole), cut_parameters=())
    assert sizes_of(lines_of(graph, tmp_path), monkeypatch) == (1, 1, 2)


def test_copies_on_teams_are_refused(tmp_path: Path) -> None:
    def device(op) -> int:
        return 2 * (op.slice or 0) + (op.part or 0)

    with pytest.raises(PlanError, match="accelerate spreads them over teams by FSDP: plan without"):
        lines_of(products(slices=2), tmp_path, 4, device)
    assert not list(tmp_path.iterdir())


def test_norms_on_parts_of_the_sequence_are_said(tmp_path: Path) -> None:
    graph = dataclasses.replace(products(), cuts=parse_cuts(["features=2", "sequence=2"]))
    with pytest.warns(UserWarning, match="accelerate runs them whole on every device"):
        write(*on(graph, by_part, gpus(2)), tmp_path / "run.sh")
