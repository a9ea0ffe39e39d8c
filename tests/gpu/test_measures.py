"""The stages that measure, with the CPU in place of a GPU and small sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from benchmarks.gpu import classes, launches, links, networks  # noqa: E402
from benchmarks.gpu.process import Context, plain  # noqa: E402
from situate.data.op_classes import EFFICIENCY, op_class  # noqa: E402


def context(*arguments: str, path: Path | None = None) -> Context:
    return Context("cpu", True, 0, Path("wheels"), Path("site"), arguments, path)


WORKLOADS = {f"{w.kind} {w.size}": w for w in classes.workloads(context(), torch.float32)}


def test_there_is_a_workload_of_every_op_class_of_one_device() -> None:
    assert {op_class(w.kind) for w in WORKLOADS.values()} == set(EFFICIENCY) - {"collective"}


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_runs_and_says_what_it_moves(name: str) -> None:
    workload = WORKLOADS[name]
    workload.call()
    assert workload.traffic > 0
    assert workload.flops >= 0


def test_a_product_counts_a_multiply_add_twice_and_every_matrix_once() -> None:
    product = WORKLOADS["aten.mm 256 x 24 x 96"]
    assert product.flops == 2 * 256 * 24 * 96
    assert product.traffic == 4 * (256 * 24 + 24 * 96 + 256 * 96)


def test_a_network_is_captured_predicted_and_run(tmp_path: Path) -> None:
    stage = context("cifar_cnn", "float32", path=tmp_path / "figures")
    networks.measure(stage)
    figures: dict[str, Any] = json.loads((tmp_path / "figures").read_bytes())["figures"]
    assert figures["missing_count"] == 0
    assert figures["distinct"] == len(figures["samples"])
    assert figures["predicted_seconds"] > 0
    assert figures["placed"]["losses"] == pytest.approx(figures["eager"]["losses"], rel=1e-5)


def test_an_autocast_loss_is_of_float32_and_computed_in_less() -> None:
    seen: list[torch.dtype] = []

    def loss(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        seen.append(model(x).dtype)
        return model(x).mean()

    step = networks.autocast(loss, torch.bfloat16)
    assert step(torch.nn.Linear(4, 4), torch.randn(2, 4)).dtype == torch.float32
    assert seen == [torch.bfloat16]


def test_a_link_has_the_latency_of_the_smallest_copy_and_the_rate_of_the_largest() -> None:
    kind = {"memory": "pinned", "direction": "to host"}
    rows = [kind | {"bytes": 100, "seconds": 1e-5}, kind | {"bytes": 10**6, "seconds": 2e-5}]
    (link,) = links.summary(rows)
    assert link == kind | {"latency": 1e-5, "bandwidth": pytest.approx(10**6 / 1e-5)}


def test_launches_are_of_ops_that_compute_next_to_nothing() -> None:
    stage = context()
    launches.measure(stage)
    assert all(0 < row["row_seconds"] < 0.1 for row in stage.figures["launches"])


def test_figures_are_plain_numbers_of_six_digits() -> None:
    value = {"a": (torch.tensor(1 / 3), float("inf")), 2: [True, None, "x", 12345678]}
    assert plain(value) == {"a": [0.333333, None], "2": [True, None, "x", 12345678]}
